"""The harm of Ware et al. (2019): what others lose beside a control.

R. Ware, M. Mukerjee, S. Seshan and J. Sherry, "Beyond Jain's Fairness Index: Setting the Bar for
the Deployment of Congestion Control Algorithms", HotNets 2019. Harm is 0 if nothing is lost
and 1 if everything is: (solo - beside) / solo of what is better if it is more, and
(beside - solo) / beside of what is better if it is less. The bar is the harm that the victim's
own control does.
"""

from __future__ import annotations

import numpy as np

from aqmlab.metrics.samples import Floats


def of_more(solo: Floats, beside: Floats) -> Floats:
    """The harm to a measure that is better if it is more, such as goodput."""
    harm: Floats = (solo - beside) / np.maximum(solo, 1e-12)
    return np.clip(harm, 0.0, 1.0)


def of_less(solo: Floats, beside: Floats) -> Floats:
    """The harm to a measure that is better if it is less, such as delay."""
    return of_more(beside, solo)
