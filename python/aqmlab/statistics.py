"""Statistics of replicated simulations: pooled quantiles, intervals, fairness.

Definitions, the same in every table and figure:

* A **quantile** of a distribution is the smallest observed value that at least
  that share of the observations does not exceed. It is always an observed value
  (queuing delays on a slow link come in steps of one packet's transmission time;
  interpolating would invent delays that no packet had).
* **Pooled** means over the packets of all replications together, each packet
  with the same weight.
* Intervals have the **level 95 %**. That of a mean over replications is Student's t.
  That of a pooled quantile or a median is a percentile bootstrap: whole replications
  are drawn with replacement (packets of one run are not independent, runs are), 1,000
  times, with a fixed seed, so the same results always give the same interval.
* The **maximum** is different: a bootstrap can never go above the largest run it
  draws from, so its interval would be too short. What `maximum_interval` gives is
  where the maximum of *another* set of as many replications is to be expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

LEVEL = 0.95
"""The level of every interval."""
RESAMPLES = 1000
"""How often the bootstrap draws."""
SEED = 20140612
"""Seed of the bootstrap; intervals are a function of the results alone."""

QUANTILE_METHOD = f"percentile bootstrap over whole replications, {RESAMPLES:,} draws, level 95 %"
MEAN_METHOD = "Student's t over the replications, level 95 %"
MAXIMUM_METHOD = (
    "where the maximum of another set of as many replications is to be expected, level 95 %; the "
    "high end supposes that the largest fifth of the maxima falls off exponentially"
)


@dataclass(frozen=True)
class Interval:
    """A range at the level of 95 %, in the unit of what it belongs to."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Interval:
        """The same range in another unit."""
        return Interval(self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Histograms:
    """Histograms of several replications over the same values.

    `values` has shape (values,), ascending; `counts` shape (replications, values).
    """

    values: Floats
    counts: Whole

    @staticmethod
    def from_columns(
        replication: NDArray[np.integer], value: Floats, count: NDArray[np.integer], total: int
    ) -> Histograms:
        """From long columns, one entry for each replication (0 to `total` - 1) and value."""
        values, column = np.unique(np.asarray(value, dtype=np.float64), return_inverse=True)
        counts = np.zeros((total, values.size), dtype=np.int64)
        np.add.at(counts, (np.asarray(replication, dtype=np.int64), column), count)
        return Histograms(values, counts)

    @staticmethod
    def from_frame(frame: pl.DataFrame, total: int) -> Histograms:
        """From rows of the table `sojourn` of one point and link, `total` replications."""
        replication, value, count = (
            frame[name].to_numpy() for name in ("replication", "sojourn_s", "count")
        )
        return Histograms.from_columns(replication, value, count, total)

    @property
    def replications(self) -> int:
        """How many replications there are."""
        return int(self.counts.shape[0])

    @property
    def observations(self) -> int:
        """How many observations there are in all replications."""
        return int(self.counts.sum())

    @property
    def pooled(self) -> Whole:
        """The counts of all replications together; shape (values,)."""
        total: Whole = self.counts.sum(axis=0)
        return total

    def quantile(self, share: float) -> float:
        """The quantile of all observations; NaN if there are none."""
        return weighted_quantile(self.values, self.pooled, share)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Several quantiles of all observations."""
        pooled = self.pooled
        return [weighted_quantile(self.values, pooled, share) for share in shares]

    def cdf(self) -> tuple[Floats, Floats]:
        """The observed values, and the share of observations that are not above each."""
        pooled = self.pooled
        keep = pooled > 0
        share = np.cumsum(pooled) / max(pooled.sum(), 1)
        return self.values[keep], share[keep]

    def quantile_interval(
        self, share: float, *, resamples: int = RESAMPLES, seed: int = SEED
    ) -> Interval:
        """The 95 % interval of a pooled quantile: bootstrap over replications."""
        if self.replications < 2 or not self.observations:
            value = self.quantile(share)
            return Interval(value, value)
        drawn = _draws(self.replications, resamples, seed) @ self.counts.astype(np.float64)
        cumulative = np.cumsum(drawn, axis=1)
        needed = share * cumulative[:, -1:]
        # The counts are whole, so half a count separates a rounding error from a step.
        index = np.argmax(cumulative >= needed - 1e-6 * np.maximum(needed, 1.0), axis=1)
        return _percentiles(self.values[index])


def weighted_quantile(values: Floats, counts: NDArray[np.integer], share: float) -> float:
    """The smallest of the ascending `values` that at least `share` of the observations
    does not exceed, `counts[i]` of which are `values[i]`. NaN without observations."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"a share is between 0 and 1, not {share}")
    total = int(np.sum(counts))
    if not total:
        return float("nan")
    rank = min(max(_rank(share, total), 1), total)
    return float(values[int(np.searchsorted(np.cumsum(counts), rank))])


def quantile(sample: Sequence[float] | Floats, share: float) -> float:
    """The quantile of plain observations, by the same definition."""
    ordered = np.sort(np.asarray(sample, dtype=np.float64))
    return weighted_quantile(ordered, np.ones(ordered.size, dtype=np.int64), share)


@dataclass(frozen=True)
class Quartiles:
    """Lower quartile, median and upper quartile."""

    low: float
    median: float
    high: float


def quartiles(sample: Sequence[float] | Floats) -> Quartiles:
    """The quartiles of `sample`; the median of an even number of values is the mean of the
    middle two, and likewise (linear interpolation) for the quartiles."""
    data = np.asarray(sample, dtype=np.float64)
    if not data.size:
        nan = float("nan")
        return Quartiles(nan, nan, nan)
    low, median, high = (float(each) for each in np.quantile(data, [0.25, 0.5, 0.75]))
    return Quartiles(low, median, high)


T_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""The 97.5 % quantiles of Student's t with 1 to 20 degrees of freedom."""


def mean_interval(sample: Sequence[float] | Floats) -> Interval:
    """The 95 % interval of the mean (one value a replication), by Student's t.

    A bootstrap of five or ten values would be too short.
    """
    data = np.asarray(sample, dtype=np.float64)
    mean = float(data.mean()) if data.size else float("nan")
    if data.size < 2:
        return Interval(mean, mean)
    freedom = data.size - 1
    # Beyond the table: the first terms of the expansion about the normal quantile.
    t = T_QUANTILES[freedom - 1] if freedom <= len(T_QUANTILES) else 1.95996 + 2.3723 / freedom
    half = t * float(data.std(ddof=1)) / float(np.sqrt(data.size))
    return Interval(mean - half, mean + half)


def median_interval(
    sample: Sequence[float] | Floats, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval:
    """The 95 % interval of the median: bootstrap over the values (one a replication)."""
    data = np.asarray(sample, dtype=np.float64)
    if data.size < 2:
        value = float(data[0]) if data.size else float("nan")
        return Interval(value, value)
    drawn = np.random.default_rng(seed).integers(0, data.size, size=(resamples, data.size))
    return _percentiles(np.median(data[drawn], axis=1))


def maximum_interval(maxima: Sequence[float] | Floats) -> Interval:
    """Where the maximum of another `len(maxima)` replications is to be expected (95 %).

    The low end supposes nothing of the distribution: the new maximum is below the
    k-th largest old one with a probability of about 2^-k, so the sixth largest is
    exceeded in at least 97.5 % of all cases. The high end cannot come from the
    order of the values alone: it supposes that the largest fifth falls off
    exponentially, and includes the maximum that was seen. Simulated coverage with
    100 replications: 95 % for an exponential tail, 98 % for lighter ones.
    """
    data = np.sort(np.asarray(maxima, dtype=np.float64))[::-1]
    if data.size < 2:
        value = float(data[0]) if data.size else float("nan")
        return Interval(value, value)
    low = float(data[min(5, data.size - 1)])
    tail = min(max(ceil(data.size / 5), 2), data.size - 1)
    base = float(data[tail])
    scale = float(np.mean(data[:tail] - base))
    # The maximum of n values of which `tail` lie above `base` with exponential excess:
    # P(below base + x) = exp(-tail * exp(-x / scale)).
    # `scale` is itself an estimate; taking the 99 % point makes up for that.
    beyond = scale * (log(tail) - log(-log(0.99)))
    return Interval(low, max(float(data[0]), base + beyond))


def jain_index(shares: Sequence[float] | Floats) -> float:
    """Jain's fairness index of positive numbers: 1 if all are equal, 1/n if one has all."""
    return float(jain_indices(np.asarray(shares, dtype=np.float64)[None, :])[0])


def jain_indices(rows: Floats) -> Floats:
    """Jain's fairness index of every row; NaN for a row of zeros."""
    squares = np.sum(rows**2, axis=1) * rows.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        index: Floats = np.sum(rows, axis=1) ** 2 / squares
    return index


AGREES, CLOSE, DIFFERS, UNPUBLISHED = "agrees", "close", "differs", "unpublished"
VERDICTS = {
    AGREES: "within 5 % of the reference, or within the step of the measurement",
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


def graded(kept: Iterable[bool]) -> str:
    """The verdict on a statement of several parts: it holds if all of them do."""
    told = [bool(each) for each in kept]
    return HOLDS if all(told) else PARTLY if any(told) else FAILS


def graded_share(right: int, total: int, *, holds: float = 1.0) -> str:
    """The verdict on a statement about many cases: it holds if it is so in a share of `holds`,
    and in part if it is in half of them."""
    return HOLDS if right >= holds * total else PARTLY if right >= 0.5 * total else FAILS


def verdict(
    reference: float | None,
    measured: float,
    interval: Interval | None,
    step: float = 0.0,
    *,
    relative: bool = True,
) -> str:
    """The verdict on a measured value. `step` is the step in which the measured quantity
    comes (delays at 2 Mbit/s: 6 ms, the transmission time of a packet). Without `relative` only
    the step counts: of shares near 1, 5 % would be too much."""
    if reference is None:
        return UNPUBLISHED
    off = abs(measured - reference)
    rounding = 1e-9 * max(abs(reference), abs(measured))
    near = abs(reference) if relative else 0.0
    if off <= max(0.05 * near, step) + rounding:
        return AGREES
    if off <= 0.10 * near + rounding or (interval is not None and reference in interval):
        return CLOSE
    return DIFFERS


def _rank(share: float, total: int) -> int:
    """How many observations make up `share` of `total`, whatever the rounding of the share."""
    exact = share * total
    return ceil(exact - 1e-9 * max(exact, 1.0))


def _draws(size: int, resamples: int, seed: int) -> Floats:
    """How often each of `size` replications is drawn; shape (resamples, size)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)


def _percentiles(values: Floats) -> Interval:
    tail = (1 - LEVEL) / 2
    ordered = np.sort(values)
    low = ordered[max(ceil(tail * ordered.size) - 1, 0)]
    high = ordered[max(ceil((1 - tail) * ordered.size) - 1, 0)]
    return Interval(float(low), float(high))
