"""What a document consists of, as values, and their text: JSON, CSV, LaTeX and Markdown.

Methods for pages and terminals load their renderer, which builds on this module.

A table keeps the numbers and how they are written apart: `to_json` and `to_csv` have all
digits, pages and terminals what a reader needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import TYPE_CHECKING, Any

from aqmlab.numbers import NONE, digits, finite, is_none, plain
from aqmlab.report.document.figure import Figure, Form
from aqmlab.report.document.vega import csv_text

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.stats import Statistic

GOOD, NEAR, BAD, PLAIN = "good", "near", "bad", "plain"
"""Tones: how a word is coloured."""
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "µ": r"$\mu$", "²": r"$^2$", "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


@dataclass(frozen=True)
class Text(Form):
    """A paragraph, in Markdown."""

    text: str
    kind: str = ""
    """Nothing, or one of `soft`, `lead`, `headline`, `method`."""


@dataclass(frozen=True)
class Verdict(Form):
    """A word that judges."""

    word: str
    tone: str = PLAIN
    meaning: str = ""
    text: str = ""
    """Subject and reason (Markdown)."""
    id: str = ""

    def __str__(self) -> str:
        return self.word

    def to_json(self) -> dict[str, Any]:
        """The verdict as a mapping."""
        told = {"form": self.form, "verdict": self.word, "text": self.text}
        return told | ({"meaning": self.meaning} if self.meaning else {})


@dataclass(frozen=True)
class Finding(Form):
    """A conclusion from the data in a sentence."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, its lower end alone, or without one."""

    value: float
    low: float | None = None
    high: float | None = None
    runs: str = ""
    """Replications with a value, if some have none: `in 7 of 10 runs`."""

    @staticmethod
    def of(found: Statistic, replications: int) -> Estimate:
        """A statistic of so many replications with its interval, if it has one."""
        is_partial = 0 < found.count < replications
        runs = f"in {found.count} of {replications} runs" if is_partial else ""
        if (ends := found.interval) is None:
            return Estimate(found.value, runs=runs)
        return Estimate(found.value, ends.low, ends.high, runs)

    @property
    def has_interval(self) -> bool:
        """True if it has an interval."""
        return not (is_none(self.low) or is_none(self.high))

    def times(self, factor: float) -> Estimate:
        """The same in another unit."""
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return Estimate(factor * self.value, low, high, self.runs)

    def told(self, decimals: int | None = None) -> tuple[str, str]:
        """The value, and its interval and runs in words; as many digits as the interval leaves."""
        if is_none(self.value):
            return NONE, ""
        if self.low is not None and self.high is not None and self.has_interval:
            own = digits(self.value, self.low, self.high) if decimals is None else decimals
            value, ends = f"{self.value:.{own}f}", f"{self.low:.{own}f}–{self.high:.{own}f}"
        else:
            written = plain if decimals is None else f"{{:.{decimals}f}}".format
            value = written(self.value)
            ends = "" if is_none(self.low) else f"above {written(self.low)}"
        return value, ", ".join(filter(None, (ends, self.runs)))

    def to_json(self) -> dict[str, Any]:
        """{"value", "low", "high"}."""
        return {"value": finite(self.value), "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Compared:
    """An estimate beside a reference, judged."""

    measured: Estimate
    reference: float | None
    verdict: Verdict
    decimals: int = 3

    @property
    def title(self) -> str:
        """The verdict with the difference to the reference: relative, unless one is below 0."""
        if not self.reference:
            return self.verdict.meaning
        value, unit = 100 * (self.measured.value / self.reference - 1), " %"
        if min(self.measured.value, self.reference) < 0:
            value, unit = self.measured.value - self.reference, ""
        return f"{self.verdict.word}: {value:+z.{1 if unit else self.decimals}f}{unit}"

    def to_json(self) -> dict[str, Any]:
        """{"value", "low", "high", "reference", "verdict"}."""
        return self.measured.to_json() | {
            "reference": self.reference,
            "verdict": self.verdict.word,
        }


Cell = str | int | float | None | Estimate | Compared | Verdict


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    show: Callable[[Any], str] = plain
    """How a plain value is written."""
    label: bool = False
    """True for labels of rows: on the left, set as headings."""
    prose: bool = False
    """True for sentences: set flush left, in several lines."""
    unit: str = ""
    """Unit of all numbers, shown in the heading."""
    chosen: bool = False
    """True if the column is emphasised."""

    @property
    def heading(self) -> str:
        """The name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def told(self, cell: Cell) -> str:
        """A cell in one line."""
        if isinstance(cell, Compared):
            value, interval = cell.measured.told(cell.decimals)
            reference = "" if cell.reference is None else f" **{cell.reference:.{cell.decimals}f}**"
            within = f" ({interval})" if interval else ""
            word = f" {cell.verdict.word}" if cell.reference is not None else ""
            return f"{value}{within}{reference}{word}"
        if isinstance(cell, Estimate):
            value, interval = cell.told()
            return f"{value} ({interval})" if interval else value
        if isinstance(cell, (Verdict, str)):
            return str(cell)
        return NONE if is_none(cell) else self.show(cell)


@dataclass(frozen=True)
class Table(Form):
    """Rows of cells under columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    id: str = ""
    kind: str = ""
    """Classes for its style: `points`, `verdict`, `measures`; `brief`: narrow screens leave out the
    last column, whose text is below."""
    caption: str = ""
    """Explanation (Markdown)."""
    row_notes: Mapping[int, str] = field(default_factory=dict)
    """Remarks on rows, by their number."""
    targets: Mapping[int, str] = field(default_factory=dict)
    """Places on the page that rows point to, by their number."""

    def records(self) -> list[dict[str, Any]]:
        """A mapping a row; an estimate has the columns NAME, NAME_low and NAME_high."""
        found = []
        for row in self.rows:
            record: dict[str, Any] = {}
            for column, cell in zip(self.columns, row, strict=True):
                record |= _flat(column.name, cell)
            found.append(record)
        return found

    def to_json(self) -> dict[str, Any]:
        """The table as a mapping, numbers unrounded."""
        rows = [[_json(cell) for cell in row] for row in self.rows]
        columns = [{"name": each.name, "unit": each.unit} for each in self.columns]
        return {"form": self.form, "title": self.title, "columns": columns, "rows": rows}

    def to_csv(self) -> str:
        """The table as CSV, numbers unrounded; the unit of a column is in its heading."""
        records = self.records()
        names = dict.fromkeys(name for record in records for name in record)
        return csv_text(names, records, {each.name: each.heading for each in self.columns})

    def to_latex(self) -> str:
        """The table as LaTeX for the package booktabs, value ± half of the interval."""
        sides = "".join("l" if each.label or each.prose else "r" for each in self.columns)
        lines = [f"\\begin{{tabular}}{{{sides}}}", r"\toprule"]
        lines.append(" & ".join(_escaped(each.heading) for each in self.columns) + r" \\")
        lines.append(r"\midrule")
        for row in self.rows:
            cells = zip(self.columns, row, strict=True)
            lines.append(" & ".join(_latex(column, cell) for column, cell in cells) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def to_markdown(self) -> str:
        """The table as Markdown."""
        sides = ("---" if each.label or each.prose else "---:" for each in self.columns)
        lines = [_line(each.heading for each in self.columns), _line(sides)]
        for number, row in enumerate(self.rows):
            cells = zip(self.columns, row, strict=True)
            texts = [column.told(cell).replace("|", "\\|") for column, cell in cells]
            if number in self.row_notes:
                texts[0] += f" ({self.row_notes[number]})"
            lines.append(_line(texts))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from aqmlab.report.document.html import fragment

        return fragment([self])


def _escaped(text: str) -> str:
    """Text as LaTeX sets it."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def _latex(column: Column, cell: Cell) -> str:
    if isinstance(cell, Compared):
        measured = _estimate(cell.measured)
        return measured if cell.reference is None else f"{measured} ({cell.reference:g})"
    return _estimate(cell) if isinstance(cell, Estimate) else _escaped(column.told(cell))


def _estimate(cell: Estimate) -> str:
    """`$12.3 \\pm 0.4$`: as many digits as the interval allows; unequal sides are separate."""
    if cell.low is None or cell.high is None or not cell.has_interval:
        return _escaped(cell.told()[0])
    places = digits(cell.value, cell.low, cell.high)
    up, down = cell.high - cell.value, cell.value - cell.low
    value = f"{cell.value:.{places}f}"
    if f"{up:.{places}f}" == f"{down:.{places}f}":
        return f"${value} \\pm {up:.{places}f}$"
    return f"${value}^{{+{up:.{places}f}}}_{{-{down:.{places}f}}}$"


def _line(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"


def _flat(name: str, cell: Cell) -> dict[str, Any]:
    told = _json(cell)
    if not isinstance(told, dict):
        return {name: told}
    return {name if key == "value" else f"{name}_{key}": value for key, value in told.items()}


def _json(cell: Cell) -> Any:
    if isinstance(cell, (Estimate, Compared)):
        return cell.to_json()
    if isinstance(cell, Verdict):
        return cell.word
    return None if is_none(cell) else cell


@dataclass(frozen=True)
class Tiles(Form):
    """A few large numbers with labels."""

    kept = ("tiles",)
    tiles: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Facts(Form):
    """Names with values."""

    kept = ("facts",)
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Note(Form):
    """What a reader has to know (Markdown), with a title and a remark or without."""

    kept = ("title", "text", "more")
    text: str
    title: str = ""
    more: str = ""
    warning: bool = True


@dataclass(frozen=True)
class Items(Form):
    """A list of texts, findings or verdicts."""

    kept = ("items",)
    items: tuple[Text | Finding | Verdict, ...]
    kind: str = ""
    """`lead`: first on a page; `claims`: numbered; `key`: a legend; `noted`."""


@dataclass(frozen=True)
class Code(Form):
    """A command as it is typed."""

    text: str


@dataclass(frozen=True)
class Markdown(Form):
    """A text with headings of its own; its first is left out."""

    text: str


@dataclass(frozen=True)
class Section(Form):
    """A part with a heading; `folded`, it is shown on demand."""

    kept = ("title", "blocks")
    title: str
    blocks: tuple[Block, ...]
    id: str = ""
    short: str = ""
    """Name in the list of contents at the top, if any."""
    folded: bool = False


Block = (
    Text | Verdict | Finding | Table | Figure | Tiles | Facts | Note | Items | Code | Markdown
    | Section
)  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A page."""

    title: str
    blocks: tuple[Block, ...]
    soft: str = ""
    """Below the title: where it is from."""
    head: tuple[Block, ...] = ()
    """Blocks above the list of contents."""

    @property
    def figures(self) -> list[Figure]:
        """All figures, in order."""
        return [each for each in walk(self.blocks) if isinstance(each, Figure)]

    @property
    def tables(self) -> list[Table]:
        """All tables, in order."""
        return [each for each in walk(self.blocks) if isinstance(each, Table)]

    def to_html(self) -> str:
        """A page that needs nothing else."""
        from aqmlab.report.document.html import page

        return page(self)

    def to_markdown(self) -> str:
        """The document as Markdown; figures are the files figures/ID.svg."""
        parts = [f"# {self.title}", self.soft, *_all_markdown([*self.head, *self.blocks], 2)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The document as a mapping, numbers unrounded."""
        blocks = [each.to_json() for each in (*self.head, *self.blocks)]
        return {"title": self.title, "blocks": blocks}

    def print(self, console: Console) -> None:
        """Prints the document on a terminal."""
        from aqmlab.report.document.terminal import show

        show(self, console)

    def _repr_html_(self) -> str:
        from aqmlab.report.document.html import fragment

        return fragment([Text(f"**{self.title}**", "lead"), *self.head, *self.blocks])


def _all_markdown(blocks: Sequence[Block], level: int) -> Iterator[str]:
    """Paragraphs of the blocks, with headings from this level on."""
    for block in blocks:
        yield from _markdown(block, level)


def _markdown(block: Block, level: int) -> Iterator[str]:
    match block:
        case Text() | Finding() | Markdown():
            yield block.text
        case Verdict():
            yield _judged(block)
        case Table():
            if block.title:
                yield f"{'#' * (level + 1)} {block.title}"
            yield block.to_markdown()
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
            yield "\n".join(f"{mark} {_judged(each)}" for each in block.items)
        case Code():
            yield indent(block.text, "    ")
        case Section():
            yield f"{'#' * level} {block.title}"
            yield from _all_markdown(block.blocks, level + 1)


def _judged(item: Text | Finding | Verdict) -> str:
    return f"{item.text} *{item.word}*".strip() if isinstance(item, Verdict) else item.text


def walk(blocks: Sequence[Block]) -> Iterator[Block]:
    """All blocks, also those in sections."""
    for each in blocks:
        yield each
        if isinstance(each, Section):
            yield from walk(each.blocks)


def notes(texts: Sequence[str], shown: int = 3) -> list[Block]:
    """What a reader of results has to know; the first few at once, the others on demand."""
    found: list[Block] = [Note(text) for text in texts]
    rest = found[shown:]
    folded = [Section(f"{len(rest)} more to know", tuple(rest), folded=True)] if rest else []
    return [*found[:shown], *folded]
