"""Inference: the only source of intervals and of comparisons.

    from aqmlab import stats

    stats.interval(delays)                   # of the mean, or None
    stats.interval(runs, "p95")              # a list of arrays: pooled over replications
    stats.estimate(delays, "median").why     # why there is none
    stats.compare(contests)                  # what is best, what is worst, and whether it is chance

docs/statistics.md says what is promised, and how that was found out.
"""

from aqmlab.stats.comparisons import NOT_SHOWN as NOT_SHOWN
from aqmlab.stats.comparisons import SHOWN as SHOWN
from aqmlab.stats.comparisons import Contest as Contest
from aqmlab.stats.comparisons import ContestResult as ContestResult
from aqmlab.stats.comparisons import compare as compare
from aqmlab.stats.intervals import FEWEST as FEWEST
from aqmlab.stats.intervals import LEVEL as LEVEL
from aqmlab.stats.intervals import MEAN_METHOD as MEAN_METHOD
from aqmlab.stats.intervals import ORDER_METHOD as ORDER_METHOD
from aqmlab.stats.intervals import POOLED_METHOD as POOLED_METHOD
from aqmlab.stats.intervals import POSITIVE as POSITIVE
from aqmlab.stats.intervals import SHARE as SHARE
from aqmlab.stats.intervals import UNBOUNDED as UNBOUNDED
from aqmlab.stats.intervals import Bounds as Bounds
from aqmlab.stats.intervals import Interval as Interval
from aqmlab.stats.intervals import Samples as Samples
from aqmlab.stats.intervals import Statistic as Statistic
from aqmlab.stats.intervals import estimate as estimate
from aqmlab.stats.intervals import estimate_means as estimate_means
from aqmlab.stats.intervals import interval as interval
from aqmlab.stats.intervals import is_constant as is_constant
from aqmlab.stats.intervals import limits as limits
from aqmlab.stats.intervals import t_intervals as t_intervals
