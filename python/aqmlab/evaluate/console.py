"""An evaluation on the terminal: one line a criterion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab.evaluate.compare import Row
from aqmlab.evaluate.criterion import GROUPS

if TYPE_CHECKING:
    from aqmlab.evaluate import Evaluation

STYLES = {"worse": "red", "better": "green", "different": "yellow"}


def show(evaluation: Evaluation, console: Console) -> None:
    """Prints `evaluation`."""
    standard = [each for each in evaluation.standard if each != evaluation.control]
    console.print(Text(f"{evaluation.control} by the criteria of RFC 9743", style="bold"))
    console.print(
        f"{evaluation.runs:,} simulations, {evaluation.result.info.replications} replications. "
        "Each line shows the measure in which it is furthest behind both Reno and CUBIC (the first "
        "one if it is behind in none).",
        style="dim",
        highlight=False,
    )
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("criterion", "level", "measure and case"):
        grid.add_column(name, overflow="fold")
    for name in (evaluation.control, *standard):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("compared")
    group = ""
    for line in evaluation.lines:
        if line.criterion.group != group:
            group = line.criterion.group
            grid.add_row(Text(GROUPS[group], style="bold"))
        row = line.worst
        behind = sum(each.excess > 0 for each in line.rows)
        grid.add_row(
            line.criterion.title,
            line.criterion.level,
            f"{row.measure}; {row.case}",
            number(row.value, row),
            *(number(row.others[name], row) for name in standard),
            Text(f"{row.words} (behind both in {behind} of {len(line.rows)})", style=style(row)),
        )
    console.print(grid)
    console.print(Text("Not tested", style="bold"))
    for each in evaluation.untested:
        console.print(Text(f"{each['criterion']} ({each['level']}): {each['why']}"))


def style(row: Row) -> str:
    """The colour of a comparison: that of the word, if there is one for both."""
    words = {row.word(other) for other in row.others}
    return STYLES.get(words.pop(), "") if len(words) == 1 else ""


def number(value: float, row: Row) -> str:
    """A value with its unit, three digits."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {row.unit}".strip()
