"""The outcomes of a verdict, and which of them the intervals of its numbers leave open.

A rule is a function of a few numbers that only asks on which side of its thresholds each lies.
Every number has an interval from `aqmlab.stats`. If the rule gives the same outcome over all of
these intervals, that is the verdict; otherwise it is "not decided", with the outcomes that remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import isfinite

import numpy as np

from aqmlab import stats

BETTER, TRADE, EVEN, WORSE, VIOLATION, UNDECIDED, OPEN = (
    "better",
    "trade-off",
    "even",
    "worse",
    "violation",
    "not decided",
    "not judged",
)
OUTCOMES = {
    BETTER: "better than the other by the section's rule",
    TRADE: "better in one respect at the cost of another",
    EVEN: "no difference that the rule counts",
    WORSE: "worse than the other by the section's rule",
    VIOLATION: "contradicts an IETF recommendation, whatever the other does",
    UNDECIDED: "the 99 % intervals of the replications allow more than one outcome",
    OPEN: "nothing to judge",
}
LEVEL = 0.99
"""Of the intervals of a verdict: a page has some sixty numbers."""


@dataclass(frozen=True)
class Measured:
    """A number of a rule."""

    value: float
    low: float
    high: float
    edges: tuple[float, ...] = ()
    """The thresholds that the rule holds it against."""
    why: str = ""
    """Why there is no interval; empty where there is one."""

    @property
    def places(self) -> Sequence[float]:
        """Both ends of the interval, and a value between each two thresholds inside it."""
        inside = sorted(edge for edge in self.edges if self.low < edge < self.high)
        between = [(one + two) / 2 for one, two in pairwise(inside)]
        return (self.low, *between, self.high) if self.high > self.low else (self.value,)


def jackknifed(of: Callable[[int | None], float], count: int, edges: Sequence[float]) -> Measured:
    """A number that is computed from `count` replications, `of(None)`, with its interval.

    `of(r)` is the number without replication r. The interval is that of `stats` for the mean of
    the jackknife's pseudo-values: n times the number less n - 1 times the number without r. What
    subjects have in common in a replication cancels, as all of them are left out together."""
    value, edges = of(None), tuple(edges)
    if not isfinite(value):
        return Measured(value, value, value, edges)
    left_out = [of(r) for r in range(count)] if count > 1 else []
    pseudo = np.array([count * value - (count - 1) * each for each in left_out] or [value])
    if not np.isfinite(pseudo).all():
        return Measured(value, value, value, edges, "too few replications have a value")
    found = stats.estimate(pseudo, level=LEVEL)
    if found.interval is None:
        if stats.is_constant(pseudo):  # no replication moves the number
            return Measured(value, value, value, edges)
        return Measured(value, value, value, edges, found.why)
    shift = value - found.value
    return Measured(value, found.interval.low + shift, found.interval.high + shift, edges)


@dataclass(frozen=True)
class Finding:
    """What a rule says of one section, against one other discipline."""

    outcome: str
    text: str
    """The numbers, in words."""
    possible: tuple[str, ...] = field(default=())
    """If it is not decided, the outcomes that the intervals allow."""


def judged(rule: Callable[..., str], words: str, *numbers: Measured) -> Finding:
    """The finding of a rule that takes the numbers in this order."""
    if not all(isfinite(each.value) for each in numbers):
        return Finding(OPEN, "nothing was measured")
    seen = rule(*(each.value for each in numbers))
    if any(each.why for each in numbers):
        why = next(each.why for each in numbers if each.why)
        return Finding(UNDECIDED, f"{words}; {seen} as measured, but {why}", (seen,))
    found = {rule(*values) for values in product(*(each.places for each in numbers))} | {seen}
    possible = tuple(each for each in OUTCOMES if each in found)
    if len(possible) == 1:
        return Finding(seen, words)
    return Finding(UNDECIDED, f"{words}; could be {' or '.join(possible)}", possible)
