"""Best and worst of several labels, with a test of the difference.

Best and worst are named after the data were seen, of many labels, in many measures, at many
places. That is what the test has to allow for:

1. Within one **contest** (one measure at one place) the largest difference among the means is set
   against the distribution of the studentized range (Tukey), which is that of the largest
   difference among equal means. Where the labels share their random streams the replication is a
   block (differences within a replication), otherwise the labels are independent samples.
2. The variance is that of all labels together; queues differ in theirs, so a pair is also tested
   by its own differences alone (paired t, or Welch's), and the larger p-value counts. The tails of
   this test are split as those of the intervals of both means are: with equal tails the intervals
   of skewed measures, such as page load times, cover 83 to 91 % on runs of the engine.
3. Over all contests of a page the p-values are held against Holm's levels. The first measure,
   the one the study is about, has as much weight as all others together.

So the chance that a page says anything at all that is not so is 5 %, however much it compares.
The interval of an effect is the one that this test gives: it holds 0 where nothing is shown. How
far it reaches towards 0 is the difference of the means that would have been shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aqmlab import libraries
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.stats.intervals import LEVEL, after_looks, split, tail_parts

SHOWN, NOT_SHOWN = "shown", "not shown"
LEAST_CHANCE = 1e-60
"""Chances are not told from smaller ones."""

UNSEEN = 3.0
"""Events that n runs without any may hide: at 95 %, up to 3/n of all runs have one (Hanley and
Lippman-Hand 1983, JAMA 249, pages 1743 to 1745). Means of two labels may differ by so many."""
LEAST = 10
"""The tails of fewer values are those of so many: two samples seldom both lack large values."""
MORE_USED = 1.5
"""For the same reason up to so many times 5 % more are used than for the intervals of the means,
less a tenth of it a replication. Both found by simulation (docs/statistics.md)."""


@dataclass(frozen=True)
class Contest:
    """One measure at one place: the values of each label, one a replication."""

    measure: str
    unit: str
    samples: Mapping[str, Floats]
    direction: int = LESS
    """`MORE` where more is better, `LESS` where less is."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Axis to label, of the axes that are not compared."""
    paired: bool = True
    """True if replication r of all labels had the same random streams."""
    first: bool = False
    """True for the measure that the study is about."""
    copies: Sequence[str] = ()
    """Labels whose replications are copies of one run."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Labels that are not tested, with the number of their runs without a value."""
    span: float = inf
    """Largest possible difference, in the unit."""
    event: float = 0.0
    """Change of the value of a run by one rare event, in the unit (`Metric.event`)."""


@dataclass(frozen=True)
class ContestResult:
    """Result of one contest."""

    measure: str
    unit: str
    where: Mapping[str, str]
    best: tuple[str, ...]
    """Labels that differ from the worst, but not from the best; empty if nothing is shown."""
    worst: tuple[str, ...]
    verdict: str
    effect: float
    """The mean of the worst less that of the best as they were seen, in the unit."""
    low: float
    high: float
    """Ends of the interval of the test. The level 95 % is that of all that the page shows: the
    interval of what is shown late in Holm's order alone has a level closer to 95 %."""
    detectable: float
    """A difference of the means as large as this would have been shown. A true difference of this
    size is, in half of all studies: the means differ by more or by less."""
    level: float
    method: str
    means: Mapping[str, float]
    """The mean of each label, the best seen first."""
    why: str = ""
    """Why nothing could be tested; empty where it was."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Labels that are not tested, with the number of their runs without a value."""

    @property
    def shown(self) -> bool:
        """True if the difference is significant."""
        return self.verdict == SHOWN

    def difference_of(self, label: str) -> tuple[float, float]:
        """Ends of the interval of the mean of one of two labels less that of the other."""
        return (self.low, self.high) if list(self.means)[-1] == label else (-self.high, -self.low)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields, numbers unrounded; None for missing numbers."""
        return {name: _plain(value) for name, value in vars(self).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {label: _plain(each) for label, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and not isfinite(value) else value


def compare(
    contests: Sequence[Contest], level: float = LEVEL, *, looked: bool = False
) -> list[ContestResult]:
    """Returns the finding of each contest of one page, with `level` for all of them together.
    `looked`: replications were added until an interval was short enough."""
    tests = [_Test(each) for each in contests]
    weights = _weights(contests, [each.why == "" for each in tests])
    alpha = 1 - (after_looks(level) if looked else level)
    alphas = _holm([each.chance for each in tests], weights, alpha)
    return [_finding(test, alpha, level) for test, alpha in zip(tests, alphas, strict=True)]


def _weights(contests: Sequence[Contest], tested: Sequence[bool]) -> list[float]:
    """The weights of Holm's procedure; they add up to 1."""
    count = Counter(each.first for each, use in zip(contests, tested, strict=True) if use)
    return [
        1 / len(count) / count[each.first] if use else 0.0
        for each, use in zip(contests, tested, strict=True)
    ]


