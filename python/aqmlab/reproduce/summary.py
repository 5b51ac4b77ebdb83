"""How far reproductions agree with their papers, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from aqmlab.campaign import FAILS, HOLDS
from aqmlab.numbers import count
from aqmlab.report.document import Column, Table
from aqmlab.reproduce.verdicts import AGREES, UNDECIDED

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction
    from aqmlab.reproduce.model import Cell


@dataclass(frozen=True)
class Summary:
    """The verdicts of a reproduction, counted."""

    study: str
    title: str
    simulations: int
    published: int
    """Published numbers; rows that are other settings beside the paper's do not count."""
    reproduced: int
    """Those that agree."""
    undecided: int
    """Those whose interval reaches across the margin, or that have none."""
    compared: int
    """Numbers of another program on the same scenario."""
    matched: int
    """Those that agree."""
    claims: int
    """The paper's statements."""
    hold: int
    fail: int
    held_if_alike: int | None
    """How many would hold if all queues were the same."""
    own: int
    """The project's own comparisons."""
    own_hold: int

    def problem(self, strict: bool) -> str:
        """Counts of numbers and statements that are not reproduced, in words; with
        `strict` also of undecided ones. Numbers of other programs and own comparisons are left
        out."""
        differ = self.published - self.reproduced - self.undecided
        open_ = self.claims - self.hold - self.fail
        differs = "differs" if differ == 1 else "differ"
        does = "does" if self.fail == 1 else "do"
        counts = {
            f"{count(differ, 'number')} of {self.published} {differs}": differ,
            f"{count(self.fail, 'statement')} of {self.claims} {does} not hold": self.fail,
            f"{count(self.undecided, 'number')} not decided": strict and self.undecided,
            f"{count(open_, 'statement')} not decided": strict and open_,
        }
        return ", ".join(text for text, number in counts.items() if number)

    @staticmethod
    def of(reproduction: Reproduction) -> Summary:
        """Counts the verdicts of `reproduction`."""
        paper: list[Cell] = []
        others: list[Cell] = []
        for table in reproduction.tables:
            cells = [cell for cell in table.cells if cell.published is not None]
            if table.reference != "published":
                others += cells
                continue
            own = reproduction.published.main_rows(table.id)
            paper += [cell for cell in cells if not own or cell.row in own]
        words = [claim.verdict for claim in reproduction.claims if not claim.own]
        own_words = [claim.verdict for claim in reproduction.claims if claim.own]
        return Summary(
            study=reproduction.name,
            title=reproduction.title,
            simulations=reproduction.runs,
            published=len(paper),
            reproduced=_count(paper, AGREES),
            undecided=_count(paper, UNDECIDED),
            compared=len(others),
            matched=_count(others, AGREES),
            claims=len(words),
            hold=words.count(HOLDS),
            fail=words.count(FAILS),
            held_if_alike=reproduction.held_if_alike,
            own=len(own_words),
            own_hold=own_words.count(HOLDS),
        )

    def row(self) -> tuple[str, ...]:
        """The cells of its line, under `HEAD`."""

        def of(number: int, total: int, alone: bool = False) -> str:
            return "–" if not total else str(number) if alone else f"{number} of {total}"

        return (
            self.study,
            f"{self.simulations:,}",
            of(self.reproduced, self.published),
            of(self.undecided, self.published, alone=True),
            of(self.matched, self.compared),
            of(self.hold, self.claims),
            of(self.fail, self.claims, alone=True),
            of(self.claims - self.hold - self.fail, self.claims, alone=True),
            "–" if self.held_if_alike is None else str(self.held_if_alike),
            of(self.own_hold, self.own),
        )

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


HEAD = (
    "study",
    "simulations",
    "published numbers met",
    "numbers not decided",
    "other programs' met",
    "statements that hold",
    "do not",
    "statements not decided",
    "would hold if all queues were the same",
    "own comparisons that hold",
)


def table(summaries: Iterable[Summary]) -> Table:
    """The lines as a table of a document."""
    columns = (Column(name, label=not place) for place, name in enumerate(HEAD))
    rows = tuple(each.row() for each in summaries)
    return Table(tuple(columns), rows, title="Published studies, run again")


def _count(cells: Iterable[Cell], word: str) -> int:
    return sum(cell.verdict == word for cell in cells)
