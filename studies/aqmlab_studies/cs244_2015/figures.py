"""The document's figures: delay and bytes over time, arrivals and departures against the capacity,
and the shares; the same for the cellular link."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from aqmlab.campaign import NotRun
from aqmlab.metrics.samples import quartiles
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.cs244_2015 import packets
from aqmlab_studies.cs244_2015.curves import CODEL, TAIL, average, both, settings, shares, told

COLOURS = {TAIL: "#c8453f", CODEL: "#2f6fbb", "possible": "#9a9a9a"}
FLOWS = {"capacity": "#b9b9b9", "into the queue": "#ef9232", "out of it": "#2f6fbb"}


def _over_time(name: str, measured: Measurements) -> Iterator[Figure]:
    """The figures of a part; with CUBIC, as Ubuntu sends."""
    part = measured.part(name)
    for labels in settings(part):
        if labels.get("sender") in (None, "CUBIC"):
            ident = f"{name}-{labels['load'].replace(' ', '-')}"
            yield _delay(part, ident, labels)
            yield _bytes(part, ident, labels)
            yield _capacity(part, ident, labels)


def _where(ident: str, labels: dict[str, str]) -> str:
    link = "LTE" if ident.startswith("lte") else "rate steps"
    return f"{link}, {told(labels)}"


def _replications(part: Measurements) -> str:
    return f"Means over {part.replications} replications and half a second each."


def _delay(part: Measurements, ident: str, labels: dict[str, str]) -> Figure:
    times, curves = both(part, "sojourn_mean_s", **labels)
    medians = {queue: 1e3 * float(np.median(values)) for queue, values in curves.items()}
    return Figure(
        f"delay-{ident}",
        f"Queuing delay: {_where(ident, labels)}",
        f"The median of the half seconds is {medians[CODEL]:.1f} ms with CoDel and "
        f"{medians[TAIL]:.0f} ms with tail drop.",
        f"{_replications(part)} The scale is logarithmic.",
        charts.series(
            {queue: (times, 1e3 * np.maximum(values, 1e-4)) for queue, values in curves.items()},
            COLOURS,
            "time (s)",
            "queuing delay (ms)",
            log=True,
        ),
    )


def _bytes(part: Measurements, ident: str, labels: dict[str, str]) -> Figure:
    times, curves = both(part, "delivered_bytes", **labels)
    offered_at, offered = average(part, "capacity_bps", queue=TAIL, **labels)
    possible = np.cumsum(offered * np.diff(offered_at, prepend=0.0)) / 8e6
    less = 1 - curves[CODEL][-1] / curves[TAIL][-1]
    return Figure(
        f"bytes-{ident}",
        f"Bytes carried: {_where(ident, labels)}",
        f"At the end CoDel has carried {100 * less:.1f} % less than tail drop.",
        _replications(part),
        charts.series(
            {"possible": (offered_at, possible)}
            | {queue: (times, values / 1e6) for queue, values in curves.items()},
            COLOURS,
            "time (s)",
            "megabytes",
        ),
    )


def _capacity(part: Measurements, ident: str, labels: dict[str, str]) -> Figure:
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
        f"Into and out of the switch: {_where(ident, labels)}",
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
    cells = ours | {
        (TAIL, "document"): quartiles([97.0]),
        (CODEL, "document"): quartiles([88.0]),
    }
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
