"""`python -m tools.study_pages`: the pages docs/studies/*.md, with date and version."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

import aqmlab
from aqmlab.cli.common import EXAMPLES, progress_bar, reported
from aqmlab.cli.options import THREADS
from aqmlab.reproduce import Reproduction, names, reproduce
from aqmlab.reproduce.catalogue import place
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.page import OWN, base_rate
from aqmlab.reproduce.summary import HEAD, Summary
from aqmlab.reproduce.verdicts import UNPUBLISHED

EXAMPLE = EXAMPLES.format(
    "python -m tools.study_pages docs\n\npython -m tools.study_pages docs kuhn2014 ns3 --threads 1"
)
RESULTS = Path("results/docs")
SOURCE = "../../studies/aqmlab_studies"
LINE = "<!-- "
"""Begins the line of a page that holds its row of the overview."""


@reported
def study_pages(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Folder of the documents; the pages go to FOLDER/studies.",
            exists=True, file_okay=False,
        ),
    ],
    wanted: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Studies of `aqmlab list`; default: all."),
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", metavar="FOLDER", help="Folder for the simulations.")
    ] = RESULTS,
    threads: int | None = THREADS,
) -> None:  # fmt: skip
    """Run the published studies and write the page of each.

    Each page is written as soon as its study is complete. After an interruption, the same
    command continues with the simulations that are missing.
    """
    for name in wanted or ():
        place(name)
    for name in wanted or names():
        _tell(f"{name}: simulating")
        with progress_bar(name, shown=True) as progress:
            made = reproduce(
                name, out=results / name, threads=threads, progress=progress, told=_tell
            )
        write(made, folder / "studies")
        _tell(f"{name}: {folder / 'studies' / name}.md, {made.extent}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def write(reproduction: Reproduction, folder: Path) -> None:
    """Writes the page and the pictures of a study into `folder`, and the overview of all."""
    name = reproduction.name
    pictures = folder / name
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    for figure in reproduction.figures:
        figure.save(pictures / f"{figure.id}.svg")
    text = "\n".join(page(reproduction))
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text("\n".join(_overview(folder)), encoding="utf-8")


def page(reproduction: Reproduction) -> Iterator[str]:
    """The lines of the page of a reproduction."""
    published = [each for each in reproduction.tables if each.reference == "published"]
    others = [each for each in reproduction.tables if each.reference != "published"]
    yield f"# {reproduction.title}"
    yield from ("", f"{LINE}{_line(Summary.of(reproduction).row())} -->", "")
    yield f"{reproduction.published.form.citation}."
    yield ""
    yield f"Made on {_today()} with aqmlab {aqmlab.__version__}: {reproduction.runs:,} simulations"
    yield f"({reproduction.extent})."
    yield f"Set-up and reasons: [the study's own page]({SOURCE}/{reproduction.name}/README.md);"
    yield "the verdicts: [reproductions](../reproductions.md#verdicts)."
    yield from ("", f"    {reproduction.command}", "")
    yield from _remarks(
        "What to know first", ((each.where, each.text) for each in reproduction.warnings)
    )
    if published:
        yield "## Published and measured\n"
        yield "In each cell: measured, its 95 % interval, **published**, the verdict.\n"
        for table in published:
            yield from _table(table)
    yield from _remarks(
        "Why cells differ", ((each.title, each.text) for each in reproduction.causes)
    )
    if reproduction.claims:
        yield "## Statements\n"
        if counted := base_rate(reproduction):
            yield f"{counted}\n"
        for number, claim in enumerate(reproduction.claims, start=1):
            own = OWN if claim.own else ""
            yield f"{number}. {own}**{claim.text}** *{claim.verdict}*. {claim.evidence}"
        yield ""
    found = ((each.title, each.text) for each in reproduction.contradictions)
    yield from _remarks("Where the paper contradicts itself", found)
    if others:
        yield "## Beside other programs\n"
        for table in others:
            yield from _table(table)
    if reproduction.figures:
        yield "## Figures\n"
    for figure in reproduction.figures:
        yield f"### {figure.title}\n"
        yield f"![{figure.message}]({reproduction.name}/{figure.id}.svg)\n"
        if figure.caption:
            yield f"{figure.caption}\n"


def _table(table: CellTable) -> Iterator[str]:
    reference = "" if table.reference == "published" else f", reference: {table.reference}"
    yield f"### {table.name} ({table.unit}){reference}\n"
    yield _line(("", *table.columns))
    yield _line(("---", *("---:" for _ in table.columns)))
    for row in table.rows:
        note = f" ({table.notes[row]})" if row in table.notes else ""
        yield _line((row + note, *(_cell(table.cell(row, column)) for column in table.columns)))
    yield ""
    if table.caption:
        yield f"{table.caption}\n"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = f"{cell.measured:.3f}"
    if cell.low is not None:
        ends = (
            f"{cell.low:.3f}–{cell.high:.3f}" if cell.high is not None else f"above {cell.low:.3f}"
        )
        text += f" ({ends})"
    if cell.verdict == UNPUBLISHED:
        return text
    return f"{text} **{cell.published:.3f}** {cell.verdict}"


def _remarks(head: str, remarks: Iterable[tuple[str, str]]) -> Iterator[str]:
    told = list(remarks)
    if told:
        yield f"## {head}\n"
    for title_, text in told:
        yield f"**{title_}.** {text}\n"


def _overview(folder: Path) -> Iterator[str]:
    yield "# Results of the published studies\n"
    yield "Made by `make studies`; `aqmlab reproduce all` gives the same table on the terminal, and"
    yield "`aqmlab reproduce NAME` a report with interactive figures. A number of the paper or of"
    yield "another program is *met* if all of its interval [agrees](../reproductions.md#verdicts);"
    yield "settings beside the paper's own are not counted.\n"
    yield _line(HEAD)
    yield _line(("---", *("---:" for _ in HEAD[1:])))
    present = [name for name in names() if (folder / f"{name}.md").exists()]
    for name in present:
        lines = (folder / f"{name}.md").read_text(encoding="utf-8").splitlines()
        own = next(line for line in lines if line.startswith(LINE))
        yield own.removeprefix(LINE).removesuffix(" -->").replace(name, f"[{name}]({name}.md)", 1)
    yield ""
    for name in present:
        yield f"- **{name}**: {place(name).title}"
    yield ""


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.command(epilog=EXAMPLE)(study_pages)
    app(prog_name="python -m tools.study_pages")
