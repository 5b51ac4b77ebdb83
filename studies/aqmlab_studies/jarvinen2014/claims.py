"""The statements of the paper, checked one by one: the headline, then section V.

A statement is one row with one rule (`aqmlab.campaign`). HRED is the reading that ns-2
runs unless told otherwise (README.md); what the other readings give is told beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from aqmlab.campaign import Asked, NotRun, Rule, above, asked, at_least, at_most, below, within
from aqmlab.campaign.rule import Compared
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.jarvinen2014.cells import (
    ALL,
    CODEL,
    HARSH,
    HRED,
    PIES,
    SFQ,
    SINGLE,
    STEP,
    CellRule,
    Cells,
    Measure,
    Value,
    cells,
    fair,
    in_most,
    initial_windows,
    lower,
    middle,
    of,
    one_spike,
    p50,
    p95,
    range_of,
    response,
    rows,
    same_order,
    several,
    share_above,
    spike,
    spread,
    statement,
    told_ms,
    told_number,
    told_s,
    told_share,
    worst,
)  # fmt: skip
from aqmlab_studies.jarvinen2014.figures import FLOWS
from aqmlab_studies.jarvinen2014.levels import HEADLINE, LEVELS, MANY
from aqmlab_studies.jarvinen2014.ns2 import REST
from aqmlab_studies.shared import each

FAR = "101 ms"
GROUPS = ("first", "second")
FIFO = "DropTail"


def claims(measured: Measurements) -> list[Asked]:
    """All statements for which the queues and paths were run."""
    of_cells = (*HEADLINE, *HIGH_END, *LEVELS, *SPIKES, *TIMES, *LONG_PATH)
    return [*asked(of_cells, measured), *asked((INERT,), measured), *asked((RECALL,), measured)]


def _harsh_in_packets(measured: Measurements) -> str:
    """The durations of aggressive HRED's spikes above 100 ms in the other readings."""
    told = []
    for reading in ("in packets", "in packets, wait off"):
        with suppress(NotRun):
            told.append(told_ms(cells(spike(100), (f"{HARSH} {reading}",))(measured)))
    return "; ".join(told)


