"""The rules of the verdict. docs/characterize.md lists them, and which were fixed before anything
was measured.

A rule compares the discipline with one other in one section and gives an outcome with the
numbers that led to it. Thresholds are constants, the same for all
disciplines. An
outcome is given only if the whole interval of each number leads to it (see `outcomes`).
"""

from __future__ import annotations

from aqmlab.characterize.rules.alone import ecn, packet_sizes, same_targets, scheduling, sensitivity
from aqmlab.characterize.rules.common import Rule, queue_and_goodput
from aqmlab.characterize.rules.mixes import bidirectional, mix
from aqmlab.characterize.rules.traffic import (
    background,
    bursts,
    in_series,
    levels,
    phases,
    rtt_fairness,
    short_flows,
    unresponsive,
)

RULES: dict[str, Rule] = {
    "4.3.1": same_targets,
    "4.4": packet_sizes,
    "4.5": ecn,
    "4.6": scheduling,
    "5.1.1": queue_and_goodput,
    "5.1.2": short_flows,
    "5.2": queue_and_goodput,
    "5.3": unresponsive,
    "5.4": background,
    "6.2": rtt_fairness,
    "7.1": bursts,
    "7.2": bursts,
    "8.2.2": levels,
    "8.2.3": levels,
    "8.2.4": levels,
    "8.2.5": phases,
    "8.2.6": phases,
    "8.3": sensitivity,
    "9.1": mix,
    "9.2": bidirectional,
    "10.2": in_series,
}
ALONE = ("4.4", "4.5", "4.6", "8.3")
"""Sections whose rule looks at the discipline alone."""
