"""The document of a study: what follows from it, one picture of all points, their delays, their
numbers; and what `aqmlab study`, `compare` and `merge` print, in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from aqmlab.errors import unknown
from aqmlab.metrics import Shown, everything, headlines
from aqmlab.metrics.formulas import LINK
from aqmlab.metrics.table import evaluated
from aqmlab.numbers import count, percent, seconds
from aqmlab.report import own
from aqmlab.report.document import (
    Block,
    Column,
    Document,
    Estimate,
    Facts,
    Figure,
    Finding,
    Items,
    Note,
    Section,
    Table,
    Text,
    notes,
)
from aqmlab.report.findings import QUESTIONS, findings, needed, question, sentences
from aqmlab.report.made import made
from aqmlab.report.measures import Layout, answering, estimates
from aqmlab.report.notes import kinds, note_lines
from aqmlab.report.overview import QUEUE_AXIS, overview, sojourn, tradeoff
from aqmlab.results import StudyResult
from aqmlab.stats import LEVEL, estimate
from aqmlab.study.sequential import is_reached

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_POINTS = 300
SIDE_BY_SIDE = 6
"""Up to so many points are columns of the tables of all measures."""
MOST_COLUMNS = 5
"""Largest number of measures that are columns of a table with a row for each point."""
MOST_PANELS = 6
"""Delay against goodput has a panel for each point of the other axes; with more it is left out."""


def document(
    result: StudyResult,
    command: str = "",
    folder: Path | None = None,
    titles: Sequence[str] = (),
) -> Document:
    """The page of a study; `folder` is where its tables are, if they are kept. With `titles` it is
    about the measures of these titles, the first of which is the main one."""
    info = result.info
    axes = ", ".join(f"{len(labels)} × {name}" for name, labels in info.axes)
    which = f" ({axes})" if axes else ""
    runs, points = info.points * info.replications, count(info.points, "point")
    found, layout = _chosen(result, titles), Layout.of(info.axes)
    told = sentences(result, found, layout)
    return Document(
        info.title,
        tuple(_body(result, found, told, layout, command, folder)),
        soft=f"{count(runs, 'run')}: {points}{which}, {count(info.replications, 'replication')}, "
        f"seed {info.seed} · aqmlab {info.version}",
        head=tuple(Text(line, "lead") for _, line in told[:1]),
    )


def _chosen(result: StudyResult, titles: Sequence[str]) -> list[Shown]:
    if not titles:
        return headlines(result)
    known = {each.title: each for each in everything(result, SHOWN_POINTS)}
    for title in titles:
        if title not in known:
            raise unknown("measure", title, known)
    return [known[title] for title in titles]


def _body(
    result: StudyResult,
    found: Sequence[Shown],
    told: Sequence[tuple[Shown, str]],
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
    yield Section("How this was made", (*made(command, folder, result.info), digest), id="how")


def _findings(
    result: StudyResult,
    found: Sequence[Shown],
    told: Sequence[tuple[Shown, str]],
    layout: Layout,
) -> Iterator[Block]:
    """The findings by the question they answer, and what the study could have shown."""
    blocks: list[Block] = []
    for asked in QUESTIONS:
        own = [line for measure, line in told if question(measure) == asked]
        if own:
            blocks.append(Section(asked, (Items(tuple(Finding(line) for line in own)),)))
    if replications := needed(result, answering(found), layout):
        blocks.append(Text(replications, "method"))
    if told:
        explained = (
            "A difference is the 95 % interval of the largest one, for all of them together."
        )
        yield Section("Findings", (Text(explained, "method"), *blocks), id="findings")
    else:
        yield from blocks


def _figures(result: StudyResult, found: Sequence[Shown], layout: Layout) -> Iterator[Figure]:
    """All points at a glance, the distributions of the time in the queue, delay and goodput."""
    if result.info.points > 1:
        yield overview(result, answering(found))
    yield from sojourn(result, layout)
    if result.info.points > 1 and result.info.replications > 1 and _panels(result) <= MOST_PANELS:
        yield tradeoff(result)
    yield from own.charts(result)


def _panels(result: StudyResult) -> int:
    """Number of panels of delay against goodput: points of the axes without colours."""
    axes = {name: len(labels) for name, labels in result.info.axes}
    coloured = QUEUE_AXIS if QUEUE_AXIS in axes else next(iter(axes))
    return prod(number for name, number in axes.items() if name != coloured)


def _points(result: StudyResult, found: Sequence[Shown]) -> Iterator[Block]:
    yield points_table(result, found)
    yield Text(averaged(result), "method")
    left = result.info.points - SHOWN_POINTS
    if left > 0:
        yield Text(f"... and {left:,} more points in the tables.", "soft")


def averaged(result: StudyResult) -> str:
    """How the numbers of points were made of those of runs."""
    if result.info.replications == 1:
        return "One run each: no intervals."
    why = estimate(np.arange(float(result.info.replications))).why  # too few?
    if why:
        return f"Means over the replications; no intervals: {why}."
    told = f"Means over the replications, with the {100 * LEVEL:g} % intervals of the means, if any"
    if result.info.precision is None:
        return f"{told}."
    return (
        f"{told}. Replications were added until {result.info.precision}; the intervals allow "
        "for that."
    )


def _everything(result: StudyResult, found: Sequence[Shown]) -> Iterator[Block]:
    """Every other metric that has a value, on demand: tables for the bottleneck, each other link
    and each group."""
    told = {each.title for each in found}
    rest = [each for each in everything(result, SHOWN_POINTS) if each.title not in told]
    groups = ["", *result.group_names]
    links = sorted({each.subject for each in rest} - {*groups})
    rest.sort(key=lambda each: [*groups, *links].index(each.subject))
    tables = [
        table
        for _, own in groupby(rest, key=lambda each: each.subject)
        for table in _of_subject(result, list(own))
    ]
    if tables:
        yield Section(f"All other measures ({len(rest)})", tuple(tables), folded=True)


def _of_subject(result: StudyResult, found: Sequence[Shown]) -> Iterator[Table]:
    """The measures of one link or group, as tables that fit on a page."""
    subject = found[0].subject
    kind = "Flows" if subject in result.group_names else "Link"
    title = f"{kind} {subject}" if subject else "Bottleneck"
    own = [replace(each, subject="") for each in found]
    if result.info.points <= SIDE_BY_SIDE:
        yield _turned(points_table(result, own, title=title), len(result.info.axes))
        return
    for first in range(0, len(own), MOST_COLUMNS):
        part = own[first : first + MOST_COLUMNS]
        yield points_table(result, part, title="" if first else title)


def _turned(table: Table, labels: int) -> Table:
    """The table with a row a measure and a column a point, whose first cells are its labels."""
    points = [", ".join(map(str, row[:labels])) or "all" for row in table.rows]
    values = zip(*(row[labels:] for row in table.rows), strict=True)
    heads = (each.heading for each in table.columns[labels:])
    rows = tuple((head, *row) for head, row in zip(heads, values, strict=True))
    columns = (Column("measure", label=True), *map(Column, points))
    return Table(columns, rows, title=table.title, kind=f"{table.kind} turned")


def points_table(
    result: StudyResult, found: Sequence[Shown], shown: int = SHOWN_POINTS, title: str = ""
) -> Table:
    """A row a point, of the first `shown`, with the means over its replications."""
    names, points = [name for name, _ in result.info.axes], result.points.head(shown)
    averages = [
        {
            point: Estimate.of(each, result.info.replications)
            for point, each in estimates(result, measure, points).items()
        }
        for measure in found
    ]
    rows = tuple(
        (
            *(str(row[name]) for name in names),
            *(average.get(row["point"]) for average in averages),
        )
        for row in points.to_dicts()
    )
    columns = [Column(name, label=True) for name in names]
    columns += [Column(each.title, each.number, unit=each.unit) for each in found]
    return Table(tuple(columns), rows, title=title, kind="points")


SHOWN_ON_TERMINAL = 60


def summary(result: StudyResult) -> pl.DataFrame:
    """One row a point, of the bottleneck: means over the replications of the links' columns."""
    axes = [name for name, _ in result.info.axes]
    rows = (
        result.bottleneck.group_by(["point", *axes], maintain_order=True)
        .agg(
            pl.col("utilisation").mean(),
            pl.col("sojourn_p50_s").mean(),
            pl.col("sojourn_p95_s").mean(),
            pl.col("sojourn_max_s").mean(),
            pl.col("arrived", "dropped", "marked").sum(),
        )
        .sort("point")
    )
    names = {"dropped_share": "drop_share", "marked_share": "mark_share"}
    shares = evaluated(rows, {name: LINK[metric] for name, metric in names.items()})
    rows = rows.drop("arrived", "dropped", "marked").with_columns(
        **{name: pl.Series(share) for name, share in shares.items()}
    )
    return rows.with_columns(cs.float().fill_nan(None))


