"""Runs the missing runs of a study on all cores and collects their results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import _core
from aqmlab.errors import ClusterError, CustomError, FolderError, StuckError
from aqmlab.results import (
    Batch,
    Gathered,
    StudyInfo,
    StudyResult,
    by_run,
    check_process,
)
from aqmlab.results.tables import MemoryTables, plain_texts
from aqmlab.study.folder import ResultsFolder
from aqmlab.study.points import KEPT, Points
from aqmlab.study.runner import polled
from aqmlab.study.sequential import is_reached, renumbered, stages
from aqmlab.study.shards import WHOLE, Shard
from aqmlab.study.spread import spread

if TYPE_CHECKING:
    import polars as pl

    from aqmlab.study.sweep import Progress, Study

FLUSH_SECONDS = 1.0
"""Finished runs wait at most about this long before they are on the disk."""
ROUNDS = 3
"""Attempts to recompute runs of a chunk that was damaged while the study ran."""
GOES_ON = "rerun the same command to resume"
MOST_WAITING = 1 << 17
"""Rows of finished runs in memory from which on they are written at once."""


@dataclass(frozen=True)
class Backend:
    """Backend that computes the runs, threads of this process or an executor, and its progress."""

    threads: int | None = None
    executor: Executor | None = None
    progress: Progress | None = None

    def report(self, done: int, total: int) -> None:
        """Reports the number of finished runs."""
        if self.progress:
            self.progress(done, total)


def execute(study: Study, out: Path | None, means: Backend) -> StudyResult:
    """Runs `study`, into the folder `out` or in memory; see `Study.run`."""
    check_process()
    plans = stages(study, out)
    if out is None:
        return _in_memory(plans, means)
    first, computed = plans[0], 0
    with folder_of(first, out) as folder, said(folder):
        for plan in plans:
            if plan is not first:
                folder.grow(study_info(plan))
            computed += _completed(plan, folder, means)
            result = folder.result(computed=computed)
            if is_reached(result):
                break
    return result


def _completed(study: Study, folder: ResultsFolder, means: Backend) -> int:
    """Computes the missing runs, completes the folder, and returns the number of runs."""
    computed = 0
    for left in reversed(range(ROUNDS)):
        computed += _into_folder(study, folder, means)
        try:
            if not folder.complete:
                folder.finish()
            break
        except FolderError:
            if not left:
                raise
    return computed


def execute_shard(study: Study, out: Path, shard: Shard, means: Backend) -> int:
    """Runs a part of `study` into the folder `out`; see `Study.run_shard`."""
    check_process()
    with folder_of(study, out, shard) as folder, said(folder):
        return _into_folder(study, folder, means)


@contextmanager
def said(folder: ResultsFolder) -> Iterator[None]:
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


def folder_of(
    study: Study, out: Path, shard: Shard = WHOLE, *, emulated: bool = False
) -> ResultsFolder:
    """The folder `out` for results of the study."""
    sources = study.sources(emulated=emulated)
    return ResultsFolder(out, study_info(study), study.points.scenarios, shard, sources)


def _in_memory(plans: Sequence[Study], means: Backend) -> StudyResult:
    scenarios = plans[0].points.scenarios
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
            means.report(count, study.total)
        new = Gathered(batches)
        there = {name: renumbered(frame, before, now) for name, frame in tables.items()}
        tables = dict(new) | {
            name: by_run([plain_texts(frame), plain_texts(new[name])])
            for name, frame in there.items()
        }
        info = study_info(study)
        result = StudyResult(info, MemoryTables(tables), scenarios, computed=study.total)
        if is_reached(result):
            break
        before = now
    return result


def _into_folder(study: Study, folder: ResultsFolder, means: Backend) -> int:
    """Computes the missing runs and returns their number; finished ones are kept even if it is
    interrupted.

    A thread of its own writes, which no Ctrl-C interrupts, while the next runs are computed.
    """
    missing, count = folder.missing(), folder.done
    if not missing:
        return 0
    try:
        with folder.storage(), _keeper(folder) as keep:
            means.report(count, study.total)
            for batch in _of_study(study, missing, means, folder.spill):
                keep(batch)
                if batch is not None:
                    count += len(batch.runs)
                    means.report(count, study.total)
    finally:
        folder.clean_spill()
        if folder.done < folder.total:
            folder.pause()
    return len(missing)


@contextmanager
def _keeper(folder: ResultsFolder) -> Iterator[Callable[[Batch | None], None]]:
    """Yields a function that takes finished runs, if any, and begins to write those that have
    waited for a second, or are large; what is left at the end is written then.

    Raises `StorageError` if the previous write failed.
    """
    waiting: list[Batch] = []
    rows, since = 0, 0.0
    writing: Future[None] | None = None

    def write() -> None:
        """Waits for the previous write, and begins one of the waiting runs."""
        nonlocal waiting, rows, writing
        before, writing = writing, None
        if before:
            before.result()
        if waiting:
            kept, waiting, rows = waiting, [], 0
            writing = pool.submit(folder.add, kept)

    def take(batch: Batch | None) -> None:
        nonlocal rows, since
        now = time.monotonic()
        if batch is not None:
            since = since if waiting else now
            waiting.append(batch)
            rows += batch.small_rows
        if waiting and (now - since >= FLUSH_SECONDS or rows >= MOST_WAITING):
            write()

    with ThreadPoolExecutor(max_workers=1) as pool:
        try:
            yield take
        finally:
            write()
            write()


def _shared(points: Points, replications: int, runs: Sequence[int]) -> Sequence[int]:
    """The runs, with those whose scenarios differ only in their changes one after another: the
    engine simulates what is before the first difference once."""
    if len(points) > KEPT:
        return runs
    places = sorted({run // replications for run in runs})
    texts = {place: points[place].scenario.resolved for place in places}
    if not any('"changes"' in text for text in texts.values()):
        return runs
    first, keys = dict[str, int](), dict[int, tuple[int, str]]()
    for place, text in texts.items():
        table = json.loads(text)
        changes = json.dumps(table.pop("changes", []))
        keys[place] = first.setdefault(json.dumps(table), place), changes

    def key(run: int) -> tuple[int, int, str, int]:
        place, replication = divmod(run, replications)
        start, changes = keys[place]
        return start, replication, changes, run

    return sorted(runs, key=key)


def _of_study(
    study: Study, runs: Sequence[int], means: Backend, spill: Path | None = None
) -> Iterator[Batch | None]:
    """The results of the runs of a study with these numbers; `None` now and then."""
    points, replications = study.points, study.replications
    try:
        if means.executor is None:
            jobs = (
                (run, points[run // replications].scenario, run % replications)
                for run in _shared(points, replications, runs)
            )
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
