"""Verdicts on numbers beside a reference, and on statements; and when a number agrees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aqmlab.stats import Interval

AGREES, CLOSE, DIFFERS, UNPUBLISHED = "agrees", "close", "differs", "unpublished"
VERDICTS = {
    AGREES: "by the rule that stands below the table",
    CLOSE: "within 10 % of the reference, or the reference lies in our 95 % interval",
    DIFFERS: "neither; the report says why",
    UNPUBLISHED: "the reference has no such number",
}
"""The verdicts on a cell of a table, and what they mean."""

HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"
CLAIM_VERDICTS = {
    HOLDS: "our runs show the same",
    PARTLY: "our runs show the same for some of the queues or loads, named in the evidence",
    FAILS: "our runs show otherwise",
}
"""The verdicts on a statement of a study, and what they mean."""

RELATIVE, STEP, POINTS, BAND = "relative", "step", "points", "band"
NEAR, FAR = 0.05, 0.10
"""Relative distances up to which a number agrees, and is close."""


@dataclass(frozen=True)
class Criterion:
    """When a number agrees with its reference: a kind, of which a table has one.

    * `relative`: within 5 %;
    * `step`: within 5 %, or within the step in which the quantity comes (delays at 2 Mbit/s:
      6 ms, the transmission time of a packet);
    * `points`: within `step`, whatever the number: of shares near 1, 5 % would be too much;
    * `band`: inside a band that the study makes of its reference, `text`. Nothing is close then.
    """

    kind: str = RELATIVE
    step: float = 0.0
    text: str = ""

    @staticmethod
    def within(step: float, *, relative: bool = True) -> Criterion:
        """Within 5 % or `step`, or within `step` alone."""
        if not relative:
            return Criterion(POINTS, step)
        return Criterion(STEP, step) if step else Criterion()

    @staticmethod
    def band(text: str) -> Criterion:
        """Inside a band."""
        return Criterion(BAND, text=text)

    def told(self, unit: str) -> str:
        """In words, for numbers with this unit."""
        step = f"{self.step:g} {unit}" if unit not in ("", "1") else f"{self.step:g}"
        return {
            RELATIVE: "agrees: within 5 % of the reference",
            STEP: f"agrees: within 5 % of the reference, or within a step of it, {step}",
            POINTS: f"agrees: within {step} of the reference; close: the reference lies in our "
            "95 % interval",
            BAND: f"agrees: {self.text}; no number is close",
        }[self.kind]

    def verdict(self, reference: float | None, measured: float, interval: Interval | None) -> str:
        """The verdict on a measured number; not for a `band`, which its study knows."""
        if reference is None:
            return UNPUBLISHED
        off = abs(measured - reference)
        rounding = 1e-9 * max(abs(reference), abs(measured))
        size = 0.0 if self.kind == POINTS else abs(reference)
        if off <= max(NEAR * size, self.step) + rounding:
            return AGREES
        if off <= FAR * size + rounding or (interval is not None and reference in interval):
            return CLOSE
        return DIFFERS


def graded(kept: Iterable[bool]) -> str:
    """The verdict on a statement of several parts: it holds if all of them do."""
    told = [bool(each) for each in kept]
    return HOLDS if all(told) else PARTLY if any(told) else FAILS


def graded_share(right: int, total: int, *, holds: float = 1.0) -> str:
    """The verdict on a statement about many cases: it holds if it is so in a share of `holds`,
    and in part if it is in half of them."""
    return HOLDS if right >= holds * total else PARTLY if right >= 0.5 * total else FAILS
