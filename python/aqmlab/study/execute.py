"""Runs the missing runs of a study on all cores and collects what comes back."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from aqmlab import _core, signals
from aqmlab.errors import ClusterError, CustomError, FolderError, StorageError, StuckError
from aqmlab.plan.shards import Shard
from aqmlab.results import (
    Batch,
    RunResult,
    StudyInfo,
    StudyResult,
    by_run,
    in_memory,
    resolved,
)
from aqmlab.study.folder import ResultsFolder
from aqmlab.study.sequential import is_reached, renumbered, stages
from aqmlab.study.spread import spread
from aqmlab.tables import MemoryTables

if TYPE_CHECKING:
    import polars as pl

    from aqmlab.study.sweep import Progress, Study

FLUSH_SECONDS = 1.0
"""Finished runs wait at most about this long before they are on the disk."""
ROUNDS = 3
"""How often runs are computed again because a chunk was damaged while the study ran."""
GOES_ON = "rerun the same command to resume"
Job = tuple[int, _core.Scenario, int]
"""Run number, scenario, replication."""
AHEAD = 64
"""For each thread so many jobs are made before they are due."""
POLL_SECONDS = 0.1
MOST_WAITING = 1 << 17
"""Rows of finished runs in memory from which on they are written at once."""
PAUSE_SECONDS = 0.005
"""Between two batches, so that they are not of single runs."""


class Record(TypedDict):
    """The files in which a run is recorded while it goes on."""

    pcap: str | None
    """Every packet as it is sent."""
    pcap_links: list[int]
    """If there are any: all packets that come to these links instead."""
    qlog: str | None
    """What senders do."""


@dataclass(frozen=True)
class Means:
    """What computes the runs: threads of this process, or an executor."""

    threads: int | None = None
    executor: Executor | None = None


def execute(study: Study, out: Path | None, means: Means, progress: Progress | None) -> StudyResult:
    """Runs `study`, into the folder `out` or in memory; see `Study.run`."""
    plans = [study] if study.precision is None else list(stages(study, out))
    if out is None:
        return _in_memory(plans, means, progress)
    first, computed = plans[0], 0
    with ResultsFolder(out, study_info(first), first.points.resolved) as folder, _said(folder):
        for plan in plans:
            if plan is not first:
                folder.grow(study_info(plan))
            computed += _completed(plan, folder, means, progress)
            result = folder.result(computed=computed)
            if is_reached(result):
                break
    return result


def _completed(study: Study, folder: ResultsFolder, means: Means, progress: Progress | None) -> int:
    """Computes what is missing in the folder and finishes it; how many runs that were."""
    computed = 0
    for left in reversed(range(ROUNDS)):
        missing = folder.missing()
        computed += len(missing)
        if missing:
            _into_folder(study, folder, missing, means, progress)
        try:
            if not folder.complete:
                folder.finish()
            break
        except FolderError:
            if not left:
                raise
    return computed


def execute_shard(
    study: Study, out: Path, shard: Shard, means: Means, progress: Progress | None
) -> int:
    """Runs a part of `study` into the folder `out`; see `Study.run_shard`."""
    info, scenarios = study_info(study), study.points.resolved
    with ResultsFolder(out, info, scenarios, shard) as folder, _said(folder):
        missing = folder.missing()
        if missing:
            _into_folder(study, folder, missing, means, progress)
        return len(missing)


@contextmanager
def _said(folder: ResultsFolder) -> Iterator[None]:
    """Adds to what ends the runs how much is kept."""
    try:
        yield
    except (CustomError, ClusterError) as error:
        error.args = (f"{error}; {folder.kept}",)
        raise
    except StuckError as error:
        error.args = (folder.kept,)
        raise
    except KeyboardInterrupt as error:
        error.args = (f"{folder.kept}; {GOES_ON}",)
        raise


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
        precision=study.precision,
    )


def run_scenario(
    scenario: _core.Scenario, replication: int = 0, record: Record | None = None
) -> RunResult:
    """Runs `scenario` once, recorded to files if asked for.

    Raises `StorageError` if one of these cannot be written.
    """
    try:
        batches = list(finished([(0, scenario, replication)], threads=1, record=record))
    except OSError as error:
        if error.filename is None:
            raise
        file = Path(error.filename)
        kept = "not all of the run is in it"
        if not file.parent.is_dir():
            kept = f"there is no folder {file.parent}"
        elif error.errno == errno.ENXIO:
            kept = "nobody reads this pipe"
        raise StorageError(error, file, kept, resumes=False) from error
    return RunResult(MemoryTables(in_memory(batches)), resolved(scenario.resolved))


def _in_memory(plans: Sequence[Study], means: Means, progress: Progress | None) -> StudyResult:
    scenarios = [resolved(text) for text in plans[0].points.resolved]
    tables: dict[str, pl.DataFrame] = {}
    before = 0
    for study in plans:
        now, batches = study.replications, list[Batch]()
        count = before * len(study.points)
        missing = [run for run in range(study.total) if run % now >= before]
        for batch in _of_study(study, missing, means):
            if batch is None:
                continue
            batches.append(batch)
            count += len(batch.runs)
            if progress:
                progress(count, study.total)
        new = in_memory(batches)
        there = {name: renumbered(frame, before, now) for name, frame in tables.items()}
        tables = new | {name: by_run([frame, new[name]]) for name, frame in there.items()}
        info = study_info(study)
        result = StudyResult(info, MemoryTables(tables), scenarios, computed=study.total)
        if is_reached(result):
            break
        before = now
    return result


def _into_folder(
    study: Study,
    folder: ResultsFolder,
    missing: Sequence[int],
    means: Means,
    progress: Progress | None,
) -> None:
    """Computes the missing runs; whatever ends it, what has come is kept.

    A thread of its own writes, which no Ctrl-C interrupts, while the next runs are computed.
    """
    count = folder.done
    try:
        with folder.storage(), Keeper(folder) as keeper:
            if progress:
                progress(count, study.total)
            for batch in _of_study(study, missing, means, folder.spill):
                if batch is not None:
                    keeper.add(batch)
                    count += len(batch.runs)
                    if progress:
                        progress(count, study.total)
                keeper.flush_if_due()
    finally:
        folder.clean_spill()
        if folder.done < folder.total:
            folder.pause()


class Keeper:
    """Puts finished runs into a folder, about a second after they came. What has not been
    written when it is left is written then."""

    def __init__(self, folder: ResultsFolder) -> None:
        self._folder = folder
        self._waiting: list[Batch] = []
        self._rows = 0
        self._since = 0.0
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        with self._pool:
            self._flush()
            self._wait()

    def add(self, batch: Batch) -> None:
        """Takes finished runs."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(batch)
        self._rows += batch.small_rows

    def flush_if_due(self) -> None:
        """Begins to write what has waited for a second, or is much. What was begun before has to
        be done by then. Raises `StorageError` if that failed."""
        late = time.monotonic() - self._since >= FLUSH_SECONDS
        if self._waiting and (late or self._rows >= MOST_WAITING):
            self._flush()

    def _flush(self) -> None:
        self._wait()
        if self._waiting:
            keep, self._waiting, self._rows = self._waiting, [], 0
            self._writing = self._pool.submit(self._folder.add, keep)

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing:
            writing.result()


