"""Numbers of the cases of a campaign: metrics of the registry, columns of tables, and samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl

from aqmlab.campaign.rule import picks
from aqmlab.metrics import Metric, find, windows
from aqmlab.metrics.pools import Pools
from aqmlab.metrics.samples import Floats, Whole
from aqmlab.metrics.shown import event_of
from aqmlab.metrics.values import runs_of
from aqmlab.results import StudyResult
from aqmlab.results.study import StudyInfo
from aqmlab.scenario.quantity import canonical

ALL = "all"
"""Subject of a pooled metric: the sum over all classes."""
CLASS = "class"
"""Subjects of a pack's metric that is computed from pooled runs: classes of flows."""


Found = TypeVar("Found")


class Kept(dict[Any, Any]):
    """Results by key, each computed once."""

    def once(self, key: object, compute: Callable[[], Found]) -> Found:
        """The result; computed when first asked for."""
        if key not in self:
            self[key] = compute()
        found: Found = self[key]
        return found


def grid_of(runs: pl.Series, values: pl.Series, info: StudyInfo) -> Floats:
    """Values of runs; shape (points, replications), NaN where there is none."""
    grid = np.full(info.points * info.replications, np.nan)
    grid[runs.to_numpy()] = values.to_numpy()
    return grid.reshape(-1, info.replications)


