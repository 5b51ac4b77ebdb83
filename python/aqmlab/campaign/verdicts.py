"""A campaign whose questions have rules: its page and its lines on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as Grid
from rich.text import Text as Line

import aqmlab
from aqmlab.campaign.rule import FAILS, HOLDS, UNDECIDED, VERDICTS
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
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
)

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.campaign.pack import Question
    from aqmlab.campaign.plan import Campaign

TONES = {HOLDS: GOOD, UNDECIDED: NEAR, FAILS: BAD}
STYLES = {HOLDS: "green", UNDECIDED: "yellow", FAILS: "red"}
COPIES = "replications-identical"
"""Note of points without chance: their numbers have no spread, and so no interval."""
SIGNS = {HOLDS: "✓", UNDECIDED: "?", FAILS: "✗"}


def document(of: Campaign) -> Document:
    """The whole page."""
    pack = of.plan.pack
    counts = of.counts()
    tiles = tuple((str(count), word) for word, count in counts.items() if count)
    return Document(
        pack.title,
        (*(_section(of, each) for each in pack.questions), _how(of)),
        soft=pack.source,
        head=(Text(of.headline, "lead"), Tiles(tiles)),
    )


def _section(of: Campaign, question: Question) -> Section:
    return Section(question.title, tuple(_blocks(of, question)), question.id)


def _blocks(of: Campaign, question: Question) -> Iterator[Block]:
    about = " ".join(each for each in (question.text, question.source) if each)
    if about:
        yield Text(about, "soft")
    for name in of.plan.contenders:
        found = of.answers[question.id, name]
        if found:
            head = f"**{name}**: " if name else ""
            yield Items(
                tuple(
                    Verdict(
                        each.verdict, TONES[each.verdict], each.evidence, f"{head}{each.text}",
                        f"{question.id}-{each.id}-{name}".strip("-"),
                    )
                    for each in found
                ),
                "claims",
            )  # fmt: skip
    yield _readings(of, question)
    yield from (made for draw in question.figures if (made := draw(of)))


def _readings(of: Campaign, question: Question) -> Table:
    """The readings: a row each, a column a contender."""
    names = list(of.plan.contenders)
    read = {name: of.readings_of(question, name) for name in names}
    rows: list[tuple[Cell, ...]] = []
    for number, first in enumerate(read[names[0]]):
        cells = [Estimate(*read[name][number].estimate) for name in names]
        rows.append((first.label, first.unit, *cells))
    columns = (Column("reading", label=True), Column("unit"), *(Column(n or "all") for n in names))
    caption = "Mean over the replications, with its 95 % interval."
    return Table(columns, tuple(rows), id=f"readings-{question.id}", caption=caption)


def _how(of: Campaign) -> Section:
    info = of.result.info
    words = Items(
        tuple(Verdict(word, TONES[word], text=text) for word, text in VERDICTS.items()), "key"
    )
    facts = Facts(
        (
            ("Program", f"aqmlab {aqmlab.__version__}"),
            ("Simulations", f"{of.runs:,}: {info.points} points, {info.replications} replications"),
            ("Seed", f"{info.seed}; replication r draws the same random numbers at every point"),
            ("Digest", info.digest),
        )
    )
    return Section("How this was made", (words, facts), "how")


def show(of: Campaign, console: Console) -> None:
    """Prints the answers, and in words what does not hold or is not decided."""
    pack = of.plan.pack
    console.print(Line(pack.title, style="bold"))
    console.print(Line(of.headline, style="dim"))
    notes = of.result.pooled_notes.filter(id=COPIES)
    if notes.height:
        console.print(Line(f"Caution: {notes['text'][0]}", style="yellow"))
    for question in pack.questions:
        grid = Grid(box=box.SIMPLE_HEAD, title=question.title, title_justify="left")
        grid.add_column("rule")
        for name in of.plan.contenders:
            grid.add_column(name or "verdict", no_wrap=True)
        for rule in question.rules:
            cells = []
            for name in of.plan.contenders:
                words = [each.verdict for each in of.answers[question.id, name]
                         if each.id == rule.id]  # fmt: skip
                cells += [Line(f"{SIGNS[w]} {w}", STYLES[w]) for w in words] or [Line("–", "dim")]
            grid.add_row(f"{rule.id}: {rule.rule}", *cells)
        console.print(grid)
    for (_, name), found in of.answers.items():
        for each in found:
            if each.verdict != HOLDS:
                head = f"{name}, {each.id}" if name else each.id
                console.print(Line(f"{head}: {each.evidence}", style=STYLES[each.verdict]))
