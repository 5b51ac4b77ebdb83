"""The numbers of running emulators, as `aqmlab top` shows them.

An emulator keeps them in a file in memory, which is found in `/proc`, by whoever may look
into its process, and computes them only while somebody looks: the first eight bytes of the
file say until when, by the monotonic clock. The rest is a line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab.errors import input_error, unknown

NAME = "/memfd:aqmlab-view"
CONTROL = "/memfd:aqmlab-set."
DELETED = " (deleted)"
"""What the kernel adds to the name of such a file."""
HEAD = 8
WATCH = 3_000_000_000
"""Time in ns for which an emulator continues to compute after a viewer's last request."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator."""

    pid: int
    command: str
    file: Path
    name: str = ""
    """Name given by the user."""
    control: Path | None = None
    """File for requested changes."""

    def look(self) -> dict[str, Any] | None:
        """Requests the numbers and returns the present ones; `None` before there are any, or if the
        emulator has ended."""
        with contextlib.suppress(OSError), self.file.open("r+b", buffering=0) as file:
            file.write(struct.pack("<Q", time.monotonic_ns() + WATCH))
            for _ in range(3):
                text = self.file.read_bytes()[HEAD:]
                # Half written: a moment later it is whole.
                with contextlib.suppress(ValueError):
                    return dict(json.loads(text)) if text else None
                time.sleep(0.002)
        return None


def running() -> list[Emulator]:
    """The emulators that this user may look into, the outermost first."""
    found = []
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):
            files = dict(_files(process))
            if NAME not in files:
                continue
            words = (process / "cmdline").read_bytes().split(b"\0")
            command = b" ".join(words).decode(errors="replace").strip()
            control = next((name for name in files if name.startswith(CONTROL)), CONTROL)
            name = control.removeprefix(CONTROL)
            found.append(
                Emulator(int(process.name), command, files[NAME], name, files.get(control))
            )
    return found


def some_running(key: str = "", given: object = None) -> list[Emulator]:
    """Running emulators. Raises `InputError`, about `key`, without any."""
    found = running()
    if not found:
        problem = "no emulator is running that this user may inspect"
        is_inside = "AQMLAB_NEAR" in os.environ
        hint = "run this outside of the shell" if is_inside else "start one with `aqmlab shell`"
        raise input_error(problem, key=key, given=given, hint=hint)
    return found


def named(emulator: str | int, *, key: str) -> Emulator:
    """The running emulator of this process ID or name. Raises `InputError`, about `key`, if there
    is none, or more than one."""
    text = str(emulator)
    known = some_running(key, text)
    found = [each for each in known if text in (each.name, str(each.pid))]
    if len(found) == 1:
        return found[0]
    if found:
        pids = ", ".join(str(each.pid) for each in found)
        raise input_error("several emulators have this name", key=key, given=text,
                          hint=f"use a process ID: {pids}")  # fmt: skip
    raise unknown("emulator", text, [each.name or str(each.pid) for each in known], key=key)


def _files(process: Path) -> Iterator[tuple[str, Path]]:
    """Names of the files in memory of an emulator, and the files."""
    for file in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(file.readlink())
            if target.startswith((NAME, CONTROL)):
                yield target.removesuffix(DELETED), file


def between(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """Rates and counts of each link between two readings, and its present state."""
    took = now["time_s"] - before["time_s"]
    old = {link["link"]: link for link in before["links"]}
    rows = []
    for link in now["links"]:
        then = old[link["link"]]
        bits = 8 * (link["delivered_bytes"] - then["delivered_bytes"])
        changes = {
            key: link[key] - then[key]
            for key in ("arrived", "delivered", "dropped", "marked", "lost")
        }
        rows.append(link | changes | {"rate_bps": bits / took if took > 0 else 0.0})
    return rows
