"""Replays what reference implementations of queue disciplines did, packet by packet."""

from __future__ import annotations

from aqmlab.conformance.case import RecordedCase
from aqmlab.conformance.folder import find_cases, read_case
from aqmlab.conformance.replay import Report, check, compare, replay
from aqmlab.conformance.run import check_all

__all__ = [
    "RecordedCase",
    "Report",
    "check",
    "check_all",
    "compare",
    "find_cases",
    "read_case",
    "replay",
]
