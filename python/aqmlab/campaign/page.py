"""The page of a campaign, which the terminal shows as well: an overview, and a section for each
question.

Where contenders are compared, a question with a judge has an outcome beside each other contender,
and one with readings only has a row for each reading. Elsewhere a question has the verdicts of its
rules, and its readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING

import aqmlab
from aqmlab.campaign.beside import BETTER, OTHER, WORSE, QuestionRows, ReadingRow, value_of
from aqmlab.campaign.outcomes import OUTCOMES, TRADE, VIOLATION
from aqmlab.campaign.outcomes import TONES as OUTCOME_TONES
from aqmlab.campaign.rule import FAILS, HOLDS, UNDECIDED, VERDICTS, Answer
from aqmlab.metrics import scale
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import count
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
    Facts,
    Figure,
    Items,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
)
from aqmlab.report.document.panels import colours, ranges
from aqmlab.report.made import made

if TYPE_CHECKING:
    from aqmlab.campaign.pack import Draw, Question
    from aqmlab.campaign.plan import Campaign

TONES = {HOLDS: GOOD, UNDECIDED: NEAR, FAILS: BAD}
COPIES = "replications-identical"
"""Note of points without chance: their numbers have no spread, and so no interval."""
ROW_TONES = {WORSE: BAD, BETTER: GOOD, OTHER: NEAR}
WIDTH = 430
"""Width of a panel of readings."""
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
    """Returns the page as a value; `command` is the command that made it."""
    pack, info = campaign.plan.pack, campaign.result.info
    soft = pack.source
    if campaign.others:
        place = f"{pack.where} · " if pack.where else ""
        soft = (
            f"{place}{count(campaign.runs, 'simulation')}, "
            f"{count(info.replications, 'replication')}, "
            f"seed {info.seed}"
        )
    notes: list[Note] = []
    if not campaign.others:  # of a comparison, each section has its own
        copies = campaign.result.pooled_notes.filter(id=COPIES)["text"].head(1)
        notes = [Note(text) for text in (*pack.notes, *copies)]
    blocks = (*notes, *_sections(campaign), *_untested(campaign), how(campaign, command))
    return Document(pack.title, blocks, soft=soft, head=tuple(_head(campaign)))


def summary(campaign: Campaign) -> Document:
    """Returns the part of the page for a terminal: all of it, or the head of a comparison and the
    comparisons that were not tested."""
    page = document(campaign)
    if not campaign.others:
        return page
    return Document(page.title, tuple(_untested(campaign)), soft=page.soft, head=page.head)


def _head(campaign: Campaign) -> Iterator[Block]:
    counts = [(str(count), word) for word, count in campaign.counts().items() if count]
    if counts and not campaign.others:
        yield Text(campaign.headline, "lead")
        yield Tiles(tuple(counts))
    if campaign.findings:
        yield Text(campaign.headline, "headline")
        lists = [
            Verdict(title, OUTCOME_TONES[outcome], text=", ".join(f"[{each.title}](#{anchor(each)})"
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
            other: Verdict(each.outcome, OUTCOME_TONES[each.outcome], OUTCOMES[each.outcome])
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
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            line.question.title,
            line.question.level,
            _compared(row),
            f"{line.behind} of {len(line.rows)}",
            value_of(row.value, row),
            *(value_of(row.others[name], row) for name in others),
            f"{row.own.metric}; {row.own.case}",
        )
        for line in campaign.lines
        for row in [line.worst]
    )
    targets = {place: anchor(line.question) for place, line in enumerate(campaign.lines)}
    return Table(columns, rows, "Overview", "overview", "verdict glance", targets=targets)


def _compared(row: ReadingRow) -> Verdict:
    """A comparison in the colour of its word, if it has one for all others."""
    return Verdict(row.short, ROW_TONES.get(row.short, PLAIN), row.words)


def _sections(campaign: Campaign) -> Sequence[Block]:
    pack = campaign.plan.pack
    if not campaign.others:
        return [
            Section(each.title, tuple(_blocks(campaign, each)), each.id) for each in pack.questions
        ]
    lines = {line.question.id: line for line in campaign.lines}
    drawn: set[object] = set()
    made = {}
    for each in pack.questions:
        # A figure of several questions is at the first of them.
        draw = [figure for figure in each.figures if figure not in drawn]
        drawn.update(draw)
        made[each.id] = _question(campaign, each, lines.get(each.id), draw)

    if pack.arrange is not None:
        return pack.arrange(campaign, list(made.values()))
    found = []
    for group, title in pack.groups.items():
        own = tuple(made[each.id] for each in pack.questions if each.group == group)
        if own:
            found.append(Section(title, own, id=group, short=title))
    return found + [made[each.id] for each in pack.questions if each.group not in pack.groups]


def _untested(campaign: Campaign) -> Iterator[Block]:
    names = {"criterion": "question", "source": "source", "level": "level", "why": "why"}
    columns = tuple(Column(each, label=each == "question", prose=True) for each in names.values())
    rows = tuple(tuple(each[key] for key in names) for each in campaign.plan.pack.untested)
    if rows:
        yield Section("Not tested", (Table(columns, rows),), id="untested", short="Not tested")


def _question(
    campaign: Campaign, question: Question, line: QuestionRows | None, draw: Sequence[Draw]
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
    noted = [
        Text(f"{note['text']} ({'; '.join(note['cases'])})" if note["cases"] else note["text"])
        for note in campaign.notes_of(question)
    ]
    blocks += [Items(tuple(noted), "noted")] if noted else []
    kept = tuple(each for each in drawn if each.id.endswith(KEPT))
    if kept:
        blocks.append(Section("Distributions", kept, folded=True))
    table = readings(campaign, question) if line is None else _rows(campaign, line)
    if table.rows:
        blocks.append(Section("All numbers", (table,), folded=True))
    return Section(question.title, tuple(blocks), id=anchor(question))


def _blocks(of: Campaign, question: Question) -> Iterator[Block]:
    """A question with rules or readings only."""
    about = " ".join(each for each in (question.text, question.source) if each)
    if about:
        yield Text(about, "soft")
    if question.rules:
        yield _verdicts(of, question)
        found = {name: of.answers[question.id, name] for name in of.plan.contenders}
        every = [(name, each) for name, answers in found.items() for each in answers]
        yield _claims(question, [each for each in every if each[1].verdict != HOLDS])
        held = _claims(question, [each for each in every if each[1].verdict == HOLDS])
        if held.items:
            yield Section("Evidence for what holds", (held,), folded=True)
    yield readings(of, question)
    yield from (made for draw in question.figures if (made := draw(of)))


def _verdicts(of: Campaign, question: Question) -> Table:
    """The verdicts: a row a rule, a column a contender."""
    names = list(of.plan.contenders)
    found = {(name, each.id): each for name in names for each in of.answers[question.id, name]}
    rows: list[tuple[Cell, ...]] = []
    for rule in question.rules:
        answers = (found.get((name, rule.id)) for name in names)
        cells = (Verdict(each.verdict, TONES[each.verdict]) if each else None for each in answers)
        rows.append((f"{rule.id}: {rule.rule}", *cells))
    columns = (Column("rule", label=True), *(Column(name or "verdict") for name in names))
    return Table(columns, tuple(rows), id=f"verdicts-{question.id}")


def _claims(question: Question, found: Sequence[tuple[str, Answer]]) -> Items:
    """Answers of contenders with their evidence."""
    return Items(
        tuple(
            Verdict(
                each.verdict, TONES[each.verdict], each.evidence,
                f"**{name}**: {each.text}" if name else each.text,
                f"{question.id}-{each.id}-{name}".strip("-"),
            )
            for name, each in found
        ),
        "claims",
    )  # fmt: skip


def readings(of: Campaign, question: Question) -> Table:
    """The readings: a row each, a column a contender; of two also the difference."""
    names = list(of.plan.contenders)
    read = {name: {each.label: each for each in of.readings_of(question, name)} for name in names}
    every = {label: each for name in reversed(names) for label, each in read[name].items()}
    order = dict.fromkeys(label for name in names for label in read[name])
    rows: list[tuple[Cell, ...]] = []
    for label in order:
        unit = every[label].unit
        given = [read[name].get(label) for name in names]
        found = [each.estimate if each else Estimate(float("nan")) for each in given]
        known = [each.value for each in found if isfinite(each.value)]
        shown, factor = scale(unit, max(known, default=None))
        cells: list[Cell] = [each.times(factor) for each in found]
        if len(names) == 2:
            one, other = (each.value for each in found)
            points = f"{100 * (other - one):+z.2f} points"
            relative = f"{other / one - 1:+z.1%}" if one else None
            if min(one, other) < 0:
                relative = f"{factor * (other - one):+z.3g} {shown}".strip()
            cells.append((points if unit == "share" else relative) if len(known) == 2 else None)
        rows.append((label, shown, *cells))
    more = [Column("difference")] if len(names) == 2 else []
    columns = (Column("reading", label=True), Column("unit"),
               *(Column(n or "all") for n in names), *more)  # fmt: skip
    number = of.result.info.replications
    caption = (
        f"Means of {number} replications, with their 95 % intervals, if any." if number > 1 else ""
    )
    return Table(columns, tuple(rows), id=f"readings-{question.id}", caption=caption)


def how(of: Campaign, command: str) -> Section:
    """The section on how the page was made."""
    info = of.result.info
    meanings, tones = (OUTCOMES, OUTCOME_TONES) if of.findings else (VERDICTS, TONES)
    words = Items(
        tuple(Verdict(word, tones[word], text=text) for word, text in meanings.items()), "key"
    )
    extent = f"{count(info.points, 'point')}, {count(info.replications, 'replication')}"
    facts = Facts(
        (
            ("Program", f"aqmlab {aqmlab.__version__}"),
            ("Runs", f"{of.runs:,}: {extent}"),
            ("Seed", f"{info.seed}; replication r draws the same random numbers at every point"),
            ("Digest", info.digest),
        )
    )
    judged = [words] if any(of.answers.values()) else []
    origin = made(command, of.result.folder, info)
    return Section("How this was made", (*judged, facts, *origin), "how")


def _rows(campaign: Campaign, line: QuestionRows) -> Table:
    others = campaign.others
    columns = (
        Column("case", label=True),
        Column("measure", prose=True),
        *(Column(name) for name in (campaign.subject, *others)),
        Column("compared"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.own.case,
            f"{row.own.metric} ({row.own.unit})" if row.own.unit else row.own.metric,
            row.own.estimate,
            *(row.others[name] for name in others),
            _compared(row),
        )
        for row in line.rows
    )
    return Table(columns, rows)


def figure(campaign: Campaign, line: QuestionRows) -> Figure:
    """Every measure of every case, the contender beside the others."""
    panels: dict[str, dict[tuple[str, str], Floats | Estimate]] = {}
    for row in line.rows:
        cells = panels.setdefault(row.own.metric, {})
        cells[campaign.subject, row.own.case] = row.own.estimate
        cells |= {(name, row.own.case): Estimate(value) for name, value in row.others.items()}
    worst = line.worst
    where = f"{worst.own.metric}, {worst.own.case}"
    told = f"{where}: {value_of(worst.value, worst)}, {worst.words}."
    palette = colours([campaign.subject, *campaign.others])
    units = {row.own.metric: row.own.unit for row in line.rows}
    return Figure(
        f"readings-{line.question.id}",
        line.question.title,
        told[0].upper() + told[1:],
        f"Points: means over the replications; lines: 95 % intervals of {campaign.subject}.",
        ranges(panels, palette, units, columns=1, width=WIDTH),
    )
