"""Verdicts on numbers beside a reference, and when a number agrees."""

from __future__ import annotations

from dataclasses import dataclass

from aqmlab.campaign import UNDECIDED
from aqmlab.stats import Interval

__all__ = ["AGREES", "DIFFERS", "UNDECIDED", "UNPUBLISHED", "VERDICTS", "Criterion"]

AGREES, DIFFERS, UNPUBLISHED = "agrees", "differs", "unpublished"
VERDICTS = {
    AGREES: "all of the interval lies within the margin, which stands below the table",
    DIFFERS: "all of it lies outside; the report says why",
    UNDECIDED: "it reaches across an end of the margin, or the replications are too few for one",
    UNPUBLISHED: "the reference has no such number",
}
"""The verdicts on a cell of a table, and what they mean."""

MARGIN = 0.10
"""Relative distance up to which a number agrees."""


@dataclass(frozen=True)
class Criterion:
    """When a number agrees with its reference: within 10 % (`relative`) or `step` if that is more
    (delays at 2 Mbit/s: 6 ms, the transmission time of a packet); of shares near 1, 10 % would be
    too much. Or inside a band that the study makes of its reference, described by `text`."""

    step: float = 0.0
    relative: bool = True
    text: str = ""

    def told(self, unit: str) -> str:
        """The margin in words, for numbers with this unit."""
        if self.text:
            return f"margin: {self.text}"
        step = f"{self.step:g} {unit}" if unit not in ("", "1") else f"{self.step:g}"
        if not self.relative:
            return f"margin: {step}"
        more = f", or a step of the quantity, {step}" if self.step else ""
        return f"margin: {MARGIN:.0%} of the reference{more}".replace("%", " %")

    def verdict(self, reference: float | None, interval: Interval | None) -> str:
        """The verdict on a number with this interval; of a band its study knows it."""
        if reference is None:
            return UNPUBLISHED
        size = MARGIN * abs(reference) if self.relative else 0.0
        margin = max(size, self.step) + 1e-9 * abs(reference)
        return agreement(interval, reference - margin, reference + margin)


def agreement(interval: Interval | None, low: float, high: float) -> str:
    """Whether a number with this interval lies from `low` to `high`."""
    if interval is None:
        return UNDECIDED
    if low <= interval.low and interval.high <= high:
        return AGREES
    return DIFFERS if interval.high < low or interval.low > high else UNDECIDED