def _holm(chances: Sequence[float], weights: Sequence[float], alpha: float) -> list[float]:
    """The level at which each is tested: Holm's procedure with weights. From the first that is
    not rejected on, all have its share of the level."""
    levels = [0.0] * len(chances)
    tested = [place for place, weight in enumerate(weights) if weight > 0]
    left = sum(weights[place] for place in tested)
    stopped = False
    for place in sorted(tested, key=lambda each: chances[each] / weights[each]):
        levels[place] = alpha * weights[place] / left
        if chances[place] > levels[place]:
            stopped = True
        if not stopped:
            left = max(left - weights[place], weights[place] * 1e-9)
    return levels


def pooled_variance(samples: Sequence[Floats], *, paired: bool) -> tuple[float, float]:
    """The variance of all labels together and its degrees of freedom; of `paired` samples that of
    what is left without the means of labels and of replications."""
    if paired:
        table = np.array(samples)
        rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        freedom = float((table.shape[0] - 1) * (table.shape[1] - 1))
        rest[np.abs(rest) <= 1e-12 * np.abs(table).max()] = 0.0  # rounding
        return float((rest**2).sum()) / freedom, freedom
    freedom = float(sum(each.size - 1 for each in samples))
    return sum(float(((each - each.mean()) ** 2).sum()) for each in samples) / freedom, freedom


