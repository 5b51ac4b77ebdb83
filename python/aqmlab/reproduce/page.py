"""The document of a reproduction: every published number beside the measured one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab.campaign import FAILS, HOLDS
from aqmlab.campaign.rule import VERDICTS as STATEMENTS
from aqmlab.numbers import count
from aqmlab.report import document as paper
from aqmlab.report.document import (
    BAD,
    GOOD,
    NEAR,
    PLAIN,
    Block,
    Column,
    Compared,
    Document,
    Estimate,
    Facts,
    Items,
    Markdown,
    Note,
    Section,
    Text,
    Tiles,
    Verdict,
)
from aqmlab.report.made import made
from aqmlab.report.run_page import words
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.verdicts import AGREES, DIFFERS, UNDECIDED, VERDICTS
from aqmlab.results import StudyResult

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction

TONES = {AGREES: GOOD, DIFFERS: BAD, HOLDS: GOOD, UNDECIDED: NEAR, FAILS: BAD}
PUBLISHED = "published"
OWN = "Own comparison: "


def base_rate(reproduction: Reproduction) -> str:
    """Numbers of statements that hold, and that would if all queues were the same; of a study
    with comparisons of the project's own alone, only how many hold."""
    words = [claim.verdict for claim in reproduction.claims if not claim.own]
    if not words:
        own = [claim.verdict for claim in reproduction.claims]
        return f"{own.count(HOLDS)} of {len(own)} comparisons hold; all are the project's own."
    if reproduction.held_if_alike is None:
        return ""
    return (
        f"{words.count(HOLDS)} of {len(words)} statements hold by our limits; up to "
        f"{reproduction.held_if_alike} would hold if all queues were the same (the results of one "
        "of them stand for all)."
    )


def document(reproduction: Reproduction) -> Document:
    """The whole page."""
    part = f" (only {', '.join(reproduction.only)})" if reproduction.only else ""
    lead = Text(
        f"The study was rerun: {count(reproduction.runs, 'simulation')}{part}, "
        f"{reproduction.extent}. This page shows every published number beside the measured one, "
        "the paper's statements checked one by one, and redrawn figures.",
        "lead",
    )
    return Document(
        reproduction.title,
        tuple(_sections(reproduction)),
        soft=reproduction.published.form.citation,
        head=(lead, Tiles(tuple(_tiles(reproduction)))),
    )


def _sections(of: Reproduction) -> Iterator[Section]:
    published = [each for each in of.tables if each.reference == PUBLISHED]
    others = [each for each in of.tables if each.reference != PUBLISHED]
    if of.warnings:
        told = [
            Note(each.text, more=f"{each.id}: {each.where}; {each.runs:,} runs")
            for each in of.warnings
        ]
        yield _part("What to know first", "warnings", told)
    alone = [Text(of.without_intervals, "soft")] if of.without_intervals else []
    tables = [*_legend(PUBLISHED), *alone, *map(table, published)]
    yield _part("Published and measured", "tables", tables)
    if of.causes:
        causes = [Note(each.text, each.title, warning=False) for each in of.causes]
        yield _part("Why some cells differ", "causes", causes)
    if of.claims:
        claims = [
            Verdict(each.verdict, TONES[each.verdict], each.evidence,
                    f"{OWN if each.own else ''}**{each.text}**", f"claim-{each.id}")
            for each in of.claims
        ]  # fmt: skip
        words = [Verdict(each, TONES[each], text=text) for each, text in STATEMENTS.items()]
        counted: list[Block] = [Text(each, "soft") for each in (base_rate(of),) if each]
        checked = [*counted, Items(tuple(words), "key"), Items(tuple(claims), "claims")]
        yield _part("The paper's statements, checked", "claims", checked, "Statements")
    if of.contradictions:
        told = [Note(each.text, each.title, warning=False) for each in of.contradictions]
        title = "Where the paper contradicts itself"
        yield _part(title, "contradictions", told, "Contradictions")
    if of.figures:
        how = Text(
            "Click on a legend entry to highlight that queue; point at a bar or line "
            "to see its values.",
            "soft",
        )
        yield _part("Figures", "figures", [how, *of.figures])
    if others:
        yield _beside(others)
    yield _part("How this was made", "how", _how(of))


def _part(title: str, ident: str, blocks: Iterable[Block], short: str = "") -> Section:
    return Section(title, tuple(blocks), ident, short or title)


