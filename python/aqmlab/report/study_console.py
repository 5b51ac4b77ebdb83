"""A study in the terminal and as JSON: what `aqmlab study`, `compare` and `merge` print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs

from aqmlab.metrics import headlines
from aqmlab.metrics.formulas import LINK
from aqmlab.metrics.table import evaluated
from aqmlab.numbers import percent, seconds
from aqmlab.report.document import Column, Note, Table
from aqmlab.report.document.terminal import block
from aqmlab.report.findings import findings, of_measures, sentences
from aqmlab.report.measures import Layout, estimates
from aqmlab.report.notes import kinds, note_lines
from aqmlab.report.study_page import points_table
from aqmlab.study.sequential import is_reached

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.results import StudyResult

SHOWN_POINTS = 60


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
                "low": own.low if (own := of[at].interval) else None,
                "high": own.high if own else None,
            }
            for each, of in found
            if at in of
        ]
    return rows


def show(result: StudyResult, screen: Console) -> None:
    """Prints one row a point, what the groups got, which value of the first axis does best, and the
    notes in words."""
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
    block(Table(tuple(columns), tuple(rows[:SHOWN_POINTS]), title=title), screen)
    if len(rows) > SHOWN_POINTS:
        screen.print(f"... and {len(rows) - SHOWN_POINTS} more points in the folder")
    screen.print()
    found, layout = headlines(result), Layout.of(info.axes)
    if of_groups := [each for each in found if ":" in each.title]:
        block(points_table(result, of_groups, SHOWN_POINTS, "Groups of flows"), screen)
        screen.print()
    for line in sentences(of_measures(result, found, layout), found, layout.compared):
        screen.print(line)
    screen.print()
    for line in note_lines(result):
        block(Note(line), screen)
