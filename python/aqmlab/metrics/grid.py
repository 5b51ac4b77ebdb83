"""Metrics of a study as arrays with a dimension an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab import libraries
from aqmlab.errors import input_error
from aqmlab.metrics.registry import find
from aqmlab.metrics.values import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray

    from aqmlab.results import StudyResult


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
