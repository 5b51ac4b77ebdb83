"""Rules: numbers beside limits, and whether the replications decide on which side they lie.

A rule measures something, and compares numbers that are made of it with limits: `below(p95, 0.03)`.
The statement holds if every number is on the right side of its limit.

Every number has a 99 % interval. Its standard error is the spread of the number over `DRAWS`
samples of the replications, drawn with replacement (Efron's bootstrap; times n / (n - 1), as the
spread of a sample is too small by that). The interval is that standard error times Student's t with
n - 1 degrees of freedom, the tails shared out by the skewness as in `aqmlab.stats`: that of the
influence of each replication on the number, found by least squares from how often the draws have
it. Replications are drawn as a whole: what queues have in common in a replication cancels in
differences. For a mean this is the interval of `stats`; unlike the jackknife it also works for
quantiles, medians and counts.

* **holds**: all of every interval is on the right side;
* **does not hold**: all of one interval is on the wrong side. Of k comparisons each interval then
  has the level 1 - 0.01 / k, so that many comparisons do not refute a statement by chance;
* **not decided**: neither, or fewer than `FEWEST` replications. The evidence then states about how
  many replications would decide, if the number and its spread stayed the same.

Where results are judged at each of k planned looks (`Replicated.looks`), until all is decided, the
1 % is divided by k (Bonferroni): all looks together decide a number that lies on its limit in at
most 1 of 100 cases, if its values are normally distributed; docs/packs.md has the shares of others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from aqmlab import libraries
from aqmlab.metrics import scale, with_unit
from aqmlab.metrics.samples import Floats, Whole
from aqmlab.numbers import finite
from aqmlab.stats import FEWEST, UNBOUNDED, Bounds, Interval, limits, t_intervals

if TYPE_CHECKING:
    from aqmlab.campaign.outcomes import RuleNumber

LEVEL = 0.99
"""Level of the intervals of a verdict: a page has some sixty numbers."""
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided"
VERDICTS = {
    HOLDS: f"all of each {100 * LEVEL:.0f} % interval is on the statement's side of its limit",
    FAILS: f"all of a {100 * LEVEL:.0f} % interval is on the other side",
    UNDECIDED: "the replications allow both",
}
"""The verdicts, and what they mean."""
VERBS = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is not decided", "are not decided"),
}
"""The verdict of one comparison, and of several."""
DRAWS = 200
ROUNDING = 1e-9
"""Relative distance at which a number equals its limit."""
FAR = 100
"""Replications that would decide are named up to so many times those there are."""
MOST = 1e12
"""Larger distances (of ratios to 0) count as this."""

Data = TypeVar("Data", bound="Replicated")
Found = TypeVar("Found")


class NotRun(KeyError):
    """The results lack a point or part that a rule, table or figure needs."""


def made(makers: Iterable[Callable[[Data], Any]], data: Data) -> list[Any]:
    """Returns the results of functions in order, one or several each; a function whose points were
    not run has none."""
    found: list[Any] = []
    for make in makers:
        with suppress(NotRun):
            each = make(data)
            found += list(each) if isinstance(each, Iterable) else [each]
    return found


class Replicated(ABC):
    """Results from which replications can be drawn with replacement."""

    replications: int
    looks: int = 1
    """Planned looks at the results, this one included: as replications are added until decided."""

    @abstractmethod
    def drawn(self, number: int) -> Self:
        """The same results for the replications `picks(self.replications)[number]`."""

    @cached_property
    def draws(self) -> list[Self]:
        """Samples of the replications."""
        return [self.drawn(number) for number in range(DRAWS)]


@cache
def picks(replications: int) -> Whole:
    """The replications of each draw: shape (draws, replications)."""
    random = np.random.Generator(np.random.PCG64(replications))
    return random.integers(0, replications, size=(DRAWS, replications))


@cache
def often(replications: int) -> Floats:
    """Number of times that each draw has each replication: shape (draws, replications)."""
    counts = [np.bincount(each, minlength=replications) for each in picks(replications)]
    return np.array(counts, dtype=np.float64)


@cache
def _influence(replications: int, draws: int) -> Floats:
    """Matrix that turns the numbers of the draws into the influences of the replications on them:
    shape (replications, draws)."""
    return np.asarray(np.linalg.pinv(often(replications)[:draws] - 1.0), dtype=np.float64)


def reaches(drawn: Floats, replications: int, *many: int) -> list[tuple[Floats, Floats]]:
    """Reaches of the intervals of numbers below and above them, each as one of `many`; from
    their values in each draw, shape (draws, numbers). Infinite where a draw has no value."""
    with np.errstate(invalid="ignore"):
        drawn = np.clip(drawn, -MOST, MOST)
        spread = drawn.std(axis=0, ddof=1) * (replications / (replications - 1)) ** 0.5
        shape = _influence(replications, len(drawn)) @ np.nan_to_num(drawn - drawn.mean(axis=0))
        rounding = spread <= ROUNDING * np.abs(drawn).max(axis=0)
    error = np.where(np.isfinite(spread), np.where(rounding, 0.0, spread), np.inf)
    found = (t_intervals(shape.T, (1 - LEVEL) / each) for each in many)
    return [(error * below, error * above) for _, _, below, above in found]


def mean_interval(values: Floats) -> Interval:
    """The interval that the mean of values, one a replication, has in a statement."""
    low, high = limits(values[None], 1 - LEVEL)
    return Interval(low.item(), high.item(), LEVEL)


def _student(replications: int, many: int) -> float:
    """Half length of the interval of one of `many` numbers without skewness, in standard errors."""
    return float(libraries.special.stdtrit(replications - 1, 1 - (1 - LEVEL) / 2 / many))


@dataclass(frozen=True)
class Comparison:
    """A number beside its limit."""

    number: float
    limit: float
    upwards: bool
    """Whether the number has to be above the limit."""
    equal: bool
    """True if the number may equal the limit."""
    name: str = ""
    unit: str = ""
    """Unit of the number, as metrics have it."""
    bounds: Bounds = UNBOUNDED
    """The least and the largest value that the number can have."""

    @property
    def slack(self) -> float:
        """Distance from the limit, above 0 on the right side."""
        off = self.number - self.limit if self.upwards else self.limit - self.number
        rounding = ROUNDING * max(abs(self.limit), 1e-3)
        return off + rounding if self.equal else off - rounding

    @property
    def limit_is_above(self) -> bool:
        """Whether the limit is above the number, or would be if it were on it."""
        return self.upwards != (self.slack > 0)

    @property
    def side(self) -> str:
        """`above`, `at most`."""
        return (("below", "at most"), ("above", "at least"))[self.upwards][self.equal]

    def told(self, *values: float) -> str:
        """Values in the unit in which people read it: `13.6 ms`, `12 to 15.2 ms`."""
        if np.isnan(values).any():
            return "no value"
        unit, factor = scale(self.unit, max(abs(self.number), abs(self.limit)))
        return with_unit(" to ".join(f"{factor * each:.4g}" for each in values), unit)


def above(number: float, limit: float, name: str = "") -> Comparison:
    """The number has to be above the limit."""
    return Comparison(float(number), float(limit), True, False, name)


def at_least(number: float, limit: float, name: str = "") -> Comparison:
    """The number has to be the limit or above."""
    return Comparison(float(number), float(limit), True, True, name)


def below(number: float, limit: float, name: str = "") -> Comparison:
    """The number has to be below the limit."""
    return Comparison(float(number), float(limit), False, False, name)


def at_most(number: float, limit: float, name: str = "") -> Comparison:
    """The number has to be the limit or below."""
    return Comparison(float(number), float(limit), False, True, name)


def within(number: float, target: float, margin: float, name: str = "") -> list[Comparison]:
    """The number may be off the target by `margin`."""
    return [at_least(number, target - margin, name), at_most(number, target + margin, name)]


Compared = Comparison | Iterable["Compared"]


def _flat(compared: Compared) -> Iterator[Comparison]:
    if isinstance(compared, Comparison):
        yield compared
    else:
        for each in compared:
            yield from _flat(each)


@dataclass(frozen=True)
class Decided:
    """A comparison with the interval of its number, and its verdict."""

    comparison: Comparison
    reach: tuple[float, float] | None
    """Reach of the 99 % interval below and above the number; None without one."""
    verdict: str
    needed: float = np.inf
    """Replications that would decide it, if the number and its spread stayed the same."""

    @property
    def distance(self) -> float:
        """Distance from the limit, as a multiple of how far the interval reaches towards it; below
        0 on the wrong side."""
        towards = self.reach[self.comparison.limit_is_above] if self.reach else 1e300
        return float(np.nan_to_num(self.comparison.slack / max(towards, 1e-300)))

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval, within the bounds of the number; it decides without them."""
        if self.reach is None:
            return None
        number, (below, above) = self.comparison.number, self.reach
        found = Interval(number - below, number + above).inside(self.comparison.bounds)
        return found.low, found.high

    @property
    def text(self) -> str:
        """`36 ms (33 to 40 ms), wanted: below 42 ms`."""
        each = self.comparison
        name = f"{each.name} " if each.name else ""
        ends = f" ({each.told(*self.ends)})" if self.ends else ""
        return f"{name}{each.told(each.number)}{ends}, wanted: {each.side} {each.told(each.limit)}"

    def to_json(self) -> dict[str, Any]:
        """{"name", "number", "low", "high", "wanted", "limit", "verdict"}."""
        each = self.comparison
        low, high = self.ends or (None, None)
        return {
            "name": each.name,
            "number": finite(each.number),
            "low": low,
            "high": high,
            "wanted": each.side,
            "limit": each.limit,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Answer:
    """A statement, and what the runs say about it."""

    id: str
    text: str
    verdict: str
    """One of `VERDICTS`."""
    evidence: str
    """The rule and the numbers, in words."""
    comparisons: tuple[Decided | RuleNumber, ...] = ()
    """The numbers that decide."""
    source: str = ""
    own: bool = False
    """Whether the statement is the project's own, and not one of the document."""
    possible: tuple[str, ...] = ()
    """Outcomes that the intervals allow, if it is not decided."""
    must_show: bool = False
    """Whether the runs must show it: a check fails also if it is not decided."""

    def to_json(self) -> dict[str, Any]:
        """All of it; docs/packs.md describes the keys."""
        keys = ("id", "text", "source", "own", "must_show", "verdict", "evidence")
        found: dict[str, Any] = {key: getattr(self, key) for key in keys}
        found["possible"] = list(self.possible)
        return found | {"comparisons": [each.to_json() for each in self.comparisons]}


@dataclass(frozen=True)
class Rule(Generic[Data, Found]):
    """One statement of a document, and the numbers that decide it."""

    id: str
    text: str
    """The statement, with the place where the document makes it."""
    rule: str
    """The rule with its margin in words, as the evidence shows it."""
    measure: Callable[[Data], Found | None]
    """What the statement is judged by; None, or `NotRun` raised, if it was not run."""
    compared: Callable[[Found], Compared]
    """The comparisons, always the same number of them in the same order."""
    told: Callable[[Found], str]
    """Finding in words, without a full stop."""
    refuted_by: Found | None = None
    """A result that refutes the statement: the tests feed it to the rule."""
    beside: Callable[[Data], str] | None = None
    """Results of other settings in words: shown, but not part of the verdict."""
    source: str = ""
    own: bool = False
    """Whether the statement is the project's own, and not one of the document."""
    must_show: bool = False
    """Whether the runs must show it: a check fails also if it is not decided."""
    baseline: bool = False
    """True if it compares with the campaign's baseline."""

    def measured(self, data: Data) -> Found | None:
        """Numbers that decide it; None if they were not run."""
        try:
            return self.measure(data)
        except NotRun:
            return None

    def comparisons(self, found: Found) -> tuple[Comparison, ...]:
        """The comparisons in one row."""
        return tuple(_flat(self.compared(found)))

    def holds(self, found: Found) -> bool:
        """True if every number is on the right side of its limit."""
        return all(each.slack > 0 for each in self.comparisons(found))

    def _decide(self, data: Data, found: Found) -> list[Decided]:
        """The comparisons with their intervals."""
        here = self.comparisons(found)
        if data.replications < FEWEST:
            return [Decided(each, None, UNDECIDED) for each in here]
        drawn = np.array([self._distances(each, len(here)) for each in data.draws])
        count = data.replications
        shared = [many * data.looks for many in (1, len(here))]
        one, all_of_them = (np.transpose(each) for each in reaches(drawn, count, *shared))
        decided = []
        for each, reach, cautious in zip(here, one, all_of_them, strict=True):
            towards = (reach, cautious)[each.slack < 0][int(each.limit_is_above)]
            verdict = UNDECIDED
            if abs(each.slack) > towards:
                verdict = HOLDS if each.slack > 0 else FAILS
            many = shared[each.slack < 0]
            relative = towards / _student(count, many) / max(abs(each.slack), 1e-300)
            needed = _needed(count, float(np.nan_to_num(relative, nan=np.inf)), many)
            ends = (float(reach[0]), float(reach[1])) if np.isfinite(reach).all() else None
            decided.append(Decided(each, ends, verdict, needed))
        return decided

    def _distances(self, data: Data, count: int) -> list[float]:
        """The distances above the limits in one draw; NaN where a number cannot be computed."""
        try:
            found = self.measure(data)
            assert found is not None, self.id
            return [(-each.slack, each.slack)[each.upwards] for each in self.comparisons(found)]
        except ArithmeticError:
            return [float("nan")] * count

    def answer(self, data: Data) -> Answer | None:
        """Returns the statement with its verdict; None if runs for it are missing."""
        try:
            found = self.measured(data)
            if found is None:
                return None
            made = self._decide(data, found)
        except ArithmeticError:
            return self._answer(UNDECIDED, f"Rule: {self.rule}. A number cannot be computed.", [])
        evidence = f"Rule: {self.rule}. "
        with suppress(ArithmeticError):
            evidence += f"Found: {self.told(found)}. "
        evidence += _deciding(made, data)
        with suppress(NotRun, ArithmeticError):
            if self.beside and (beside := self.beside(data)):
                evidence += f" Beside it, not counted: {beside}."
        return self._answer(_of_all(made), evidence, made)

    def _answer(self, verdict: str, evidence: str, made: Iterable[Decided]) -> Answer:
        return Answer(
            self.id, self.text, verdict, evidence, tuple(made), self.source, self.own,
            must_show=self.must_show,
        )  # fmt: skip


def _of_all(made: Iterable[Decided]) -> str:
    words = {each.verdict for each in made}
    return FAILS if FAILS in words else HOLDS if words == {HOLDS} else UNDECIDED


def _deciding(made: list[Decided], data: Replicated) -> str:
    """The comparison that decides, how many there are, and what would decide an open one."""
    least = min(made, key=lambda each: each.distance)
    if least.reach is None:
        if data.replications < FEWEST:
            return f"No interval: it needs {FEWEST} replications."
        return f"No interval: some of the {data.replications} replications lack a value."
    words = [each.verdict for each in made]
    found = ((words.count(word), verbs) for word, verbs in VERBS.items())
    counts = ", ".join(f"{many} {verbs[many > 1]}" for many, verbs in found if many)
    start = "Compared" if len(made) == 1 else f"Of {len(made)} comparisons {counts}; decisive"
    text = f"{start}, with the {100 - 100 * (1 - LEVEL) / data.looks:.3g} % interval: {least.text}."
    return f"{text} {_told_needed(made, data)}" if _of_all(made) == UNDECIDED else text


def _needed(count: int, error: float, many: int) -> float:
    """The replications with which the interval would end at the limit, if `error` is the standard
    error of `count` of them as a share of the distance to it."""
    needed = float(count)
    for _ in range(4):  # Student's t depends little on their number
        needed = count * (error * _student(int(min(max(needed, count), 1e9)), many)) ** 2
    return needed


def _told_needed(made: list[Decided], data: Replicated) -> str:
    """About how many replications would decide an open statement. One number on the wrong side
    refutes it; for it to hold, all have to be decided."""
    wrong = [each.needed for each in made if each.comparison.slack < 0]
    most = min(wrong, default=max(each.needed for each in made if each.verdict == UNDECIDED))
    if most > FAR * data.replications:
        return (
            f"It is on its limit, as far as {data.replications} replications tell: more than "
            f"{FAR * data.replications:,} would be needed."
        )
    rounded = int(float(f"{max(most, data.replications + 1):.2g}"))
    return f"About {max(rounded, data.replications + 1):,} replications would decide it."


@dataclass(frozen=True)
class Asked:
    """A rule with the results that it is asked of."""

    rule: Rule[Any, Any]
    data: Any

    @cached_property
    def _measured(self) -> Any:
        return self.rule.measured(self.data)

    @property
    def was_run(self) -> bool:
        """Whether the results have what the rule needs."""
        try:
            return self._measured is not None
        except ArithmeticError:
            return True

    @property
    def holds(self) -> bool:
        """True if all numbers are on the right side of their limits."""
        try:
            return self.rule.holds(self._measured)
        except ArithmeticError:
            return False

    def answer(self) -> Answer:
        """The answer. Raises `ValueError` if the results lack what the rule needs."""
        found = self.rule.answer(self.data)
        if found is None:
            raise ValueError(f"{self.rule.id}: the results lack what it needs")
        return found


def asked(rules: Iterable[Rule[Data, Any]], data: Data) -> list[Asked]:
    """Returns the rules whose numbers `data` contains, in order."""
    return [each for rule in rules if (each := Asked(rule, data)).was_run]


def answers(rules: Iterable[Rule[Data, Any]], data: Data) -> list[Answer]:
    """Returns the answers of the rules whose numbers `data` contains, in order."""
    return [found for rule in rules if (found := rule.answer(data)) is not None]