class _Test:
    """The differences of one contest: their errors, and the chance of the largest."""

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.why = ""
        self.chance = 1.0
        self.pairs: dict[tuple[int, int], tuple[float, float]] = {}
        samples = {name: np.asarray(v, dtype=float) for name, v in contest.samples.items()}
        sign = -1.0 if contest.direction == MORE else 1.0
        means = dict(zip(samples, _means(list(samples.values())), strict=True))
        self.names = sorted(
            (name for name in means if isfinite(means[name])), key=lambda each: sign * means[each]
        )
        self.means = {name: means[name] for name in self.names}
        self.rounding = 1e-12 * max(map(abs, self.means.values()), default=0.0)
        self.samples = [samples[name] for name in self.names]
        self.why = self._obstacle()
        if not self.why:
            self._errors()
            self.chance = self.p(0, len(self.names) - 1)

    def _obstacle(self) -> str:
        sizes = [each.size for each in self.samples]
        if len(self.names) < 2:
            return "there is nothing to compare with"
        if min(sizes) < 2:
            return "only one run each: add replications to test for differences"
        lacks = set(self.names) & set(self.contest.missing)
        if lacks or (self.contest.paired and len(set(sizes)) > 1):
            return "some replications have no value"
        if all(np.ptp(each) == 0 for each in self.samples) and len(set(self.means.values())) == 1:
            return "every run gave the same"
        if copies := [name for name in self.names if name in self.contest.copies]:
            return f"not tested: all replications of {' and '.join(copies)} are identical"
        if all(np.ptp(each) == 0 for each in self.samples):
            return "not tested: all runs of a label have the same value"
        if self.contest.event == inf:
            return "not tested: rare events decide the largest of the few values of each run"
        return ""

    def _errors(self) -> None:
        """The variance of all labels together, and of each the error of its mean and the tails."""
        self.variance, self.freedom = pooled_variance(self.samples, paired=self.contest.paired)
        # Of samples of different sizes: Kramer's harmonic mean is taken for each pair.
        self.sizes = [each.size for each in self.samples]
        self.event = UNSEEN * self.contest.event / min(self.sizes)
        self.more = _more_used(min(self.sizes))
        groups = [self.samples] if len(set(self.sizes)) == 1 else [[one] for one in self.samples]
        parts = [tail_parts(np.array(rows), LEAST) for rows in groups]
        _, self.errors, self.below, self.above = map(np.concatenate, zip(*parts, strict=True))

    def pooled(self, one: int, two: int) -> float:
        """The standard error of the studentized range, from the variance of all labels."""
        inverse = (1 / self.sizes[one] + 1 / self.sizes[two]) / 2
        return float((self.variance * inverse) ** 0.5)

    def alone(self, one: int, two: int) -> tuple[float, float]:
        """Standard error of the difference and its degrees of freedom, from the pair alone."""
        if (one, two) not in self.pairs:
            self.pairs[one, two] = self._alone(one, two)
        return self.pairs[one, two]

    def _alone(self, one: int, two: int) -> tuple[float, float]:
        a, b = self.samples[one], self.samples[two]
        if self.contest.paired:
            return float((a - b).std(ddof=1)) / a.size**0.5, float(a.size - 1)
        parts = [float(each.var(ddof=1)) / each.size for each in (a, b)]
        total = sum(parts)
        if not total:
            return 0.0, float(min(a.size, b.size) - 1)
        lower = sum(part**2 / (each.size - 1) for part, each in zip(parts, (a, b), strict=True))
        return total**0.5, total**2 / lower

    def difference(self, one: int, two: int) -> float:
        """Returns the difference of the means; 0 if it is rounding."""
        apart = self.means[self.names[two]] - self.means[self.names[one]]
        return apart if abs(apart) > self.rounding else 0.0

    def tail(self, one: int, two: int, alpha: ArrayLike, *, above: bool) -> Floats:
        """Reach of the interval of the difference of the pair alone above or below it.

        The tails are those of the intervals of both means, weighted by their variances; without
        correlation that is how the limits of two means give those of their difference (Zou and
        Donner 2008, Statistics in Medicine 27, pages 1693 to 1702).
        """
        error, freedom = self.alone(one, two)
        alpha, sides = np.asarray(alpha), (self.below, self.above)
        # The difference is large where the second mean is, and the first is small.
        parts = (sides[not above][one], sides[above][two])
        variances = self.errors[[one, two]] ** 2
        if not variances.any() or not error:
            return np.zeros(alpha.shape)
        first, second = variances / variances.sum()
        used = alpha * (1 + self.more * (1 / (first**2 + second**2) - 1))
        limits = (
            -libraries.special.stdtrit(freedom, np.minimum(used * part, 0.5)) for part in parts
        )
        found: Floats = error * np.sqrt(first * next(limits) ** 2 + second * next(limits) ** 2)
        return found

    def p(self, one: int, two: int) -> float:
        """The chance of such a difference, or a larger one, between any two equal labels."""
        apart, upwards = abs(self.difference(one, two)), self.difference(one, two) > 0
        if apart <= self.event:
            return 1.0
        pooled = self.pooled(one, two)
        of_all = range_tail(apart / pooled, len(self.names), self.freedom) if pooled else 0.0
        grid = np.linspace(np.log(LEAST_CHANCE), 0.0, 33)
        for _ in range(2):  # where the interval of the pair ends at 0
            ends = self.tail(one, two, np.exp(grid), above=not upwards)
            place = min(max(int((ends >= apart).sum()), 1), 32)
            grid, around = np.linspace(grid[place - 1], grid[place], 33), (place, place - 1)
        chance = np.interp(apart, ends[list(around)], grid[[-1, 0]])
        return max(of_all, float(np.exp(chance)))

    def reach(self, one: int, two: int, alpha: float) -> tuple[float, float]:
        """Reaches of the interval of the difference below and above it."""
        of_all = range_quantile(alpha, len(self.names), self.freedom) * self.pooled(one, two)
        least = max(of_all, self.event)
        below, above = (float(self.tail(one, two, alpha, above=up)) for up in (False, True))
        return max(least, below), max(least, above)

    def differ(self, one: int, two: int, alpha: float) -> bool:
        """Returns whether 0 is outside that interval."""
        below, above = self.reach(one, two, alpha)
        apart = self.difference(one, two)
        return apart > below or -apart > above


def _means(samples: Sequence[Floats]) -> list[float]:
    """The mean of each; at once where they are of one size, as there may be 100,000."""
    if len({each.size for each in samples}) == 1 and samples[0].size:
        means: list[float] = np.array(samples).mean(axis=1).tolist()
        return means
    return [float(each.mean()) if each.size else np.nan for each in samples]


def _more_used(count: int) -> float:
    return max(MORE_USED - max(count, LEAST) / 10, 0.0)


