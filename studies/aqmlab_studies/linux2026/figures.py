"""Times in queue and the course of the first flow, ours beside the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.linux2026.recorded import (
    FLOWS,
    PATHS,
    QUANTITIES,
    SHARES,
    recorded_seconds,
    seconds,
)

COLOURS = {"pfifo": "#8c8c8c", "CoDel": "#2f6fbb", "FQ-CoDel": "#8a56b5", "PIE": "#ef9232"}
RECORDED = ", recorded"
LEAST, MOST, SEEN = "least simulated", "most simulated", "recorded mean"
COURSE = {LEAST: "#9ecae1", MOST: "#3182bd", SEEN: "#d62728"}


def figures(measured: Measurements) -> Iterator[Figure]:
    """Two figures for each control and path of which something was run."""
    whole = measured.part("study")
    for path in PATHS:
        queues = [each for each in whole.axes["queue"] if each.endswith(path)]
        for control in whole.axes["control"]:
            if queues:
                ident = f"{control}-{path.split()[0]}".lower()
                yield _delays(whole, control, queues, f"delay-{ident}", f"{control}, {path}")
                yield _course(whole, control, queues, f"course-{ident}", f"{control}, {path}")


def _delays(whole: Measurements, control: str, queues: list[str], ident: str, name: str) -> Figure:
    points, told = {}, []
    quantities = {share: each for each in QUANTITIES for share in SHARES if each.key == f"p{share}"}
    for share, quantity in quantities.items():
        for queue in queues:
            short = queue.partition(",")[0]
            ours = float(quantity.simulated(whole, control=control, queue=queue).mean())
            theirs = float(quantity.recorded(control, queue).mean())
            points[short, str(share)] = ours
            points[short + RECORDED, str(share)] = theirs
            if share == 50:
                told.append(f"{short} {ours:.3g} (recorded {theirs:.3g})")
    colours = COLOURS | {f"{queue}{RECORDED}": colour for queue, colour in COLOURS.items()}
    return Figure(
        ident,
        f"{name}: time in queue",
        f"Medians in ms: {', '.join(told)}.",
        f"Means of {whole.replications} replications; dashes: means of the recorded runs.",
        charts.lines(
            points,
            colours,
            "Time in queue (ms)",
            "Percentile",
            dashed=[f"{queue}{RECORDED}" for queue in COLOURS],
        ),
    )


def _course(whole: Measurements, control: str, queues: list[str], ident: str, name: str) -> Figure:
    flow = FLOWS[0]
    panels, length = [], 0
    for queue in queues:
        ours = seconds(whole, flow, control=control, queue=queue)
        theirs = recorded_seconds(control, queue, flow).mean(axis=0)
        length = ours.shape[1]
        at: Floats = np.arange(1, length + 1, dtype=np.float64)
        curves = {
            LEAST: (at, ours.min(axis=0)),
            MOST: (at, ours.max(axis=0)),
            SEEN: (at, theirs[:length]),
        }
        panels.append((f"{queue.partition(',')[0]} (Mbit/s)", curves, COURSE))
    return Figure(
        ident,
        f"{name}: goodput of the first flow, second by second",
        "The recorded mean between the least and the most of the simulated runs.",
        f"{whole.replications} replications; the second flow begins within the first second.",
        charts.panels(panels, "Time (s)", x_domain=(0.0, float(length)), height=90),
    )
