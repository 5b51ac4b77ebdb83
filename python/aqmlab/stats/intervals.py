"""Estimates with intervals, or with the reason for its absence.

An interval of the level 95 % promises that it holds the true value in 95 of 100 cases. Few
replications of skewed quantities break that promise quietly: Student's t covers the mean of ten
lognormal values in 83 of 100 cases, a bootstrap of three runs their 95th percentile in 78. What
is here was chosen by simulation and on runs of the engine (docs/statistics.md has the figures;
`test_infer_coverage` and `test_engine_coverage` repeat them).

* **mean**: Student's t whose two tails are shared out by the skewness of the sample: the farther
  the sample reaches out to one side, the more of the 5 % is kept for the other. For normal values
  the coverage does not depend on how the tails are shared (mean and standard deviation are
  independent of the shape of the sample), so nothing is lost there but length.
  None where rare events decide the mean: see `_hidden`.
* **median and quantiles of single values**: order statistics, interpolated by Hettmansperger and
  Sheather (1986) for the median, Nyblom (1992) for others. No shape is supposed, but that there
  are values near the quantile: none where it may lie in the gap between two clusters.
* **quantiles pooled over replications**: those values q are kept at which the shares of the
  replications' observations up to q do not differ from p by that t-test over the replications
  (Woodruff's inversion, 1952, with the replication as the cluster). The more the replications
  differ, the more skewed are the shares in a tail: then less of the 5 % is used.
* **the maximum** has no interval: it says nothing of how far the next run may go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aqmlab import libraries
from aqmlab.errors import input_error
from aqmlab.metrics.samples import Floats, Histograms, quantile, weighted_quantile

LEVEL = 0.95
"""Default level of intervals."""
FEWEST = 5
"""Fewest values of an interval: fewer show no shape of the distribution."""
GRID = 256
"""Number of values at which the shares are tested at a time."""
TAIL_COUNT = 20.0
"""Fewest observations beyond a pooled quantile on either side."""
MOST_ALIKE = 0.6
"""Where the observations of a replication have more in common than this (the intraclass correlation
of lying below a quantile), the quantile lies in a few of the replications: no interval."""
CAUTION = 1.0
"""Decrease (powers of ten) of the used part of 1 - level with that correlation, at the outermost
quantile; at the median all of it is used."""
SLACK = 1.4
"""The outermost values of the sample may end the interval if the chance that the quantile is
beyond is up to this multiple of the tail: 3.1 % for the median of five, instead of 2.5 %."""
MEAN_METHOD = "Student's t over the replications, with the tails split by the skewness"
ORDER_METHOD = "interpolated order statistics"
POOLED_METHOD = "t-test over the replications of the shares up to each value, inverted"
"""Methods for means, for quantiles of single values and for pooled quantiles."""
INFINITE = "a value is infinite"
"""Why there is no interval of such values."""

LOOKED = 0.5
"""Used part of 1 - level where values are added until the interval is short enough: it is so
sooner where the values happen to lie close together, and then it misses more often. Simulated,
the coverage is 93 to 98 % then; with all of it 90 to 95 %."""

FEWEST_APART = 3
"""Fewest values that differ from the most frequent one: fewer decide the mean."""

FEWEST_IN_CLUSTERS = 8
"""With fewer values two clusters cannot be distinguished from skewness."""
LEAST_CLUSTER = 0.15
"""A cluster has at least this share of the values; fewer are outliers."""

TAILS = ((5, 0.01, 2.0, 0.85), (6, 0.01, 4.0, 0.15), (7, 0.02, 4.0, 0.4), (8, 0.02, 4.0, 0.45),
         (9, 0.08, 4.0, 1.0), (10, 0.24, 4.0, 1.65), (11, 0.5, 4.0, 2.0))  # fmt: skip
"""Number of values; share of 1 - level in either tail of a symmetrical sample; how fast with the
skewness the tail on the short side grows, and the one on the long side shrinks (powers of ten).
Found by simulation: the coverage for lognormal values is 94 % then."""


Bounds = tuple[float, float]
"""The least and the largest value that a quantity can have."""
UNBOUNDED: Bounds = (-inf, inf)
POSITIVE: Bounds = (0.0, inf)
"""Bounds of times, rates and counts."""
SHARE: Bounds = (0.0, 1.0)


@dataclass(frozen=True)
class Interval:
    """A range in which the true value lies with the chance `level`."""

    low: float
    high: float
    level: float = LEVEL

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def inside(self, bounds: Bounds) -> Interval:
        """Returns the part within the bounds of its quantity, where the true value is."""
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in (self.low, self.high))
        return Interval(low, high, self.level)

    @property
    def half(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Statistic:
    """A statistic of a sample, with its interval if it has one."""

    value: float
    interval: Interval | None
    method: str
    """How the interval was made; empty without one."""
    why: str
    """Why there is no interval; empty with one."""
    count: int
    """The number of values, or of replications."""


Samples = ArrayLike | Sequence[ArrayLike] | Histograms


def interval(
    samples: Samples,
    statistic: str = "mean",
    level: float = LEVEL,
    *,
    bounds: Bounds = UNBOUNDED,
    looked: bool = False,
    event: float = 0.0,
) -> Interval | None:
    """The interval of a statistic, None where no promise can be kept (`estimate` says why).

    `samples` is one array of independent values (one a replication), or a list of arrays (or
    `Histograms`), one a replication, whose values are pooled. `statistic` is "mean", "median",
    "p95" (or another "pNN") or "max". `bounds` are those of the quantity: (0, 1) of a share.
    `looked` says that values were added until the interval was short enough. `event` is by how
    much one rare event (a lost SYN) may change a value: no interval is shorter than what such an
    event in one of the runs would do to the mean. Raises `InputError` for another statistic or
    level.
    """
    return estimate(samples, statistic, level, bounds=bounds, looked=looked, event=event).interval


def estimate(
    samples: Samples,
    statistic: str = "mean",
    level: float = LEVEL,
    *,
    bounds: Bounds = UNBOUNDED,
    looked: bool = False,
    event: float = 0.0,
) -> Statistic:
    """Returns `interval` with the value, its method, and the reason for a missing interval."""
    share = _share(statistic)
    used = _used(level, looked=looked)
    if isinstance(samples, Histograms) or _is_nested(samples):
        return _inside(_of_pool(_Pool.of(samples), statistic, share, used), bounds, level)
    data = np.asarray(samples, dtype=np.float64).ravel()
    data = data[~np.isnan(data)]
    if statistic == "mean" or not data.size:
        [found] = _of_means([data], used, [event])
    elif np.isinf(data).any():
        value = float(data.max()) if statistic == "max" else _quantile(np.sort(data), share)
        found = _none(value, INFINITE, data.size)
    elif statistic == "max":
        found = _largest(float(data.max()), data.size)
    else:
        found = _of_quantile(np.sort(data), share, used)
    return _inside(found, bounds, level)


def estimate_means(
    samples: Sequence[Floats],
    level: float = LEVEL,
    *,
    bounds: Bounds = UNBOUNDED,
    looked: bool = False,
    events: Sequence[float],
) -> list[Statistic]:
    """Returns `estimate` of the mean of each sample, with its own of `events`; at once, which takes
    a sixth of the time. Raises `InputError` for another level."""
    used = _used(level, looked=looked)
    rows = [row[~np.isnan(row)] for row in samples]
    return [_inside(found, bounds, level) for found in _of_means(rows, used, events)]


def after_looks(level: float) -> float:
    """The level of an interval that, at the end of a study that went on until it was short enough,
    holds the true value with the chance `level`."""
    return 1 - LOOKED * (1 - level)


def _used(level: float, *, looked: bool) -> float:
    if not 0.5 <= level < 1:
        raise input_error("expected a level from 0.5 to below 1", key="level", given=level)
    return after_looks(level) if looked else level


def _inside(found: Statistic, bounds: Bounds, level: float) -> Statistic:
    """The estimate with the part of its interval within the bounds, and the level it promises."""
    if found.interval is None or (found.interval.level == level and bounds == UNBOUNDED):
        return found
    return replace(found, interval=replace(found.interval.inside(bounds), level=level))


def _share(statistic: str) -> float:
    if statistic in ("mean", "max"):
        return nan
    share = 0.5 if statistic == "median" else -1.0
    if statistic.startswith("p"):
        with suppress(ValueError):
            share = float(statistic.removeprefix("p")) / 100
    if not 0 < share < 1:
        allowed = 'expected "mean", "median", "max" or a percentile such as "p95"'
        raise input_error(allowed, key="statistic", given=statistic)
    return share


def _is_nested(samples: object) -> bool:
    if isinstance(samples, np.ndarray):
        return samples.ndim > 1
    return isinstance(samples, Sequence) and any(np.ndim(each) for each in samples)


def _none(value: float, why: str, count: int) -> Statistic:
    return Statistic(value, None, "", why, count)


def _largest(value: float, count: int) -> Statistic:
    runs = f"largest of {count} runs" if count != 1 else "of one run"
    return _none(value, f"{runs}: a maximum has no interval", count)


def _too_few(count: int) -> str:
    """Why so few values have no interval; empty if they may have one."""
    if count == 0:
        return "there are no values"
    if count == 1:
        return "one replication does not show the spread"
    return "" if count >= FEWEST else f"{count} values are too few: an interval needs {FEWEST}"


# Means.


def _of_means(
    samples: Sequence[Floats],
    level: float,
    events: Sequence[float],
    values: Sequence[float] | None = None,
) -> list[Statistic]:
    """Returns the mean of each sample with its interval; around `values` if given."""
    found, groups = {}, defaultdict(list)
    for place, data in enumerate(samples):
        groups[data.size].append(place)
    for count, places in groups.items():
        rows = np.array([samples[place] for place in places])
        means = rows.mean(axis=1).tolist() if count else [nan] * len(places)
        finite, few = np.isfinite(rows).all(axis=1), _too_few(count)
        lows, highs = means, means
        if not few:
            within = limits(np.where(finite[:, None], rows, 0.0), 1 - level)
            lows, highs = (ends.tolist() for ends in within)
        each = zip(places, rows, means, finite.tolist(), lows, highs, strict=True)
        for place, data, mean, is_finite, low, high in each:
            value = values[place] if values else mean
            why = few if is_finite else INFINITE
            if why := why or _hidden(data, (high - low) / 2, events[place]):
                found[place] = _none(value, why, count)
            else:
                ends = Interval(value - (mean - low), value + (high - mean), level)
                found[place] = Statistic(value, ends, MEAN_METHOD, "", count)
    return [found[place] for place in range(len(samples))]


def _hidden(data: Floats, half: float, event: float) -> str:
    """Why the mean may depend on events that the sample does not show; empty if it does not.

    1. All values are equal: copies of one run, or an event that none of the runs had.
    2. All but one or two are equal: those decide.
    3. An `event` in one of the runs would move the mean by more than half the interval's length:
       then the sample need not contain one that moves the true mean out of the interval.

    A few values far from the others are no reason: an interval of values that contain some covers,
    and refusing it would leave the samples without any, whose intervals are too short.
    """
    count = data.size
    if is_constant(data):
        return f"all {count} runs gave the same value"
    equal = max(Counter(data.tolist()).values())
    if count - equal < FEWEST_APART:
        return f"{equal} of {count} runs gave the same value: the others decide the mean"
    if event == inf:
        return "the largest of the few values of each run: rare events decide it"
    if half * count < event:
        events = "a rare event (a lost SYN, flows that meet in one queue)"
        return f"{count} runs are too few: {events} may be in none of them"
    return ""


def is_constant(data: Floats) -> bool:
    """Returns whether all values are the same, except for rounding."""
    return bool(np.ptp(data) <= 1e-12 * np.abs(data).max(initial=0.0))


def limits(rows: Floats, alpha: ArrayLike) -> tuple[Floats, Floats]:
    """Limits of the mean of each row of shape (samples, values) by Student's t, the tails shared
    out by the skewness; `alpha` is a number, or one for each row."""
    mean, error, below, above = t_intervals(rows, alpha)
    return mean - below * error, mean + above * error


def t_intervals(rows: Floats, alpha: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    """The mean of each row, its standard error, and how many of these the interval of `limits`
    reaches below and above it."""
    count = rows.shape[1]
    mean, error, below, above = tail_parts(rows)
    level, of_t = np.asarray(alpha, dtype=np.float64), libraries.special.stdtrit
    return mean, error, *(-of_t(count - 1, level * part) for part in (below, above))


def tail_parts(rows: Floats, least: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    """The mean of each row, its standard error, and which parts of 1 - level are the chances that
    the true mean lies below its interval, and above; as of `least` values if there are fewer."""
    count = rows.shape[1]
    mean = rows.mean(axis=1)
    apart = rows - mean[:, None]
    variance = (apart * apart).sum(axis=1) / count
    varies = variance > (1e-12 * np.maximum(np.abs(mean), np.abs(rows).max(axis=1))) ** 2
    scale = np.where(varies, variance, 1.0)
    skewness = (apart * apart * apart).sum(axis=1) / count / scale**1.5
    long, short = split(max(count, least), np.abs(skewness))
    even = two_clusters(rows, mean, variance)
    long, short = np.where(even, 0.5, long), np.where(even, 0.5, short)
    error = np.where(varies, (variance / (count - 1)) ** 0.5, 0.0)
    above = skewness >= 0  # the long tail
    return mean, error, np.where(above, short, long), np.where(above, long, short)


def split(count: int, skewness: Floats) -> tuple[Floats, Floats]:
    """The parts of 1 - level beyond the interval on the side of the long tail, and on the other."""
    base, grows, shrinks = _shape(count)
    long = base * 10 ** (-shrinks * skewness)
    return long, 1 - long - (1 - 2 * base) * 10 ** (-grows * skewness)


@lru_cache
def _shape(count: int) -> tuple[float, float, float]:
    for size, base, grows, shrinks in TAILS:
        if count <= size:
            return base, grows, shrinks
    return 0.5, 1.0, 19 / (count - 1.5)


def two_clusters(rows: Floats, mean: Floats, variance: Floats) -> NDArray[np.bool_]:
    """Returns for each row whether its values lie in two clusters, which explain nine tenths of
    their variance. The skewness then says only which of the two was drawn more often."""
    count = rows.shape[1]
    if count < FEWEST_IN_CLUSTERS:
        return np.zeros(len(rows), dtype=bool)
    ordered = np.sort(rows, axis=1)
    below = np.diff(ordered, axis=1).argmax(axis=1) + 1
    sums = np.cumsum(ordered, axis=1)[np.arange(len(rows)), below - 1]
    apart = mean - sums / below
    found: NDArray[np.bool_] = np.minimum(below, count - below) >= LEAST_CLUSTER * count
    found &= apart**2 * below / (count - below) > 0.9 * variance
    return found


def _gap(ordered: Floats) -> tuple[float, float]:
    """The ends of the gap between two clusters of values; both the same without."""
    row = ordered[None, :]
    if not two_clusters(row, row.mean(axis=1), row.var(axis=1))[0]:
        return float(ordered[0]), float(ordered[0])
    place = int(np.diff(ordered).argmax())
    return float(ordered[place]), float(ordered[place + 1])


# Quantiles of single values.


def _of_quantile(ordered: Floats, share: float, level: float) -> Statistic:
    count = ordered.size
    value = _quantile(ordered, share)
    tail = (1 - level) / 2
    low = low_ends(ordered[None, :], share, tail)
    high = low_ends(-ordered[None, ::-1], 1 - share, tail)
    if low is None or high is None or count < FEWEST:
        least = _least(share, tail)
        many = f"{count} value{'s are' if count != 1 else ' is'}"
        return _none(value, f"{many} too few: this interval needs {least}", count)
    below, above = _gap(ordered)
    if low[0] < above and -high[0] > below:
        return _none(value, "the values lie in two clusters, and it may lie between them", count)
    ends = Interval(float(low[0]), -float(high[0]), level)
    return Statistic(value, ends, ORDER_METHOD, "", count)


def _quantile(ordered: Floats, share: float) -> float:
    """The median of an even number is the mean of the middle two; other quantiles are values
    that were observed."""
    if share == 0.5:
        return float(np.median(ordered))
    return quantile(ordered, share)


def low_ends(ordered: Floats, share: float, tail: float) -> Floats | None:
    """The low end for each row of ascending values: the quantile lies below it with the chance
    `tail`; None if it cannot be."""
    place, part = _rank(ordered.shape[1], share, tail)
    if place < 0:
        return None
    found: Floats = ordered[:, place]
    return found if part == 0 else (1 - part) * found + part * ordered[:, place + 1]


@lru_cache(maxsize=4096)
def _rank(count: int, share: float, tail: float) -> tuple[int, float]:
    """The index of the value at or below the low end, and how far it is on to the next;
    -1 if the quantile lies below all values too often."""

    def below(rank: int) -> float:
        """The chance that the quantile is below the value of this rank (from 1)."""
        return float(libraries.special.bdtr(rank - 1, count, share))

    if below(1) > SLACK * tail:
        return -1, 0.0
    if below(1) >= tail:
        return 0, 0.0
    rank = 1
    while below(rank + 1) <= tail:
        rank += 1
    so_far, beyond = tail - below(rank), below(rank + 1) - tail
    if so_far <= 0 or rank >= count:
        return rank - 1, 0.0
    odds = rank * (1 - share) * beyond / ((count - rank) * share * so_far)
    return rank - 1, 1 / (1 + odds)


def _least(share: float, tail: float) -> int:
    """Returns the number of values that an interval takes."""
    extreme = max(share, 1 - share)
    count = FEWEST
    while extreme**count > SLACK * tail:
        count += 1
    return count


# Pooled over replications.


@dataclass(frozen=True)
class _Pool:
    """The observations of all replications, ascending: value, replication and count."""

    values: Floats
    labels: NDArray[np.int64]
    counts: Floats
    replications: int

    @staticmethod
    def of(samples: Samples) -> _Pool:
        if isinstance(samples, Histograms):
            column, label = np.nonzero(samples.counts.T)
            counts = samples.counts.T[column, label].astype(np.float64)
            return _Pool(samples.values[column], label, counts, samples.replications)
        arrays = [np.asarray(each, dtype=np.float64).ravel() for each in samples]  # type: ignore[union-attr]
        arrays = [each[np.isfinite(each)] for each in arrays]
        values = np.concatenate(arrays)
        labels = np.repeat(np.arange(len(arrays)), [each.size for each in arrays])
        order = np.argsort(values, kind="stable")
        return _Pool(values[order], labels[order], np.ones(values.size), len(arrays))

    def sizes(self) -> Floats:
        """The number of observations of each replication."""
        sizes: Floats = np.bincount(self.labels, self.counts, self.replications).astype(np.float64)
        return sizes

    def apart(self, indices: NDArray[np.int64], share: float, sizes: Floats) -> Floats:
        """Up to the value of each of the ascending indices: of each replication the observations
        less `share` of all, over the mean number of observations; shape (indices, replications)."""
        ends = np.searchsorted(self.values, self.values[indices], side="right")
        step = np.searchsorted(ends, np.arange(self.values.size), side="right")
        place = step * self.replications + self.labels
        found = np.bincount(place, self.counts, (len(indices) + 1) * self.replications)
        below = np.cumsum(found.reshape(-1, self.replications), axis=0)[:-1]
        result: Floats = (below - share * sizes) / sizes.mean()
        return result


def _of_pool(pool: _Pool, statistic: str, share: float, level: float) -> Statistic:
    count = pool.replications
    if not pool.values.size:
        return _none(nan, _too_few(0), count)
    if statistic == "max":
        return _largest(float(pool.values[-1]), count)
    sizes = pool.sizes()
    if statistic == "mean":
        value = float(pool.values @ pool.counts / sizes.sum())
        sums = np.bincount(pool.labels, pool.values * pool.counts, count)
        data = value + (sums - value * sizes) / sizes.mean()
        return _of_means([data], level, [0.0], [value])[0]
    value = weighted_quantile(pool.values, pool.counts.astype(np.int64), share)
    if count < FEWEST:
        return _none(value, _too_few(count), count)
    beyond = min(share, 1 - share) * float(sizes.sum())
    if beyond < TAIL_COUNT:
        why = f"{beyond:.1f} observations lie beyond it: an interval needs {TAIL_COUNT:.0f}"
        return _none(value, why, count)
    alike = _alike(pool, (0.25, 0.5, 0.75, share), sizes)
    if alike > MOST_ALIKE:
        why = "the replications differ more than their packets: the quantile lies in a few of them"
        return _none(value, why, count)
    low, high = _inverted(pool, share, sizes, caution(alike, share, 1 - level))
    ends = Interval(min(low, value), max(high, value), level)
    return Statistic(value, ends, POOLED_METHOD, "", count)


def _alike(pool: _Pool, shares: Sequence[float], sizes: Floats) -> float:
    """Returns the correlation of the observations within a replication: the largest at the
    quantiles of all."""
    cumulative, found = np.cumsum(pool.counts), []
    for share in shares:
        index = min(int(np.searchsorted(cumulative, share * sizes.sum())), cumulative.size - 1)
        apart = pool.apart(np.array([index]), share, sizes)
        found.append(float(correlation(apart, share, float(sizes.mean()))[0]))
    return max(found)


def correlation(apart: Floats, share: float, size: float) -> Floats:
    """The intraclass correlation of lying below a quantile, from the shares of replications of
    `size` observations less `share`; of each row."""
    found: Floats = apart.var(axis=1, ddof=1) / (share * (1 - share)) - 1 / size
    return np.maximum(found, 0.0)


def caution(alike: ArrayLike, share: float, alpha: float) -> Floats:
    """Returns the used part of `alpha` where the observations of a replication are correlated."""
    return alpha * 10 ** (-CAUTION * abs(2 * share - 1) * np.asarray(alike, dtype=np.float64))


def _inverted(pool: _Pool, share: float, sizes: Floats, alpha: ArrayLike) -> tuple[float, float]:
    """Where the shares begin not to be refuted, and where they end. Shares are the same up to the
    next value: that is the high end."""
    first, last = 0, pool.values.size - 1
    ends: list[int] = []
    for which in (0, -1):
        low, high = first, last
        while True:
            indices = np.unique(np.linspace(low, high, GRID).astype(np.int64))
            below, above = limits(pool.apart(indices, share, sizes), alpha)
            kept = np.flatnonzero((below <= 0) & (above >= 0))
            if not kept.size:
                # Between two values, both of which are refuted: the upper one has the quantile.
                return (float(pool.values[indices[np.argmax(below > 0)]]),) * 2
            place = int(kept[which])
            if indices[-1] - indices[0] < GRID:
                break
            low, high = indices[max(place - 1, 0)], indices[min(place + 1, indices.size - 1)]
        ends.append(int(indices[place]))
    low, high = pool.values[ends]
    after = min(int(np.searchsorted(pool.values, high, side="right")), last)
    return float(low), float(pool.values[after])
