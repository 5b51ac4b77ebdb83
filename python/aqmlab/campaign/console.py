"""A comparison of contenders on the terminal: one line a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab.campaign.beside import Row

if TYPE_CHECKING:
    from aqmlab.campaign.plan import Campaign

STYLES = {"worse": "red", "better": "green", "different": "yellow"}


def show(campaign: Campaign, console: Console) -> None:
    """Prints `campaign`."""
    pack, others = campaign.plan.pack, campaign.others
    console.print(Text(pack.title, style="bold"))
    console.print(
        f"{campaign.runs:,} simulations, {campaign.result.info.replications} replications. "
        f"Each line shows the measure in which it is furthest behind {' and '.join(others)} (the "
        "first one if it is behind in none).",
        style="dim",
        highlight=False,
    )
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("question", "level", "measure and case"):
        grid.add_column(name, overflow="fold")
    for name in (campaign.subject, *others):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("compared")
    group = ""
    for line in campaign.lines:
        if line.question.group != group:
            group = line.question.group
            grid.add_row(Text(pack.groups[group], style="bold"))
        row = line.worst
        grid.add_row(
            line.question.title,
            line.question.level,
            f"{row.measure}; {row.case}",
            number(row.value, row),
            *(number(row.others[name], row) for name in others),
            Text(
                f"{row.words} (behind both in {line.behind} of {len(line.rows)})", style=style(row)
            ),
        )
    console.print(grid)
    if pack.untested:
        console.print(Text("Not tested", style="bold"))
    for each in pack.untested:
        console.print(Text(f"{each['criterion']} ({each['level']}): {each['why']}"))


def style(row: Row) -> str:
    """The colour of a comparison: that of the word, if there is one for both."""
    words = {row.word(other) for other in row.others}
    return STYLES.get(words.pop(), "") if len(words) == 1 else ""


def number(value: float, row: Row) -> str:
    """A value with its unit, three digits."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {row.unit}".strip()
