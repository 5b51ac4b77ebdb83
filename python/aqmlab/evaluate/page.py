"""The page of an evaluation: one table to take in at a glance, and everything below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aqmlab.document import (
    BAD,
    GOOD,
    NEAR,
    PLAIN,
    Block,
    Cell,
    Column,
    Document,
    Estimate,
    Figure,
    Section,
    Table,
    Text,
    Verdict,
)
from aqmlab.evaluate.compare import BETTER, OTHER, WORSE, Row
from aqmlab.evaluate.console import number
from aqmlab.evaluate.criterion import GROUPS

if TYPE_CHECKING:
    from aqmlab.evaluate import Evaluation, Line

TONES = {WORSE: BAD, BETTER: GOOD, OTHER: NEAR}
COLOURS = ("#c0392b", "#2f6fbb", "#8c8c8c")
"""Of the control, and of the standard ones."""
LEAD = (
    "RFC 9743 sets no thresholds: every row is evidence. Each line of the overview shows the "
    "measure in which the control is furthest behind **both** Reno and CUBIC, or the first "
    "measure of the criterion if it is behind in none; *behind* counts the measures in which it "
    "is. The three run under the same arrivals, and a difference is told if 0 lies outside its "
    "interval, whose level of 95 % is that of all comparisons of this page together "
    "(Holm). Harm is what another flow loses beside the control, as a share of what it has alone "
    "(Ware et al. 2019)."
)


def document(evaluation: Evaluation) -> Document:
    """The page as a value."""
    info = evaluation.result.info
    return Document(
        f"{evaluation.control} by the criteria of RFC 9743",
        tuple(_blocks(evaluation)),
        soft=f"{evaluation.runs:,} simulations, {info.replications} replications, seed {info.seed}",
        head=(Text(LEAD), overview(evaluation)),
    )


def overview(evaluation: Evaluation) -> Table:
    """One row a criterion."""
    standard = [each for each in evaluation.standard if each != evaluation.control]
    columns = (
        Column("criterion", label=True),
        Column("level", prose=True),
        Column("compared"),
        Column("behind"),
        *(Column(name) for name in (evaluation.control, *standard)),
        Column("where it is furthest behind", prose=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for line in evaluation.lines:
        row = line.worst
        behind = sum(each.excess > 0 for each in line.rows)
        rows.append(
            (
                line.criterion.title,
                line.criterion.level,
                Verdict(row.short, tone(row), row.words),
                f"{behind} of {len(line.rows)}",
                number(row.value, row),
                *(number(row.others[name], row) for name in standard),
                f"{row.measure}; {row.case}",
            )
        )
    targets = {place: line.criterion.id for place, line in enumerate(evaluation.lines)}
    return Table(
        columns,
        tuple(rows),
        title="Overview",
        id="overview",
        kind="verdict glance",
        targets=targets,
    )


def tone(row: Row) -> str:
    """The colour of a comparison: that of its word, if it has one for both."""
    return TONES.get(row.short, PLAIN)


def _blocks(evaluation: Evaluation) -> Iterator[Block]:
    for group, title in GROUPS.items():
        lines = [line for line in evaluation.lines if line.criterion.group == group]
        if lines:
            parts = tuple(_criterion(evaluation, line) for line in lines)
            yield Section(title, parts, id=group, short=title)
    columns = (Column("criterion", label=True), Column("level"), Column("why", prose=True))
    rows = tuple((e["criterion"], e["level"], e["why"]) for e in evaluation.untested)
    yield Section("Not tested", (Table(columns, rows),), id="untested", short="Not tested")


def _criterion(evaluation: Evaluation, line: Line) -> Section:
    criterion = line.criterion
    standard = [each for each in evaluation.standard if each != evaluation.control]
    columns = (
        Column("case", label=True),
        Column("measure", prose=True),
        *(Column(name) for name in (evaluation.control, *standard)),
        Column("compared"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.case,
            f"{row.measure} ({row.unit})" if row.unit else row.measure,
            Estimate(row.value, *((row.interval.low, row.interval.high) if row.interval else ())),
            *(row.others[name] for name in standard),
            Verdict(row.short, tone(row), row.words),
        )
        for row in line.rows
    )
    return Section(
        f"{criterion.title} ({criterion.level})",
        (
            Text(criterion.question, "lead"),
            figure(evaluation, line),
            Section("All numbers", (Table(columns, rows),), folded=True),
        ),
        id=criterion.id,
    )


def figure(evaluation: Evaluation, line: Line) -> Figure:
    """Every measure of every case, the control beside Reno and CUBIC."""
    standard = [each for each in evaluation.standard if each != evaluation.control]
    names = [evaluation.control, *standard]
    values = [
        {
            "measure": f"{row.measure} ({row.unit})" if row.unit else row.measure,
            "case": row.case,
            "control": name,
            "value": row.value if name == evaluation.control else row.others[name],
        }
        for row in line.rows
        for name in reversed(names)  # the control is drawn last, on top
    ]
    worst = line.worst
    told = f"{worst.measure}, {worst.case}: {number(worst.value, worst)}, {worst.words}."
    return Figure(
        f"evaluate-{line.criterion.id}",
        line.criterion.title,
        told[0].upper() + told[1:],
        "Points: means over the replications. One panel a measure, each with its own scale.",
        chart(values, names),
    )


def chart(values: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """Points on a line for every case, a panel for every measure."""
    measures = list(dict.fromkeys(each["measure"] for each in values))
    cases = list(dict.fromkeys(each["case"] for each in values))
    panels = []
    for measure in measures:
        own = [each for each in values if each["measure"] == measure]
        here = [case for case in cases if any(each["case"] == case for each in own)]
        panels.append(
            {
                "width": 430,
                "height": {"step": 18},
                "data": {"values": own},
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.85},
                "encoding": {
                    "x": {"field": "value", "type": "quantitative", "title": measure,
                          "scale": {"zero": True}},
                    "y": {"field": "case", "type": "nominal", "title": None, "sort": here,
                          "axis": {"labelLimit": 330}},
                    "color": {"field": "control", "type": "nominal", "title": None,
                              "scale": {"domain": names, "range": list(COLOURS[: len(names)])}},
                    "shape": {"field": "control", "type": "nominal", "title": None,
                              "scale": {"domain": names}},
                    "tooltip": [{"field": key} for key in ("control", "case", "measure", "value")],
                },
            }
        )  # fmt: skip
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "vconcat": panels}
