"""The document of a study: what follows from it, one picture of all points, their delays, their
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import stats
from aqmlab.metrics import everything
from aqmlab.metrics.samples import Histograms
from aqmlab.numbers import count, seconds
from aqmlab.report import own, power
from aqmlab.report.document import (
    Block,
    Column,
    Document,
    Estimate,
    Facts,
    Figure,
    Finding,
    Items,
    Section,
    Table,
    Text,
    charts,
    notes,
    save,
)
from aqmlab.report.document.colours import by_label
from aqmlab.report.document.panels import Panel, curves, ranges
from aqmlab.report.findings import (
    QUESTIONS,
    by_measure,
    is_paired,
    of_measures,
    question,
)
from aqmlab.report.made import made
from aqmlab.report.measures import (
    Layout,
    Measure,
    answering,
    as_numbers,
    cells,
    estimates,
    measures,
    of,
)
from aqmlab.report.notes import note_lines
from aqmlab.report.tradeoff import QUEUE_AXIS
from aqmlab.report.tradeoff import figure as tradeoff
from aqmlab.results import StudyResult
from aqmlab.stats import LEVEL, estimate

LINES_FROM = 5
"""From so many numbers on the x axis on, points are joined by lines."""
NARROW, WIDE = 184, 640
CROWDED = 14
"""More bars than these need the whole width."""
SHOWN_POINTS = 300
MOST_PANELS = 6
"""Delay against goodput has a panel for each point of the other axes; with more it is left out."""


def write(result: StudyResult, folder: Path, command: str = "", *, figures: bool = True) -> Path:
    """Writes `report.html` into `folder`, and with `figures` the pictures into `figures/` there;
    returns the path of the report.

    `command` is what made the results. Raises `StorageError` if a file cannot be written.
    """
    return save(document(result, command, folder), folder, figures=figures)


def document(result: StudyResult, command: str = "", folder: Path | None = None) -> Document:
    """The page of a study; `folder` is where its tables are, if they are kept."""
    info = result.info
    axes = ", ".join(f"{len(labels)} × {name}" for name, labels in info.axes)
    which = f" ({axes})" if axes else ""
    runs, points = info.points * info.replications, count(info.points, "point")
    found, layout = measures(result), Layout.of(info.axes)
    told = by_measure(of_measures(result, found, layout), found, layout.compared)
    return Document(
        info.title,
        tuple(_body(result, found, told, layout, command, folder)),
        soft=f"{count(runs, 'run')}: {points}{which}, {count(info.replications, 'replication')}, "
        f"seed {info.seed} · aqmlab {info.version}",
        head=tuple(Text(line, "lead") for _, line in told[:1]),
    )


def _body(
    result: StudyResult,
    found: Sequence[Measure],
    told: Sequence[tuple[Measure, str]],
    layout: Layout,
    command: str,
    folder: Path | None,
) -> Iterator[Block]:
    first, *rest = _figures(result, found, layout)
    yield first
    yield from notes(note_lines(result))
    yield from _findings(result, found, told, layout)
    yield from rest
    yield Section("All points", tuple(_points(result, answering(found))), id="points")
    yield from _everything(result, found)
    digest = Facts((("Digest", result.info.digest),))
    yield Section("How this was made", (*made(command, folder), digest), id="how")


def _findings(
    result: StudyResult,
    found: Sequence[Measure],
    told: Sequence[tuple[Measure, str]],
    layout: Layout,
) -> Iterator[Block]:
    """The findings by the question they answer, and what the study could have shown."""
    blocks: list[Block] = []
    for asked in QUESTIONS:
        own = [line for measure, line in told if question(measure) == asked]
        if own:
            blocks.append(Section(asked, (Items(tuple(Finding(line) for line in own)),)))
    if needed := power.sentence(result, answering(found), layout, paired=is_paired(result)):
        blocks.append(Text(needed, "method"))
    if told:
        explained = (
            "A difference is the 95 % interval of the largest one, for all of them together."
        )
        yield Section("Findings", (Text(explained, "method"), *blocks), id="findings")
    else:
        yield from blocks


def figures(result: StudyResult) -> list[Figure]:
    """All points at a glance, the distributions of the time in the queue, delay and goodput."""
    found, layout = measures(result), Layout.of(result.info.axes)
    return list(_figures(result, found, layout))


def _figures(result: StudyResult, found: Sequence[Measure], layout: Layout) -> Iterator[Figure]:
    if result.info.points > 1:
        yield _overview(result, found, layout)
    yield from _sojourn(result, layout)
    if result.info.points > 1 and result.info.replications > 1 and _panels(result) <= MOST_PANELS:
        yield tradeoff(result)
    yield from own.charts(result)


def _panels(result: StudyResult) -> int:
    """Number of panels of delay against goodput: points of the axes without colours."""
    axes = {name: len(labels) for name, labels in result.info.axes}
    coloured = QUEUE_AXIS if QUEUE_AXIS in axes else next(iter(axes))
    return prod(number for name, number in axes.items() if name != coloured)


def _overview(result: StudyResult, found: Sequence[Measure], layout: Layout) -> Figure:
    axes = dict(result.info.axes)
    labels = axes.get(layout.colour or "", ("",))
    palette = by_label(labels)
    facets = layout.split(axes)
    panels = {
        ", ".join(filter(None, (each.title, name))): (each, cells(result, each, own))
        for each in answering(found)
        for name, own in facets.items()
    }
    tables = {title: table for title, (_, table) in panels.items()}
    of = {title: each for title, (each, _) in panels.items()}
    across = next(iter(facets.values())).across
    places = list(dict.fromkeys(place for table in tables.values() for _, place in table))
    numbers = as_numbers(places) if len(places) >= LINES_FROM else None
    crowded = len(places) * len(labels) > CROWDED
    width, columns = (WIDE, 1) if crowded and numbers is None else (NARROW, 3)
    if columns > 1 and len(facets) in (2, 4):
        columns = 2
    x_title = " · ".join(across).replace("_", " ")
    if numbers is not None:
        x_title += f" ({numbers[1]})" if numbers[1] else ""
        at = dict(zip(places, numbers[0], strict=True))
        spec = _lines(tables, of, at, x_title, palette, columns)
        how = "Means over the replications."
    else:
        units = {title: each.unit for title, each in of.items()}
        alike = {title: each.title for title, each in of.items()} if len(facets) > 1 else None
        looked = result.info.precision is not None
        spec = ranges(
            {
                title: {
                    at: _shown(of[title].estimate(values, looked)) for at, values in table.items()
                }
                for title, table in tables.items()
            },
            palette, units, columns=columns, width=width, x_title=x_title or None,
            alike=alike,
        )  # fmt: skip
        how = f"Points: means over the replications; lines: {100 * LEVEL:g} % intervals, if any."
    only = ", ".join(f"{name} = {label}" for name, label in layout.left_out.items())
    rest = f" Drawn for {only}; the table below has all points." if only else ""
    return Figure(
        "overview",
        "All points at a glance",
        how,
        rest.strip(),
        spec,
    )


def _lines(
    tables: Mapping[str, Mapping[tuple[str, str], Any]],
    of: Mapping[str, Measure],
    places: Mapping[str, float],
    x_title: str,
    palette: dict[str, str],
    columns: int,
) -> dict[str, Any]:
    span = [value for value in places.values() if value > 0]
    log = len(span) == len(places) and max(span) / min(span) >= 20
    most: dict[str, float] = {}
    for title, table in tables.items():
        highest = max((float(values.mean()) for values in table.values()), default=0.0)
        most[of[title].title] = max(most.get(of[title].title, 0.0), highest)
    panels = {}
    for title, table in tables.items():
        points = {}
        for name in palette:
            own = sorted((places[at], float(v.mean())) for (n, at), v in table.items() if n == name)
            if own:
                points[name] = (np.array([x for x, _ in own]), np.array([y for _, y in own]))
        each = of[title]
        panels[title] = Panel(
            points, x_title, each.unit, dots=True, log_x=log, most=most[each.title]
        )
    return curves(panels, palette, columns=columns)


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
        "Cumulative share of the packets, pooled over all replications.",
        charts.cdf(found, by_label(tuple(found)), "time in the queue (ms)"),
    )


def _histogram(rows: pl.DataFrame, point: int, replications: int) -> Histograms:
    first = point * replications
    own = rows.filter(pl.col("run").is_between(first, first + replications - 1))
    run, value, counts = (own[name].to_numpy() for name in ("run", "sojourn_s", "count"))
    return Histograms.from_columns(run - first, value, counts, replications)


def _points(result: StudyResult, found: Sequence[Measure]) -> Iterator[Block]:
    yield points_table(result, found)
    yield Text(averaged(result), "method")
    left = result.info.points - SHOWN_POINTS
    if left > 0:
        yield Text(f"... and {left:,} more points in the tables.", "soft")


def averaged(result: StudyResult) -> str:
    """How the numbers of points were made of those of runs."""
    if result.info.replications == 1:
        return "One run each: no intervals."
    why = estimate(np.zeros(result.info.replications)).why
    if why:
        return f"Means over the replications; no intervals: {why}."
    told = f"Means over the replications, with the {100 * LEVEL:g} % intervals of the means"
    if result.info.precision is None:
        return f"{told}."
    return (
        f"{told}. Replications were added until {result.info.precision}; the intervals allow "
        "for that."
    )


def _everything(result: StudyResult, found: Sequence[Measure]) -> Iterator[Block]:
    """Every other metric that has a value, on demand."""
    told = {each.title for each in found}
    rest = [of(each) for each in everything(result, SHOWN_POINTS)]
    rest = [each for each in rest if each.title not in told]
    if rest:
        title = f"All other measures ({len(rest)})"
        yield Section(title, (points_table(result, rest),), folded=True)


def points_table(
    result: StudyResult, found: Sequence[Measure], shown: int = SHOWN_POINTS, title: str = ""
) -> Table:
    """A row a point, of the first `shown`, with the means over its replications."""
    names = [name for name, _ in result.info.axes]
    averages = [_estimates(result, each, shown) for each in found]
    rows = tuple(
        (
            *(str(row[name]) for name in names),
            *(average.get(row["point"]) for average in averages),
        )
        for row in result.points.head(shown).to_dicts()
    )
    columns = [Column(name, label=True) for name in names]
    columns += [Column(each.title, each.number, unit=each.unit) for each in found]
    return Table(tuple(columns), rows, title=title, kind="points")


def _estimates(result: StudyResult, measure: Measure, first: int) -> dict[int, Estimate]:
    """Mean of each of the first points with values, with its interval if any."""
    return {point: _shown(found) for point, found in estimates(result, measure, first).items()}


def _shown(found: stats.Estimate) -> Estimate:
    within = found.interval
    return Estimate(found.value, *((within.low, within.high) if within else ()))
