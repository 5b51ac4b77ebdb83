"""The harm of Ware et al. (2019): what others lose beside a control.

R. Ware, M. Mukerjee, S. Seshan and J. Sherry, "Beyond Jain's Fairness Index: Setting the Bar for
the Deployment of Congestion Control Algorithms", HotNets 2019. Harm is 0 if nothing is lost
and 1 if everything is: (solo - beside) / solo of what is better if it is more, and
(beside - solo) / beside of what is better if it is less. The bar is the harm that the victim's
own control does.

The harm is that of the means over the replications. A mean of the ratios would depend on the few
replications with a small denominator, and harm clipped at 0 in each replication would count chance
as harm. The values of the replications are the ratio of the means in linear approximation: their
mean is the harm, and their spread that of the harm. They can be negative; the mean is clipped.
"""

from __future__ import annotations

import numpy as np

from aqmlab.metrics.samples import Floats


def of_more(solo: Floats, beside: Floats, least: float = 1e-12) -> Floats:
    """The harm to a measure that is better if it is more, such as goodput; values below `least`
    count as `least`."""
    solo, beside = np.maximum(solo, least), np.maximum(beside, least)
    both = np.isfinite(solo + beside)
    if not both.any():
        return solo + beside
    whole = solo.mean(where=both)
    kept = beside.mean(where=both) / whole
    harm: Floats = 1 - kept - (beside - kept * solo) / whole
    return harm


def of_less(solo: Floats, beside: Floats, least: float = 1e-12) -> Floats:
    """The harm to a measure that is better if it is less, such as delay; values below `least`
    count as `least`."""
    return of_more(beside, solo, least)
