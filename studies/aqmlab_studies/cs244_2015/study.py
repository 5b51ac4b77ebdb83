"""What the tables of keys and values beside this file cannot say: shares, the comparison with
mahimahi's recorded runs, the document's figures, and the causes of differences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from aqmlab.campaign import NotRun
from aqmlab.metrics.samples import quartiles
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce import published
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable, Replicates
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.stats import MEAN_METHOD, SHARE
from aqmlab_studies.cs244_2015 import packets
from aqmlab_studies.cs244_2015.claims import claims, own
from aqmlab_studies.cs244_2015.curves import (
    CODEL,
    RATES,
    TAIL,
    average,
    both,
    of_step,
    point_labels,
    recorded,
    settings,
    shares,
    told,
)
from aqmlab_studies.cs244_2015.packets import POINTS, shortened
from aqmlab_studies.shared import mean_table

__all__ = ["METRICS", "causes", "claims", "figures", "shortened", "tables"]


def _share(measured: Measurements, labels: dict[str, str]) -> Replicates:
    return Replicates(shares(measured, **labels), SHARE)


METRICS = {"share": (_share, MEAN_METHOD)}


def is_recorded_trace(lte: Measurements) -> bool:
    """Whether the cellular link is the trace of the recorded runs."""
    (capacity,) = {each["capacity_bytes"] for each in recorded()["lte"]}
    labels = {axis: names[0] for axis, names in lte.axes.items()}
    return bool(abs(lte.count("capacity_bytes", **labels)[0] / capacity - 1) < 1e-3)


def _of_steps(measured: Measurements) -> Iterator[CellTable]:
    """Costs of CoDel, and our runs beside mahimahi's."""
    steps = measured.part("study")
    name = "Bytes that CoDel carries less than tail drop"
    yield _gaps(steps, "less", name, CODEL, TAIL, -1, 0.096)
    yield from _beside(steps, recorded()["steps"], "")
    yield from (_steps(steps, queue) for queue in (TAIL, CODEL))


def _of_lte(measured: Measurements) -> Iterator[CellTable]:
    lte = measured.part("lte")
    name = "LTE: bytes that tail drop carries more than CoDel"
    yield _gaps(lte, "more-lte", name, TAIL, CODEL, +1, 0.12)
    if is_recorded_trace(lte):
        yield from _beside(lte, recorded()["lte"], "-lte")


def _gaps(
    part: Measurements, ident: str, name: str, queue: str, other: str, sign: int, printed: float
) -> CellTable:
    """By which share a queue carries more bytes than the other, or fewer if the sign is -1."""
    cells = []
    for labels in settings(part):
        published = printed if labels == own(part) else None
        ours, theirs = (shares(part, queue=each, **labels) for each in (queue, other))
        row, gaps = labels.get("sender", "CUBIC"), sign * (ours / theirs - 1)
        cells.append(Cell.mean(row, labels["load"], published, gaps, POINTS, SHARE))
    return mean_table(ident, name, f"share of {other}'s", cells)


tables = (_of_steps, _of_lte, packets.tables)


def _beside(measured: Measurements, theirs: list[dict[str, Any]], suffix: str) -> list[CellTable]:
    """Shares and delays of whole runs."""
    columns: dict[str, list[Cell]] = {"share": [], "delay": []}
    quantile, method = published.METRICS["delay_quantile"]
    for point in theirs:
        labels = point_labels(point)
        if not measured.has(**labels):
            continue
        row = told(labels)
        values = shares(measured, **labels)
        cell = Cell.mean(row, labels["queue"], point["share"], values, POINTS, SHARE)
        columns["share"].append(cell)
        for share in (0.5, 0.95):
            columns["delay"].append(
                Cell.of(
                    f"{row}, {100 * share:g} %", labels["queue"],
                    point[f"delay_p{100 * share:g}_ms"] / 1e3,
                    quantile(measured, labels, share), Criterion(1e-3),
                )
            )  # fmt: skip
    where = " on the recorded LTE trace" if suffix else ""
    return [
        mean_table(f"mahimahi-share{suffix}", f"Share of the possible bytes{where}", "share",
                   columns["share"], "mahimahi"),
        CellTable(f"mahimahi-delay{suffix}", f"Percentiles of the queuing delay{where}", "s",
              tuple(columns["delay"]), reference="mahimahi", method=method),
    ]  # fmt: skip


