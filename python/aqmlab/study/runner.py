"""Loop around the engine: runs on all cores, with results in batches.

Imports no library for tables: `aqmlab run` works without one.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypedDict

from aqmlab import _core, signals
from aqmlab.errors import StuckError
from aqmlab.scenario.settings import whole

Job = tuple[int, _core.Scenario, int]
"""Run number, scenario, replication."""
AHEAD = 64
"""For each thread so many jobs are made before they are due."""
POLL_SECONDS = 0.1
PAUSE_SECONDS = 0.005
"""Between two batches, so that they are not of single runs."""


class Record(TypedDict):
    """The files in which a run is recorded while it goes on."""

    pcap: str | None
    """Every packet as it is sent."""
    pcap_links: list[int]
    """If not empty, all packets that reach these links are captured instead."""
    qlog: str | None
    """Log of the TCP senders."""
    connections: tuple[str, str] | None
    """Start and end of the names of the logs that QUIC stacks write."""


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
    if threads is None:
        threads = len(os.sched_getaffinity(0))
    threads = min(whole(threads, 1, "threads", below=math.inf), max(1, count))
    feed, ahead = iter(jobs), AHEAD * threads
    first = list(islice(feed, ahead))
    runner = _core.Runner(
        first,
        threads=threads,
        open=len(first) < count,
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
