"""A reproduction on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from aqmlab.campaign import FAILS, HOLDS, UNDECIDED
from aqmlab.reproduce.verdicts import AGREES, DIFFERS, VERDICTS

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction
    from aqmlab.reproduce.model import Cell, Table

STYLES = {
    AGREES: "green",
    DIFFERS: "red",
    HOLDS: "green",
    UNDECIDED: "yellow",
    FAILS: "red",
}
SIGNS = {AGREES: "✓", DIFFERS: "✗", HOLDS: "✓", UNDECIDED: "?", FAILS: "✗"}


def show(reproduction: Reproduction, console: Console) -> None:
    """Prints `reproduction`."""
    console.print(Text(reproduction.title, style="bold"))
    console.print(
        f"{reproduction.runs:,} simulations: {reproduction.extent}; "
        f"seed {reproduction.result.info.seed}",
        style="dim",
        highlight=False,
    )
    for table in reproduction.tables:
        console.print()
        console.print(_table(table))
    legend = (
        Text.assemble((f"{SIGNS[word]} {word}", STYLES[word]), f": {VERDICTS[word]}")
        for word in (AGREES, UNDECIDED, DIFFERS)
    )
    console.print()
    console.print(Text("   ").join(legend))
    console.print(
        "Each cell: measured, in brackets the reference, below the 95 % interval.",
        style="dim",
        highlight=False,
    )
    if reproduction.without_intervals:
        console.print(Text(reproduction.without_intervals, style="yellow"))
    causes = [(cause.title, cause.text) for cause in reproduction.causes]
    _remarks(console, "Why cells differ", causes)
    warnings = [
        (f"{each.id} ({each.where}; {each.runs:,} runs)", each.text)
        for each in reproduction.warnings
    ]
    _remarks(console, "Warnings", warnings)
    contradictions = [(each.title, each.text) for each in reproduction.contradictions]
    _remarks(console, "Where the paper contradicts itself", contradictions)
    if reproduction.claims:
        console.print(Text("\nStatements", style="bold"))
        if reproduction.held_if_alike is not None:
            console.print(Text(base_rate(reproduction), style="dim"))
    for number, claim in enumerate(reproduction.claims, start=1):
        style = STYLES[claim.verdict]
        verdict = Text(f"{SIGNS[claim.verdict]} {claim.verdict}", style=style)
        text = f"{number}. {OWN if claim.own else ''}{claim.text} "
        console.print(Text(text, style="bold") + verdict)
        console.print(Padding(Text(claim.evidence), (0, 0, 0, 3)))


OWN = "Own comparison: "


def base_rate(reproduction: Reproduction) -> str:
    """How many statements hold, and how many would if all queues were the same."""
    words = [claim.verdict for claim in reproduction.claims if not claim.own]
    return (
        f"{words.count(HOLDS)} of {len(words)} statements hold by our limits; up to "
        f"{reproduction.held_if_alike} would hold if all queues were the same (the results of one "
        "of them stand for all)."
    )


def _remarks(console: Console, title: str, remarks: list[tuple[str, str]]) -> None:
    if remarks:
        console.print(Text(f"\n{title}", style="bold"))
    for head, text in remarks:
        console.print(Text(head, style="yellow"))
        console.print(Padding(Text(text), (0, 0, 0, 2)))


def _table(table: Table) -> Group:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("", no_wrap=True)
    for column in table.columns:
        grid.add_column(column, justify="right", no_wrap=True)
    for row in table.rows:
        cells = (table.cell(row, column) for column in table.columns)
        grid.add_row(row, *(_cell(cell) if cell else "" for cell in cells))
    head = Text.assemble((table.name, "bold"), f" ({table.unit})")
    if table.compared and table.reference != "published":
        head.append(f", reference: {table.reference}")
    return Group(head, grid, Text(table.caption, style="dim"))


def _cell(cell: Cell) -> Text:
    text = Text(f"{cell.measured:.3f}")
    if cell.published is not None:
        text.append(f" ({cell.published:.3f}) ")
        text.append(SIGNS[cell.verdict])
        text.stylize(STYLES[cell.verdict])
    within = "" if cell.low is None else f"{cell.low:.3f}–{cell.high:.3f}"
    text.append(f"\n{within}", style="dim")
    if cell.published is not None:
        text.append("  ")  # below the sign of the verdict
    return text
