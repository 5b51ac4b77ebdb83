"""Järvinen and Kojo (2014): CoDel, PIE and HRED under load transients."""
