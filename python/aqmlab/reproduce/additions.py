"""Labels beside the paper's: `aqmlab reproduce kuhn2014 --with queue=fq_codel`.

An addition is one more label of an axis. Its cells are those that the study makes where the
results of the addition take the place of one of the paper's labels: rows and columns that name the
label, with numbers that differ. So every table has them, also those of a study's own code. Of the
labels that could be replaced the one with most published numbers is taken, then with most cells;
of equals the last, as baselines come first. Statements and figures stay the paper's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aqmlab._core import InputError, parse_queue
from aqmlab.errors import input_error, unknown
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.verdicts import UNPUBLISHED
from aqmlab.scenario.settings import parse_settings
from aqmlab.study.sweep import label_of

if TYPE_CHECKING:
    from aqmlab.reproduce.measure import Measurements

MARK = " (not in the paper)"
SLOTS = ("queue", "congestion_control")
"""Last parts of the keys that an addition fills."""


@dataclass(frozen=True)
class Addition:
    """A label that the paper does not have."""

    axis: str
    value: Any

    @property
    def label(self) -> str:
        """Label on the axis."""
        return label_of(self.value)

    def entry(self, axis: Mapping[str, Any]) -> Any:
        """Entry of an axis of a study file: where the axis has settings, those of the first entry,
        with the value in the keys of its queue or control; a limit is kept.

        Raises `InputError` if it is not clear which key the value fills.
        """
        if axis.get("key"):
            return self.value
        own: Mapping[str, Any] = axis["values"][0]["set"]
        roots = [key.removesuffix(".discipline") for key in own]
        slots = [root for root in roots if root.rpartition(".")[2] in SLOTS]
        if not slots:
            problem = f"the axis sets {', '.join(own)}: no key of a queue or control"
            raise input_error(problem, key="beside", given=f"{self.axis}={self.label}")
        kept = {
            k: v for k, v in own.items() if not f"{k}.".startswith(tuple(f"{s}." for s in slots))
        }
        filled: dict[str, Any] = {}
        for slot in slots:
            if slot in own:
                filled[slot] = _limited(self.value, own[slot])
            elif isinstance(self.value, Mapping):
                filled |= {f"{slot}.{key}": value for key, value in self.value.items()}
            else:
                filled[f"{slot}.discipline"] = self.value
        return {"label": self.label, "set": kept | filled}


def _limited(value: Any, own: Any) -> Any:
    """The queue with the limit of the paper's, if it says none and can have one."""
    limit = own.get("limit") if isinstance(own, Mapping) else None
    if limit is None:
        return value
    try:
        able = "limit" in parse_queue(value)
    except InputError:
        return value
    if isinstance(value, Mapping):
        return {"limit": limit, **value} if able else value
    return f"{value} limit {limit}" if able and "limit" not in value else value


def parse(given: Sequence[str], axes: Mapping[str, Sequence[str]]) -> list[Addition]:
    """Additions from `AXIS=VALUE`. Raises `InputError` for an axis that the study lacks, or a label
    that it has."""
    found = []
    for text in given:
        for axis, value in parse_settings([text], "beside", "a row such as queue=pie").items():
            addition = Addition(axis, value)
            if axis not in axes:
                raise unknown("axis", axis, axes, key="beside")
            if addition.label in axes[axis]:
                raise input_error("the study has this label", key="beside", given=text)
            found.append(addition)
    return found


def with_additions(
    tables: Callable[[Measurements], Sequence[CellTable]],
    measured: Measurements,
    additions: Sequence[Addition],
) -> list[CellTable]:
    """The tables with the cells of the additions, also of additions to several axes together."""
    found = list(tables(measured))
    by_axis: dict[str, list[dict[str, tuple[str, str]]]] = {}
    for each in additions:
        template = _template(tables, measured, found, each)
        if template is not None:
            chosen = {each.axis: (template, each.label)}
            by_axis.setdefault(each.axis, [{}]).append(chosen)
    more: dict[str, list[Cell]] = {}
    for several in itertools.product(*by_axis.values()):
        together = {axis: pair for each in several for axis, pair in each.items()}
        for ident, cell in _cells(tables, measured, found, together):
            cell = replace(cell, published=None, verdict=UNPUBLISHED)
            more.setdefault(ident, []).append(cell)
    return [replace(each, cells=(*each.cells, *more.get(each.id, ()))) for each in found]


def _template(
    tables: Callable[[Measurements], Sequence[CellTable]],
    measured: Measurements,
    found: Sequence[CellTable],
    addition: Addition,
) -> str | None:
    """The label whose place the addition takes; None if no table names any."""
    axis = addition.axis
    parts = measured.parts.values()
    labels = dict.fromkeys(label for part in parts for label in part.axes.get(axis, ()))
    counts = {}
    for label in reversed(labels):
        place = {axis: (label, addition.label)}
        each = [cell for _, cell in _cells(tables, measured, found, place)]
        if each:
            counts[label] = sum(cell.published is not None for cell in each), len(each)
    return max(counts, key=lambda label: counts[label], default=None)


def _cells(
    tables: Callable[[Measurements], Sequence[CellTable]],
    measured: Measurements,
    found: Sequence[CellTable],
    together: Mapping[str, tuple[str, str]],
) -> Iterator[tuple[str, Cell]]:
    """Table and cell of everything that changes where additions take the places of labels."""
    if not together:
        return
    world = measured
    for axis, (label, other) in together.items():
        world = world.relabelled(axis, {label: other})
    own = {(each.id, cell.row, cell.column): cell for each in found for cell in each.cells}
    for table in tables(world):
        if table.reference != "published":
            continue
        for cell in table.cells:
            before = own.get((table.id, cell.row, cell.column))
            moved = before is None or before.measured != cell.measured
            names = [cell.row, cell.column]
            for label, other in together.values():
                if not (label in names or (moved and any(label in name for name in names))):
                    break
                names = [
                    f"{name.replace(label, other)}{MARK}" if label in name else name
                    for name in names
                ]
            else:
                row, column = names
                yield table.id, replace(cell, row=row, column=column)
