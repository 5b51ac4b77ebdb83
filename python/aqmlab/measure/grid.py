"""Metrics of a study as arrays with a dimension an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aqmlab import libraries
from aqmlab.errors import input_error
from aqmlab.measure.registry import find
from aqmlab.measure.values import values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray

    from aqmlab.results import StudyResult


def to_xarray(result: StudyResult, names: Sequence[str] = ()) -> xarray.Dataset:
    """The metrics as a dataset: dimensions are the axes, `replication` and `subject`.

    Raises `InputError` for an unknown metric, and if xarray is not installed.
    """
    try:
        array = libraries.xarray
    except ImportError:
        problem = "this needs xarray"
        raise input_error(problem, key="to_xarray", hint="pip install xarray") from None
    wanted = names or list(dict.fromkeys(result.metrics["metric"].to_list()))
    axes = {name: list(labels) for name, labels in result.info.axes}
    shape = [len(labels) for labels in axes.values()]
    found = {}
    for name in wanted:
        metric, _ = find(name)
        rows = values(result, name)
        subjects = list(dict.fromkeys(rows["subject"].to_list()))
        place = {subject: number for number, subject in enumerate(subjects)}
        grid = np.full((result.info.points * result.info.replications, len(subjects)), np.nan)
        columns = [place[subject] for subject in rows["subject"].to_list()]
        grid[rows["run"].to_numpy(), columns] = rows["value"].to_numpy()
        found[name] = array.DataArray(
            grid.reshape(*shape, result.info.replications, len(subjects)),
            dims=[*axes, "replication", "subject"],
            coords={**axes, "subject": subjects},
            attrs={"unit": metric.unit, "long_name": metric.title or metric.name},
        )
    return array.Dataset(found)
