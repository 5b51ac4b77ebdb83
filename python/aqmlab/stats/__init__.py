"""Inference: the only source of intervals and of comparisons.

    from aqmlab import stats

    stats.interval(delays)                   # of the mean, or None
    stats.interval(runs, "p95")              # a list of arrays: pooled over replications
    stats.estimate(delays, "median").why     # why there is none
    stats.compare(contests)                  # what is best, what is worst, and whether it is chance

docs/statistics.md says what is promised, and how that was found out.
"""

from aqmlab.stats.comparisons import NOT_SHOWN, SHOWN, Contest, ContestResult, compare
from aqmlab.stats.intervals import (
    FEWEST,
    LEVEL,
    MEAN_METHOD,
    ORDER_METHOD,
    POOLED_METHOD,
    POSITIVE,
    SHARE,
    Bounds,
    Interval,
    Samples,
    Statistic,
    estimate,
    interval,
    is_constant,
)

__all__ = [
    "FEWEST",
    "LEVEL",
    "MEAN_METHOD",
    "NOT_SHOWN",
    "ORDER_METHOD",
    "POOLED_METHOD",
    "POSITIVE",
    "SHARE",
    "SHOWN",
    "Bounds",
    "Contest",
    "ContestResult",
    "Interval",
    "Samples",
    "Statistic",
    "compare",
    "estimate",
    "interval",
    "is_constant",
]
