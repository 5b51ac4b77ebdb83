"""Captures (`--pcap`) and logs (`--log`)."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.errors import input_error

if TYPE_CHECKING:
    from aqmlab._core import Scenario

WHOLE = 1 << 18
"""Bytes of each packet that are kept: all of them."""
LEAST_RING = 1 << 20
NEAR = "near"
"""Where packets are captured if nothing else is said: where the command sends or gets them."""


@dataclass(frozen=True)
class Recordings:
    """Recordings during an emulation."""

    pcap: Path | None = None
    ring: int | None = None
    """Size of the last part of a capture, held by two files; `None`: all of it."""
    logs: Sequence[tuple[str, Path]] = ()
    """Links and files."""
    places: str = NEAR
    """Where packets are captured."""

    def of_run(self, number: int, scenario: Scenario) -> dict[str, Any]:
        """The arguments `logs` and `capture` of the engine; files of the second run and later
        ones have its number in their names."""

        def named(file: Path) -> str:
            return str(file if number == 1 else file.with_stem(f"{file.stem}-{number}"))

        links = json.loads(scenario.resolved)["links"] if self.logs else {}
        return {
            "capture": self.pcap and (named(self.pcap), self.ring, WHOLE, self.places),
            "logs": [
                (link, named(file), _head(link, links.get(link, {}), named(file)))
                for link, file in self.logs
            ],
        }


NOTHING = Recordings()


def recordings(
    pcap: Path | None = None,
    ring: str | None = None,
    log: Sequence[str] = (),
    places: str | None = None,
) -> Recordings:
    """Parses options: `ring` is a size in bytes (`100mb`), `log` are texts `LINK=FILE`, `places` is
    `near`, `far` or `all`. Raises `InputError` for one that is none."""
    for option, value in (("ring", ring), ("at", places)):
        if pcap is None and value is not None:
            raise input_error("this is for a capture: give --pcap as well", key=f"--pcap-{option}")
    logs = []
    for text in log:
        link, equals, file = text.partition("=")
        if not equals or not link or not file:
            raise input_error("expected LINK=FILE, such as up=up.log", key="--log", given=text)
        logs.append((link, Path(file)))
    return Recordings(pcap, None if ring is None else _size(ring), logs, places or NEAR)


def _head(link: str, table: dict[str, Any], file: str) -> list[str]:
    """The first lines of a log, as mm-link has them."""
    queue = ", ".join(f"{key}={value}" for key, value in table.get("queue", {}).items())
    line = shlex.join(["aqmlab", *sys.argv[1:]])
    return [f"aqmlab ({link}) > {file}", f"command line: {line}", f"queue: {queue}"]


def _size(text: str) -> int:
    units = {"gb": 10**9, "mb": 10**6, "kb": 10**3, "b": 1}
    unit = next((unit for unit in units if text.lower().endswith(unit)), "")
    try:
        size = int(float(text[: -len(unit)]) * units[unit])
    except (KeyError, ValueError, OverflowError):
        size = 0
    if size < LEAST_RING:
        problem = "expected a size of at least 1mb, such as 100mb"
        raise input_error(problem, key="--pcap-ring", given=text)
    return size
