"""Results that are in several folders, as one study with the axis `result`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from aqmlab.errors import input_error
from aqmlab.numbers import listed
from aqmlab.results import StudyInfo, StudyResult
from aqmlab.results.tables import MemoryTables
from aqmlab.study.sweep import check_label

AXIS = "result"


def compare(folders: Mapping[str, str | Path]) -> StudyResult:
    """Combines results of runs, studies and emulations into one study with the axis `result`.

    Replication r of each result is paired with replication r of the others.

    Parameters
    ----------
    folders : mapping of str to path
        Results folders by label, at least two. They must have the same axes and number of
        replications.

    Returns
    -------
    StudyResult
        Tables of all results.

    Raises
    ------
    InputError
        If the axes or the numbers of replications differ, or a label is not a line of text.
    FolderError
        If a folder has no finished results.
    """
    if not isinstance(folders, Mapping):
        raise input_error("expected labels with folders", key="folders", given=str(folders))
    for label in folders:
        check_label(label, None, "label")
    results = {label: StudyResult.open(folder) for label, folder in folders.items()}
    if len(results) < 2:
        raise input_error("expected at least two folders with results", key="folders")
    first = next(iter(results.values()))
    for label, each in results.items():
        _check(label, each, first)
    infos = [each.info for each in results.values()]
    info = StudyInfo(
        name="compare",
        title=listed(list(results)),
        axes=((AXIS, tuple(results)), *first.info.axes),
        replications=first.info.replications,
        seed=first.info.seed,
        digest=hashlib.sha256("".join(each.digest for each in infos).encode()).hexdigest(),
        version=", ".join(dict.fromkeys(each.version for each in infos)),
    )
    scenarios = [scenario for each in results.values() for scenario in each.scenarios]
    return StudyResult(info, MemoryTables(_tables(list(results.values()))), scenarios)


def _check(label: str, result: StudyResult, first: StudyResult) -> None:
    """Refuses what cannot stand beside the first result."""
    own, other = result.info, first.info
    if AXIS in dict(own.axes):
        raise input_error(f"expected results without an axis `{AXIS}`", key=label)
    if own.axes != other.axes:
        here, there = (", ".join(n for n, _ in each.axes) or "none" for each in (own, other))
        problem = "expected the axes of the first, with the same labels"
        hint = f"axes here: {here}; there: {there}"
        raise input_error(problem, key=label, hint=hint)
    if own.replications != other.replications:
        problem = f"expected as many replications as the first, {other.replications}"
        raise input_error(problem, key=label, given=own.replications)


def _tables(results: list[StudyResult]) -> dict[str, pl.DataFrame]:
    """All rows, the runs numbered on."""
    runs = results[0].info.points * results[0].info.replications
    run = pl.col("run")
    return {
        name: pl.concat(
            [
                each.raw(name).with_columns((run + place * runs).cast(pl.UInt32))
                for place, each in enumerate(results)
            ],
            how="diagonal_relaxed",
        )
        for name in results[0].table_names
    }
