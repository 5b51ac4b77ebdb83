"""What a reproduction consists of: tables of cells, and remarks on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import comb, isfinite
from typing import Any

from aqmlab import stats
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.verdicts import UNPUBLISHED, Criterion, agreement
from aqmlab.stats import POSITIVE, Bounds, Interval

SAME = Criterion()
"""Within 10 %."""


@dataclass(frozen=True)
class Cell:
    """One measured number beside the one it is compared with."""

    row: str
    column: str
    published: float | None
    """The number of the table's reference: its paper, or another simulator."""
    measured: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of `measured`, None where there is none. A maximum has a low
    end only."""
    verdict: str
    """One of `aqmlab.reproduce.verdicts.VERDICTS`."""
    criterion: Criterion = SAME
    """What `agrees` means."""

    @staticmethod
    def judged(
        row: str,
        column: str,
        published: float | None,
        measured: float,
        interval: Interval | None,
        criterion: Criterion = SAME,
        verdict: str = "",
    ) -> Cell:
        """A cell with the verdict that its study found, else that of the criterion."""
        low = interval.low if interval else None
        high = interval.high if interval and isfinite(interval.high) else None
        word = verdict or criterion.verdict(published, interval)
        return Cell(row, column, published, measured, low, high, word, criterion)

    @staticmethod
    def mean(
        row: str,
        column: str,
        published: float | None,
        values: Floats,
        criterion: Criterion = SAME,
        bounds: Bounds = POSITIVE,
        verdict: str = "",
        band: tuple[float, float] | None = None,
    ) -> Cell:
        """A cell with the mean of values, one a replication. It has the verdict that its study
        found, or follows from the band in which the study expects the mean; otherwise the criterion
        decides."""
        mean, within = float(values.mean()), stats.interval(values, bounds=bounds)
        if band is not None:
            verdict = agreement(within, *band)
        return Cell.judged(row, column, published, mean, within, criterion, verdict)

    @property
    def difference(self) -> float | None:
        """Relative difference to the reference, None without one."""
        if not self.published:
            return None
        return self.measured / self.published - 1


@dataclass(frozen=True)
class CellTable:
    """A table of cells with one unit."""

    id: str
    name: str
    unit: str
    cells: tuple[Cell, ...]
    reference: str = "published"
    """What the column `published` of the cells holds: "published", or a simulator's name."""
    method: str = ""
    """How the intervals were made."""
    notes: dict[str, str] = field(default_factory=dict)
    """Remarks on rows."""

    @property
    def rows(self) -> list[str]:
        """The labels of the rows, in order."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        """The labels of the columns, in order."""
        return list(dict.fromkeys(cell.column for cell in self.cells))

    def cell(self, row: str, column: str) -> Cell | None:
        """The cell at `row` and `column`, if there is one."""
        found = (cell for cell in self.cells if (cell.row, cell.column) == (row, column))
        return next(found, None)

    @property
    def compared(self) -> bool:
        """Whether any cell has a reference."""
        return any(cell.verdict != UNPUBLISHED for cell in self.cells)

    @property
    def criteria(self) -> list[Criterion]:
        """By what the cells that have a reference were judged."""
        return list(
            dict.fromkeys(cell.criterion for cell in self.cells if cell.verdict != UNPUBLISHED)
        )

    @property
    def caption(self) -> str:
        """The margin of the cells, and how the intervals were made."""
        rules = "; ".join(each.told(self.unit) for each in self.criteria)
        told = (f"{rules[:1].upper()}{rules[1:]}.", f"Intervals: {self.method}.")
        return " ".join(text for text in told if len(text) > len("Intervals: ."))

    def to_json(self) -> dict[str, Any]:
        """{"name", "unit", "cells": [..]}, numbers unrounded."""
        keys = ("row", "column", "published", "measured", "low", "high", "verdict")
        cells = [{key: getattr(cell, key) for key in keys} for cell in self.cells]
        return {"name": self.name, "unit": self.unit, "cells": cells}


@dataclass(frozen=True)
class Cause:
    """Why some cells differ, found by experiment."""

    title: str
    text: str


@dataclass(frozen=True)
class Warning:
    """What the engine noted in some runs and a reader has to know."""

    id: str
    text: str
    where: str
    """Which of the points it concerns, in words."""
    runs: int


# Deviations from a reference that all have one sign are the mark of a bias, however small each is.
# A sign test asks how often as many of n independent deviations would fall on one side by chance.
# Cells of one table share arrivals, so the answer is a flag for the reader and not a verdict.

RARE = 0.01
"""Flagged below this probability: eight cells on one side are the fewest that can be."""


def same_signs(
    tables: Iterable[CellTable], own: Callable[[str], Sequence[str]] = lambda _: ()
) -> list[Cause]:
    """One cause that names the columns and rows whose deviations lean to one side, or the table
    if only all of its cells together do. `own` gives the rows of a table that are the reference's
    own settings (all, if none are named): others are shown beside them, and not counted."""
    found = [each for table in tables for each in _leaning(table, own(table.id))]
    if not found:
        return []
    text = (
        "These deviations from the reference lie on one side more often than chance would have "
        f"it (sign test, probability below {RARE:g} if the cells were independent): "
    )
    return [Cause("Deviations of one sign", f"{text}{'; '.join(found)}.")]


def _leaning(table: CellTable, own: Sequence[str]) -> Iterator[str]:
    kept = [cell for cell in table.cells if not own or cell.row in own]
    groups = [
        *((column, [cell for cell in kept if cell.column == column]) for column in table.columns),
        *((row, [cell for cell in kept if cell.row == row]) for row in table.rows),
    ]
    leaning = [f"{label}: {told}" for label, cells in groups if (told := _told(cells))]
    yield from (f"{table.name}, {each}" for each in leaning)
    if not leaning and (told := _told(kept)):
        yield f"{table.name}: {told}"


def _told(cells: Iterable[Cell]) -> str:
    """`9 of 10 below`; empty if chance would do that."""
    signs = [
        cell.measured > cell.published
        for cell in cells
        if cell.published is not None and cell.measured != cell.published
    ]
    above, total = sum(signs), len(signs)
    more = max(above, total - above)
    if chance(more, total) >= RARE:
        return ""
    return f"{more} of {total} {'above' if above == more else 'below'}"


def chance(more: int, total: int) -> float:
    """The probability that of `total` fair signs at least `more` agree, on either side."""
    return float(min(1.0, 2 * sum(comb(total, k) for k in range(more, total + 1)) / 2**total))
