"""How many replications a difference of a given size needs, from the variance that was seen.

The test is the t-test of one pair of labels, two-sided at 5 %; the power is 80 %. Findings are
held to a stricter level where a page compares more than that, and then need more replications.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from aqmlab.metrics import Shown
from aqmlab.metrics.registry import NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.report.measures import Layout, by_point
from aqmlab.stats import is_constant

if TYPE_CHECKING:
    from aqmlab.results import StudyResult

SHARE = 0.1
"""The difference, as a share of the mean."""
ALPHA, POWER = 0.05, 0.8
MOST = 10_000


def replications(spread: float, difference: float) -> int:
    """Smallest number of pairs with which a difference is shown with the chance `POWER`; `spread`
    is the standard deviation of the difference within a pair. At most `MOST`."""
    low, high = 1, MOST
    while high - low > 1:
        count = (low + high) // 2
        limit = -float(special.stdtrit(count - 1, ALPHA / 2))
        shift = difference / spread * count**0.5
        missed = float(special.nctdtr(count - 1, shift, limit))
        low, high = (low, count) if missed <= 1 - POWER else (count, high)
    return high


def spread_of(samples: Sequence[Floats], *, paired: bool) -> float:
    """Standard deviation of the difference of two labels in one replication."""
    table = np.array(samples)
    if paired and len(samples) > 1:
        table = table - table.mean(axis=0)
        freedom = (len(samples) - 1) * (table.shape[1] - 1)
    else:
        freedom = len(samples) * (table.shape[1] - 1)
    rest = table - table.mean(axis=1, keepdims=True)
    return float((2 * (rest**2).sum() / freedom) ** 0.5)


def sentence(result: StudyResult, found: Sequence[Shown], layout: Layout, *, paired: bool) -> str:
    """The replications that a difference of 10 % would need, of each measure; empty without any."""
    if result.info.replications < 3:
        return ""
    told = []
    for measure in found:
        numbers = list(_needed(result, measure, layout, paired)) if measure.direction else []
        if numbers:
            most = max(numbers)
            told.append(f"{measure.title} {most:,}" + (" or more" if most == MOST else ""))
    if not told:
        return ""
    return (
        f"Replications that would show a difference of {100 * SHARE:.0f} % in 8 of 10 such studies "
        f"(of one pair, t-test at 5 %, by the variance seen): {'; '.join(told)}."
    )


def _needed(result: StudyResult, measure: Shown, layout: Layout, paired: bool) -> Iterator[int]:
    """Of each place with values."""
    assert measure.direction != NEITHER
    values = by_point(result, measure)
    others = [name for name, _ in result.info.axes if name != layout.compared]
    places: dict[tuple[str, ...], list[Floats]] = {}
    for row in result.points.to_dicts():
        own = values.get(row["point"])
        full = own is not None and own.size == result.info.replications
        if own is not None and full and row["point"] not in result.copied:
            places.setdefault(tuple(str(row[name]) for name in others), []).append(own)
    for samples in places.values():
        mean = abs(float(np.mean(samples)))
        spread = spread_of(samples, paired=paired)
        if spread > 1e-9 * mean > 0 and not all(is_constant(each) for each in samples):
            yield replications(spread, SHARE * mean)
