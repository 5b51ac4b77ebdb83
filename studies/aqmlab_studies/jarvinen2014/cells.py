"""What the statements are about: one number a queue and load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl

from aqmlab.campaign import Comparison, Rule, at_least, below
from aqmlab.campaign.rule import Compared
from aqmlab.metrics.samples import Floats, quartiles
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab_studies.jarvinen2014.figures import FLOWS, SPIKES, fairness
from aqmlab_studies.jarvinen2014.ns2 import REST
from aqmlab_studies.shared import each_run, packets_of

CODEL, SFQ = "CoDel", "SFQ CoDel"
HRED, HARSH = "HRED", "HRED (aggressive)"
PIES = ("PIEupdate", "PIEthresh")
SINGLE = (CODEL, *PIES, HRED, HARSH)
"""The queues of the paper that have a single queue."""
ALL = (*SINGLE, SFQ)
STEP = 0.006
"""One packet at 2 Mbit/s, in seconds: smaller differences are not counted."""

WINDOW = 3
"""Packets of an initial window."""

Cells = dict[tuple[str, str], float]
"""(queue, load) to a number."""
CellRule = Rule[Measurements, Cells]
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


def quantile(share: float) -> Value:
    """A quantile of the queuing delay of all packets, seconds."""
    return lambda measured, **labels: measured.delay_quantile(share, **labels)


p50, p95 = quantile(0.5), quantile(0.95)


def worst(measured: Measurements, **labels: str) -> float:
    """The largest queuing delay of 100 replications, seconds."""
    return measured.largest(100, **labels)


def median(values: Callable[..., Floats]) -> Value:
    """The median over the replications."""
    return lambda measured, **labels: measured.median(values, **labels)


middle = median(Measurements.maxima)
"""Median of the largest delay, seconds."""
fair = median(fairness)
"""Median of Jain's index of the two groups' response times."""


def spike(delay: int) -> Value:
    """The median duration of the longest spike above `delay` ms, seconds."""
    return median(lambda measured, **labels: measured.spikes(SPIKES[delay], **labels))


def response(group: str) -> Value:
    """The median response time of a group, seconds."""
    return median(lambda measured, **labels: measured.responses(group, **labels))


def spread(measured: Measurements, **labels: str) -> float:
    """The inter-quartile range of the largest delay as a share of its median."""
    low, median, high = quartiles(measured.maxima(**labels))
    return float((high - low) / median)


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


@each_run
def _initial_share(measured: Measurements, number: int, **labels: str) -> float:
    """Share of the first three packets of their flows in the data packets that waited when the
    packet with the largest delay of a run arrived."""
    packets = packets_of(measured, number, **labels)
    data = packets.filter(
        (pl.col("link") == measured.link) & ~pl.col("is_ack") & (pl.col("size_bytes") > 100)
    ).sort("arrival_s")
    data = data.with_columns(initial=pl.int_range(pl.len()).over("flow") < WINDOW)
    sent = data.filter(verdict="delivered")
    slowest = sent.row(int((sent["end_s"] - sent["arrival_s"]).arg_max() or 0), named=True)
    waiting = sent.filter(
        (pl.col("arrival_s") <= slowest["arrival_s"]) & (pl.col("end_s") > slowest["arrival_s"])
    )
    return float(waiting["initial"].mean() or 0.0)  # type: ignore[arg-type]


def initial_windows(measured: Measurements, **labels: str) -> float:
    """The mean share of initial windows in the queue at a run's largest delay."""
    return float(np.mean(_initial_share(measured, **labels)))


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


def share_above(found: Cells, limit: float) -> float:
    """The share of the numbers that are above the limit."""
    return float(np.mean([value > limit for value in found.values()]))


Counted = tuple[int, int]
"""Number of cases that are so, and of all."""


def same_order(
    found: Cells, queues: Iterable[str], forms: Sequence[str], apart: Callable[..., bool]
) -> Counted:
    """Pairs of queues at one load whose numbers of two kinds, forms of the queue's name, have the
    same order, of those whose differences are `apart`."""
    differences = [
        [found[form.format(a), load] - found[form.format(b), load] for form in forms]
        for load in FLOWS
        for a, b in combinations(queues, 2)
    ]
    kept = [one * other > 0 for one, other in differences if apart(one, other)]
    return sum(kept), len(kept)


def in_most(
    ident: str,
    text: str,
    rule: str,
    measure: Measure,
    count: Callable[[Cells], Counted],
    share: float,
    refuted_by: Cells,
    words: str = "{} of {} pairs",
) -> CellRule:
    """At least this share of the cases is so."""

    def compared(found: Cells) -> Comparison:
        right, total = count(found)
        return at_least(right / max(total, 1), share, "share")

    return Rule(
        ident, text, rule, measure, compared, lambda found: words.format(*count(found)), refuted_by
    )


def told(scale: float, digits: int, unit: str = "") -> Callable[[Cells], str]:
    """Formats numbers by queue: `at 1+1, 2+2, 4+4, 6+6: CoDel 90, 126, 170, 246; HRED ... ms`."""

    def words(found: Cells) -> str:
        queues = dict.fromkeys(queue for queue, _ in found)
        loads = list(dict.fromkeys(load for _, load in found))
        listed = "; ".join(
            f"{queue} {', '.join(f'{scale * found[queue, f]:.{digits}f}' for f in loads)}"
            for queue in queues
        )
        return f"at {', '.join(loads)}: {listed}{unit}"

    return words


told_ms, told_s, told_share = told(1e3, 0, " ms"), told(1.0, 2, " s"), told(100.0, 0, " %")
told_number = told(1.0, 3)


def statement(
    ident: str,
    text: str,
    rule: str,
    measure: Measure,
    compared: Callable[[Cells], Compared],
    refuted_by: Cells,
    words: Callable[[Cells], str] = told_ms,
    beside: Callable[[Measurements], str] | None = None,
) -> CellRule:
    """A rule about one number a queue and load, delays unless said otherwise."""
    return Rule(ident, text, rule, measure, compared, words, refuted_by, beside)
