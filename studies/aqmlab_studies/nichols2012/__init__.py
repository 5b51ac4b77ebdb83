"""Nichols and Jacobson (2012): CoDel, tail drop and RED over rates and round-trip times."""
