"""Tables as CSV, LaTeX and Markdown, and documents as Markdown."""

from __future__ import annotations

import csv as comma
import io
from collections.abc import Iterator, Sequence

from aqmlab.numbers import digits
from aqmlab.report.document.figure import Figure
from aqmlab.report.document.model import (
    Block,
    Cell,
    Code,
    Column,
    Compared,
    Document,
    Estimate,
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

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "µ": r"$\mu$", "²": r"$^2$", "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


def csv(table: Table) -> str:
    """The table as CSV, numbers unrounded; the unit of a column is in its heading."""
    text = io.StringIO()
    records = table.records()
    names = list(dict.fromkeys(name for record in records for name in record))
    units = {each.name: each.heading for each in table.columns}
    writer = comma.writer(text, lineterminator="\n")
    writer.writerow([units.get(name, name) for name in names])
    writer.writerows([record.get(name) for name in names] for record in records)
    return text.getvalue()


def latex(table: Table) -> str:
    """The table for the package booktabs; an estimate is its value ± half of its interval."""
    sides = "".join("l" if each.label or each.prose else "r" for each in table.columns)
    lines = [f"\\begin{{tabular}}{{{sides}}}", r"\toprule"]
    lines.append(" & ".join(escape(each.heading) for each in table.columns) + r" \\")
    lines.append(r"\midrule")
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        lines.append(" & ".join(_latex(column, cell) for column, cell in cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escape(text: str) -> str:
    """Text as LaTeX sets it."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def _latex(column: Column, cell: Cell) -> str:
    if isinstance(cell, Compared):
        measured = _estimate(cell.measured)
        return measured if cell.reference is None else f"{measured} ({cell.reference:g})"
    return _estimate(cell) if isinstance(cell, Estimate) else escape(column.told(cell))


def _estimate(cell: Estimate) -> str:
    """`$12.3 \\pm 0.4$`: as many digits as the interval allows; unequal sides are separate."""
    if cell.low is None or cell.high is None or not cell.has_interval:
        return escape(cell.told()[0])
    places = digits(cell.value, cell.low, cell.high)
    up, down = cell.high - cell.value, cell.value - cell.low
    value = f"{cell.value:.{places}f}"
    if f"{up:.{places}f}" == f"{down:.{places}f}":
        return f"${value} \\pm {up:.{places}f}$"
    return f"${value}^{{+{up:.{places}f}}}_{{-{down:.{places}f}}}$"


def markdown(table: Table) -> str:
    """The table as Markdown."""
    sides = ("---" if each.label or each.prose else "---:" for each in table.columns)
    lines = [_line([each.heading for each in table.columns]), _line(sides)]
    for number, row in enumerate(table.rows):
        cells = [_bar(c.told(each)) for c, each in zip(table.columns, row, strict=True)]
        if number in table.row_notes:
            cells[0] += f" ({table.row_notes[number]})"
        lines.append(_line(cells))
    return "\n".join(lines)


def document_markdown(document: Document) -> str:
    """The document as Markdown; figures are the files figures/ID.svg."""
    parts = [f"# {document.title}"]
    parts += [document.soft] if document.soft else []
    parts += _blocks([*document.head, *document.blocks], 2)
    return "\n\n".join(part for part in parts if part) + "\n"


def _blocks(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Text():
            yield block.text
        case Finding():
            yield block.text
        case Verdict():
            yield f"{block.text} *{block.word}*".strip()
        case Table():
            if block.title:
                yield f"{'#' * (level + 1)} {block.title}"
            yield markdown(block)
            yield block.caption
        case Figure():
            if block.title:
                yield f"{'#' * (level + 1)} {block.title}"
            yield f"![{block.message}](figures/{block.id}.svg)"
            yield block.caption
        case Tiles():
            yield "\n".join(f"- {number}: {label}" for number, label in block.tiles)
        case Facts():
            yield "\n".join(f"- {name}: {text}" for name, text in block.facts)
        case Note():
            title = f"**{block.title}.** " if block.title else "**Note:** "
            yield f"{title}{block.text}" + (f" ({block.more})" if block.more else "")
        case Items():
            mark = "1." if block.kind == "claims" else "-"
            yield "\n".join(f"{mark} {_item(each)}" for each in block.items)
        case Code():
            yield f"    {block.text}"
        case Markdown():
            yield block.text
        case Section():
            yield f"{'#' * level} {block.title}"
            yield from _blocks(block.blocks, level + 1)


def _item(item: Text | Finding | Verdict) -> str:
    return f"{item.text} *{item.word}*".strip() if isinstance(item, Verdict) else item.text


def _line(cells: Sequence[str] | Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _bar(text: str) -> str:
    return text.replace("|", "\\|")
