"""Custom charts, and files that define custom metrics and charts::

    import aqmlab
    from aqmlab.report.document import Figure

    @aqmlab.chart
    def drops(result):                        # a StudyResult
        return Figure("drops", "Drops", "Drops over time.", "Lower is better.", {...})

A file with such functions is named on the command line (`--with FILE.py`), a module of an
installed package by the entry point `aqmlab.charts`; a module that is imported needs nothing.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from aqmlab.errors import AqmlabError, CustomError, failed, input_error
from aqmlab.metrics import registered
from aqmlab.metrics.registry import from_packages
from aqmlab.report.document import Figure
from aqmlab.results import StudyResult

GROUP = "aqmlab.charts"
Chart = Callable[[StudyResult], Figure | None]
C = TypeVar("C", bound=Chart)

_CHARTS: dict[str, Chart] = {}


def chart(function: C) -> C:
    """Adds a chart to the report of every study (decorator).

    Parameters
    ----------
    function : callable
        Takes a `StudyResult` and returns a `Figure`, or None for no figure. A later function of the
        same name replaces it.

    Returns
    -------
    callable
        The function itself.
    """
    _CHARTS[function.__name__] = function
    return function


def charts(result: StudyResult) -> Iterator[Figure]:
    """Yields the custom figures of a result.

    Raises `CustomError` if a function fails or returns another type.
    """
    from_packages(GROUP)
    for name, function in _CHARTS.items():
        try:
            figure = function(result)
        except Exception as error:
            raise failed(f"chart `{name}`", error) from error
        if figure is None:
            continue
        if not isinstance(figure, Figure):
            kind = type(figure).__name__
            raise CustomError(f"chart `{name}`: expected a Figure, not {kind}")
        yield figure


def load(file: str | Path) -> None:
    """Runs a Python file that defines metrics or charts.

    Raises `InputError` if the file is missing or defines none, `CustomError` if it fails.
    """
    path = Path(file)
    if not path.is_file():
        raise input_error("there is no such file", key="--with", given=str(path))
    before = [*registered(), *_CHARTS.values()]
    try:
        runpy.run_path(str(path))
    except AqmlabError:
        raise
    except Exception as error:
        raise CustomError(f"{path}: {type(error).__name__}: {error}") from error
    if all(any(each is old for old in before) for each in (*registered(), *_CHARTS.values())):
        hint = "a function with the decorator @aqmlab.metric or @aqmlab.chart"
        problem = "this file defines neither a metric nor a chart"
        raise input_error(problem, key="--with", given=str(path), hint=hint)
