"""The distribution of the studentized range: the largest difference among k means over its
standard error (Tukey 1953), by quadrature. scipy.stats has it too, but takes a second to import
and half a second for a quantile; the tests set one against the other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from aqmlab.metrics.samples import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
REACH = 8.0
"""Normal values beyond this have no weight."""


def range_tail(value: float, labels: int, freedom: float) -> float:
    """The chance of a studentized range above `value`, of `labels` equal means with a variance
    that is known to `freedom` degrees of freedom."""
    if not value > 0:
        return 1.0
    if labels == 2:
        return 2 * float(special.stdtr(freedom, -value / 2**0.5))
    spread, weight = _spreads(freedom)
    return min(max(float(weight @ (1 - _normal_range(value * spread, labels))), 0.0), 1.0)


@lru_cache(maxsize=4096)
def range_quantile(alpha: float, labels: int, freedom: float) -> float:
    """The value that is exceeded with the chance `alpha`."""
    if labels == 2:
        return -float(special.stdtrit(freedom, alpha / 2)) * 2**0.5
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
    density = np.log(2) + half * np.log(half) - special.gammaln(half)
    density = density + (freedom - 1) * np.log(s) - half * s**2
    weight = np.exp(density) * _WEIGHTS
    return s, weight / weight.sum()


def _normal_range(widths: Floats, labels: int) -> Floats:
    """The chance that the range of `labels` standard normal values is at most each width."""
    z = _NODES * REACH
    density = np.exp(-0.5 * z**2) / (2 * np.pi) ** 0.5 * _WEIGHTS * REACH
    inside = special.ndtr(z)[None, :] - special.ndtr(z[None, :] - widths[:, None])
    chance: Floats = labels * (inside ** (labels - 1)) @ density
    return np.minimum(chance, 1.0)