def to_json(result: StudyResult, wall: float) -> dict[str, Any]:
    """Output of `--json`."""
    return {
        "study": result.info.name,
        "version": result.info.version,
        "digest": result.info.digest,
        "folder": str(result.folder),
        "runs": result.info.points * result.info.replications,
        "computed": result.computed,
        "wall_seconds": round(wall, 3),
        "replications": result.info.replications,
        **({"precision": _precision(result)} if result.info.precision else {}),
        "points": points(result),
        "findings": [each.to_json() for each in findings(result)],
        "notes": kinds(result),
    }


def _precision(result: StudyResult) -> dict[str, Any]:
    """Requested precision, and whether it was reached."""
    assert result.info.precision is not None
    return {**result.info.precision.to_json(), "reached": is_reached(result)}


def points(result: StudyResult) -> list[dict[str, Any]]:
    """The rows of the summary, each with `measures`: mean and interval of each measure."""
    rows = summary(result).to_dicts()
    found = [(each, estimates(result, each)) for each in headlines(result)]
    for row in rows:
        at = row["point"]
        row["measures"] = [
            {
                "measure": each.title,
                "unit": each.unit,
                "mean": of[at].value,
                "low": ends.low if (ends := of[at].interval) else None,
                "high": ends.high if ends else None,
            }
            for each, of in found
            if at in of
        ]
    return rows


