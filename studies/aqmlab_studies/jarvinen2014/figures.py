"""Figures 2 to 10 of the paper, and three of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from aqmlab.campaign import NotRun, made
from aqmlab.metrics.samples import Floats, Quartiles, jain_indices, quartiles
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.jarvinen2014.ns2 import REST, reference

FLOWS = ("1+1", "2+2", "4+4", "6+6")
PAPER = ("CoDel", "PIEupdate", "PIEthresh", "HRED", "HRED (aggressive)", "SFQ CoDel")
"""The queues of the paper's tables and figures."""
FITTED = ("HRED fitted: th_max 50", "HRED (aggressive) fitted: th_max 50")
"""Shown beside them: HRED with a setting that comes close to the printed tables."""
SHOWN = (*PAPER[:4], FITTED[0], PAPER[4], FITTED[1], PAPER[5])
COLOURS = {
    "CoDel": "#2f6fbb",
    "PIEupdate": "#d55e00",
    "PIEthresh": "#e69f00",
    "HRED": "#009e73",
    "HRED fitted: th_max 50": "#7fd1b5",
    "HRED (aggressive)": "#8c6d31",
    "HRED (aggressive) fitted: th_max 50": "#cbb26a",
    "SFQ CoDel": "#8a56b5",
    "PIE (default)": "#7a4a34",
    "DropTail": "#8c8c8c",
    "HRED in packets": "#005f46",
    "HRED in packets, wait off": "#0b9aa0",
    "HRED fitted: max_p 0.5": "#b07cc6",
    "published (HRED)": "#e0457b",
}
BLUES = ("#93bff0", "#4a8bd6", "#7a5cc0", "#444444")
SPIKES = {60: 15000, 100: 25000}
"""Delay in ms to backlog in bytes at 2 Mbit/s."""
QUARTILES = "Bars: median of 100 replications; whiskers: lower and upper quartile."
LOADS = "flows in the first + second group"


def figures(measured: Measurements) -> list[Figure]:
    """All figures for which the queues and paths were run."""
    makers: tuple[Callable[[Measurements], Figure], ...] = (
        _delays,
        partial(_maxima, rest="11 ms", ident="figure-3"),
        partial(_spikes, delay=60, rest="11 ms", ident="figure-4"),
        partial(_spikes, delay=100, rest="11 ms", ident="figure-5"),
        partial(_responses, group="first", ident="figure-6"),
        partial(_responses, group="second", ident="figure-7"),
        _fairness,
        partial(_maxima, rest="101 ms", ident="figure-9"),
        partial(_spikes, delay=60, rest="101 ms", ident="figure-10"),
        _hred,
        _beside_ns2,
        _inert,
    )
    runs = f"{measured.replications} replications"
    return [
        replace(figure, caption=figure.caption.replace("100 replications", runs))
        for figure in made(makers, measured)
    ]


def fairness(measured: Measurements, **labels: str) -> Floats:
    """Jain's index between the response times of the two groups, one value a replication."""
    pairs = [measured.responses(group, **labels) for group in ("first", "second")]
    return jain_indices(np.stack(pairs, axis=1))


def _present(
    measured: Measurements, queues: Iterable[str], flows: Iterable[str], rest: str
) -> list[tuple[str, str]]:
    """Queues and loads that were run. Raises `NotRun` if none were."""
    found = [
        (queue, load)
        for load in flows
        for queue in queues
        if measured.has(queue=queue, flows=load, rest=rest)
    ]
    if not found:
        raise NotRun(rest)
    return found


def _delays(measured: Measurements) -> Figure:
    found = _present(measured, SHOWN, ["4+4"], REST)
    curves = {
        queue: _milliseconds(measured.histograms(queue=queue, flows=load, rest=REST).cdf())
        for queue, load in found
    }
    at = {q: measured.delay_quantile(0.95, queue=q, flows=f, rest=REST) * 1e3 for q, f in found}
    half = [measured.delay_quantile(0.5, queue=q, flows=f, rest=REST) * 1e3 for q, f in found]
    best, worst = min(at, key=at.__getitem__), max(at, key=at.__getitem__)
    return Figure(
        "figure-2",
        "Figure 2: queuing delay with 4+4 flows",
        f"Half of the packets wait for at most {min(half):.0f} to {max(half):.0f} ms, by queue; "
        f"5 % wait longer than {at[best]:.0f} ms with {best}, {at[worst]:.0f} ms with {worst}.",
        "Cumulative distribution over the packets of 100 replications. "
        + ("Dashes: HRED with a setting that is not the printed one. " if {*at} & {*FITTED} else "")
        + "Click on the legend to single out a queue.",
        charts.cdf(curves, COLOURS, "queuing delay (ms)", dashed=FITTED),
    )


