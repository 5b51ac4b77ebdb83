"""The report of a study: its finding, one picture of all points, their delays, their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aqmlab.characterize.charts import Panel, curves, ranges
from aqmlab.cli.common import seconds
from aqmlab.metrics.tradeoff import QUEUE_AXIS
from aqmlab.metrics.tradeoff import figure as tradeoff
from aqmlab.report import charts, save
from aqmlab.report.colours import by_label
from aqmlab.report.measures import (
    Layout,
    Measure,
    as_numbers,
    cells,
    finding,
    means,
    measures,
)
from aqmlab.report.page import document, figure_html, made_html, notes_html
from aqmlab.reproduce.model import Figure
from aqmlab.statistics import Histograms

if TYPE_CHECKING:
    from aqmlab.results import StudyResult

LINES_FROM = 5
"""From so many numbers on the x axis on, points are joined by lines."""
NARROW, WIDE = 184, 640
CROWDED = 14
"""More bars than these need the whole width."""
SHOWN_POINTS = 300
MOST_PANELS = 6
"""Delay against goodput has a panel for each point of the other axes; with more it is left out."""
STYLE = """
.chart { min-height: 0; overflow-x: auto; } #sojourn { min-height: 430px; }
table.points th, table.points td { padding: 3px 10px 3px 0; font-size: 14px; white-space: nowrap; }
table.points thead th { vertical-align: bottom; white-space: normal; }
table.points .label { text-align: left; }
"""


def write(result: StudyResult, folder: Path, command: str = "", notes: Sequence[str] = ()) -> Path:
    """Writes `report.html` and `figures/` into `folder`; returns the path of the report.

    `command` is what made the results, `notes` what a reader has to know.
    Raises `StorageError` if a file cannot be written.
    """
    made = figures(result)
    body = "\n".join(_body(result, made, command, notes, folder))
    return save(folder, document(result.info.title, body, made, STYLE), made)


def figures(result: StudyResult) -> list[Figure]:
    """All points at a glance, the distributions of the time in the queue, delay and goodput."""
    found, layout = measures(result), Layout.of(result.info.axes)
    made = []
    if result.info.points > 1:
        made.append(_overview(result, found, layout))
    made.extend(_sojourn(result, layout))
    if result.info.points > 1 and result.info.replications > 1 and _panels(result) <= MOST_PANELS:
        made.append(tradeoff(result))
    return made


def _panels(result: StudyResult) -> int:
    """How many panels delay against goodput has: the points of the axes without colours."""
    axes = {name: len(labels) for name, labels in result.info.axes}
    coloured = QUEUE_AXIS if QUEUE_AXIS in axes else next(iter(axes))
    return prod(count for name, count in axes.items() if name != coloured)


def _overview(result: StudyResult, found: Sequence[Measure], layout: Layout) -> Figure:
    labels = dict(result.info.axes).get(layout.colour or "", ("",))
    palette = by_label(labels)
    tables = {each.title: cells(result, each, layout) for each in found}
    places = list(dict.fromkeys(place for table in tables.values() for _, place in table))
    numbers = as_numbers(places) if len(places) >= LINES_FROM else None
    crowded = len(places) * len(labels) > CROWDED
    width, columns = (WIDE, 1) if crowded and numbers is None else (NARROW, 3)
    x_title = " · ".join(layout.across).replace("_", " ")
    if numbers is not None:
        x_title += f" ({numbers[1]})" if numbers[1] else ""
        spec = _lines(tables, found, dict(zip(places, numbers[0], strict=True)), x_title, palette)
        how = "Means over the replications."
    else:
        titles = {each.title: each.unit for each in found}
        spec = ranges(
            tables, palette, titles, columns=columns, width=width, x_title=x_title or None
        )
        how = "Points: medians over the replications; lines: from lower to upper quartile."
    only = ", ".join(f"{name} = {label}" for name, label in layout.left_out.items())
    rest = f" Drawn for {only}; the table below has all points." if only else ""
    return Figure(
        "overview",
        result.info.title,
        next(iter(finding(result, found, layout)), "All points of the study."),
        f"{how}{rest}",
        spec,
    )


def _lines(
    tables: dict[str, dict[tuple[str, str], Any]],
    found: Sequence[Measure],
    places: dict[str, float],
    x_title: str,
    palette: dict[str, str],
) -> dict[str, Any]:
    units = {each.title: each.unit for each in found}
    span = [value for value in places.values() if value > 0]
    log = len(span) == len(places) and max(span) / min(span) >= 20
    panels = {}
    for title, table in tables.items():
        points = {}
        for name in palette:
            own = sorted((places[at], float(v.mean())) for (n, at), v in table.items() if n == name)
            if own:
                points[name] = (np.array([x for x, _ in own]), np.array([y for _, y in own]))
        panels[title] = Panel(points, x_title, units[title], dots=True, log_x=log)
    return curves(panels, palette)


def _sojourn(result: StudyResult, layout: Layout) -> Iterator[Figure]:
    """The distribution at the last place of the x axis: mostly the heaviest load."""
    axes = dict(result.info.axes)
    chosen = {name: labels[-1] for name, labels in axes.items() if name != layout.colour}
    points = result.points
    for name, label in chosen.items():
        points = points.filter(pl.col(name).cast(pl.String) == label)
    found, late = {}, {}
    rows = result.raw("sojourn")
    for row in points.to_dicts():
        name = str(row[layout.colour]) if layout.colour else "all"
        histogram = _histogram(rows, row["point"], result.info.replications)
        if histogram.observations:
            values, shares = histogram.cdf()
            found[name] = (1e3 * values, shares)
            late[name] = histogram.quantile(0.95)
    if not found:
        return
    least, most = min(late, key=lambda name: late[name]), max(late, key=lambda name: late[name])
    message = f"One packet in twenty waits for {seconds(late[least])} or longer"
    if most != least:
        message += f" with {least}, for {seconds(late[most])} or longer with {most}"
    where = ", ".join(f"{name} {label}" for name, label in chosen.items())
    yield Figure(
        "sojourn",
        "Time in the queue" + (f": {where}" if where else ""),
        f"{message}.",
        "The share of the packets that waited no longer; all replications together.",
        charts.cdf(found, by_label(tuple(found)), "time in the queue (ms)"),
    )


def _histogram(rows: pl.DataFrame, point: int, replications: int) -> Histograms:
    first = point * replications
    own = rows.filter(pl.col("run").is_between(first, first + replications - 1))
    run, value, counts = (own[name].to_numpy() for name in ("run", "sojourn_s", "count"))
    return Histograms.from_columns(run - first, value, counts, replications)


def _body(
    result: StudyResult,
    made: Sequence[Figure],
    command: str,
    notes: Sequence[str],
    folder: Path,
) -> Iterator[str]:
    info = result.info
    axes = ", ".join(f"{len(labels)} × {escape(name)}" for name, labels in info.axes)
    of = f" ({axes})" if axes else ""
    found = measures(result)
    runs, points = info.points * info.replications, _count(info.points, "point")
    yield f"""<header><h1>{escape(info.title)}</h1>
