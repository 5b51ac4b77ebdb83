"""Commands behind emulated links: real packets through the simulator's queues.

* `links`: what the command line says of links, as a scenario.
* `mahimahi`: what mahimahi's command lines say, as links.
* `keep`: the results, in a folder like that of any run.

The work is done by the engine, in real time, without the interpreter.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab import _core

if TYPE_CHECKING:
    from aqmlab.emulator.links import EmulatedPath
    from aqmlab.emulator.recordings import Capture, Log

DEFAULT_SHELL = "/bin/sh"


def emulate(
    path: EmulatedPath,
    command: Sequence[str],
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
    """Runs `command` (`$SHELL` if it is empty) behind `path`, in real time.

    `far` is a command line for the other end of the path; with `nat` the command reaches
    what is outside, through a gateway. `settings` are those of the
    section `emulator` of the reference; `logs`, `capture`, `until`, `attached` and `interface`
    are as in `_core.emulate`. Raises `InputError` if they are not right or
    the system has no place for an emulated path.
    """
    words = list(command) or [os.environ.get("SHELL") or DEFAULT_SHELL]
    return _core.emulate(
        path.scenario,
        words,
        down=path.down,
        up=path.up,
        far=shlex.split(far),
        nat=nat,
        environment=list(os.environ.items()),
        settings=dict(settings or {}),
        logs=logs,
        capture=capture,
        until=until,
        attached=attached,
        interface=interface,
    )