HIGH_END: tuple[CellRule, ...] = (
    statement(
        "median-delay",
        "The median queuing delay is at most 24 ms with every queue and load.",
        "every median (pooled over the packets of all replications) is below 24.5 ms",
        cells(p50, ALL),
        each(below, 0.0245),
        {(q, f): 0.030 if q == SFQ else 0.012 for q in ALL for f in FLOWS},
    ),
    statement(
        "aggressive-even-better",
        "The slightly more aggressive HRED is even better.",
        "at every load its 95th percentile is below HRED's by more than a packet",
        cells(p95, (HRED, HARSH)),
        lambda found: lower(found, HARSH, (HRED,), FLOWS),
        rows(HRED=(120, 126, 132, 132)) | rows(**{HARSH: (96, 96, 108, 130)}),
    ),
    statement(
        "hred-quartiles",
        "Figure 3: the inter-quartile range of HRED's largest delay is small up to 4+4 flows.",
        "with 1+1, 2+2 and 4+4 flows it is at most a fifth of the median",
        cells(spread, (HRED,), FLOWS[:3]),
        each(at_most, 0.2),
        {(HRED, "1+1"): 0.1, (HRED, "2+2"): 0.3, (HRED, "4+4"): 0.1},
        told_share,
    ),
    statement(
        "sfq-same-level",
        "With SFQ CoDel the high-end delays stay roughly at the same level whatever the number of "
        "flows.",
        "the largest of the four 95th percentiles is at most 25 % above the smallest",
        cells(p95, (SFQ,)),
        lambda found: at_most(range_of(found, SFQ), 1.25, "largest over smallest"),
        rows(**{SFQ: (60, 60, 66, 90)}),
    ),
    statement(
        "sfq-below-hred",
        "SFQ CoDel's 95th percentiles are lower than HRED's.",
        "at every load, by more than a packet",
        cells(p95, (SFQ, HRED)),
        lambda found: lower(found, SFQ, (HRED,), FLOWS),
        rows(HRED=(120, 126, 132, 60), **{SFQ: (60, 57, 54, 66)}),
    ),
    statement(
        "sfq-medians-as-hred",
        "Figure 3: the medians of SFQ CoDel's largest delay are roughly at HRED's level.",
        "at every load within 25 % of HRED's",
        cells(middle, (SFQ, HRED)),
        lambda found: [within(found[SFQ, f] / found[HRED, f], 1, 0.25, f) for f in FLOWS],
        rows(HRED=(130, 130, 130, 140), **{SFQ: (120, 120, 120, 90)}),
    ),
    statement(
        "sfq-worst-with-one",
        "Table III: with 1+1 flows SFQ CoDel's worst case is not as good as that of CoDel.",
        "its largest delay of 100 replications is larger by more than a packet",
        cells(worst, (SFQ, CODEL), FLOWS[:1]),
        lambda found: above(found[SFQ, "1+1"] - found[CODEL, "1+1"], STEP),
        {(SFQ, "1+1"): 0.150, (CODEL, "1+1"): 0.150},
    ),
    statement(
        "sfq-worst-with-two",
        "Table III: with 2+2 flows SFQ CoDel's worst case is roughly equal to that of CoDel.",
        "the largest delays of 100 replications are within 10 % of each other",
        cells(worst, (SFQ, CODEL), FLOWS[1:2]),
        lambda found: within(found[SFQ, "2+2"] / found[CODEL, "2+2"], 1, 0.10),
        {(SFQ, "2+2"): 0.220, (CODEL, "2+2"): 0.186},
    ),
    statement(
        "sfq-worst-with-many",
        "Table III: beyond 2+2 flows SFQ CoDel clearly lowers the worst case compared with CoDel.",
        "with 4+4 and 6+6 flows its largest delay of 100 replications is at least 10 % lower",
        cells(worst, (SFQ, CODEL), MANY),
        lambda found: [at_most(found[SFQ, f] / found[CODEL, f], 0.9, f) for f in MANY],
        {(SFQ, "4+4"): 0.17, (SFQ, "6+6"): 0.29, (CODEL, "4+4"): 0.23, (CODEL, "6+6"): 0.30},
    ),
    statement(
        "hred-worst-below-sfq",
        "Table III: HRED's worst case is lower than SFQ CoDel's in most cases.",
        "HRED's largest delay of 100 replications is lower by more than half a packet at three of "
        "the four loads or more",
        cells(worst, (HRED, SFQ)),
        lambda found: at_least(
            sum(found[HRED, f] < found[SFQ, f] - STEP / 2 for f in FLOWS), 3, "loads"
        ),
        rows(HRED=(150, 168, 190, 230), **{SFQ: (180, 180, 174, 222)}),
    ),
    statement(
        "initial-windows-hred",
        "With 6+6 flows a significant part of HRED's queue during the highest spikes are packets "
        "of initial windows.",
        "at the largest delay of a run, of the packets that wait at least 20 % are among the first "
        "three of their flows (mean over the replications)",
        cells(initial_windows, (HRED,), FLOWS[3:]),
        lambda found: at_least(found[HRED, "6+6"], 0.2),
        {(HRED, "6+6"): 0.03},
        told_share,
    ),
    statement(
        "initial-windows-others",
        "With 6+6 flows a negligible part of the other single queues during the highest spikes are "
        "packets of initial windows.",
        "at most 5 % with CoDel and both variants of PIE, measured likewise",
        cells(initial_windows, (CODEL, *PIES), FLOWS[3:]),
        each(at_most, 0.05),
        {(CODEL, "6+6"): 0.2, ("PIEupdate", "6+6"): 0.0, ("PIEthresh", "6+6"): 0.0},
        told_share,
    ),
)

