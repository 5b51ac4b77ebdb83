"""The values of metrics in results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from aqmlab.errors import unknown
from aqmlab.metrics.registry import find, own
from aqmlab.metrics.runs import Runs
from aqmlab.results import RunResult, StudyResult
from aqmlab.tables import Tables


def values(result: RunResult | StudyResult, name: str) -> pl.DataFrame:
    """The values of the metric `name` (`goodput`, `sojourn_p95`): `run`, `subject`, `value`, a row
    a run and subject that has one, in the metric's unit.

    Raises `InputError` for an unknown name.
    """
    metric, statistic = find(name)
    return metric.values(runs_of(result), statistic)


def runs_of(result: RunResult | StudyResult) -> Runs:
    """The runs of a result."""
    if isinstance(result, StudyResult):
        return Runs(result.raw, result.scenarios, result.info.replications)
    return Runs(result.raw, [result.scenario])


def add_own(
    table: pl.DataFrame,
    tables: Tables,
    scenarios: Sequence[Mapping[str, Any]],
    replications: int,
) -> pl.DataFrame:
    """The table `metrics` with the rows of the metrics from outside of aqmlab at its end."""

    def load(name: str) -> pl.DataFrame:
        if name == "metrics":
            return table
        if name not in tables.names():
            raise unknown("table", name, tables.names())
        return tables.load(name)

    runs = Runs(load, scenarios, replications)
    parts = [table]
    for each in own():
        rows = each.values(runs).with_columns(
            direction=pl.lit(None, pl.String), metric=pl.lit(each.name)
        )
        kept = rows.select(table.columns).cast(table.schema)
        parts.append(kept.drop_nulls("value").drop_nans("value"))
    return pl.concat(parts) if len(parts) > 1 else table
