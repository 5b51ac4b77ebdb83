"""The page of a comparison of contenders: an overview, and a section for each question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aqmlab.campaign.beside import BETTER, OTHER, WORSE, Line, Row
from aqmlab.campaign.console import number
from aqmlab.report.document import (
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

if TYPE_CHECKING:
    from aqmlab.campaign.plan import Campaign

TONES = {WORSE: BAD, BETTER: GOOD, OTHER: NEAR}
COLOURS = ("#c0392b", "#2f6fbb", "#8c8c8c")
"""Of the subject, and of the others."""


def document(campaign: Campaign) -> Document:
    """The page as a value."""
    info = campaign.result.info
    return Document(
        campaign.plan.pack.title,
        tuple(_blocks(campaign)),
        soft=f"{campaign.runs:,} simulations, {info.replications} replications, seed {info.seed}",
        head=(Text(campaign.plan.pack.lead), overview(campaign)),
    )


def overview(campaign: Campaign) -> Table:
    """One row a question."""
    others = campaign.others
    columns = (
        Column("question", label=True),
        Column("level", prose=True),
        Column("compared"),
        Column("behind"),
        *(Column(name) for name in (campaign.subject, *others)),
        Column("where it is furthest behind", prose=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for line in campaign.lines:
        row = line.worst
        rows.append(
            (
                line.question.title,
                line.question.level,
                Verdict(row.short, tone(row), row.words),
                f"{line.behind} of {len(line.rows)}",
                number(row.value, row),
                *(number(row.others[name], row) for name in others),
                f"{row.measure}; {row.case}",
            )
        )
    targets = {place: line.question.id for place, line in enumerate(campaign.lines)}
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


def _blocks(campaign: Campaign) -> Iterator[Block]:
    pack = campaign.plan.pack
    for group, title in (pack.groups or {"": "Questions"}).items():
        lines = [line for line in campaign.lines if line.question.group == group]
        if lines:
            parts = tuple(_question(campaign, line) for line in lines)
            yield Section(title, parts, id=group, short=title)
    columns = (Column("question", label=True), Column("level"), Column("why", prose=True))
    rows = tuple((e["criterion"], e["level"], e["why"]) for e in pack.untested)
    if rows:
        yield Section("Not tested", (Table(columns, rows),), id="untested", short="Not tested")


def _question(campaign: Campaign, line: Line) -> Section:
    question = line.question
    others = campaign.others
    columns = (
        Column("case", label=True),
        Column("measure", prose=True),
        *(Column(name) for name in (campaign.subject, *others)),
        Column("compared"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.case,
            f"{row.measure} ({row.unit})" if row.unit else row.measure,
            Estimate(row.value, *((row.interval.low, row.interval.high) if row.interval else ())),
            *(row.others[name] for name in others),
            Verdict(row.short, tone(row), row.words),
        )
        for row in line.rows
    )
    return Section(
        f"{question.title} ({question.level})",
        (
            Text(question.text, "lead"),
            figure(campaign, line),
            Section("All numbers", (Table(columns, rows),), folded=True),
        ),
        id=question.id,
    )


def figure(campaign: Campaign, line: Line) -> Figure:
    """Every measure of every case, the control beside Reno and CUBIC."""
    others = campaign.others
    names = [campaign.subject, *others]
    values = [
        {
            "measure": f"{row.measure} ({row.unit})" if row.unit else row.measure,
            "case": row.case,
            "control": name,
            "value": row.value if name == campaign.subject else row.others[name],
        }
        for row in line.rows
        for name in reversed(names)  # the control is drawn last, on top
    ]
    worst = line.worst
    told = f"{worst.measure}, {worst.case}: {number(worst.value, worst)}, {worst.words}."
    return Figure(
        f"readings-{line.question.id}",
        line.question.title,
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