SPIKES: tuple[CellRule, ...] = (
    statement(
        "spikes-60ms",
        "Figure 4: delay spikes above 60 ms typically last clearly more than 200 ms.",
        "at least nine of ten medians of the longest spike of a run are above 200 ms",
        cells(spike(60), SINGLE),
        lambda found: at_least(share_above(found, 0.2), 0.9, "share"),
        {(q, f): 0.15 if q == CODEL else 0.5 for q in SINGLE for f in FLOWS},
    ),
    statement(
        "spikes-100ms",
        "Figure 5: delay spikes above 100 ms last around 130 ms or longer (without aggressive "
        "HRED).",
        "at least nine of ten medians of the longest spike of a run are above 120 ms",
        cells(spike(100), tuple(q for q in SINGLE if q != HARSH)),
        lambda found: at_least(share_above(found, 0.12), 0.9, "share"),
        {(q, f): 0.1 if q == CODEL else 0.5 for q in SINGLE if q != HARSH for f in FLOWS},
    ),
    statement(
        "spikes-100ms-aggressive",
        "Figure 5: aggressive HRED's spikes above 100 ms are notably shorter.",
        "at every load its median is below 130 ms and at least 10 % below those of all other "
        "single queues",
        cells(spike(100), SINGLE),
        lambda found: [
            *(below(found[HARSH, f], 0.13, f) for f in FLOWS),
            *(
                at_most(found[HARSH, f] - 0.9 * found[q, f], 0, f"less 0.9 of {q}, {f}")
                for q in SINGLE
                if q != HARSH
                for f in FLOWS
            ),
        ],
        {(q, f): 0.2 if q == HARSH else 0.5 for q in SINGLE for f in FLOWS},
        beside=_harsh_in_packets,
    ),
    statement(
        "spikes-longer-with-many",
        "With many flows PIE's and CoDel's spikes last significantly longer than HRED's.",
        "with 4+4 and 6+6 flows their medians above 60 ms are at least 25 % longer than HRED's",
        cells(spike(60), (CODEL, *PIES, HRED), MANY),
        lambda found: [
            at_least(found[q, f] / found[HRED, f], 1.25, f"{q}, {f}")
            for q in (CODEL, *PIES)
            for f in MANY
        ],
        {(q, f): 0.5 for q in (CODEL, *PIES, HRED) for f in MANY},
    ),
    statement(
        "one-spike",
        "There is usually just one major delay spike in a run.",
        "in at least three quarters of the runs with a spike above 60 ms the longest one has half "
        "of all the time above 60 ms or more, at every point",
        cells(one_spike, SINGLE),
        each(at_least, 0.75),
        {(q, f): 0.5 if q == "PIEupdate" else 0.9 for q in SINGLE for f in FLOWS},
        told_share,
    ),
)


def _responses(*queues: str) -> Measure:
    """Builds a function that measures the median response times of both groups."""
    return several({f"{{}} ({group})": cells(response(group), queues) for group in GROUPS})


def _both_groups(**seconds: float) -> Cells:
    """Response times of both groups at all loads, by queue; of the others `rest`."""
    return {
        (f"{queue} ({group})", load): seconds.get(queue.replace(" ", "_"), seconds["rest"])
        for queue in (*ALL, FIFO)
        for group in GROUPS
        for load in FLOWS
    }


def _largest_spread(found: Cells) -> float:
    """The largest median of a group at one load as a multiple of the smallest."""
    return max(
        max(values) / min(values)
        for group in GROUPS
        for load in FLOWS
        if (values := [v for (q, f), v in found.items() if f == load and q.endswith(f"({group})")])
    )


def _longer(found: Cells) -> list[float]:
    """The second group's medians as multiples of the first's."""
    return [found[f"{q} (second)", f] / found[f"{q} (first)", f] for q in ALL for f in FLOWS]


def _slightly(found: Cells) -> int:
    return sum(ratio <= 1.25 for ratio in _longer(found))


def _over_fifo(found: Cells) -> dict[tuple[str, str], float]:
    """The medians with an AQM as multiples of those with DropTail."""
    return {
        (f"{q} ({g})", f): found[f"{q} ({g})", f] / found[f"{FIFO} ({g})", f]
        for q in ALL
        for g in GROUPS
        for f in FLOWS
    }


def _told_over_fifo(found: Cells) -> str:
    ratios = _over_fifo(found)
    most = max(ratios, key=ratios.__getitem__)
    above = sum(ratio > 1.25 for ratio in ratios.values())
    return (
        f"at most {ratios[most]:.2f} times ({most[0]}, {most[1]}), above 1.25 times in "
        f"{above} of {len(ratios)} cases"
    )


