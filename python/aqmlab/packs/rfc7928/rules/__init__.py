"""Judges of the sections. docs/characterize.md lists them, and which were fixed before anything was
measured.

A judge compares the discipline with one other in one section, and returns an outcome with the
numbers that led to it. Thresholds are constants, the same for all disciplines. An outcome is given
only if the whole interval of each number leads to it (`aqmlab.campaign.outcomes`).
"""
