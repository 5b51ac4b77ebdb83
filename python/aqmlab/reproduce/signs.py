"""Deviations from a reference that all have one sign: the mark of a bias, however small each is.

A sign test asks how often as many of n independent deviations would fall on one side by chance.
Cells of one table share arrivals, so the answer is a flag for the reader and not a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import comb

from aqmlab.reproduce.model import Cause, Cell, Table

FEWEST = 6
"""Fewer cells than this cannot tell: six on one side come by chance once in 32 times."""
RARE = 0.01
"""Flagged below this probability."""


def same_signs(tables: Iterable[Table]) -> list[Cause]:
    """One cause that names the tables and columns whose deviations lean to one side."""
    found = [each for table in tables for each in _leaning(table)]
    if not found:
        return []
    text = (
        "These deviations from the reference lie on one side more often than chance would have "
        f"it (sign test, probability below {RARE:g} if the cells were independent): "
    )
    return [Cause("Deviations of one sign", f"{text}{'; '.join(found)}.")]


def _leaning(table: Table) -> Iterator[str]:
    for column in table.columns:
        cells = [cell for cell in table.cells if cell.column == column]
        if told := _told(cells):
            yield f"{table.name}, {column}: {told}"


def _told(cells: Iterable[Cell]) -> str:
    """`9 of 10 below`; empty if chance would do that."""
    signs = [
        cell.measured > cell.published
        for cell in cells
        if cell.published is not None and cell.measured != cell.published
    ]
    above, total = sum(signs), len(signs)
    more = max(above, total - above)
    if total < FEWEST or chance(more, total) >= RARE:
        return ""
    return f"{more} of {total} {'above' if above == more else 'below'}"


def chance(more: int, total: int) -> float:
    """The probability that of `total` fair signs at least `more` agree, on either side."""
    return float(min(1.0, 2 * sum(comb(total, k) for k in range(more, total + 1)) / 2**total))
