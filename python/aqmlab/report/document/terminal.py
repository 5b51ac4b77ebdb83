"""Documents on a terminal, by rich."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text as Line

from aqmlab import plain
from aqmlab.report.document.figure import Figure
from aqmlab.report.document.model import (
    Block,
    Cell,
    Code,
    Column,
    Compared,
    Document,
    Facts,
    Finding,
    Items,
    Markdown,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
)

WIDE = 100
"""From so many columns of the terminal on, those of a table stand further apart."""
TONES = {"good": "green", "near": "yellow", "bad": "red", "plain": "dim"}
SIGNS = {"good": "✓ ", "near": "? ", "bad": "✗ ", "plain": ""}
LINK = re.compile(r"\[([^\]]*)\]\(#[^)]*\)")
EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=\S)([^*\n]+)(?<=\S)\1(?![\w*])")
HOW = "how"
"""Identifier of the section on how results were made, which only pages show."""


def console(columns: int = 110) -> Console:
    """Console for tables: as wide as the terminal, or wide enough for all columns.

    Brackets in names, values and paths are just that, not styles.
    """
    width = None if sys.stdout.isatty() else columns
    return Console(width=width, highlight=False, markup=False)


class _Shown(Grid):
    """A table that knows how wide its cells are in the encoding of stdout."""

    def add_row(self, *cells: Any, **more: Any) -> None:
        """Adds a row of cells."""
        texts = (plain.shown(each) if isinstance(each, str) else each for each in cells)
        super().add_row(*texts, **more)


def grid(title: str | None, screen: Console) -> Grid:
    """An empty table whose usual contents fit into a terminal of 80 columns."""
    return _Shown(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, 1 if screen.width >= WIDE else 0),
    )


def table(of: Table, screen: Console) -> Grid:
    """A table of a document for this screen."""
    found = grid(of.title or None, screen)
    found.caption = of.caption or None
    for column in of.columns:
        side = "left" if column.label or column.prose else "right"
        style = "bold green" if column.chosen else None
        # A number without its last digits is another number.
        found.add_column(column.heading, justify=side, style=style, overflow="fold")  # type: ignore[arg-type]
    texts = [[_cell(*pair) for pair in zip(of.columns, row, strict=True)] for row in of.rows]
    for row in texts:
        found.add_row(*row)
    if not any(column.prose for column in of.columns):
        columns = [[column.heading for column in of.columns], *texts]
        _fit(found, screen, list(zip(*columns, strict=True)))
    return found


def _fit(found: Grid, screen: Console, columns: Sequence[Sequence[str | Line]]) -> None:
    """Divides a screen that is too narrow for all texts: each column has room for its longest word,
    so that no number is broken, and the columns share what is left."""
    whole = screen.options.update_width(sum(map(len, itertools.chain(*columns))))
    spare = screen.width - found.__rich_measure__(screen, whole).maximum
    lines = [[line for text in texts for line in str(text).split("\n")] for texts in columns]
    full = [max(map(len, own)) for own in lines]
    widths = [max(len(word) for line in own for word in [*line.split(), ""]) for own in lines]
    spare += sum(full) - sum(widths)
    if spare < 0 or widths == full or spare >= sum(full) - sum(widths):
        return
    while spare:
        for place in [i for i, width in enumerate(widths) if width < full[i]][:spare]:
            widths[place] += 1
            spare -= 1
    for column, width in zip(found.columns, widths, strict=True):
        column.width = width


def _cell(column: Column, cell: Cell) -> str | Line:
    """A cell; verdicts in their colour, a reference below its number."""
    if isinstance(cell, Verdict):
        return Line(plain.shown(f"{SIGNS[cell.tone]}{cell.word}"), TONES[cell.tone])
    if isinstance(cell, Compared):
        value, interval = cell.measured.told(cell.decimals)
        if cell.reference is None:
            return Line.assemble(value, (f"\n{interval}", "dim"))
        text = f"{value} ({cell.reference:.{cell.decimals}f}) {SIGNS[cell.verdict.tone]}".strip()
        return Line.assemble((text, TONES[cell.verdict.tone]), (f"\n{interval}  ", "dim"))
    return column.told(cell)


def show(document: Document, screen: Console) -> None:
    """Prints the document."""
    screen.print(Line(document.title, style="bold"))
    if document.soft:
        screen.print(Line(document.soft, style="dim"))
    blocks(document.head, screen)
    blocks(document.blocks, screen)


def blocks(given: Sequence[Block], screen: Console) -> None:
    """Prints the blocks, one below the other."""
    for each in given:
        block(each, screen)


def block(of: Block, screen: Console) -> None:
    """Prints a block."""
    match of:
        case Text() | Finding():
            screen.print(Line(unmarked(of.text)))
        case Verdict():
            screen.print(judged(of))
        case Table():
            screen.print(table(of, screen))
        case Figure():
            screen.print(Line.assemble((of.title, "bold"), f": {of.message}"))
        case Tiles():
            for number, label in of.tiles:
                screen.print(Line.assemble((number, "bold"), f" {label}"))
        case Facts():
            for name, text in of.facts:
                screen.print(Line.assemble((f"{name}: ", "dim"), text))
        case Note():
            more = f" ({of.more})" if of.more else ""
            screen.print(Line.assemble((of.title or "Note", "bold yellow"), f" {of.text}{more}"))
        case Items():
            for each in of.items:
                line = (
                    judged(each, key=of.kind == "key") if isinstance(each, Verdict) else each.text
                )
                screen.print(Padding(line, (0, 0, 0, 2)))
                if isinstance(each, Verdict) and each.meaning:
                    screen.print(Padding(Line(each.meaning), (0, 0, 0, 5)))
        case Code():
            screen.print(of.text, soft_wrap=True)
        case Markdown():
            screen.print(of.text)
        case Section() if not (of.folded or of.id == HOW):
            screen.print(Line(f"\n{of.title}", style="bold"))
            blocks(of.blocks, screen)


def unmarked(text: str) -> str:
    """Markdown without emphasis and targets of links."""
    return EMPHASIS.sub(r"\2", LINK.sub(r"\1", text))


def judged(of: Verdict, *, key: bool = False) -> Line:
    """A text with the word that judges it; in a key, the word first."""
    text, word = unmarked(of.text), (f"{SIGNS[of.tone]}{of.word}", TONES[of.tone])
    return Line.assemble(word, f": {text}") if key else Line.assemble(f"{text} ".lstrip(), word)