def _steps(steps: Measurements, queue: str) -> CellTable:
    cells = []
    for point in recorded()["steps"]:
        labels = point_labels(point)
        if labels["queue"] != queue or not steps.has(**labels):
            continue
        for step, theirs in enumerate(point["share_of_step"]):
            values = of_step(steps, step, 0.0, **labels)
            row = f"from {50 * step} s, {RATES[step]} Mbit/s"
            cells.append(Cell.mean(row, told(labels), theirs, values, POINTS, SHARE))
    ident = f"mahimahi-steps-{queue.replace(' ', '-').lower()}"
    name = f"Share of the possible bytes in each step, {queue}"
    return mean_table(ident, name, "share", cells, "mahimahi")


COLOURS = {TAIL: "#c8453f", CODEL: "#2f6fbb", "possible": "#9a9a9a"}
FLOWS = {"capacity": "#b9b9b9", "into the queue": "#ef9232", "out of it": "#2f6fbb"}


def _over_time(name: str, measured: Measurements) -> Iterator[Figure]:
    """The figures of a part; with CUBIC, as Ubuntu sends."""
    part = measured.part(name)
    for labels in settings(part):
        if labels.get("sender") in (None, "CUBIC"):
            ident = f"{name}-{labels['load'].replace(' ', '-')}"
            where = f"{'LTE' if name == 'lte' else 'rate steps'}, {told(labels)}"
            means = f"Means over {part.replications} replications and half a second each."
            yield _delay(part, ident, where, means, labels)
            yield _bytes(part, ident, where, means, labels)
            yield _capacity(part, ident, where, labels)


def _delay(
    part: Measurements, ident: str, where: str, means: str, labels: dict[str, str]
) -> Figure:
    times, curves = both(part, "sojourn_mean_s", **labels)
    medians = {queue: 1e3 * float(np.median(values)) for queue, values in curves.items()}
    return Figure(
        f"delay-{ident}",
        f"Queuing delay: {where}",
        f"The median of the half seconds is {medians[CODEL]:.1f} ms with CoDel and "
        f"{medians[TAIL]:.0f} ms with tail drop.",
        f"{means} The scale is logarithmic.",
        charts.series(
            {queue: (times, 1e3 * np.maximum(values, 1e-4)) for queue, values in curves.items()},
            COLOURS,
            "time (s)",
            "queuing delay (ms)",
            log=True,
        ),
    )


def _bytes(
    part: Measurements, ident: str, where: str, means: str, labels: dict[str, str]
) -> Figure:
    times, curves = both(part, "delivered_bytes", **labels)
    offered_at, offered = average(part, "capacity_bps", queue=TAIL, **labels)
    possible = np.cumsum(offered * np.diff(offered_at, prepend=0.0)) / 8e6
    less = 1 - curves[CODEL][-1] / curves[TAIL][-1]
    return Figure(
        f"bytes-{ident}",
        f"Bytes carried: {where}",
        f"At the end CoDel has carried {100 * less:.1f} % less than tail drop.",
        means,
        charts.series(
            {"possible": (offered_at, possible)}
            | {queue: (times, values / 1e6) for queue, values in curves.items()},
            COLOURS,
            "time (s)",
            "megabytes",
        ),
    )


def _capacity(part: Measurements, ident: str, where: str, labels: dict[str, str]) -> Figure:
    panels = []
    quantities = ("capacity_bps", "ingress_bps", "throughput_bps")
    for queue in (TAIL, CODEL):
        curves = {}
        for name, quantity in zip(FLOWS, quantities, strict=True):
            times, values = part.series(quantity, replication=0, queue=queue, **labels)
            curves[name] = (times[1:], values[1:] / 1e6)
        panels.append((f"{queue} (Mbit/s)", curves, FLOWS))
    end = float(times[-1])
    return Figure(
        f"capacity-{ident}",
        f"Into and out of the switch: {where}",
        "Where more comes than leaves, the queue grows or packets are dropped; where less leaves "
        "than could, the queue was empty.",
        "One replication, half a second each, as mahimahi's own graphs.",
        charts.panels(panels, "time (s)", x_domain=(0, end), height=190, shaded=("capacity",)),
    )


def _shares(measured: Measurements) -> Figure:
    steps = measured.part("study")
    ours = {
        (queue, told(labels)): quartiles(100 * shares(steps, queue=queue, **labels))
        for labels in settings(steps)
        for queue in (TAIL, CODEL)
    }
    if not ours:
        raise NotRun("study")
    printed = {TAIL: 97.0, CODEL: 88.0}
    cells = ours | {(queue, "document"): quartiles([share]) for queue, share in printed.items()}
    least = min(ours, key=lambda key: ours[key].median)
    return Figure(
        "figure-shares",
        "Share of the possible bytes",
        f"The least is {ours[least].median:.1f} %, {least[0]} with {least[1]}; the document "
        "prints 97 % for tail drop and 88 % for CoDel.",
        f"Bars: median of {steps.replications} replications; whiskers: quartiles.",
        charts.bars(
            cells, COLOURS, "share of the possible bytes (%)", "senders and load", digits=1
        ),
    )


