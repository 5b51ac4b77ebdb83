"""Runs of a study on any executor of `concurrent.futures`: other processes, or other machines.

Runs travel in batches of about `TARGET_SECONDS` of work. How many runs that is follows from what
the batches before took; as points differ, a worker that has spent `MOST_SECONDS` sends back what
it has, and the rest of its batch is given out again. A worker gets the points of the study, with
the files that they name, once, when it first finds that it does not have them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import queue
import time
import warnings
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field

import polars as pl

from aqmlab import _core
from aqmlab.errors import AqmlabError, ClusterError, ClusterWarning, StuckError
from aqmlab.results import Batch, gather
from aqmlab.study.points import Points
from aqmlab.study.runner import finished

TARGET_SECONDS = 1.0
MOST_SECONDS = 2.0
"""What a batch is to take, and when a worker begins no further run of it."""
GROWTH = 4
"""Largest growth of a batch, relative to the largest finished one."""
MOST_RUNS = 20_000
"""Largest number of runs in a batch."""
PATIENCE_SECONDS = 3.0
"""Time without workers after which a warning is due."""
AHEAD = 2
"""Batches for each slot that are under way: one that is computed, and the next."""
POLL_SECONDS = 0.1
PLANS = 4
"""So many studies a worker remembers."""


@dataclass(frozen=True)
class Build:
    """Version of aqmlab, and hash of the sources of its engine."""

    version: str
    engine: str

    def __str__(self) -> str:
        return f"{self.version} (build {self.engine})"


def own_build() -> Build:
    """Build of this process."""
    return Build(_core.__version__, _core.__engine__)


@dataclass
class Reply:
    """Result of a batch, whose finished runs are a `Batch`."""

    runs: list[int] = field(default_factory=list)
    """The runs that are finished."""
    large_rows: int = 0
    small_rows: int = 0
    tables: dict[str, bytes | pl.DataFrame] = field(default_factory=dict)
    """Tables of the runs; sent as streams of Arrow IPC: a file costs polars ten times as much."""
    stuck: Mapping[int, str] = field(default_factory=dict)
    """Runs that were given up."""
    left: tuple[int, ...] = ()
    """Runs that were not begun."""
    seconds: float = 0.0
    needs_plan: bool = False
    """Nothing was done: the worker does not know the study."""

    def table(self, name: str) -> pl.DataFrame:
        """The table called `name`."""
        found = self.tables[name]
        if isinstance(found, bytes):
            found = self.tables[name] = pl.read_ipc_stream(found)
        return found

    def part(self, name: str, start: int, rows: int) -> pl.DataFrame:
        """Rows of a large table from row `start` on, `rows` at most."""
        return self.table(name).slice(start, rows)


# What the worker does

_plans: dict[str, tuple[Points, int]] = {}
"""Points and number of replications of studies."""


def work(key: str, build: Build, plan: bytes | None, runs: Sequence[int]) -> Reply:
    """Computes runs of the study called `key`, and begins no further one after `MOST_SECONDS`.

    Raises `ClusterError` if this is another aqmlab than that of the client, and what runs raise.
    """
    if own_build() != build:
        raise ClusterError(f"a worker has aqmlab {own_build()}, and this is {build}")
    known = _plans.get(key)
    if known is None:
        if plan is None:
            return Reply(left=tuple(runs), needs_plan=True)
        known = pickle.loads(zlib.decompress(plan))
        if len(_plans) >= PLANS:
            _plans.clear()
        _plans[key] = known
    points, replications = known
    began = time.monotonic()
    batches: list[_core.Results] = []
    stuck: dict[int, str] = {}
    place = 0
    while place < len(runs) and (not place or time.monotonic() - began < MOST_SECONDS):
        end = _next_end(replications, runs, place, time.monotonic() - began)
        scenario = points[runs[place] // replications].scenario
        jobs = [(run, scenario, run % replications) for run in runs[place:end]]
        try:
            for batch in finished(jobs, threads=1):
                batches.append(batch)
        except StuckError as error:
            stuck |= {each["run"]: each["problem"] for each in error.failed}
        place = end
    return Reply(
        runs=sorted(run for batch in batches for run in batch.runs),
        large_rows=sum(batch.large_rows for batch in batches),
        small_rows=sum(batch.small_rows for batch in batches),
        tables={
            name: frame.write_ipc_stream(None, compression="lz4").getvalue()
            for name, frame in (gather(batches) if batches else {}).items()
        },
        stuck=stuck,
        left=tuple(runs[place:]),
        seconds=time.monotonic() - began,
    )


def _next_end(replications: int, runs: Sequence[int], place: int, spent: float) -> int:
    """Runs that begin together: of one point, as others may take a thousand times as long,
    and as many as fit into what is left of the seconds if they take what the others did."""
    left = TARGET_SECONDS - spent
    most = max(1, int(place * left / spent)) if place and spent > 0 else 1
    point = runs[place] // replications
    end = place + 1
    while end < min(len(runs), place + most) and runs[end] // replications == point:
        end += 1
    return end


# What the client does


def spread(
    points: Points, replications: int, runs: Sequence[int], executor: Executor
) -> Iterator[Batch | None]:
    """The results of these runs, as they come; `None` whenever there was nothing for a moment.

    What had come when Ctrl-C was pressed is given before it goes on. Raises `StuckError`, after
    all other results, if runs made no progress; `ClusterError` if the executor ends or has workers
    with another aqmlab.
    """
    given = _Given(_pickled(points, replications), runs, executor)
    stuck: dict[int, str] = {}
    try:
        while given.hand_out():
            reply = given.next(POLL_SECONDS)
            if reply is None:
                yield None
                continue
            stuck |= reply.stuck
            yield reply if reply.runs else None
    except (KeyboardInterrupt, AqmlabError):
        yield from given.rest()
        raise
    finally:
        given.cancel()
    if stuck:
        raise StuckError(stuck)


class _Given:
    """Batches given to the executor, and pending ones."""

    def __init__(self, plan: bytes, runs: Sequence[int], executor: Executor) -> None:
        self._executor = executor
        self._runs, self._place = runs, 0
        self._again: deque[tuple[int, ...]] = deque()
        """Runs returned without results."""
        self._plan = plan
        self._key = hashlib.sha256(plan).hexdigest()
        self._build = own_build()
        self._under_way: dict[Future[Reply], tuple[int, ...]] = {}
        self._came: queue.SimpleQueue[Future[Reply]] = queue.SimpleQueue()
        self._slots, self._counted = 1, float("-inf")
        self._idle: float | None = None
        """Since when there are no workers; infinite once that was said."""
        self._finished = 0
        self._seconds = 0.0
        """What a run takes, of late."""
        self._largest = 0

    def hand_out(self) -> bool:
        """Submits due batches; returns whether any is running."""
        if time.monotonic() - self._counted > 1:
            self._count()
        while len(self._under_way) < AHEAD * self._slots:
            if self._again:
                batch = self._again.popleft()
            else:
                size = self._size()
                batch = tuple(self._runs[self._place : self._place + size])
                self._place += len(batch)
            if not batch:
                break
            self._submit(batch, None)
        return bool(self._under_way)

    def _count(self) -> None:
        """Counts the slots, and warns after a time without any."""
        now = self._counted = time.monotonic()
        found = slots(self._executor)
        self._slots = max(1, found)
        if found:
            self._idle = None
            return
        self._idle = now if self._idle is None else self._idle
        if now - self._idle >= PATIENCE_SECONDS:
            self._idle = float("inf")
            how = getattr(self._executor, "waits_for", "start one")
            left = len(self._runs) - self._finished
            problem = f"{left:,} of {len(self._runs):,} runs wait for workers; none is connected"
            hint = "Ctrl-C ends the study; the same command resumes it"
            warnings.warn(ClusterWarning(f"{problem}: {how}. {hint}"), stacklevel=2)

    def next(self, timeout: float) -> Reply | None:
        """Next finished batch within `timeout` seconds, if any."""
        try:
            future = self._came.get(timeout=timeout)
        except queue.Empty:
            return None
        return self._taken(future)

    def rest(self) -> Iterator[Reply]:
        """Finished batches, without failed ones."""
        while True:
            try:
                future = self._came.get_nowait()
            except queue.Empty:
                return
            if not future.cancelled() and future.exception() is None and future.result().runs:
                yield future.result()

    def cancel(self) -> None:
        """Cancels running batches."""
        for future in self._under_way:
            future.cancel()

    def _submit(self, batch: tuple[int, ...], plan: bytes | None) -> None:
        try:
            future = self._executor.submit(work, self._key, self._build, plan, batch)
        except RuntimeError as error:  # shut down, or broken
            raise ClusterError(f"the executor accepts no further work: {_words(error)}") from error
        self._under_way[future] = batch
        future.add_done_callback(self._came.put)

    def _taken(self, future: Future[Reply]) -> Reply:
        batch = self._under_way.pop(future)
        try:
            reply = future.result()
        except AqmlabError:
            raise
        except (BrokenExecutor, CancelledError) as error:
            raise ClusterError(f"the executor ended: {_words(error)}") from error
        except Exception as error:
            first, last = batch[0], batch[-1]
            what = f"the workers failed at runs {first} to {last}: {_words(error)}"
            raise ClusterError(what) from error
        if reply.needs_plan:
            self._submit(batch, self._plan)
            return Reply()
        if reply.left:
            self._again.append(reply.left)
        done = len(reply.runs) + len(reply.stuck)
        self._finished += done
        if done:
            seconds = reply.seconds / done
            self._seconds = (self._seconds + seconds) / 2 if self._seconds else seconds
            self._largest = max(self._largest, done)
        return reply

    def _size(self) -> int:
        """Number of runs of the next batch. Towards the end all slots have a share."""
        left = len(self._runs) - self._place
        wanted = int(TARGET_SECONDS / self._seconds) if self._seconds else 1
        most = min(wanted, GROWTH * max(1, self._largest), MOST_RUNS, -(-left // self._slots))
        return max(1, most)


def slots(executor: Executor) -> int:
    """Number of batches that the executor computes at a time, if known."""
    if counted := getattr(executor, "slots", None):
        return int(counted())
    known = getattr(executor, "_max_workers", None)
    return known if isinstance(known, int) else os.cpu_count() or 1


def _pickled(points: Points, replications: int) -> bytes:
    try:
        return zlib.compress(pickle.dumps((points, replications)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        problem = "classes have to be in a file (`FILE.py:CLASS`) or module that workers can import"
        raise ClusterError(f"this study cannot be sent to workers: {problem} ({error})") from None


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