def typical_reach(count: int, alpha: float) -> float:
    """Typical reach of the interval of the difference of two samples of normal values to either
    side, in standard errors."""
    skewness = np.array((2 / np.pi) ** 0.5 * (6 / count) ** 0.5)  # mean of the absolute values
    used = alpha * (1 + _more_used(count))
    parts = np.array(split(max(count, LEAST), skewness))
    limits = libraries.special.stdtrit(count - 1, np.minimum(used * parts, 0.5))
    return float((limits**2).mean() ** 0.5)


def _finding(test: _Test, alpha: float, level: float) -> ContestResult:
    contest, last = test.contest, len(test.names) - 1
    effect = test.difference(0, last) if last > 0 else np.nan
    below, above = (np.nan, np.nan) if test.why else test.reach(0, last, alpha)
    shown = not test.why and test.chance < 1 and test.differ(0, last, alpha)
    best, worst = _ends(test, alpha) if shown else ((), ())
    about = (contest.measure, contest.unit, dict(contest.where), best, worst)
    ends = max(effect - below, -contest.span), min(effect + above, contest.span)
    numbers = (effect, *ends, below if effect > 0 else above, level)
    method = "" if test.why else _method(test)
    verdict = SHOWN if shown else NOT_SHOWN
    return ContestResult(
        *about, verdict, *numbers, method, test.means, test.why, dict(contest.missing)
    )


def _ends(test: _Test, alpha: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the labels like the best and unlike the worst, and the reverse."""
    last = len(test.names) - 1
    from_best = [place > 0 and test.differ(0, place, alpha) for place in range(last + 1)]
    from_worst = [place < last and test.differ(place, last, alpha) for place in range(last + 1)]
    every = list(zip(test.names, from_best, from_worst, strict=True))
    best = tuple(name for name, other, unlike in every if unlike and not other)
    worst = tuple(name for name, unlike, other in reversed(every) if unlike and not other)
    return best, worst


def _method(test: _Test) -> str:
    how = "paired by replication" if test.contest.paired else "independent runs"
    if len(test.names) == 2:
        return f"t-test, {how}, Holm over the page"
    return f"studentized range and each pair's own t, {how}, Holm over the page"


# The distribution of the studentized range: the largest difference among k means over its standard
# error (Tukey 1953), by quadrature. scipy.stats has it too, but takes a second to import and half a
# second for a quantile; the tests set one against the other.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
REACH = 8.0
"""Normal values beyond this have no weight."""


def range_tail(value: float, labels: int, freedom: float) -> float:
    """The chance of a studentized range above `value`, of `labels` equal means with a variance
    that is known to `freedom` degrees of freedom."""
    if not value > 0:
        return 1.0
    if labels == 2:
        return 2 * float(libraries.special.stdtr(freedom, -value / 2**0.5))
    spread, weight = _spreads(freedom)
    return min(max(float(weight @ (1 - _normal_range(value * spread, labels))), 0.0), 1.0)


@lru_cache(maxsize=4096)
def range_quantile(alpha: float, labels: int, freedom: float) -> float:
    """The value that is exceeded with the chance `alpha`."""
    if labels == 2:
        return -float(libraries.special.stdtrit(freedom, alpha / 2)) * 2**0.5
    low, high = 0.0, 8.0
    while range_tail(high, labels, freedom) > alpha and high < 1e9:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if range_tail(middle, labels, freedom) > alpha:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=256)
def _spreads(freedom: float) -> tuple[Floats, Floats]:
    """Values of the estimated over the true standard deviation, and their weights."""
    # The logarithm of the density of s, where freedom * s^2 is chi-squared.
    reach = REACH / freedom**0.5
    least = max(1 - reach, 0.0)
    s = least + (_NODES + 1) * (1 + reach - least) / 2
    half = freedom / 2
    density = np.log(2) + half * np.log(half) - libraries.special.gammaln(half)
    density = density + (freedom - 1) * np.log(s) - half * s**2
    weight = np.exp(density) * _WEIGHTS
    return s, weight / weight.sum()


def _normal_range(widths: Floats, labels: int) -> Floats:
    """The chance that the range of `labels` standard normal values is at most each width."""
    z = _NODES * REACH
    density = np.exp(-0.5 * z**2) / (2 * np.pi) ** 0.5 * _WEIGHTS * REACH
    below = libraries.special.ndtr
    inside = below(z)[None, :] - below(z[None, :] - widths[:, None])
    chance: Floats = labels * (inside ** (labels - 1)) @ density
    return np.minimum(chance, 1.0)