def _maxima(measured: Measurements, rest: str, ident: str) -> Figure:
    found = _present(measured, SHOWN, FLOWS, rest)
    cells = {
        (q, f): quartiles(measured.maxima(queue=q, flows=f, rest=rest) * 1e3) for q, f in found
    }
    number, far = ident.rpartition("-")[2], rest != REST
    return Figure(
        ident,
        f"Figure {number}: largest queuing delay of a run"
        + (f", rest of the path {rest}" if far else ""),
        "From 1+1 to 6+6 flows the median of the largest delay goes "
        + _growth(cells, ("CoDel", "PIEupdate", "HRED", "SFQ CoDel"))
        + ".",
        QUARTILES,
        charts.bars(cells, COLOURS, "largest queuing delay (ms)", LOADS),
    )  # fmt: skip


def _spikes(measured: Measurements, delay: int, rest: str, ident: str) -> Figure:
    # SFQ CoDel has no single queue for which this could be said.
    found = _present(measured, [each for each in SHOWN if each != "SFQ CoDel"], FLOWS, rest)
    cells = {
        (q, f): quartiles(measured.spikes(SPIKES[delay], queue=q, flows=f, rest=rest) * 1e3)
        for q, f in found
    }
    number, far = ident.rpartition("-")[2], rest != REST
    return Figure(
        ident,
        f"Figure {number}: how long a spike above {delay} ms lasts"
        + (f", rest of the path {rest}" if far else ""),
        f"Time with more than {SPIKES[delay]:,} bytes ({delay} ms) in the queue, longest of a run; "
        "from 1+1 to 6+6 flows the median goes "
        + _growth(cells, ("CoDel", "PIEupdate", "HRED"))
        + ".",
        QUARTILES + " SFQ CoDel has no single queue, and is left out as in the paper.",
        charts.bars(cells, COLOURS, f"duration of the spike above {delay} ms (ms)", LOADS),
    )  # fmt: skip


def _responses(measured: Measurements, group: str, ident: str) -> Figure:
    found = _present(measured, SHOWN, FLOWS, REST)
    cells = {
        (q, f): quartiles(measured.responses(group, queue=q, flows=f, rest=REST)) for q, f in found
    }
    medians = [each.median for each in cells.values()]
    number = ident.rpartition("-")[2]
    return Figure(
        ident,
        f"Figure {number}: response time of the {group} group",
        f"All medians lie between {min(medians):.1f} and {max(medians):.1f} s.",
        QUARTILES + " From the group's start to the last acknowledgement of its last flow.",
        charts.bars(cells, COLOURS, f"response time of the {group} group (s)", LOADS, digits=2),
    )  # fmt: skip


def _fairness(measured: Measurements) -> Figure:
    found = _present(measured, SHOWN, FLOWS, REST)
    cells = {(q, f): quartiles(fairness(measured, queue=q, flows=f, rest=REST)) for q, f in found}
    medians = [each.median for each in cells.values()]
    return Figure(
        "figure-8",
        "Figure 8: fairness between the groups",
        f"All medians of Jain's index lie between {min(medians):.3f} and {max(medians):.3f}.",
        "Jain's index of the two groups' response times: 1 if they are equal, 0.5 if one takes "
        "all. Points: median of 100 replications; whiskers: quartiles. The axis does not begin at "
        "zero.",
        charts.bars(cells, COLOURS, "Jain's fairness index", LOADS, digits=3, zero=False),
    )


