"""How far reproductions agree with their papers, a line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table as Grid

from aqmlab.reproduce.verdicts import AGREES, CLOSE, FAILS, HOLDS, PARTLY

if TYPE_CHECKING:
    from rich.table import Table as Grid

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
    """Those that agree or are close."""
    compared: int
    """Numbers of another program on the same scenario."""
    matched: int
    """Those that agree or are close."""
    claims: int
    hold: int
    partly: int
    fail: int

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
        words = [claim.verdict for claim in reproduction.claims]
        return Summary(
            reproduction.name,
            reproduction.title,
            reproduction.runs,
            len(paper),
            _good(paper),
            len(others),
            _good(others),
            len(words),
            words.count(HOLDS),
            words.count(PARTLY),
            words.count(FAILS),
        )

    def row(self) -> tuple[str, ...]:
        """The cells of its line, under `HEAD`."""
        return (
            self.study,
            f"{self.simulations:,}",
            f"{self.reproduced} of {self.published}" if self.published else "–",
            f"{self.matched} of {self.compared}" if self.compared else "–",
            f"{self.hold} of {self.claims}" if self.claims else "–",
            str(self.partly),
            str(self.fail),
        )

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


HEAD = (
    "study",
    "simulations",
    "published numbers met",
    "other programs' met",
    "statements that hold",
    "in part",
    "not",
)


def grid(summaries: Iterable[Summary]) -> Grid:
    """The lines as a table for the terminal."""
    table = Grid(title="Published studies, run again", title_justify="left", title_style="bold")
    for place, name in enumerate(HEAD):
        table.add_column(name, justify="right" if place else "left")
    for each in summaries:
        table.add_row(*each.row())
    return table


def _good(cells: Iterable[Cell]) -> int:
    return sum(cell.verdict in (AGREES, CLOSE) for cell in cells)
