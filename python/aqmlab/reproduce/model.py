"""What a reproduction consists of: tables of cells, and remarks on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from aqmlab import stats
from aqmlab.campaign import mean_interval
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import count
from aqmlab.reproduce.verdicts import UNPUBLISHED, Criterion, agreement
from aqmlab.stats import POSITIVE, Bounds, Interval

SAME = Criterion()
"""Within 10 %."""


Value = tuple[float, Interval | None]
"""A quantity of all replications together."""


class Replicates(NamedTuple):
    """A quantity with one value a replication."""

    values: Floats
    bounds: Bounds = POSITIVE
    """The least and the largest value that it can have."""


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
    why: str = ""
    """Why there is no interval, although the replications are enough for one. Then the verdict is
    by the interval that statements have, of the spread that the replications show."""

    @staticmethod
    def judged(
        row: str,
        column: str,
        published: float | None,
        measured: float,
        interval: Interval | None,
        criterion: Criterion = SAME,
        verdict: str = "",
        why: str = "",
    ) -> Cell:
        """A cell with the verdict that its study found, else that of the criterion."""
        low = interval.low if interval else None
        high = interval.high if interval and isfinite(interval.high) else None
        word = verdict or criterion.verdict(published, interval)
        return Cell(row, column, published, measured, low, high, word, criterion, why)

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
        mean, found = float(values.mean()), stats.estimate(values, bounds=bounds)
        why = found.why if found.count >= stats.FEWEST else ""
        judged = mean_interval(values) if why else found.interval
        if band is not None:
            verdict = agreement(judged, *band)
        verdict = verdict or criterion.verdict(published, judged)
        return Cell.judged(row, column, published, mean, found.interval, criterion, verdict, why)

    @staticmethod
    def of(
        row: str,
        column: str,
        published: float | None,
        found: Value | Replicates,
        criterion: Criterion = SAME,
    ) -> Cell:
        """A cell with what the metric of a table found."""
        if isinstance(found, Replicates):
            return Cell.mean(row, column, published, found.values, criterion, found.bounds)
        return Cell.judged(row, column, published, *found, criterion)

    @property
    def difference(self) -> float | None:
        """Relative difference to the reference, None without one."""
        if not self.published:
            return None
        return (self.measured - self.published) / abs(self.published)


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
        """The margin of the cells, how the intervals were made, and why cells have none."""
        rules = "; ".join(each.told(self.unit) for each in self.criteria)
        counts = Counter(each.why for each in self.cells if each.why)
        why = "; ".join(f"{text} ({count(many, 'cell')})" for text, many in counts.items())
        told = (
            f"{rules[:1].upper()}{rules[1:]}.",
            f"Intervals: {self.method}.",
            f"No interval: {why}." if why else "",
        )
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
