"""The page of a comparison of contenders: an overview, and a section for each question.

A question with a judge has an outcome beside each other contender; one with readings only has a
row for each reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from aqmlab.campaign.beside import BETTER, OTHER, WORSE, Line, Row, value_of
from aqmlab.campaign.outcomes import OUTCOMES, TONES, TRADE, UNDECIDED, VIOLATION
from aqmlab.campaign.verdicts import how, readings
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
    Items,
    Section,
    Table,
    Text,
    Verdict,
)

if TYPE_CHECKING:
    from aqmlab.campaign.pack import Draw, Question
    from aqmlab.campaign.plan import Campaign

ROW_TONES = {WORSE: BAD, BETTER: GOOD, OTHER: NEAR}
COLOURS = ("#c0392b", "#2f6fbb", "#8c8c8c")
"""Of the subject, and of the others."""
LISTED = {
    "Strengths": BETTER,
    "Trade-offs": TRADE,
    "Weaknesses": WORSE,
    "Violations": VIOLATION,
    "Not decided": UNDECIDED,
}
KEPT = "distribution"
"""Figures whose identifier ends so are folded."""


def anchor(question: Question) -> str:
    """Identifier of the section of a question."""
    return question.id if question.id[0].isalpha() else f"s{question.id}"


def document(campaign: Campaign, command: str = "") -> Document:
    """The page as a value; `command` is what made it."""
    pack, info = campaign.plan.pack, campaign.result.info
    place = f"{pack.where} · " if pack.where else ""
    return Document(
        pack.title,
        (*_sections(campaign), *_untested(campaign), how(campaign, command)),
        soft=f"{place}{campaign.runs:,} simulations, {info.replications} replications, "
        f"seed {info.seed}",
        head=tuple(_head(campaign)),
    )


def summary(campaign: Campaign) -> Document:
    """What a terminal shows of the page: its head, and what was not tested."""
    page = document(campaign)
    return Document(page.title, tuple(_untested(campaign)), soft=page.soft, head=page.head)


def _head(campaign: Campaign) -> Iterator[Block]:
    if campaign.findings:
        yield Text(campaign.headline, "headline")
        lists = [
            Verdict(title, TONES[outcome], text=", ".join(f"[{each.title}](#{anchor(each)})"
                                                          for each in found))
            for title, outcome in LISTED.items()
            if (found := campaign.with_outcome(outcome))
        ]  # fmt: skip
        yield Items(tuple(lists), "key stacked")
    if campaign.plan.pack.lead:
        yield Text(campaign.plan.pack.lead)
    if campaign.findings:
        yield _outcomes(campaign)
    if campaign.lines:
        yield _comparisons(campaign)


def _outcomes(campaign: Campaign) -> Table:
    """One row a question with a judge."""
    main, *more = campaign.others
    columns = (
        Column("question", label=True),
        Column(f"against {main}"),
        *map(Column, more),
        Column(f"measured, against {main}", prose=True),
    )
    asked = [each for each in campaign.plan.pack.questions if each.id in campaign.findings]
    rows: list[tuple[Cell, ...]] = []
    for question in asked:
        found = campaign.findings[question.id]
        words = {
            other: Verdict(each.outcome, TONES[each.outcome], OUTCOMES[each.outcome])
            for other, each in found.items()
        }
        beside = ("" if question.alone else words[other] for other in more)
        rows.append((question.title, words[main], *beside, found[main].text))
    targets = {place: anchor(each) for place, each in enumerate(asked)}
    return Table(columns, tuple(rows), id="verdict", kind="verdict brief", targets=targets)


def _comparisons(campaign: Campaign) -> Table:
    """One row a question with readings only."""
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
                value_of(row.value, row),
                *(value_of(row.others[name], row) for name in others),
                f"{row.measure}; {row.case}",
            )
        )
    targets = {place: anchor(line.question) for place, line in enumerate(campaign.lines)}
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
    return ROW_TONES.get(row.short, PLAIN)


def _sections(campaign: Campaign) -> Sequence[Block]:
    pack = campaign.plan.pack
    lines = {line.question.id: line for line in campaign.lines}
    drawn: set[object] = set()
    made = {}
    for each in pack.questions:
        # A figure of several questions stands at the first of them.
        draw = [figure for figure in each.figures if figure not in drawn]
        drawn.update(draw)
        made[each.id] = _question(campaign, each, lines.get(each.id), draw)

    if pack.arrange is not None:
        return pack.arrange(campaign, list(made.values()))
    if not pack.groups:
        return list(made.values())
    found = []
    for group, title in pack.groups.items():
        own = tuple(made[each.id] for each in pack.questions if each.group == group)
        if own:
            found.append(Section(title, own, id=group, short=title))
    return found


def _untested(campaign: Campaign) -> Iterator[Block]:
    names = ("question", "source", "level", "why")
    columns = tuple(Column(each, label=each == "question", prose=True) for each in names)
    untested = campaign.plan.pack.untested
    rows = tuple(
        (each["criterion"], each["source"], each["level"], each["why"]) for each in untested
    )
    if rows:
        yield Section("Not tested", (Table(columns, rows),), id="untested", short="Not tested")


def _question(
    campaign: Campaign, question: Question, line: Line | None, draw: Sequence[Draw]
) -> Section:
    about = f"{question.text} ({', '.join(filter(None, (question.source, question.level)))})"
    blocks: list[Block] = [Text(about, "soft")]
    found = campaign.findings.get(question.id, {})
    if found:
        shown = list(found)[:1] if question.alone else list(found)
        words = (found[other].verdict("" if question.alone else other) for other in shown)
        blocks.append(Items(tuple(words)))
    if line is not None:
        blocks.append(figure(campaign, line))
    drawn = [made for each in draw if (made := each(campaign))]
    blocks += [each for each in drawn if not each.id.endswith(KEPT)]
    blocks += _notes(campaign, question)
    kept = tuple(each for each in drawn if each.id.endswith(KEPT))
    if kept:
        blocks.append(Section("Distributions", kept, folded=True))
    table = readings(campaign, question) if line is None else _rows(campaign, line)
    if table.rows:
        blocks.append(Section("All numbers", (table,), folded=True))
    return Section(question.title, tuple(blocks), id=anchor(question))


def _rows(campaign: Campaign, line: Line) -> Table:
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
    return Table(columns, rows)


def _notes(campaign: Campaign, question: Question) -> list[Block]:
    """The engine's notes on the contender's runs of a question with a judge, each kind once."""
    if question.judge is None:
        return []
    own = campaign.filled(question, campaign.subject)
    names = {own[case].point: case for case in own}
    rows = campaign.result.pooled_notes.filter(pl.col("point").is_in(list(names)))
    items = []
    for _, part in rows.group_by("id", maintain_order=True):
        cases = sorted({names[point] for point in part["point"].to_list() if names[point]})
        where = f" ({'; '.join(cases)})" if cases else ""
        items.append(Text(f"{part['text'][0]}{where}"))
    return [Items(tuple(items), "noted")] if items else []


def figure(campaign: Campaign, line: Line) -> Figure:
    """Every measure of every case, the contender beside the others."""
    names = [campaign.subject, *campaign.others]
    values = [
        {
            "measure": f"{row.measure} ({row.unit})" if row.unit else row.measure,
            "case": row.case,
            "control": name,
            "value": row.value if name == campaign.subject else row.others[name],
        }
        for row in line.rows
        for name in reversed(names)  # the contender is drawn last, on top
    ]
    worst = line.worst
    told = f"{worst.measure}, {worst.case}: {value_of(worst.value, worst)}, {worst.words}."
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
