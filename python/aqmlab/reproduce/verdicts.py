"""Verdicts on numbers beside a reference, and when a number agrees."""

from __future__ import annotations

from dataclasses import dataclass

from aqmlab.campaign import UNDECIDED
from aqmlab.stats import Interval

__all__ = ["AGREES", "DIFFERS", "UNDECIDED", "UNPUBLISHED", "VERDICTS", "Criterion"]

AGREES, DIFFERS, UNPUBLISHED = "agrees", "differs", "unpublished"
VERDICTS = {
    AGREES: "all of the 95 % interval lies within the margin, which stands below the table",
    DIFFERS: "all of the interval lies outside of it; the report says why",
    UNDECIDED: "the interval reaches across an end of the margin, or there is no interval",
    UNPUBLISHED: "the reference has no such number",
}
"""The verdicts on a cell of a table, and what they mean."""

RELATIVE, STEP, POINTS, BAND = "relative", "step", "points", "band"
MARGIN = 0.10
"""Relative distance up to which a number agrees."""


@dataclass(frozen=True)
class Criterion:
    """When a number agrees with its reference: a kind, of which a table has one.

    * `relative`: within 10 %;
    * `step`: within 10 %, or within the step in which the quantity comes (delays at 2 Mbit/s:
      6 ms, the transmission time of a packet);
    * `points`: within `step`, whatever the number: of shares near 1, 10 % would be too much;
    * `band`: inside a band that the study makes of its reference, `text`.
    """

    kind: str = RELATIVE
    step: float = 0.0
    text: str = ""

    @staticmethod
    def within(step: float, *, relative: bool = True) -> Criterion:
        """Within 10 % or `step`, or within `step` alone."""
        if not relative:
            return Criterion(POINTS, step)
        return Criterion(STEP, step) if step else Criterion()

    @staticmethod
    def band(text: str) -> Criterion:
        """Inside a band."""
        return Criterion(BAND, text=text)

    def told(self, unit: str) -> str:
        """The margin in words, for numbers with this unit."""
        step = f"{self.step:g} {unit}" if unit not in ("", "1") else f"{self.step:g}"
        return {
            RELATIVE: "margin: 10 % of the reference",
            STEP: f"margin: 10 % of the reference, or a step of the quantity, {step}",
            POINTS: f"margin: {step}",
            BAND: f"margin: {self.text}",
        }[self.kind]

    def verdict(self, reference: float | None, interval: Interval | None) -> str:
        """The verdict on a number with this interval; not for a `band`, which its study knows."""
        if reference is None:
            return UNPUBLISHED
        size = 0.0 if self.kind == POINTS else abs(reference)
        margin = max(MARGIN * size, self.step) + 1e-9 * abs(reference)
        return agreement(interval, reference - margin, reference + margin)


def agreement(interval: Interval | None, low: float, high: float) -> str:
    """Whether a number with this interval lies from `low` to `high`."""
    if interval is None:
        return UNDECIDED
    if low <= interval.low and interval.high <= high:
        return AGREES
    return DIFFERS if interval.high < low or interval.low > high else UNDECIDED
