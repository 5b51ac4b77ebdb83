"""Scenarios with real packets: the kernel's own TCP and UDP, played by the built-in client and
server between hosts of our own, behind the scenario's links. Starts, gaps and sizes are those
of the simulator.

The engine makes a copy of the process, which must have one thread: nothing here, and nothing
that was imported before, may use numpy or polars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from aqmlab import _core
from aqmlab.emulator.recordings import NOTHING, Recordings

Job = tuple[int, _core.Scenario, int]
"""Number of the run, scenario, replication."""


def played(
    jobs: Sequence[Job],
    settings: Mapping[str, Any] | None = None,
    told: Callable[[int, int], None] | None = None,
    recorded: Recordings = NOTHING,
) -> Iterator[_core.Emulation]:
    """Runs the jobs with real packets, in sequence and in real time.

    `told` is called with the number of the next and of all.
    """
    for _, scenario, _ in jobs:
        _core.check_playable(scenario)
    for number, (run, scenario, replication) in enumerate(jobs):
        if told:
            told(number, len(jobs))
        yield _core.play(
            scenario,
            run=run,
            replication=replication,
            settings=dict(settings or {}),
            **recorded.of_run(number + 1, scenario),
        )
