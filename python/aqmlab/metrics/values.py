"""The values of metrics in results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from aqmlab.errors import unknown
from aqmlab.metrics.registry import find, own
from aqmlab.metrics.runs import Runs
from aqmlab.metrics.table import computed
from aqmlab.results import METRICS, RunResult, StudyResult
from aqmlab.results.tables import Tables


def values(result: RunResult | StudyResult, name: str) -> pl.DataFrame:
    """The values of the metric `name` (`goodput`, `sojourn_p95`): `run`, `subject`, `value`, a row
    a run and subject that has one, in the metric's unit.

    Raises `InputError` for an unknown name.
    """
    metric, statistic = find(name)
    return metric.values(runs_of(result), statistic)


def runs_of(result: RunResult | StudyResult, first: int | None = None) -> Runs:
    """The runs of a result; with `first` those of so many points."""
    if isinstance(result, RunResult):
        return Runs(result.raw, [result.scenario])
    replications = result.info.replications
    if first is None:
        return Runs(result.raw, result.scenarios, replications)
    these = pl.col("run") < first * replications

    def table(name: str) -> pl.DataFrame:
        return result.raw(name).filter(these)

    return Runs(table, result.scenarios[:first], replications)


def table(
    tables: Tables, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    """The table `metrics`, computed if a folder lacks it, with the custom metrics at its end."""
    there = METRICS in tables.names()
    found = tables.load(METRICS) if there else computed(tables.load, scenarios, replications)

    def load(name: str) -> pl.DataFrame:
        if name == METRICS:
            return found
        if name not in tables.names():
            raise unknown("table", name, tables.names())
        return tables.load(name)

    runs = Runs(load, scenarios, replications)
    parts = [found]
    for each in own():
        rows = each.values(runs).with_columns(
            direction=pl.lit(None, pl.String), metric=pl.lit(each.name)
        )
        parts.append(rows.select(found.columns).cast(found.schema))
    return pl.concat(parts) if len(parts) > 1 else found
