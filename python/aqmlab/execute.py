"""Runs the missing runs of a study on all cores and collects what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import _core
from aqmlab.errors import CustomError
from aqmlab.folder import ResultsFolder
from aqmlab.results import MemoryTables, RunResult, StudyInfo, StudyResult, gather, resolved

if TYPE_CHECKING:
    from aqmlab.study import Progress, Study

FLUSH_SECONDS = 1.0
"""Finished runs wait at most about this long before they are on the disk."""
GOES_ON = "the same command goes on from there"
Job = tuple[int, int, int]
"""Run number, index of the scenario, replication."""
POLL_SECONDS = 0.1
PAUSE_SECONDS = 0.005
"""Between two batches, so that they are not of single runs."""


def execute(
    study: Study, out: Path | None, threads: int | None, progress: Progress | None
) -> StudyResult:
    """Runs `study`, into the folder `out` or in memory; see `Study.run`."""
    if out is None:
        return _in_memory(study, threads, progress)
    scenarios = [point.scenario.resolved for point in study.points]
    with ResultsFolder(out, study_info(study), scenarios) as folder:
        missing = [run for run in range(study.total) if run not in folder.done]
        try:
            if missing:
                _into_folder(study, folder, missing, threads, progress)
            if not folder.complete:
                folder.finish()
        except CustomError as error:
            error.args = (f"{error}; {folder.kept}",)
            raise
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{folder.kept}; {GOES_ON}") from None
        return folder.result(computed=len(missing))


def study_info(study: Study) -> StudyInfo:
    """What the results say of the study they came from."""
    return StudyInfo(
        name=study.name,
        title=study.title,
        axes=tuple((axis.name, tuple(axis.labels)) for axis in study.axes),
        replications=study.replications,
        seed=study.seed,
        digest=study.digest,
        version=_core.__version__,
    )


def run_scenario(scenario: _core.Scenario, replication: int = 0) -> RunResult:
    """Runs `scenario` once."""
    batches = list(finished([scenario], [(0, 0, replication)], threads=1))
    return RunResult(MemoryTables(gather(batches)), resolved(scenario.resolved))


def _in_memory(study: Study, threads: int | None, progress: Progress | None) -> StudyResult:
    batches = []
    count = 0
    for batch in _of_study(study, range(study.total), threads):
        batches.append(batch)
        count += len(batch.runs)
        if progress:
            progress(count, study.total)
    scenarios = [resolved(point.scenario.resolved) for point in study.points]
    tables = MemoryTables(gather(batches))
    return StudyResult(study_info(study), tables, scenarios, computed=study.total)


def _into_folder(
    study: Study,
    folder: ResultsFolder,
    missing: Sequence[int],
    threads: int | None,
    progress: Progress | None,
) -> None:
    """Computes the missing runs; whatever ends it, what has come is kept."""
    waiting: list[_core.Results] = []
    count = len(folder.done)
    flushed = time.monotonic()
    try:
        if progress:
            progress(count, study.total)
        for batch in _of_study(study, missing, threads):
            waiting.append(batch)
            count += len(batch.runs)
            if progress:
                progress(count, study.total)
            if time.monotonic() - flushed >= FLUSH_SECONDS:
                keep, waiting = waiting, []
                folder.add(keep)
                flushed = time.monotonic()
    finally:
        if waiting:
            folder.add(waiting)
        if len(folder.done) < folder.total:
            folder.pause()


def finished(
    scenarios: Sequence[_core.Scenario], jobs: Sequence[Job], threads: int | None
) -> Iterator[_core.Results]:
    """The results of `jobs`, in batches, as they come. Ctrl-C gets through between two."""
    runner = _core.Runner(scenarios, jobs, threads=threads)
    left = len(jobs)
    try:
        while left:
            batch = runner.poll(POLL_SECONDS)
            if batch is None:
                continue
            left -= len(batch.runs)
            yield batch
            if left:
                time.sleep(PAUSE_SECONDS)
    finally:
        endless = runner.stop()
        if endless:
            interrupt(endless)
            runner.stop()


def interrupt(threads: Iterable[int]) -> None:
    """Raises KeyboardInterrupt in methods of classes that do not come to an end."""
    import ctypes

    for thread in threads:
        exception = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)


def _of_study(study: Study, runs: Iterable[int], threads: int | None) -> Iterator[_core.Results]:
    """The results of the runs of a study with these numbers."""
    jobs = [(run, run // study.replications, run % study.replications) for run in runs]
    try:
        yield from finished([point.scenario for point in study.points], jobs, threads)
    except CustomError as error:
        point, replication = divmod(error.run, study.replications)
        labels = [f"{name}={label}" for name, label in study.points[point].labels.items()]
        where = ", ".join([*labels, f"replication {replication}"])
        error.args = (f"{error} (in {where})",)
        raise
