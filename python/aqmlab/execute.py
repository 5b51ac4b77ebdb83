"""Runs the missing runs of a study on all cores and collects what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import _core
from aqmlab.errors import CustomError, FolderError, StuckError
from aqmlab.folder import ResultsFolder
from aqmlab.results import MemoryTables, RunResult, StudyInfo, StudyResult, gather, resolved

if TYPE_CHECKING:
    from aqmlab.study import Progress, Study

FLUSH_SECONDS = 1.0
"""Finished runs wait at most about this long before they are on the disk."""
ROUNDS = 3
"""How often runs are computed again because a chunk was damaged while the study ran."""
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
        computed = 0
        try:
            for left in reversed(range(ROUNDS)):
                missing = folder.missing()
                computed += len(missing)
                if missing:
                    _into_folder(study, folder, missing, threads, progress)
                try:
                    if not folder.complete:
                        folder.finish()
                    break
                except FolderError:
                    if not left:
                        raise
        except CustomError as error:
            error.args = (f"{error}; {folder.kept}",)
            raise
        except StuckError as error:
            error.args = (folder.kept,)
            raise
        except KeyboardInterrupt as error:
            error.args = (f"{folder.kept}; {GOES_ON}",)
            raise
        return folder.result(computed=computed)


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
        if batch is None:
            continue
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
    """Computes the missing runs; whatever ends it, what has come is kept.

    A thread of its own writes, which no Ctrl-C interrupts, while the next runs are computed.
    """
    count = len(folder.done)
    try:
        with Keeper(folder) as keeper:
            if progress:
                progress(count, study.total)
            for batch in _of_study(study, missing, threads):
                if batch is not None:
                    keeper.add(batch)
                    count += len(batch.runs)
                    if progress:
                        progress(count, study.total)
                keeper.flush_if_due()
    finally:
        if len(folder.done) < folder.total:
            folder.pause()


class Keeper:
    """Puts finished runs into a folder, about a second after they came. What has not been
    written when it is left is written then."""

    def __init__(self, folder: ResultsFolder) -> None:
        self._folder = folder
        self._waiting: list[_core.Results] = []
        self._since = 0.0
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        with self._pool:
            self._flush()
            self._wait()

    def add(self, batch: _core.Results) -> None:
        """Takes finished runs."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(batch)

    def flush_if_due(self) -> None:
        """Begins to write what has waited for a second. What was begun before has to be done
        by then. Raises `StorageError` if that failed."""
        if self._waiting and time.monotonic() - self._since >= FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        self._wait()
        if self._waiting:
            keep, self._waiting = self._waiting, []
            self._writing = self._pool.submit(self._folder.add, keep)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing:
            writing.result()


def finished(
    scenarios: Sequence[_core.Scenario], jobs: Sequence[Job], threads: int | None
) -> Iterator[_core.Results]:
    """The results of `jobs`, in batches, as they come. Ctrl-C gets through between two."""
    return (batch for batch in polled(scenarios, jobs, threads) if batch is not None)


def polled(
    scenarios: Sequence[_core.Scenario], jobs: Sequence[Job], threads: int | None
) -> Iterator[_core.Results | None]:
    """The same, with `None` whenever there was nothing for `POLL_SECONDS`.

    Raises `StuckError`, after all other results, if runs made no progress.
    """
    if threads is not None:
        threads = min(threads, max(1, len(jobs)))
    runner = _core.Runner(scenarios, jobs, threads=threads)
    left = len(jobs)
    del jobs  # the runner has its own list
    stuck: dict[int, str] = {}
    try:
        while left:
            batch = runner.poll(POLL_SECONDS)
            yield batch
            given_up = runner.stuck()
            stuck |= given_up
            left -= len(given_up)
            if batch is not None:
                left -= len(batch.runs)
                if left:
                    time.sleep(PAUSE_SECONDS)
    finally:
        endless = runner.stop()
        if endless:
            interrupt(endless)
            runner.stop()
    if stuck:
        raise StuckError(stuck)


def interrupt(threads: Iterable[int]) -> None:
    """Raises KeyboardInterrupt in methods of classes that do not come to an end."""
    import ctypes

    for thread in threads:
        exception = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)


def _of_study(
    study: Study, runs: Iterable[int], threads: int | None
) -> Iterator[_core.Results | None]:
    """The results of the runs of a study with these numbers; `None` now and then."""
    jobs = [(run, run // study.replications, run % study.replications) for run in runs]
    try:
        yield from polled([point.scenario for point in study.points], jobs, threads)
    except CustomError as error:
        point, replication = divmod(error.run, study.replications)
        labels = [f"{name}={label}" for name, label in study.points[point].labels.items()]
        where = ", ".join([*labels, f"replication {replication}"])
        error.args = (f"{error} (in {where})",)
        raise
    except StuckError as error:
        for each in error.failed:
            point, each["replication"] = divmod(each["run"], study.replications)
            each["point"] = study.points[point].labels
        raise