def show(result: StudyResult, screen: Console) -> None:
    """Prints one row a point, what the groups got, which value of the first axis does best, and the
    notes in words."""
    from aqmlab.report.document.terminal import block  # rich: pages do without it

    info = result.info
    many = info.replications > 1
    how = f"means of {info.replications} replications" if many else "one run of each"
    axes = [name for name, _ in info.axes]
    keys = ("utilisation", "sojourn_p50_s", "sojourn_p95_s", "sojourn_max_s", "dropped_share",
            "marked_share")  # fmt: skip
    shown = (percent, seconds, seconds, seconds, percent, percent)
    heads = ("busy", "sojourn p50", "p95", "max", "dropped", "marked")
    columns = [Column(name, label=True) for name in axes]
    columns += [Column(*each) for each in zip(heads, shown, strict=True)]
    rows = [tuple(row[key] for key in (*axes, *keys)) for row in summary(result).to_dicts()]
    title = f"{info.title}: bottleneck, {how}"
    block(Table(tuple(columns), tuple(rows[:SHOWN_ON_TERMINAL]), title=title), screen)
    if len(rows) > SHOWN_ON_TERMINAL:
        screen.print(f"... and {len(rows) - SHOWN_ON_TERMINAL} more points in the folder")
    screen.print()
    found, layout = headlines(result), Layout.of(info.axes)
    if of_groups := [each for each in found if ":" in each.title]:
        block(points_table(result, of_groups, SHOWN_ON_TERMINAL, "Groups of flows"), screen)
        screen.print()
    for _, line in sentences(result, found, layout):
        screen.print(line)
    screen.print()
    for line in note_lines(result):
        block(Note(line), screen)