<p class="soft">{_count(runs, "run")}: {points}{of},
{_count(info.replications, "replication")}, seed {info.seed} · aqmlab {escape(info.version)}</p>
{_finding(result, found)}</header>"""
    yield notes_html(notes)
    yield from map(figure_html, made)
    yield "<h2 id='points'>All points</h2>"
    yield _points(result, found)
    yield "<h2 id='how'>How this was made</h2>"
    yield made_html(command, folder)
    yield f"<dl><dt>Digest</dt><dd>{escape(info.digest)}</dd></dl>"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _finding(result: StudyResult, found: Sequence[Measure]) -> str:
    lines = finding(result, found, Layout.of(result.info.axes))
    return f"<ul class='lead'>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _points(result: StudyResult, found: Sequence[Measure]) -> str:
    """A row a point with the means over its replications."""
    names = [name for name, _ in result.info.axes]
    averages = [means(result, each) for each in found]
    head = "".join(f"<th class='label'>{escape(name)}</th>" for name in names)
    head += "".join(f"<th>{escape(each.title)}</th>" for each in found)
    rows = []
    for row in result.points.head(SHOWN_POINTS).to_dicts():
        labels = "".join(f"<th scope='row'>{escape(str(row[name]))}</th>" for name in names)
        values = "".join(
            f"<td>{escape(each.text(average.get(row['point'])))}</td>"
            for each, average in zip(found, averages, strict=True)
        )
        rows.append(f"<tr>{labels}{values}</tr>")
    left = result.info.points - len(rows)
    more = f"<p class='soft'>... and {left:,} points more in the tables.</p>" if left > 0 else ""
    return (
        f"<div class='scroll'><table class='points'><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class='method'>Means over the replications.</p>{more}"
    )
