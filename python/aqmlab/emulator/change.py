"""Changes of a running emulator from another process, as `aqmlab set` makes them.

    from aqmlab.emulator.change import change

    change("lab", {"down.rate": "5mbit", "down.queue.target": "20ms"})

The request and the answer stand in a file in memory of the emulator (see
`crates/aqmlab-emu/src/observe/control.rs`), which only those find who may look into its process:
the same user, and root.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab.emulator.links import link
from aqmlab.emulator.view import Emulator, named
from aqmlab.errors import EmulationError, InputError, input_error, renamed
from aqmlab.scenario.parts import plain
from aqmlab.scenario.settings import mapping_of
from aqmlab.scenario.toml import toml_value

PATIENCE = 5.0
"""Seconds until an emulator must have answered."""
POLL = 0.002
AGAIN = 0.2
"""Seconds after which the signal is sent again."""
REQUEST, ANSWERED, LENGTH, TEXT = 0, 8, 16, 24


@dataclass(frozen=True)
class Change:
    """A changed key, `links.NAME.KEY`, with its old and new value."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Changed:
    """What a request has done, and when: in seconds since the emulator began."""

    time_s: float
    changes: tuple[Change, ...]


def change(emulator: str | int, settings: Mapping[str, Any], *, replace: bool = False) -> Changed:
    """Gives keys of the links of a running emulator other values: all of them, or none.

    `emulator` is its process ID, or the name that it was given. A key is a link (its name, or
    `down` or `up`), a dot, and `rate`, `delay`, `loss`, `queue` or `queue.PARAMETER`; values are as
    in a scenario, or as the options of `aqmlab shell` take them (`"fq_codel target=5ms"`, `"1%"`).
    A parameter of a queue is written while the queue goes on, packets and state stay; with
    `replace` a new queue, with a new state, takes over the packets.

    Raises `InputError` if there is no such emulator, or it refuses a key or a value, and
    `EmulationError` if it does not answer.
    """
    found = named(emulator, key="emulator")
    verb = "replace" if replace else "set"
    pairs = plain(mapping_of(settings, "settings")).items()
    words = [word for key, value in pairs for word in (verb, key, _text(key, value))]
    answer = _ask(found, "".join(f"{word}\0" for word in words).encode())
    if "error" in answer:
        error = answer["error"]
        raise input_error(error["problem"], key=error["key"].removeprefix("links."),
                          given=error.get("given"), hint=error.get("hint"))  # fmt: skip
    return Changed(answer["time_s"], tuple(Change(**made) for made in answer["made"]))


def _text(key: str, value: Any) -> str:
    """A value in TOML, short forms written out."""
    name = key.removeprefix("links.").partition(".")[2]
    if name and "." not in name:
        try:
            value = link({name: value}).get(name, value)
        except InputError as error:
            raise renamed(error, key) from None
    return toml_value(value)


def _ask(emulator: Emulator, text: bytes) -> dict[str, Any]:
    """Asks, and waits for the answer."""
    gone = EmulationError(f"the emulator {emulator.pid} has ended")
    if emulator.control is None:
        raise EmulationError(f"the emulator {emulator.pid} had no memory for requests")
    try:
        file = os.open(emulator.control, os.O_RDWR)
    except OSError:
        raise gone from None
    try:
        # Who else asks waits; the lock ends with the process.
        fcntl.flock(file, fcntl.LOCK_EX)
        (last,) = struct.unpack("<Q", (os.pread(file, 8, REQUEST) or b"").ljust(8, b"\0"))
        os.pwrite(file, text, TEXT)
        os.pwrite(file, struct.pack("<Q", len(text)), LENGTH)
        os.pwrite(file, struct.pack("<Q", last + 1), REQUEST)
        until, again = time.monotonic() + PATIENCE, 0.0
        while (now := time.monotonic()) < until:
            if now >= again:
                os.kill(emulator.pid, signal.SIGURG)
                again = now + AGAIN
            done = os.pread(file, 8, ANSWERED).ljust(8, b"\0")
            if struct.unpack("<Q", done) == (last + 1,):
                (length,) = struct.unpack("<Q", os.pread(file, 8, LENGTH))
                return dict(json.loads(os.pread(file, length, TEXT)))
            time.sleep(POLL)
    except ProcessLookupError:
        raise gone from None
    finally:
        os.close(file)
    raise EmulationError(f"the emulator {emulator.pid} does not answer")
