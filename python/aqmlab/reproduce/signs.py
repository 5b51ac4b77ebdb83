"""Deviations from a reference that all have one sign: the mark of a bias, however small each is.

A sign test asks how often as many of n independent deviations would fall on one side by chance.
Cells of one table share arrivals, so the answer is a flag for the reader and not a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import comb

from aqmlab.reproduce.model import Cause, Cell, CellTable

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
