"""Inference: the only source of intervals and of comparisons.

    from aqmlab import infer

    infer.interval(delays)                   # of the mean, or None
    infer.interval(runs, "p95")              # a list of arrays: pooled over replications
    infer.estimate(delays, "median").why     # why there is none

docs/statistics.md says what is promised, and how that was found out.
"""

from aqmlab.infer.intervals import LEVEL, Estimate, Interval, estimate, interval

__all__ = ["LEVEL", "Estimate", "Interval", "estimate", "interval"]