def finished(
    jobs: Sequence[Job], threads: int | None, record: Record | None = None
) -> Iterator[_core.Results]:
    """The results of `jobs`, in batches, as they come. Ctrl-C gets through between two."""
    batches = polled(jobs, len(jobs), threads, record=record)
    return (batch for batch in batches if batch is not None)


def polled(
    jobs: Iterable[Job],
    count: int,
    threads: int | None,
    spill: Path | None = None,
    record: Record | None = None,
) -> Iterator[_core.Results | None]:
    """The same, with `None` whenever there was nothing for `POLL_SECONDS`. Of the `count` jobs
    only those are made that are due soon. Records of packets wait in the folder `spill`, if one
    is given. A single job may be recorded.

    Raises `StuckError`, after all other results, if runs made no progress.
    """
    threads = min(threads or len(os.sched_getaffinity(0)), max(1, count))
    feed, ahead = iter(jobs), AHEAD * threads
    runner = _core.Runner(
        list(islice(feed, ahead)),
        threads=threads,
        open=True,
        spill=None if spill is None else str(spill),
        record=record,
    )
    left, stuck = count, dict[int, str]()
    try:
        while left:
            waiting = runner.total - (count - left)
            if waiting <= ahead // 2 and runner.total < count:
                runner.extend(list(islice(feed, ahead - waiting)))
            if runner.total == count:
                runner.close()
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
        signals.stop(runner)
    if stuck:
        raise StuckError(stuck)


def _of_study(
    study: Study, runs: Sequence[int], means: Means, spill: Path | None = None
) -> Iterator[Batch | None]:
    """The results of the runs of a study with these numbers; `None` now and then."""
    points, replications = study.points, study.replications
    jobs = ((run, points[run // replications].scenario, run % replications) for run in runs)
    try:
        if means.executor is None:
            yield from polled(jobs, len(runs), means.threads, spill)
        else:
            yield from spread(points, replications, runs, means.executor)
    except CustomError as error:
        point, replication = divmod(error.run, replications)
        labels = [f"{name}={label}" for name, label in points.labels(point).items()]
        where = ", ".join([*labels, f"replication {replication}"])
        error.args = (f"{error} (in {where})",)
        raise
    except StuckError as error:
        for each in error.failed:
            point, each["replication"] = divmod(each["run"], replications)
            each["point"] = points.labels(point)
        raise
