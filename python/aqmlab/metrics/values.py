"""The values of metrics in results: as tables, and as arrays with a dimension an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from aqmlab import libraries
from aqmlab.errors import input_error, unknown
from aqmlab.metrics.registry import find, own
from aqmlab.metrics.runs import Runs
from aqmlab.metrics.table import computed
from aqmlab.results import METRICS, RunResult, StudyResult
from aqmlab.results.run import load
from aqmlab.results.tables import Tables

if TYPE_CHECKING:
    import xarray


_COMPUTED: WeakKeyDictionary[Tables, pl.DataFrame] = WeakKeyDictionary()
"""Metrics of tables without any: reports ask for them for each metric."""


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
        return Runs(cache(result.raw), result.scenarios, replications, result.stored.load)
    scenarios = result.scenarios[:first]
    part = result.stored.of_runs(range(first * replications))
    return Runs(
        cache(lambda name: load(part, name, scenarios, replications)), scenarios, replications
    )


def table(
    tables: Tables, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    """The table `metrics`, computed if the results lack it, with the custom metrics at its end."""
    if METRICS in tables.names():
        found = tables.load(METRICS)
    else:
        if tables not in _COMPUTED:
            _COMPUTED[tables] = computed(tables.load, scenarios, replications)
        found = _COMPUTED[tables]

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


def to_xarray(result: StudyResult, names: Sequence[str] = ()) -> xarray.Dataset:
    """The metrics as a dataset.

    Dimensions are the axes, `replication`, and `link` or `group` by what the metric is of
    (`subject` for metrics of both). Numeric axes have numbers as coordinates, with the unit as
    an attribute.

    Raises `InputError` for an unknown metric, and if xarray is not installed.
    """
    try:
        array = libraries.xarray
    except ImportError:
        problem = "this needs xarray"
        raise input_error(problem, key="to_xarray", hint="pip install xarray") from None
    wanted = names or list(dict.fromkeys(result.metrics["metric"].to_list()))
    shape = [len(labels) for _, labels in result.info.axes]
    axes = [name for name, _ in result.info.axes]
    rows = {name: values(result, name) for name in wanted}
    kinds = {name: _kind(find(name)[0].of) for name in wanted}
    subjects: dict[str, list[str]] = {}
    for name, frame in rows.items():
        known = subjects.get(kinds[name], [])
        subjects[kinds[name]] = list(dict.fromkeys([*known, *frame["subject"]]))
    runs = result.info.points * result.info.replications
    found = {}
    for name, frame in rows.items():
        metric, kind = find(name)[0], kinds[name]
        place = {subject: number for number, subject in enumerate(subjects[kind])}
        grid = np.full((runs, len(place)), np.nan)
        columns = [place[subject] for subject in frame["subject"].to_list()]
        grid[frame["run"].to_numpy(), columns] = frame["value"].to_numpy()
        found[name] = array.DataArray(
            grid.reshape(*shape, result.info.replications, len(place)),
            dims=[*axes, "replication", kind],
            attrs={"unit": metric.unit, "long_name": metric.title or metric.name},
        )
    coordinates = {
        **{name: _axis(result, name, labels) for name, labels in result.info.axes},
        "replication": range(result.info.replications),
        **subjects,
    }
    dataset: xarray.Dataset = array.Dataset(found, coords=coordinates)
    return dataset


def _kind(of: str) -> str:
    """Dimension of the subjects of a metric: `link`, `group`, or `subject` where it has both."""
    kinds = {"link" if each == "link" else "group" for each in of.split(", ")}
    return kinds.pop() if len(kinds) == 1 else "subject"


def _axis(result: StudyResult, name: str, labels: Sequence[str]) -> Any:
    """Coordinate of an axis: numbers with their unit where it is numeric, else its labels."""
    if name not in result.numeric_axes:
        return list(labels)
    values, unit = result.numeric_axes[name]
    return (name, values, {"unit": unit})
