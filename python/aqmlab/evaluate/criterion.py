"""What a criterion of RFC 9743 is here: scenarios for a control, and readings of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from aqmlab.evaluate.scene import Control, Table
from aqmlab.metrics.samples import Floats
from aqmlab.results import StudyResult

GROUPS = {
    "alone": "The control alone",
    "mixed": "Mixed with other controls and traffic",
    "general": "General use",
    "special": "Special paths and situations",
}


@dataclass(frozen=True)
class Reading:
    """One measure of one case, a value a replication."""

    case: str
    measure: str
    unit: str
    less: bool | None
    """Whether less is better; None if neither is."""
    values: Floats
    grain: float
    """The difference below which values are indistinguishable in the overview, in its unit."""


Cases = Callable[[Control], Mapping[str, Table]]
Read = Callable[["Results"], list[Reading]]


@dataclass(frozen=True)
class Criterion:
    """One criterion: what it asks, what is run for a control, and what is read from it."""

    id: str
    title: str
    group: str
    level: str
    """MUST, SHOULD, considered, ought: as the RFC says it."""
    question: str
    cases: Cases
    """The scenarios by name. Equal scenarios are run once."""
    read: Read


class Results:
    """The results of the cases of one criterion with one control."""

    def __init__(self, tables: Tables, points: Mapping[str, int]) -> None:
        self._tables = tables
        self._points = points

    def __iter__(self) -> Any:
        return iter(self._points)

    def __getitem__(self, case: str) -> At:
        return At(self._tables, self._points[case])


class Tables:
    """The tables of all runs, split by point when first asked for."""

    def __init__(self, result: StudyResult) -> None:
        self.result = result
        self.replications = result.info.replications
        self._parts: dict[str, dict[int, pl.DataFrame]] = {}

    def of(self, name: str, point: int) -> pl.DataFrame:
        """The rows of a point, with a column `replication`."""
        if name not in self._parts:
            frame = self.result.raw(name).with_columns(
                point=pl.col("run") // self.replications,
                replication=pl.col("run") % self.replications,
            )
            self._parts[name] = {
                int(key[0]): part for key, part in frame.partition_by("point", as_dict=True).items()
            }
        return self._parts[name].get(point, self.result.raw(name).clear())

    @cached_property
    def scenarios(self) -> Sequence[Mapping[str, Any]]:
        """The scenario of each point with every default."""
        return self.result.scenarios


class At:
    """The results of one case: arrays with a value a replication."""

    def __init__(self, tables: Tables, point: int) -> None:
        self._tables = tables
        self._point = point

    @property
    def lasted(self) -> float:
        """Seconds from the end of the warm-up to the end of the run."""
        run = self._tables.of("runs", self._point).row(0, named=True)
        return float(run["end_s"] - run["warmup_s"])

    def _array(self, frame: pl.DataFrame, value: pl.Expr) -> Floats:
        values = np.zeros(self._tables.replications)
        rows = frame.group_by("replication").agg(value.alias("value"))
        values[rows["replication"].to_numpy()] = rows["value"].fill_null(0.0).to_numpy()
        return values

    def _rows(self, name: str, **where: str) -> pl.DataFrame:
        frame = self._tables.of(name, self._point)
        for column, wanted in where.items():
            if column in frame.columns:
                frame = frame.filter(pl.col(column) == wanted)
        return frame

    def link(self, column: str, link: str = "down") -> Floats:
        """A column of the table `links`."""
        return self._array(self._rows("links", link=link), pl.col(column).cast(float).sum())

    def goodput(self, group: str) -> Floats:
        """Goodput of a group along its path, bit/s, after the warm-up."""
        rows = self._rows("traffic", group=group, direction="forward")
        return self._array(rows, 8 * pl.col("delivered_bytes").cast(float).sum() / self.lasted)

    def loss(self, group: str) -> Floats:
        """The share of a group's packets along its path that queues dropped, of those that were
        dropped, lost or arrived after the warm-up."""
        rows = self._rows("traffic", group=group, direction="forward")
        ended = pl.sum_horizontal(pl.col("arrived", "dropped", "lost").cast(float).sum())
        return self._array(rows, pl.col("dropped").cast(float).sum() / ended.clip(1.0))

    def flow(self, group: str, column: str) -> Floats:
        """A column of the table `flows`, summed over the group."""
        return self._array(self._rows("flows", group=group), pl.col(column).cast(float).sum())

    def jain(self, group: str) -> Floats:
        """Jain's index of the goodputs of a group's flows."""
        total, squares = pl.col("goodput_bps").sum(), (pl.col("goodput_bps") ** 2).sum()
        index = total**2 / (squares * pl.len()).clip(1e-9)
        return self._array(self._rows("flows", group=group), index)

    def time(self, group: str, quantity: str, column: str) -> Floats:
        """A column of the table `times`, seconds; of two directions that of the worse."""
        rows = self._rows("times", group=group, quantity=quantity)
        return self._array(rows, pl.col(column).first())

    def score(self, group: str, quantity: str) -> Floats:
        """A value of the table `scores`; of two directions that of the worse."""
        rows = self._rows("scores", group=group, quantity=quantity)
        return self._array(rows, pl.col("value").first())

    def samples(self, quantity: str, subject: str) -> list[tuple[Floats, Floats]]:
        """Times and values of a sampled quantity, for each replication."""
        rows = self._rows("series", quantity=quantity, subject=subject).sort("time_s")
        parts = rows.partition_by("replication", as_dict=True)
        found = []
        for replication in range(self._tables.replications):
            part = parts.get((replication,), rows.clear())
            found.append((part["time_s"].to_numpy(), part["value"].to_numpy()))
        return found

    def between(self, quantity: str, subject: str, begin: float, end: float) -> Floats:
        """The mean of a sampled quantity from `begin` to `end` seconds."""
        means = []
        for times, values in self.samples(quantity, subject):
            inside = values[(times > begin) & (times <= end)]
            means.append(float(inside.mean()) if inside.size else 0.0)
        return np.array(means)
