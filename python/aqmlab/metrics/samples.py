"""Samples of replicated simulations: pooled distributions, quantiles, fairness.

Definitions, the same in every table and figure:

* A **quantile** of a distribution is the smallest observed value that at least
  that share of the observations does not exceed. It is always an observed value
  (queuing delays on a slow link come in steps of one packet's transmission time;
  interpolating would invent delays that no packet had).
* **Pooled** means over the packets of all replications together, each packet
  with the same weight.

Intervals and comparisons are those of `aqmlab.stats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


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
    def of_point(
        run: NDArray[np.integer], value: Floats, count: NDArray[np.integer], point: int, total: int
    ) -> Histograms:
        """Returns the histograms of a point with `total` replications, from long columns in the
        order of the runs of a study."""
        first = point * total
        part = slice(*np.searchsorted(run, [first, first + total]))
        return Histograms.from_columns(run[part] - first, value[part], count[part], total)

    @property
    def replications(self) -> int:
        """Number of replications."""
        return int(self.counts.shape[0])

    @property
    def observations(self) -> int:
        """Number of observations in all replications."""
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


def weighted_quantile(values: Floats, counts: NDArray[np.integer] | Floats, share: float) -> float:
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


class Quartiles(NamedTuple):
    """Lower quartile, median and upper quartile."""

    low: float
    median: float
    high: float


def quartiles(sample: Sequence[float] | Floats) -> Quartiles:
    """The quartiles of `sample`; the median of an even number of values is the mean of the
    middle two, and likewise (linear interpolation) for the quartiles."""
    data = np.asarray(sample, dtype=np.float64)
    return Quartiles(*np.quantile(data if data.size else [np.nan], [0.25, 0.5, 0.75]).tolist())


def jain_indices(rows: Floats) -> Floats:
    """Jain's fairness index of every row: 1 if all are equal, 1/n if one has all; NaN for a row of
    zeros."""
    squares = np.sum(rows**2, axis=1) * rows.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        index: Floats = np.sum(rows, axis=1) ** 2 / squares
    return index


def unfairness(ratios: Sequence[float] | Floats) -> float:
    """How far ratios are from 1 on average, as a factor: 1 is fair, 2 says that one flow has
    twice the other's share. The exponential of the mean of |ln ratio|."""
    data = np.asarray([each for each in ratios if each > 0], dtype=float)
    return float(np.exp(np.mean(np.abs(np.log(data))))) if data.size else float("nan")


def _rank(share: float, total: int) -> int:
    """How many observations make up `share` of `total`, whatever the rounding of the share."""
    exact = share * total
    return ceil(exact - 1e-9 * max(exact, 1.0))
