"""Figures 2 to 10, and their numbers as tables."""

from __future__ import annotations

from collections.abc import Iterator

from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab_studies.monga2016.sweeps import (
    DROPS,
    FILL,
    FLOWS,
    QUEUE,
    QUEUES,
    SWEEPS,
    UTILISATION,
    Metric,
    Points,
    Sweep,
    unlimited,
)
from aqmlab_studies.shared import mean_table

COLOURS = {
    "DropTail": "#8c8c8c",
    "CoDel": "#2f6fbb",
    "sfqCoDel": "#8a56b5",
    "CoDel-DT": "#ef9232",
}
FREE = ", window not limited"
METRICS = (UTILISATION, QUEUE, DROPS)
"""In the order of the paper's figures of each sweep."""


def figures(measured: Measurements) -> Iterator[Figure]:
    """All figures of which something was run."""
    points, free = Points(measured), unlimited(measured)
    number = 2
    for sweep in SWEEPS:
        for metric in METRICS:
            ident = f"figure-{number}"
            if points.places(sweep):
                title = f"Figure {number}: {metric.title} over the {sweep.title.partition(' (')[0]}"
                # In packets, queues that fill a buffer of 8 BDP would hide all others.
                beside = None if metric is QUEUE and sweep is not FLOWS else free
                yield _figure(ident, title, metric, sweep, points, beside)
            if metric is QUEUE and sweep is not FLOWS and points.places(sweep):
                title = f"Figure {number}, as a share of the buffer of 8 BDP"
                yield _figure(f"{ident}-share", title, FILL, sweep, points, free)
            number += 1


def _figure(
    ident: str, title: str, metric: Metric, sweep: Sweep, points: Points, free: Points | None
) -> Figure:
    values = _values(points, metric, sweep, "")
    names = list(QUEUES)
    if free:
        values |= _values(free, metric, sweep, FREE)
        names += [f"{queue}{FREE}" for queue in QUEUES]
    # By place first, so that the axis has the order of the sweep.
    ats = [f"{number:g}" for number in sweep.places.values()]
    ordered = {(n, at): values[n, at] for at in ats for n in names if (n, at) in values}
    colours = COLOURS | {f"{queue}{FREE}": colour for queue, colour in COLOURS.items()}
    runs = points.measured.replications
    caption = f"Means of {runs} replication{'s' if runs > 1 else ''} of 100 s."
    if free:
        caption += " Dashes: senders whose window nothing limits; lines: ns-2's 20 packets."
    return Figure(
        ident,
        title,
        _message(points, metric, sweep),
        caption + " Click on the legend to single out a line.",
        charts.lines(
            ordered,
            colours,
            f"{metric.title} ({metric.unit})",
            sweep.title,
            dashed=[name for name in names if name.endswith(FREE)],
        ),
    )


def _values(
    points: Points, metric: Metric, sweep: Sweep, suffix: str
) -> dict[tuple[str, str], float]:
    return {
        (f"{queue}{suffix}", f"{number:g}"): points.mean(metric, queue, place)
        for place, number in sweep.places.items()
        for queue in QUEUES
        if points.has(queue, place)
    }


def _message(points: Points, metric: Metric, sweep: Sweep) -> str:
    places = points.places(sweep)
    ends = (places[0], places[-1])
    told = []
    for queue in QUEUES:
        first, last = points.along(metric, queue, ends)
        told.append(f"{queue} {metric.text([first])} to {metric.text([last])}")
    low, high = (f"{sweep.places[place]:g}" for place in ends)
    return f"In {metric.unit}, from {low} to {high} {sweep.unit}: {'; '.join(told)}."


def tables(measured: Measurements) -> Iterator[CellTable]:
    """The numbers behind the figures; the paper prints none."""
    points = Points(measured)
    for sweep in SWEEPS:
        title, _, unit = sweep.title.partition(" (")
        places = [(p, q) for p in sweep.places for q in QUEUES if points.has(q, p)]
        for metric in METRICS:
            cells = [
                Cell.mean(
                    f"{sweep.places[place]:g} {unit.rstrip(')')}".strip(),
                    queue,
                    None,
                    points.runs(metric, queue, place),
                    bounds=metric.bounds,
                )
                for place, queue in places
            ]
            name = f"{metric.title.capitalize()} by {title}"
            yield mean_table(f"{metric.id}-{sweep.id}", name, metric.unit, cells)