figures = (partial(_over_time, "study"), _shares, partial(_over_time, "lte"), packets.figures)


def _mean(part: Measurements, variation: str, queue: str) -> float:
    return float(100 * shares(part, variation=variation, queue=queue).mean())


def _page_size(measured: Measurements) -> Iterator[Cause]:
    part = measured.part("small-print")
    small, plain = "CUBIC, pages of 80 kB", "CUBIC"
    others = tuple(
        f"CUBIC, {each}"
        for each in ("initial window of 3", "timeouts of 1 s or more", "receive window of 64 kB")
    )
    listed = "; ".join(
        f"{each.removeprefix('CUBIC, ')}: {_mean(part, each, TAIL):.1f} and "
        f"{_mean(part, each, CODEL):.1f} %"
        for each in others
    )
    yield Cause(
        "The size of the pages",
        "Printed are 97 % with tail drop and 88 % with CoDel. Pages of 800 kB every 0.2 s are "
        "more than 10 and 1 Mbit/s carry, and pile up. With them it is "
        f"{_mean(part, plain, TAIL):.1f} and {_mean(part, plain, CODEL):.1f} %, with pages of a "
        f"tenth of that {_mean(part, small, TAIL):.1f} and {_mean(part, small, CODEL):.1f} %. The "
        "recorded mahimahi runs have 98.8 and 95.0 % with the web, 99.0 and 87.9 % without. Also "
        f"tried: {listed}.",
    )  # fmt: skip


def _timing(measured: Measurements) -> Iterator[Cause]:
    part = measured.part("small-print")
    late = {
        sender: [name for name in part.axes["variation"]
                 if name.startswith(f"{sender}, acknowledgements")]
        for sender in ("CUBIC", "Reno")
    }  # fmt: skip
    if not all(late.values()):
        return
    texts = []
    for sender, names in late.items():
        listed = ", ".join(
            f"{_mean(part, name, CODEL):.1f} % ({name.rpartition('acknowledgements ')[2]})"
            for name in names
        )
        texts.append(f"{sender}: {_mean(part, sender, CODEL):.1f} % as simulated, {listed}")
    yield Cause(
        "mahimahi's hosts do not keep time as a simulator does",
        "The machine of the recorded runs had two busy cores, and acknowledgements that wait for a "
        "processor arrive in bunches, which become bursts, which CoDel answers. Whole runs with "
        "CoDel, simulated and with acknowledgements delayed at random (the deviation of a Pareto "
        "law): " + "; ".join(texts) + ". Recorded: CUBIC 95.0 %, Reno 88.1 %. What delay their "
        "machine added is not known.",
    )  # fmt: skip


def _idle(measured: Measurements) -> Iterator[Cause]:
    steps = measured.part("study")
    ours = 100 * float(np.mean(of_step(steps, 3, load="bulk and web", sender="Reno", queue=TAIL)))
    yield Cause(
        "Reno with the web: the recorded load pauses",
        "In the recorded runs with Reno the link at 50 Mbit/s carries 82 % with either queue "
        f"(ours with tail drop: {ours:.1f} %). Second by second their record falls to 0 to 3 "
        "Mbit/s with an empty queue, several times between 172 and 194 s: no requests came, "
        "although five a second are 32 Mbit/s. That is 3.3 points of the whole run, of either "
        "queue, and no property of a queue or a sender. The recorded runs are single ones.",
    )  # fmt: skip


def _percentiles(measured: Measurements) -> Iterator[Cause]:
    steps = measured.part("study")
    labels = {"load": "bulk and web", "sender": "CUBIC", "queue": TAIL}
    near = [steps.delay_quantile(share, **labels) for share in (0.945, 0.955, 0.965)]
    yield Cause(
        "Percentiles on a step",
        "With tail drop a packet waits about 0.1, 0.2, 1 or 10 s, by the rate. The 95th percentile "
        "lies at such a step: 4.9 % of the recorded packets (53,261 of 1,085,376) pass in the "
        f"steps of 10 and 1 Mbit/s. Percentiles 94.5, 95.5 and 96.5 are here {near[0]:.2f}, "
        f"{near[1]:.2f} and {near[2]:.2f} s (CUBIC, bulk and web). mahimahi counts in "
        "whole milliseconds and sends at these only.",
    )


causes = (_page_size, _timing, _idle, _percentiles, packets.causes)
"""Why shares differ, as far as experiments have shown."""