def _beside(tables: list[CellTable]) -> Section:
    names = ", ".join(sorted({each.reference for each in tables}))
    why = Text(
        "The same scenario in another program. A published number can be off because the paper "
        "does not say everything; the other program leaves less unsaid, so these cells test "
        "aqmlab's engine."
    )
    blocks = [why, *_legend(names), *map(table, tables)]
    return _part(f"Beside {names}", "simulators", blocks, "Beside another simulator")


def _tiles(of: Reproduction) -> Iterator[tuple[str, str]]:
    compared = [each for each in of.tables if each.compared and each.reference == PUBLISHED]
    places = [each.name.partition(":")[0] for each in compared]
    for one, place in zip(compared, places, strict=True):
        rows = of.published.main_rows(one.id)
        own = [
            cell for cell in one.cells if (cell.row in rows if rows else cell.published is not None)
        ]
        name = place if places.count(place) == 1 else one.name
        yield _agreement(own, f"{name}, as printed")
    theirs = [c for each in of.tables if each.reference != PUBLISHED for c in each.cells]
    if theirs:
        name = next(each.reference for each in of.tables if each.reference != PUBLISHED)
        yield _agreement(theirs, f"{name}, same scenario")
    for label, is_own in (("statements hold", False), ("own comparisons hold", True)):
        words = [claim.verdict for claim in of.claims if claim.own == is_own]
        if words:
            yield f"{words.count(HOLDS)} of {len(words)}", f"{label}{_open(words)}"


def _agreement(cells: Iterable[Cell], of: str) -> tuple[str, str]:
    words = [cell.verdict for cell in cells]
    return f"{words.count(AGREES)} of {len(words)}", f"cells agree{_open(words)}: {of}"


def _open(words: Sequence[str]) -> str:
    return f", {words.count(UNDECIDED)} not decided" if UNDECIDED in words else ""


def _legend(reference: str) -> Iterator[Block]:
    yield Text(
        f"In each cell: **measured**, then {reference}; below, the 95 % interval of the measured "
        "value. Where none keeps that level, the verdict is by the 99 % interval of statements.",
        "soft",
    )
    words = (AGREES, UNDECIDED, DIFFERS)
    yield Items(tuple(Verdict(each, TONES[each], text=VERDICTS[each]) for each in words), "key")


def table(of: CellTable) -> paper.Table:
    """A table of cells as a table of a document."""
    rows = []
    for row in of.rows:
        rows.append((row, *(compared(of.cell(row, column)) for column in of.columns)))
    notes = {place: of.notes[row] for place, row in enumerate(of.rows) if row in of.notes}
    columns = (Column("", label=True), *map(Column, of.columns))
    return paper.Table(
        columns,
        tuple(rows),
        title=f"{of.name} ({of.unit})",
        id=of.id,
        caption=of.caption,
        row_notes=notes,
    )


def compared(cell: Cell | None) -> Compared | str:
    """A cell with its reference and verdict; nothing where there is none."""
    if cell is None:
        return ""
    verdict = Verdict(cell.verdict, TONES.get(cell.verdict, PLAIN), VERDICTS[cell.verdict])
    return Compared(Estimate(cell.measured, cell.low, cell.high), cell.published, verdict)


def _how(of: Reproduction) -> Iterator[Block]:
    info = of.result.info
    yield Text("The same command gives identical results on any machine, with any number of cores:")
    yield from made(of.command, of.result.folder, info)
    yield Facts(
        (
            ("Program", f"aqmlab {aqmlab.__version__}"),
            ("Simulations", f"{of.runs:,}: {of.extent}"),
            (
                "Seed",
                f"{info.seed}; replication r draws the same random numbers at every point",
            ),
            *(fact for result in of.results.values() for fact in _study(result)),
        )
    )
    if of.published.readme:
        yield Markdown(of.published.readme)


def _study(result: StudyResult) -> Iterable[tuple[str, str]]:
    """What a part consists of."""
    yield f"Digest of “{result.info.name}”", result.info.digest
    for name, labels in result.info.axes:
        yield f"Axis “{name}”", ", ".join(labels)
    yield from _scenario(result.scenarios[0])


def _scenario(scenario: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Links and transport of the first point, in words."""
    for name, link in scenario["links"].items():
        queue = link["queue"]
        label = queue if isinstance(queue, str) else queue.get("discipline", "")
        yield f"Link “{name}”", f"{words(link['rate'])}, {words(link['delay'])}, {label}"
    for name, flow in scenario["flows"].items():
        yield f"Flows “{name}”", words(flow.get("transport", {}))