def _hred(measured: Measurements) -> Figure:
    settings = (
        "HRED",
        "HRED in packets",
        "HRED in packets, wait off",
        "HRED fitted: th_max 50",
        "HRED fitted: max_p 0.5",
    )
    printed = (120.0, 126.0, 132.0, 132.0)
    points = {("published (HRED)", f): d for f, d in zip(FLOWS, printed, strict=True)}
    points |= {
        (q, f): measured.delay_quantile(0.95, queue=q, flows=f, rest=REST) * 1e3
        for f in FLOWS
        for q in settings
    }
    shares = [100 * points["HRED", f] / each for f, each in zip(FLOWS, printed, strict=True)]
    return Figure(
        "hred",
        "HRED: the printed parameters and the printed table",
        f"As ns-2 runs RED unless told otherwise the printed parameters give "
        f"{min(shares):.0f} to {max(shares):.0f} % of the printed delays.",
        "Diamonds: the printed table. Lines: 95th percentile of the queuing delay of all packets "
        "as measured. HRED: Table I in bytes, mean packet 1000, `wait_` on. Dashes: one "
        "parameter changed, in packets, `wait_` off.",
        charts.lines(
            points,
            COLOURS,
            "95th percentile of the delay (ms)",
            LOADS,
            dashed=settings[3:],
            emphasised="published (HRED)",
        ),
    )


def _beside_ns2(measured: Measurements) -> Figure:
    loads = [f for _, f in _present(measured, ["CoDel"], FLOWS, REST) if reference("CoDel", f)]
    shades = {f"{f} flows": c for f, c in zip(FLOWS, BLUES, strict=True)}
    curves, marks, off = {}, {}, 0.0
    shares = np.arange(5, 100, 5) / 100
    for load in loads:
        histograms = measured.histograms(queue="CoDel", flows=load, rest=REST)
        curves[f"{load} flows"] = _milliseconds(histograms.cdf())
        known = reference("CoDel", load)
        assert known is not None
        theirs = np.array([known.percentile(round(100 * share)) for share in shares])
        marks[f"{load} flows"] = (theirs * 1e3, shares)
        ours = np.array(histograms.quantiles([n / 100 for n in range(5, 100)]))
        all_theirs = np.array([known.percentile(n) for n in range(5, 100)])
        off = max(off, float(np.abs(ours - all_theirs).max()))
    return Figure(
        "ns2",
        "CoDel here and in ns-2",
        f"Between the 5th and 99th percentile the pooled delays are at most {off * 1e3:.1f} ms "
        "apart.",
        "Lines: aqmlab. Circles: ns-2.35 with the CoDel patch of 2012, measured by us on the same "
        "scenario, with other random offsets, which alone move up to 6 ms. Cumulative "
        "distributions over the packets of 100 replications.",
        charts.cdf(curves, shades, "queuing delay (ms)", marks=marks),
    )


def _inert(measured: Measurements) -> Figure:
    queues = ("PIE (default)", "DropTail", "PIEupdate", "PIEthresh")
    at = {queue: {"queue": queue, "flows": "4+4", "rest": REST} for queue in queues}
    curves = {q: _milliseconds(measured.histograms(**each).cdf()) for q, each in at.items()}
    ends = {q: 1e3 * measured.delay_quantile(0.95, **each) for q, each in at.items()}
    listed = ", ".join(f"{end:.0f} ({queue})" for queue, end in ends.items())
    return Figure(
        "pie-inert",
        "PIE with its default parameters, and a FIFO, at 2 Mbit/s",
        f"5 % of packets wait longer than {listed} ms.",
        "Cumulative distribution over the packets of 100 replications, 4+4 flows.",
        charts.cdf(curves, COLOURS, "queuing delay (ms)", dashed=["DropTail"]),
    )


def _milliseconds(curve: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return curve[0] * 1e3, curve[1]


def _growth(cells: dict[tuple[str, str], Quartiles], queues: Iterable[str]) -> str:
    """`from 119 to 243 ms with CoDel, ...`, of those that were run."""
    ends = (FLOWS[0], FLOWS[-1])
    told = []
    for queue in queues:
        if all((queue, end) in cells for end in ends):
            low, high = (cells[queue, end].median for end in ends)
            told.append(f"from {low:.0f} to {high:.0f} ms with {queue}")
    return ", ".join(told)
