"""The results of an emulation, in a folder like that of any run.

The folder must be new: an emulation cannot be computed again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.errors import FolderError

if TYPE_CHECKING:
    from aqmlab._core import Emulation, Results, Scenario
    from aqmlab.results import RunResult


def check_folder(folder: Path) -> None:
    """Refuses a folder that is not empty, before anything is run."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FolderError(f"{folder}: this is a file, not a folder for results")
    if any(folder.iterdir()):
        raise FolderError(
            f"{folder}: this folder is not empty; nothing was run. Choose another folder with --out"
        )


def keep(emulation: Emulation, folder: Path, command: str = "") -> None:
    """Writes tables, manifest and report; `command` is their origin."""
    from aqmlab.emulator.report import title, write
    from aqmlab.results import resolved
    from aqmlab.study import Study
    from aqmlab.study.execute import study_info
    from aqmlab.study.folder import ResultsFolder

    text = emulation.scenario.resolved
    study = Study(
        {"name": folder.name or "emulation", "title": title(command), "scenario": resolved(text)}
    )
    with ResultsFolder(folder, study_info(study), [text]) as results:
        results.add([emulation.results])
        results.finish()
        write(folder, results.result(computed=1).single(), command)


def result_of(results: Results, scenario: Scenario) -> RunResult:
    """The tables in memory."""
    from aqmlab.results import RunResult, in_memory, resolved
    from aqmlab.tables import MemoryTables

    return RunResult(MemoryTables(in_memory([results])), resolved(scenario.resolved))
