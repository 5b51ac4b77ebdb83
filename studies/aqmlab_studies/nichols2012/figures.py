"""Figures 5, 7, 8 and 9 of the article."""

from __future__ import annotations

from functools import partial

import numpy as np

from aqmlab.campaign import made
from aqmlab.metrics.samples import Quartiles
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.nichols2012.curves import (
    LARGE,
    POSSIBLE,
    QUEUES,
    SMALL,
    Metric,
    across,
    drop_fairness,
    high_delay,
    median_delay,
    megabytes,
    moments,
    sampled,
    utilisation,
)

COLOURS = {"CoDel": "#2f6fbb", "tail drop": "#d55e00", "RED": "#009e73"}
SMALLER = {"CoDel": "#93bff0", "tail drop": "#eda77a", "RED": "#7fd1b5"}


def figures(measured: Measurements) -> list[Figure]:
    """All for which the parts were run."""
    return [figure for figure in made((*BOXES, _delays, _bytes), measured) if figure]


def _box(
    ident: str, axis: str, title: str, unit: str, metric: Metric, measured: Measurements
) -> Figure | None:
    part = measured.part("study")
    cells = {}
    for label in part.axes[axis]:
        for queue in (each for each in QUEUES if part.has(queue=each)):
            values = across(part, metric, **{"queue": queue, axis: label})
            if values.size:
                cells[queue, label] = Quartiles(*map(float, values.mean(axis=1)))
    if not cells:
        return None
    digits = 1 if unit else 2
    medians: dict[str, list[float]] = {}
    for (queue, _), each in cells.items():
        medians.setdefault(queue, []).append(each.median)
    words = (f"{queue} {np.median(each):.{digits}f}" for queue, each in medians.items())
    y_title = f"{title.partition(': ')[2].partition(' by ')[0]}{f' ({unit})' if unit else ''}"
    others = "RTTs" if axis == "rate" else "rates"
    return Figure(
        ident,
        title,
        f"Medians over the groups: {', '.join(words)}{f' {unit}' if unit else ''}.",
        f"Bars or points: median over all {others} and loads; whiskers: quartiles; "
        "means over the replications.",
        charts.bars(
            cells,
            COLOURS,
            y_title,
            "rate of the link" if axis == "rate" else "round-trip time",
            digits=digits,
            zero=bool(unit),
        ),
    )


BOXES = (
    partial(_box, "figure-5a", "rate", "Figure 5: median delay by rate", "ms", median_delay),
    partial(_box, "figure-5b", "rate", "Figure 5: utilisation by rate", "", utilisation),
    partial(_box, "figure-8a", "rtt", "Figure 8: median delay by RTT", "ms", median_delay),
    partial(_box, "figure-8b", "rtt", "Figure 8: 95 % of the delays", "ms", high_delay),
    partial(_box, "figure-8c", "rtt", "Figure 8: utilisation by RTT", "", utilisation),
    partial(_box, "figure-9", "rtt", "Figure 9: fairness of losses", "", drop_fairness),
)


def _delays(measured: Measurements) -> Figure | None:
    dynamic = measured.part("dynamic")
    times = moments(dynamic)
    curves = {}
    for queue in QUEUES:
        if dynamic.has(queue=queue, buffer=LARGE):
            values = sampled(dynamic, "sojourn_mean_s", queue)
            known = ~np.isnan(values)
            curves[queue] = (times[known], 1e3 * np.maximum(values[known], 1e-4))
    if not curves:
        return None
    words = (f"{queue} {values.max() / 1e3:.2f} s" for queue, (_, values) in curves.items())
    return Figure(
        "figure-7a",
        "Figure 7: delay while the rate goes 100, 10, 1, 50, 1, 100 Mbit/s",
        f"Largest mean of half a second: {', '.join(words)}.",
        f"Means over {dynamic.replications} replications; the scale is logarithmic (the article's "
        "is linear).",
        charts.series(curves, COLOURS, "time (s)", "queuing delay (ms)", log=True),
    )


def _bytes(measured: Measurements) -> Figure | None:
    dynamic = measured.part("dynamic")
    times = moments(dynamic)
    curves, colours, words = {}, {}, []
    for buffer, shade in ((LARGE, COLOURS), (SMALL, SMALLER)):
        for queue in QUEUES:
            if dynamic.has(queue=queue, buffer=buffer):
                name = queue if buffer == LARGE else f"{queue}, {buffer}"
                curves[name] = (times, sampled(dynamic, "delivered_bytes", queue, buffer) / 1e6)
                colours[name] = shade[queue]
                words.append(f"{name} {megabytes(dynamic, queue, buffer).mean():.0f}")
    if not curves:
        return None
    return Figure(
        "figure-7c",
        "Figure 7: bytes carried while the rate changes",
        f"Of {POSSIBLE / 1e6:.1f} MB: {', '.join(words)}.",
        f"Means over {dynamic.replications} replications.",
        charts.series(curves, colours, "time (s)", "megabytes"),
    )
