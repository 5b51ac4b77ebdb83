"""Metrics and pages of results: what the methods of results do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl
    import xarray

    from aqmlab.report.document import Document
    from aqmlab.report.plot import RunPlot, StudyPlot
    from aqmlab.results import RunResult, StudyResult
    from aqmlab.results.tables import Tables

# A table of metrics needs no charts, so every function imports what it needs.


def metrics(
    tables: Tables, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    """The table of metrics."""
    from aqmlab.metrics.values import table

    return table(tables, scenarios, replications)


def to_xarray(result: StudyResult, names: Sequence[str]) -> xarray.Dataset:
    """`StudyResult.to_xarray`."""
    from aqmlab.metrics import grid

    return grid.to_xarray(result, names)


def open_results(folder: Path) -> StudyResult:
    """`StudyResult.open`."""
    from aqmlab.study import folder as folders

    return folders.open_results(folder)


def run_plot(result: RunResult) -> RunPlot:
    """`RunResult.plot`."""
    from aqmlab.report.plot import RunPlot

    return RunPlot(result)


def study_plot(result: StudyResult) -> StudyPlot:
    """`StudyResult.plot`."""
    from aqmlab.report.plot import StudyPlot

    return StudyPlot(result)


def tradeoff(result: StudyResult) -> pl.DataFrame:
    """`StudyResult.tradeoff`."""
    from aqmlab.report.tradeoff import runs

    return runs(result)


def run_report(result: RunResult, title: str) -> Document:
    """`RunResult.report`."""
    from aqmlab.report.run_page import document

    return document(result, title)


def write_run_report(
    result: RunResult, folder: Path, title: str, command: str, *, figures: bool
) -> Path:
    """`RunResult.write_report`."""
    from aqmlab.report.run_page import write

    return write(result, folder, title, command, figures=figures)


def study_report(result: StudyResult) -> Document:
    """`StudyResult.report`."""
    from aqmlab.report.study_page import document

    return document(result)


def write_study_report(result: StudyResult, folder: Path, command: str, *, figures: bool) -> Path:
    """`StudyResult.write_report`."""
    from aqmlab.report.study_page import write

    return write(result, folder, command, figures=figures)