TIMES: tuple[CellRule, ...] = (
    Rule(
        "response-alike",
        "Figures 6, 7: within each group the response times are roughly at the same level whatever "
        "the queue.",
        "at one load the largest median is at most 1.25 times the smallest",
        _responses(*ALL),
        lambda found: at_most(_largest_spread(found), 1.25),
        lambda found: f"at most {_largest_spread(found):.2f} times; medians {told_s(found)}",
        _both_groups(SFQ_CoDel=5.0, rest=3.5),
    ),
    Rule(
        "response-no-harm",
        "Figures 6, 7: little or no harm is caused by any of the AQMs on the response times.",
        "no median is more than 1.25 times that with DropTail at the same load",
        _responses(*ALL, FIFO),
        lambda found: each(at_most, 1.25)(_over_fifo(found)),
        _told_over_fifo,
        _both_groups(HRED=5.0, rest=3.5),
    ),
    in_most(
        "response-second-longer",
        "Figures 6, 7: the response times are generally longer in the second group.",
        "its median is longer by more than 2 % in at least nine of ten cases",
        _responses(*ALL),
        lambda found: (sum(ratio > 1.02 for ratio in _longer(found)), len(_longer(found))),
        0.9,
        _both_groups(rest=3.5),
        "in {} of {} cases",
    ),
    Rule(
        "response-second-slightly",
        "Figures 6, 7: the response times of the second group are only slightly longer.",
        "its median is at most 1.25 times that of the first in at least nine of ten cases",
        _responses(*ALL),
        lambda found: at_least(_slightly(found) / len(_longer(found)), 0.9, "share"),
        lambda found: f"in {_slightly(found)} of {len(_longer(found))} cases, at most "
        f"{max(_longer(found)):.2f} times",
        {
            (f"{q} ({g})", f): 3.5 if g == "first" else 5.0
            for q in ALL for g in GROUPS for f in FLOWS
        },
    ),
    statement(
        "fair",
        "Figure 8: the fairness between the groups is very good whatever the queue.",
        "every median of Jain's index of the response times is at least 0.95",
        cells(fair, ALL),
        each(at_least, 0.95),
        {(q, f): 0.9 if q == CODEL else 0.99 for q in ALL for f in FLOWS},
        told_number,
    ),
    statement(
        "fairness",
        "Figure 8: SFQ CoDel does not provide the best fairness.",
        "at each load another queue's median of Jain's index is higher by more than 0.001",
        cells(fair, ALL),
        lambda found: [
            below(found[SFQ, f] - max(found[q, f] for q in SINGLE), -0.001, f) for f in FLOWS
        ],
        {(q, f): 0.99 if (q, f) == (SFQ, "4+4") else 0.98 for q in ALL for f in FLOWS},
        told_number,
    ),
)  # fmt: skip


def _both_paths(value: Value, queues: tuple[str, ...]) -> Measure:
    return several({f"{{}}, {rest}": cells(value, queues, rest=rest) for rest in (REST, FAR)})


def _same_order(
    ident: str, text: str, what: str, queues: tuple[str, ...], value: Value
) -> CellRule:
    """The order of the queues is the same on both paths."""
    return in_most(
        ident,
        text,
        f"nine of ten pairs of {what} (those more than a packet apart) keep the order of the "
        + (
            "median durations above 60 ms" if queues == SINGLE else "medians of their largest delay"
        ),
        _both_paths(value, queues),
        lambda found: same_order(
            found,
            queues,
            [f"{{}}, {rest}" for rest in (REST, FAR)],
            lambda near, far: min(abs(near), abs(far)) > STEP,
        ),
        0.9,
        {
            (f"{q}, {rest}", f): 0.1 + 0.05 * (ALL.index(q) if rest == REST else 5 - ALL.index(q))
            for q in ALL
            for rest in (REST, FAR)
            for f in FLOWS
        },
    )


def _shift(found: Cells, queue: str) -> float:
    """The mean ratio over the loads of a queue's numbers on the long and the short path."""
    near, far = (of(found, f"{queue}, {rest}") for rest in (REST, FAR))
    return float(np.mean([b / a for a, b in zip(near, far, strict=True)]))