def along_paths(samples: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The samples of flows along their paths."""
    name = pl.format("{}.{}", pl.col("group").cast(pl.String), pl.col("index"))
    along = flows.filter(direction="forward").select("run", subject=name)
    return samples.join(along, on=["run", "subject"], how="semi", maintain_order="left")


class Readings:
    """Metrics and tables of all points, each read when first asked for."""

    def __init__(
        self,
        result: StudyResult,
        pool: Callable[[str], str] | None = None,
        metrics: Sequence[Metric] = (),
    ) -> None:
        self.result = result
        self.replications = result.info.replications
        self._runs = runs_of(result)
        self._forward = Pools(self._runs, pool or str).runs
        self._is_pooled = pool is not None
        self._own = {each.name: each for each in metrics}
        self.kept = Kept()

    def raw(self, name: str) -> pl.DataFrame:
        """A table of the engine."""
        return self.kept.once(name, lambda: self._runs.table(name))

    def samples(self, quantity: str) -> pl.DataFrame:
        """The samples of a quantity after the warm-up."""
        return self.kept.once(("samples", quantity), lambda: windows.samples(self._runs, quantity))

    def described(self, metric: str) -> Metric:
        """The metric of the registry or of the pack with this name."""
        return self._own.get(metric) or self.kept.once(("find", metric), lambda: find(metric)[0])

    def _grids_of(self, metric: str, *, forward: bool | None) -> dict[str, Floats]:
        """A metric of each subject; shape (points, replications), NaN where there is none."""
        found, is_own = self.described(metric), metric in self._own
        statistic = "" if is_own else find(metric)[1]
        if forward is None:
            forward = found.of == CLASS if is_own else self._is_pooled and "link" not in found.of
        rows = found.values(self._forward if forward else self._runs, statistic)
        grids = {
            str(subject): grid_of(part["run"], part["value"], self.result.info)
            for (subject,), part in rows.filter(pl.col("value").is_finite())
            .partition_by("subject", as_dict=True)
            .items()
        }
        if self._is_pooled and not is_own and grids:
            every = np.stack(list(grids.values()))
            total = np.where(np.isnan(every).all(axis=0), np.nan, np.nansum(every, axis=0))
            grids.setdefault(ALL, total)
        return grids

    def grid(self, metric: str, subject: str, *, forward: bool | None = None) -> Floats:
        """A metric of the registry or of the pack; shape (points, replications), NaN where there is
        none. With `forward` along the path of each group, without it in the worse direction;
        default: along the path if groups are pooled."""
        key = "grids", metric, forward
        grids = self.kept.once(key, lambda: self._grids_of(metric, forward=forward))
        shape = self.result.info.points, self.replications
        return grids.setdefault(subject, np.full(shape, np.nan))

    def event(self, metric: str, subject: str, point: int) -> float:
        """Change of a value of a metric by one rare event in runs of a point, in its unit."""

        def made() -> Callable[[int], float]:
            statistic = "" if metric in self._own else find(metric)[1]
            return event_of(self._runs, self.described(metric), statistic, subject)

        return self.kept.once(("event", metric, subject), made)(point)

    def means(self, metric: str, subject: str, point: int) -> Floats:
        """Mean in each draw of the replications (`picks`) over those that have a value; NaN without
        any."""

        def compute() -> Floats:
            drawn = self.grid(metric, subject)[point][picks(self.replications)]
            kept = np.isfinite(drawn)
            with np.errstate(invalid="ignore"):
                means: Floats = np.where(kept, drawn, 0.0).sum(axis=1) / kept.sum(axis=1)
            return means

        return self.kept.once(("means", metric, subject, point), compute)


class CaseResults:
    """Results of one case with one contender: arrays with a value a replication, NaN where there is
    none; counts and rates are 0 then."""

    def __init__(self, readings: Readings, point: int, picked: Whole | slice) -> None:
        self._readings = readings
        self.point = point
        self._first = point * readings.replications
        self._picked = picked

    def _own(self, rows: pl.DataFrame) -> pl.DataFrame:
        first = self._first
        rows = rows.filter(pl.col("run").is_between(first, first + self._readings.replications - 1))
        return rows.with_columns(replication=pl.col("run") - first)

    def _values(self, rows: pl.DataFrame, value: pl.Expr) -> Floats:
        values = np.full(self._readings.replications, np.nan)
        own = rows.group_by("replication").agg(value.alias("value"))
        values[own["replication"].to_numpy()] = own["value"].fill_null(np.nan).to_numpy()
        return values

    def _once(self, key: tuple[object, ...], compute: Callable[[], Floats]) -> Floats:
        """Values of the replications that were picked, from those of all, computed once."""
        values = self._readings.kept.once((self.point, *key), compute)
        values.flags.writeable = False  # all replications are a view of what is kept
        return values[self._picked]

    def each(self, rows: pl.DataFrame, value: pl.Expr) -> Floats:
        """An aggregate over the rows of each replication, such as those of `sampled`."""
        return self._values(rows, value)[self._picked]

    def total(self, table: str, column: str, **where: str) -> Floats:
        """The sum of a column of the engine's table over the rows with these labels."""

        def compute() -> Floats:
            rows = self._own(self._readings.raw(table).filter(**where))
            return np.nan_to_num(self._values(rows, pl.col(column).cast(float).sum()))

        return self._once((table, column, *where.items()), compute)

    def metric(self, name: str, subject: str, *, forward: bool = False) -> Floats:
        """A metric of the registry."""
        grid = self._readings.grid(name, subject, forward=forward)
        values: Floats = grid[self.point][self._picked]
        return values

    def time(self, name: str, subject: str) -> Floats:
        """A time of a group's packets or transfers, seconds; if none arrives it is as long as what
        is measured of the run."""
        values = self.metric(name, subject)
        return np.where(np.isfinite(values), values, self.lasted)

    @property
    def lasted(self) -> float:
        """Seconds from the end of the warm-up to the end of the run."""
        run = self._own(self._readings.raw("runs")).row(0, named=True)
        return float(run["end_s"] - run["warmup_s"])

    @property
    def rate(self) -> float:
        """Constant rate of the bottleneck, bit/s."""
        scenario = self._readings.result.scenarios[self.point]
        return canonical(scenario["links"]["down"]["rate"])

    @property
    def waiting(self) -> Floats:
        """95th percentile of the time in the bottleneck's queue, seconds."""
        return self.metric("sojourn_p95", "down")

    def goodput(self, group: str) -> Floats:
        """Goodput of a group along its path, bit/s."""
        return np.nan_to_num(self.metric("goodput", group, forward=True))

    def loss(self, group: str) -> Floats:
        """Share of a group's packets along its path that queues dropped."""
        return self.metric("loss_share_queue", group, forward=True)

    def has(self, quantity: str, subject: str) -> bool:
        """Whether a quantity was sampled."""
        key = self.point, "has", quantity, subject
        return self._readings.kept.once(
            key, lambda: self.sampled(quantity).filter(subject=subject).height > 0
        )

    def sampled(self, quantity: str) -> pl.DataFrame:
        """The samples of a quantity in all replications: `run`, `subject`, `since`, `value`, ..."""
        return self._own(self._readings.samples(quantity))

    def histogram(self) -> tuple[Floats, Floats]:
        """Times in the bottleneck's queue in all replications, ascending, and how many packets have
        each."""
        rows = self._own(self._readings.raw("sojourn"))
        rows = rows.group_by("sojourn_s").agg(pl.col("count").sum()).sort("sojourn_s")
        return rows["sojourn_s"].to_numpy(), rows["count"].to_numpy().astype(float)

    def goodput_samples(self) -> Floats:
        """Goodput of all flows along their paths together, in each sample of each replication."""
        rows = along_paths(self.sampled("goodput_bps"), self._readings.raw("flows"))
        found = rows.group_by("run", "since", maintain_order=True).agg(pl.col("value").sum())
        return found["value"].to_numpy()

    def between(
        self, quantity: str, subject: str, begin: float, end: float, how: str = "mean"
    ) -> Floats:
        """The mean (`how`: max, min, last) of a sampled quantity from `begin` to `end` seconds."""

        def compute() -> Floats:
            when = pl.col("time_s") > begin, pl.col("time_s") <= end
            rows = self._own(self._readings.samples(quantity).filter(*when, subject=subject))
            return self._values(rows, getattr(pl.col("value"), how)())

        return self._once((quantity, subject, begin, end, how), compute)
