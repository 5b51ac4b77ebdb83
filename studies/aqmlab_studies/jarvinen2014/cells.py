"""What the statements are about: one number a queue and load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from aqmlab.campaign import Comparison, below
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab_studies.jarvinen2014.figures import FLOWS, SPIKES, fairness
from aqmlab_studies.jarvinen2014.ns2 import REST

CODEL, SFQ = "CoDel", "SFQ CoDel"
HRED, HARSH = "HRED", "HRED (aggressive)"
PIES = ("PIEupdate", "PIEthresh")
SINGLE = (CODEL, *PIES, HRED, HARSH)
"""The queues of the paper that have a single queue."""
ALL = (*SINGLE, SFQ)
STEP = 0.006
"""One packet at 2 Mbit/s, in seconds: smaller differences are not counted."""

Cells = dict[tuple[str, str], float]
"""(queue, load) to a number."""
Measure = Callable[[Measurements], Cells]
Value = Callable[..., float]
"""Takes the measurements and the labels of a point."""


def cells(
    value: Value,
    queues: Iterable[str],
    loads: Sequence[str] = FLOWS,
    rest: str = REST,
) -> Measure:
    """A function that measures `value` at every queue and load."""
    keys = [(queue, load) for queue in queues for load in loads]
    return lambda measured: {
        (queue, load): value(measured, queue=queue, flows=load, rest=rest) for queue, load in keys
    }


def several(measures: Mapping[str, Measure]) -> Measure:
    """Several numbers of each queue and load, told apart by a form of the queue's name."""
    return lambda measured: {
        (form.format(queue), load): each
        for form, measure in measures.items()
        for (queue, load), each in measure(measured).items()
    }


def rows(**values: Sequence[float]) -> Cells:
    """Cells in seconds from milliseconds: `rows(CoDel=(90, 126, 170, 246))`."""
    return {
        (queue, load): each / 1e3
        for queue, row in values.items()
        for load, each in zip(FLOWS, row, strict=True)
    }


def p95(measured: Measurements, **labels: str) -> float:
    """The 95th percentile of the queuing delay of all packets, seconds."""
    return measured.delay_quantile(0.95, **labels)


def p50(measured: Measurements, **labels: str) -> float:
    """Median of the queuing delay of all packets, seconds."""
    return measured.delay_quantile(0.5, **labels)


def worst(measured: Measurements, **labels: str) -> float:
    """The largest queuing delay of 100 replications, seconds."""
    return measured.largest(100, **labels)


def middle(measured: Measurements, **labels: str) -> float:
    """The median over the replications of the largest delay, seconds."""
    return float(np.median(measured.maxima(**labels)))


def spread(measured: Measurements, **labels: str) -> float:
    """The inter-quartile range of the largest delay as a share of its median."""
    low, median, high = np.quantile(measured.maxima(**labels), [0.25, 0.5, 0.75])
    return float((high - low) / median)


def spike(delay: int) -> Value:
    """The median duration of the longest spike above `delay` ms, seconds."""

    def value(measured: Measurements, **labels: str) -> float:
        return float(np.median(measured.spikes(SPIKES[delay], **labels)))

    return value


def response(group: str) -> Value:
    """The median response time of a group, seconds."""

    def value(measured: Measurements, **labels: str) -> float:
        return float(np.median(measured.responses(group, **labels)))

    return value


def fair(measured: Measurements, **labels: str) -> float:
    """The median of Jain's index of the two groups' response times."""
    return float(np.median(fairness(measured, **labels)))


def one_spike(measured: Measurements, **labels: str) -> float:
    """The share of the runs with a spike above 60 ms in which the longest one has at least half
    of the time above 60 ms."""
    longest = measured.spikes(SPIKES[60], **labels)
    total = _total_spikes(measured, **labels)
    any_spike = total > 0
    return float(np.mean(longest[any_spike] >= 0.5 * total[any_spike])) if any_spike.any() else 1.0


@per_run
def _total_spikes(measured: Measurements, **labels: str) -> Floats:
    rows = measured.rows("excursions", **labels)
    rows = rows.filter(link=measured.link, threshold_bytes=SPIKES[60])
    total: Floats = rows.sort("run")["total_s"].to_numpy()
    return total


def of(found: Cells, queue: str, loads: Sequence[str] = FLOWS) -> list[float]:
    """The numbers of a queue, in the order of the loads."""
    return [found[queue, load] for load in loads]


def growth(found: Cells, queue: str) -> float:
    """The number at 6+6 flows as a multiple of that at 1+1."""
    return found[queue, FLOWS[-1]] / found[queue, FLOWS[0]]


def range_of(found: Cells, queue: str, loads: Sequence[str] = FLOWS) -> float:
    """The largest number of a queue as a multiple of its smallest."""
    values = of(found, queue, loads)
    return max(values) / min(values)


def lower(
    found: Cells, queue: str, others: Iterable[str], loads: Sequence[str]
) -> list[Comparison]:
    """A queue's numbers are lower than those of each of the others by more than a packet."""
    return [
        below(found[queue, load] - found[other, load], -STEP, f"{queue} less {other}, {load}")
        for other in others
        for load in loads
    ]


def each(
    compare: Callable[[float, float, str], Comparison], found: Cells, limit: float
) -> list[Comparison]:
    """Every number beside the same limit."""
    return [compare(value, limit, f"{queue}, {load}") for (queue, load), value in found.items()]


def share_above(found: Cells, limit: float) -> float:
    """The share of the numbers that are above the limit."""
    return float(np.mean([value > limit for value in found.values()]))


def share_of(pairs: tuple[int, int]) -> float:
    """Pairs that are so as a share of all; 0 without any."""
    return pairs[0] / max(pairs[1], 1)


def told_ms(found: Cells) -> str:
    """`CoDel 90, 120, 170, 246; HRED ... ms`."""
    return f"{_told(found, lambda value: f'{1e3 * value:.0f}')} ms"


def told_s(found: Cells) -> str:
    """The same in seconds."""
    return f"{_told(found, lambda value: f'{value:.2f}')} s"


def told_share(found: Cells) -> str:
    """The same in per cent."""
    return f"{_told(found, lambda value: f'{100 * value:.0f}')} %"


def told_number(found: Cells) -> str:
    """The same as plain numbers."""
    return _told(found, lambda value: f"{value:.3f}")


def _told(found: Cells, number: Callable[[float], str]) -> str:
    queues = dict.fromkeys(queue for queue, _ in found)
    loads = list(dict.fromkeys(load for _, load in found))
    listed = "; ".join(
        f"{queue} {', '.join(number(found[queue, load]) for load in loads)}" for queue in queues
    )
    return f"at {', '.join(loads)}: {listed}"
