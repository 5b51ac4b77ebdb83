"""The verdict on the terminal: one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    OUTCOMES,
    TRADE,
    UNDECIDED,
    VIOLATION,
    WORSE,
)

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization

STYLES = {
    BETTER: "green",
    TRADE: "yellow",
    EVEN: "dim",
    WORSE: "red",
    VIOLATION: "bold red",
    UNDECIDED: "dim",
    OPEN: "dim",
}
SIGNS = {
    BETTER: "✓",
    TRADE: "≈",
    EVEN: "=",
    WORSE: "✗",
    VIOLATION: "‼",
    UNDECIDED: "?",
    OPEN: "·",
}


def show(characterization: Characterization, console: Console) -> None:
    """Prints the verdict."""
    verdict, info = characterization.verdict, characterization.result.info
    place = characterization.plan.environment
    console.print(Text(info.title, style="bold"))
    console.print(
        f"{place.rate / 1e6:g} Mbit/s, {1e3 * place.rtt:g} ms, buffer {place.limit()} packets; "
        f"{characterization.runs:,} simulations, {info.replications} replications, seed "
        f"{info.seed}",
        style="dim",
        highlight=False,
    )
    console.print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("section", no_wrap=True)
    table.add_column("", no_wrap=True)
    main, *more = characterization.others
    table.add_column(f"against {main}", no_wrap=True)
    for other in more:
        table.add_column(other, no_wrap=True)
    table.add_column("measured", overflow="fold", ratio=1)
    for line in verdict.lines:
        cells = []
        for other in (main, *more):
            outcome = line.findings[other].outcome
            shown = other == main or not line.is_alone
            text = f"{SIGNS[outcome]} {outcome}" if other == main else SIGNS[outcome]
            cells.append(Text(text, style=STYLES[outcome]) if shown else Text(""))
        table.add_row(line.section.number, line.section.title, *cells, line.main.text)
    console.print(table)
    legend = (Text(f"{SIGNS[each]} {each}", style=STYLES[each]) for each in OUTCOMES)
    console.print()
    console.print(Text("   ").join(legend))
    console.print(Text(f"\n{verdict.headline()}", style="bold"))
    _list(console, "Strengths", BETTER, characterization)
    _list(console, "Weaknesses", WORSE, characterization)
    _list(console, "Violations", VIOLATION, characterization)
    _list(console, "Not decided", UNDECIDED, characterization)


def _list(console: Console, title: str, outcome: str, of: Characterization) -> None:
    lines = of.verdict.of(outcome)
    if lines:
        names = ", ".join(f"{line.section.title.lower()} ({line.section.number})" for line in lines)
        console.print(Text.assemble((f"{title}: ", STYLES[outcome]), names))
