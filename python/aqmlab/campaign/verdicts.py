"""A campaign whose questions have rules or readings: its page, which the terminal shows as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import aqmlab
from aqmlab.campaign import outcomes
from aqmlab.campaign.outcomes import OUTCOMES
from aqmlab.campaign.rule import FAILS, HOLDS, UNDECIDED, VERDICTS, Answer
from aqmlab.metrics import scale
from aqmlab.report.document import (
    BAD,
    GOOD,
    NEAR,
    Block,
    Cell,
    Column,
    Document,
    Estimate,
    Facts,
    Items,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
)
from aqmlab.report.made import made

if TYPE_CHECKING:
    from aqmlab.campaign.pack import Question
    from aqmlab.campaign.plan import Campaign

TONES = {HOLDS: GOOD, UNDECIDED: NEAR, FAILS: BAD}
COPIES = "replications-identical"
"""Note of points without chance: their numbers have no spread, and so no interval."""


def document(of: Campaign, command: str = "") -> Document:
    """The whole page; `command` is the command that made it."""
    pack = of.plan.pack
    counts = [(str(count), word) for word, count in of.counts().items() if count]
    head: list[Block] = [Text(of.headline, "lead"), Tiles(tuple(counts))] if counts else []
    head += [Text(pack.lead)] if pack.lead else []
    copies = of.result.pooled_notes.filter(id=COPIES)["text"].head(1)
    notes = [Note(text) for text in (*pack.notes, *copies)]
    return Document(
        pack.title,
        (*notes, *(_section(of, each) for each in pack.questions), how(of, command)),
        soft=pack.source,
        head=tuple(head),
    )


def _section(of: Campaign, question: Question) -> Section:
    return Section(question.title, tuple(_blocks(of, question)), question.id)


def _blocks(of: Campaign, question: Question) -> Iterator[Block]:
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
        shown, factor = scale(unit, max(each.value for each in found))
        cells: list[Cell] = [each.times(factor) for each in found]
        if len(names) == 2:
            one, other = (each.value for each in found)
            points = f"{100 * (other - one):+.2f} points"
            relative = f"{other / one - 1:+.1%}" if one else None
            cells.append(points if unit == "share" else relative)
        rows.append((label, shown, *cells))
    more = [Column("difference")] if len(names) == 2 else []
    columns = (Column("reading", label=True), Column("unit"),
               *(Column(n or "all") for n in names), *more)  # fmt: skip
    number = of.result.info.replications
    caption = f"Means of {number} replications, with their 95 % intervals." if number > 1 else ""
    return Table(columns, tuple(rows), id=f"readings-{question.id}", caption=caption)


def how(of: Campaign, command: str) -> Section:
    """The section on how the page was made."""
    info = of.result.info
    used = {each.verdict for found in of.answers.values() for each in found}
    meanings = OUTCOMES if of.findings else VERDICTS
    tones = outcomes.TONES if of.findings else TONES
    words = Items(
        tuple(Verdict(word, tones[word], text=text) for word, text in meanings.items()), "key"
    )
    facts = Facts(
        (
            ("Program", f"aqmlab {aqmlab.__version__}"),
            ("Runs", f"{of.runs:,}: {info.points} points, {info.replications} replications"),
            ("Seed", f"{info.seed}; replication r draws the same random numbers at every point"),
            ("Digest", info.digest),
        )
    )
    judged = [words] if used else []
    origin = made(command, of.result.folder, info)
    return Section("How this was made", (*judged, facts, *origin), "how")
