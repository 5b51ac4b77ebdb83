"""Commands behind emulated links: real packets through the simulator's queues.

* `links`: links from options of the command line, as a scenario.
* `mahimahi`: links from mahimahi's command lines.
* `keep`: captures, logs and results folders of emulations.

The engine does the work in real time, without the interpreter. It makes a copy of the process,
which must have one thread: nothing here, and nothing that was imported before, may use numpy or
polars.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab import _core
from aqmlab.emulator.keep import NOTHING, Capture, Log, Recordings
from aqmlab.scenario.settings import words_of

if TYPE_CHECKING:
    from aqmlab.emulator.links import EmulatedPath

DEFAULT_SHELL = "/bin/sh"
Job = tuple[int, _core.Scenario, int]
"""Number of the run, scenario, replication."""


def shell_unless(command: Sequence[str]) -> list[str]:
    """The program and its arguments; `$SHELL` without any."""
    return list(command) or [os.environ.get("SHELL") or DEFAULT_SHELL]


def emulate(
    path: EmulatedPath,
    command: str | Sequence[str],
    *,
    far: str = "",
    nat: bool = False,
    settings: Mapping[str, Any] | None = None,
    logs: Sequence[Log] = (),
    capture: Capture | None = None,
    until: float | None = None,
    attached: int | None = None,
    interface: str | None = None,
) -> _core.Emulation:
    """Runs a command behind an emulated path, in real time (docs/emulator.md).

    Parameters
    ----------
    path : EmulatedPath
        Links in both directions, as `aqmlab.emulator.links.from_options` makes them.
    command : str or sequence of str
        Command line, or program and arguments; empty for `$SHELL`.
    far : str, optional
        Command line of a server at the other end of the path.
    nat : bool, default False
        Lets the command reach other networks through a gateway.
    settings : mapping, optional
        Keys of the section `emulator` of the reference, such as `precision`.
    logs : sequence of Log, optional
        Links to log in mahimahi's format.
    capture : Capture, optional
        Packets to capture in pcapng.
    until : float, optional
        Time in seconds after which the command is ended.
    attached : int, optional
        Process ID: the path is put in front of its network namespace, and the command runs there.
    interface : str, optional
        Ethernet interface of this network namespace: the path is put in front of it.

    Returns
    -------
    Emulation
        Exit status, tables and timing.

    Raises
    ------
    InputError
        If an argument is invalid, the system cannot create the path, or this process has several
        threads, as after the first use of a table.

    Examples
    --------
    >>> path = from_options({"rate": "12mbit", "queue": "codel"}, [], [], {})
    >>> done = aqmlab.emulate(path, "sh -c 'ping -c 3 $AQMLAB_FAR'")
    >>> aqmlab.RunResult.of([done.results], done.scenario).links
    """
    if isinstance(command, str):
        command = words_of(command, "command")
    return _core.emulate(
        path.scenario,
        shell_unless(command),
        down=path.down,
        up=path.up,
        far=words_of(far, "far"),
        nat=nat,
        environment=list(os.environ.items()),
        settings=dict(settings or {}),
        logs=logs,
        capture=capture,
        until=until,
        attached=attached,
        interface=interface,
    )


def played(
    jobs: Sequence[Job],
    settings: Mapping[str, Any] | None = None,
    told: Callable[[int, int], None] | None = None,
    recorded: Recordings = NOTHING,
) -> Iterator[_core.Emulation]:
    """Runs scenarios with real packets, in sequence and in real time: the kernel's own TCP and UDP,
    between hosts of our own. Starts, gaps and sizes are those of the simulator.

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
