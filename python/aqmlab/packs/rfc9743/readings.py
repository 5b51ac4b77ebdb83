"""Criteria as questions, and the measures that several of them share, with unit and grain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from aqmlab.campaign import Case, Filled, Question, Reading
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.scene import Flow


class CaseMeasure(NamedTuple):
    """A measure of a case; how far one is behind is a share of at least twenty `grain`. `most` is
    that of `reading`."""

    name: str
    unit: str
    direction: int
    of: Callable[[CaseResults], Floats]
    grain: float = 5.0
    most: float | None = None

    def reading(self, case: str, at: CaseResults) -> Reading:
        """The values in a case."""
        with np.errstate(invalid="ignore"):
            return reading(case, self.name, self.unit, self.direction, self.of(at), *self[4:])


Read = Callable[[Filled], Sequence[Reading]]
Measures = Sequence[CaseMeasure]


def criterion(
    ident: str,
    section: str,
    title: str,
    group: str,
    level: str,
    text: str,
    cases: Mapping[str, Flow],
    read: Read | Measures | Mapping[int, Measures],
) -> Question:
    """A criterion of a section: scenarios by name, and the measures of all of them, or by the
    number of the case, or a function that reads them."""
    return Question(
        ident, title, text, tuple(Case(*each) for each in cases.items()),
        read=read if callable(read) else _reader(list(cases), read),
        source=f"RFC 9743, section {section}", group=group, level=level,
    )  # fmt: skip


def _reader(names: Sequence[str], measures: Measures | Mapping[int, Measures]) -> Read:
    by_number = (
        measures if isinstance(measures, Mapping) else dict.fromkeys(range(len(names)), measures)
    )
    return lambda filled: [
        each.reading(names[number], filled[names[number]])
        for number, own in by_number.items()
        for each in own
    ]


def reading(
    case: str,
    measure: str,
    unit: str,
    direction: int,
    values: Floats,
    grain: float = 5.0,
    most: float | None = None,
) -> Reading:
    """A reading; `grain` is that of `CaseMeasure`. No mean is negative or above `most` (default:
    100 %)."""
    if most is None:
        most = 100.0 if unit == "%" else inf
    return Reading(case, measure, "", unit, direction, values, grain, bounds=(0.0, most))


def time(name: str, metric: str, subject: str, grain: float = 5.0) -> CaseMeasure:
    """A time of a group in milliseconds, better if it is less."""
    return CaseMeasure(name, "ms", LESS, lambda at: 1e3 * at.time(metric, subject), grain)


def sent(at: CaseResults) -> Floats:
    """Segments that the control's flows sent."""
    return at.total("flows", "segments_sent", group="own")


def _offered(at: CaseResults) -> Floats:
    """Rate that the bottleneck could transmit, bit/s."""
    return 8 * at.total("links", "capacity_bytes", link="down") / at.lasted


LOSS = CaseMeasure("loss", "%", LESS, lambda at: 100 * at.loss("own"), 0.5)
"""The share of segments that queues drop."""
DELAY = CaseMeasure("queuing delay, p95", "ms", LESS, lambda at: 1e3 * at.waiting)
"""The 95th percentile of the time in the bottleneck's queue."""
CAPACITY = "goodput, share of the capacity"
USED = CaseMeasure(CAPACITY, "%", MORE, lambda at: 100 * at.goodput("own") / at.rate)
"""Goodput as a share of the bottleneck's rate."""
SHARE = CaseMeasure(CAPACITY, "%", MORE, lambda at: 100 * at.goodput("own") / _offered(at))
"""Goodput as a share of what a bottleneck of varying rate offers."""
FAIRNESS = CaseMeasure("Jain's index", "", MORE, lambda at: at.metric("jain", "own"), 0.05, 1.0)
