"""Outcomes: how one contender compares with another, and which outcomes the intervals allow.

A judge is a function of a few numbers that only asks on which side of its thresholds each lies.
Every number has the interval of `aqmlab.campaign.rule`. If the judge gives the same outcome over
all of these intervals, that is the verdict; otherwise it is "not decided", with the outcomes that
remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab.campaign.rule import LEVEL, UNDECIDED, Answer, Replicated, reaches
from aqmlab.numbers import finite
from aqmlab.report.document import BAD, GOOD, NEAR, PLAIN, Verdict
from aqmlab.stats import FEWEST

if TYPE_CHECKING:
    from aqmlab.campaign.pack import Question
    from aqmlab.campaign.plan import Filled

BETTER, TRADE, EVEN, WORSE = "better", "trade-off", "even", "worse"
VIOLATION, OPEN = "violation", "not judged"
OUTCOMES = {
    BETTER: "better than the other by the section's rule",
    TRADE: "better in one respect at the cost of another",
    EVEN: "no difference that the rule counts",
    WORSE: "worse than the other by the section's rule",
    VIOLATION: "contradicts an IETF recommendation, whatever the other does",
    UNDECIDED: f"the {100 * LEVEL:.0f} % intervals allow more than one outcome",
    OPEN: "nothing to judge",
}


WORDS = {TRADE: "trade-offs", VIOLATION: "against a recommendation of the IETF"}
"""Outcomes in a sentence, where the word differs."""
TONES = {BETTER: GOOD, TRADE: NEAR, EVEN: PLAIN, WORSE: BAD, VIOLATION: BAD, UNDECIDED: PLAIN,
         OPEN: PLAIN}  # fmt: skip


@dataclass(frozen=True)
class RuleNumber:
    """A number of a rule."""

    value: float
    low: float
    high: float
    edges: tuple[float, ...] = ()
    """The thresholds that the rule holds it against."""
    why: str = ""
    """Why there is no interval; empty where there is one."""

    def to_json(self) -> dict[str, Any]:
        """{"number", "low", "high", "limits"}; NaN and missing ends are null."""
        has_interval = isfinite(self.value) and not self.why
        return {
            "number": finite(self.value),
            "low": self.low if has_interval else None,
            "high": self.high if has_interval else None,
            "limits": list(self.edges),
        }

    @property
    def places(self) -> Sequence[float]:
        """Both ends of the interval, and a value between each two thresholds inside it; without
        an interval a value on each side of all thresholds."""
        low, high = (-inf, inf) if self.why else (self.low, self.high)
        inside = sorted(edge for edge in self.edges if low < edge < high)
        between = [(one + two) / 2 for one, two in pairwise(inside)]
        return (low, *between, high) if high > low else (self.value,)


class Unpaired(ArithmeticError):
    """A draw in which not the same replications of both contenders have a value."""


@dataclass(frozen=True)
class Beside(Replicated):
    """The results of a question with the contender that is judged, and with one other."""

    own: Filled
    other: Filled
    is_drawn: bool = False
    """True for a draw of the replications."""

    @property
    def replications(self) -> int:  # type: ignore[override]
        """Number of replications."""
        return self.own.replications

    def drawn(self, number: int) -> Beside:
        """The same for one draw of the replications."""
        return Beside(self.own.drawn(number), self.other.drawn(number), True)

    def cases(self) -> list[str]:
        """Names of the cases that both have."""
        theirs = set(self.other)
        return [each for each in self.own if each in theirs]

    def pair(self, case: str, metric: str, subject: str) -> tuple[float, float]:
        """Means of the contender and of the other. Raises `Unpaired` for a draw of which not the
        same replications of both have a value: those that have one do not decide for the others, in
        which no page loads."""
        if self.is_drawn:
            both = (each.values(case, metric, subject) for each in (self.own, self.other))
            one, two = map(np.isfinite, both)
            if (one != two).any():
                raise Unpaired
        return self.own.mean(case, metric, subject), self.other.mean(case, metric, subject)

    def typical(
        self, metric: str, *subjects: str, cases: Iterable[str] | None = None
    ) -> tuple[float, float]:
        """Geometric means over the cases (default: all) and subjects that both have."""
        chosen = self.cases() if cases is None else list(cases)
        return geometric([self.pair(case, metric, each) for case in chosen for each in subjects])

    def average(
        self, metric: str, subject: str, cases: Iterable[str] | None = None
    ) -> tuple[float, float]:
        """Arithmetic means over the cases (default: all) that both have."""
        chosen = self.cases() if cases is None else list(cases)
        pairs = [self.pair(case, metric, subject) for case in chosen]
        kept = [each for each in pairs if isfinite(sum(each))]
        own, other = np.mean(kept, axis=0) if kept else (float("nan"), float("nan"))
        return float(own), float(other)

    def measured(self, of: Callable[[Beside], float], *edges: float) -> RuleNumber:
        """A number with its interval over the replications, and the thresholds of the judge."""
        value, count = of(self), self.replications
        if not isfinite(value):
            return RuleNumber(value, value, value, edges)
        if count < FEWEST:
            why = f"{count} values are too few: an interval needs {FEWEST}"
            return RuleNumber(value, value, value, edges, why)
        drawn = np.array([[_of_draw(of, each)] for each in self.draws])
        ((below, above),) = reaches(drawn, count, 1)
        if not isfinite(below[0]):
            return RuleNumber(value, value, value, edges, "some replications have no value")
        return RuleNumber(value, value - float(below[0]), value + float(above[0]), edges)


def _of_draw(of: Callable[[Beside], float], drawn: Beside) -> float:
    try:
        return of(drawn)
    except Unpaired:
        return float("nan")


def geometric(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The geometric means of the pairs whose numbers are both above 0; NaN without any."""
    kept = [(own, other) for own, other in pairs if own > 0 and other > 0]
    if not kept:
        return float("nan"), float("nan")
    own, other = np.exp(np.mean(np.log(kept), axis=0))
    return float(own), float(other)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a question beside one other contender."""

    outcome: str
    text: str
    """The numbers, in words."""
    possible: tuple[str, ...] = ()
    """Outcomes that the intervals allow, if it is not decided."""
    numbers: tuple[RuleNumber, ...] = ()

    def verdict(self, other: str = "") -> Verdict:
        """The outcome with its numbers; `other` is the name of the other contender."""
        text = f"against {other}: {self.text}" if other else self.text
        return Verdict(self.outcome, TONES[self.outcome], OUTCOMES[self.outcome], text)

    def answer(self, question: Question, other: str) -> Answer:
        """The finding as an answer of the question."""
        words = "" if question.alone else f"Against {other}."
        return Answer(
            f"against-{other}", words, self.outcome, self.text, self.numbers, question.source,
            possible=self.possible,
        )  # fmt: skip


def judged(rule: Callable[..., str], words: str, *numbers: RuleNumber) -> Outcome:
    """The finding of a judge that takes the numbers in this order."""
    if not all(isfinite(each.value) for each in numbers):
        return Outcome(OPEN, "nothing was measured")
    seen = rule(*(each.value for each in numbers))
    found = {rule(*values) for values in product(*(each.places for each in numbers))} | {seen}
    possible = tuple(each for each in OUTCOMES if each in found)
    if len(possible) == 1:
        return Outcome(seen, words, (), numbers)
    if why := next((each.why for each in numbers if each.why), ""):
        return Outcome(UNDECIDED, f"{words}; {seen} as measured, but {why}", possible, numbers)
    return Outcome(UNDECIDED, f"{words}; could be {' or '.join(possible)}", possible, numbers)