def _shifted(
    ident: str,
    text: str,
    rule: str,
    value: Value,
    queues: tuple[str, ...],
    wrong: tuple[str, float, float],
    compared: Callable[[Cells], Compared] | None = None,
) -> CellRule:
    """The mean ratio of every queue is within 25 % of 1, unless compared otherwise; `wrong` is a
    queue with its number on the long path, and all other numbers."""

    def near_one(found: Cells) -> Compared:
        return [within(_shift(found, queue), 1, 0.25, queue) for queue in queues]

    def told(found: Cells) -> str:
        listed = ", ".join(f"{queue} {_shift(found, queue):.2f}" for queue in queues)
        return f"long path over short path, mean over the loads: {listed}"

    queue, far, rest = wrong
    refuted_by = {
        (f"{q}, {path}", f): far if path == FAR and q == queue else rest
        for q in queues
        for path in (REST, FAR)
        for f in FLOWS
    }
    measure = _both_paths(value, queues)
    return Rule(ident, text, rule, measure, compared or near_one, told, refuted_by)


LONG_PATH: tuple[CellRule, ...] = (
    _same_order(
        "long-path",
        "Figure 9: with 101 ms for the rest of the path the order of the queues stays.",
        "queues", ALL, middle,
    ),
    _shifted(
        "long-path-level",
        "Figure 9: the delays are roughly at the same level with the longer path.",
        "of every queue the mean ratio of the medians of the largest delay is within 25 % of 1",
        middle, ALL, (CODEL, 0.2, 0.1),
    ),
    _same_order(
        "long-path-spikes",
        "Figure 10: with the longer path the order of the queues by the duration of the spikes "
        "stays.",
        "single queues", SINGLE, spike(60),
    ),
    _shifted(
        "long-path-spikes-level",
        "Figure 10: there are only small changes in the duration of the spikes.",
        "of every single queue the mean ratio of the median durations above 60 ms is within 25 % "
        "of 1",
        spike(60), SINGLE, (HRED, 0.5, 1.0),
    ),
    _shifted(
        "long-path-favours",
        "Figure 10: the longer path changes the duration of the spikes mainly in favour of CoDel "
        "and HRED.",
        "the mean ratio of the median durations above 60 ms is below 0.98 with CoDel and with "
        "HRED, and lower by more than 0.02 than with both variants of PIE",
        spike(60), (CODEL, *PIES, HRED), (HRED, 1.2, 1.0),
        lambda found: [
            below(_shift(found, queue) - other, -0.02, f"{queue} less {name}")
            for queue in (CODEL, HRED)
            for name, other in (("1", 1.0), *((pie, _shift(found, pie)) for pie in PIES))
        ],
    ),
)  # fmt: skip

Inert = tuple[int, float]
"""Packets that PIE dropped early, and its largest distance from DropTail in seconds."""


def _inert(measured: Measurements) -> Inert:
    pie, fifo = "PIE (default)", FIFO
    shares = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    early, off = 0, 0.0
    for flows in FLOWS:
        one, other = (
            np.array(measured.histograms(queue=q, flows=flows, rest=REST).quantiles(shares))
            for q in (pie, fifo)
        )
        off = max(off, float(np.abs(one - other).max()))
        early += int(measured.count("drop_pie", queue=pie, flows=flows, rest=REST).sum())
    return early, off


INERT: Rule[Measurements, Inert] = Rule(
    "pie-inert",
    "PIE with its default parameters does nothing at 2 Mbit/s: it equals a FIFO.",
    "it drops no packet early, and percentiles 5 to 100 of the delay are within a packet of "
    "DropTail's at every load",
    _inert,
    lambda found: [at_most(found[0], 0, "early drops"), at_most(found[1], STEP, "apart")],
    lambda found: f"{found[0]} early drops; at most {1e3 * found[1]:.0f} ms apart",
    (3, 0.0),
)


FORMULA = "CoDel, recall of RFC 8289"
RECALL = statement(
    "recall",
    "Section VI: recalling CoDel's count as Linux does makes no noticeable change in the delays.",
    "the 95th percentiles with the formula of Linux and RFC 8289 are within a packet of those with "
    "ns-2's of 2012",
    cells(p95, (CODEL, FORMULA)),
    lambda found: [within(found[CODEL, f] - found[FORMULA, f], 0, STEP, f) for f in FLOWS],
    rows(CoDel=(90, 120, 170, 246), **{FORMULA: (90, 120, 170, 260)}),
    beside=lambda measured: (
        "with Linux's arithmetic too (an inverse square root in small steps) "
        + told_ms(cells(p95, ("CoDel as in Linux",))(measured))
    ),
)
