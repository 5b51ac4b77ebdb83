"""Captures (`--pcap`), logs (`--log`) and results of an emulation.

The folder of the results is like that of any run. It must be new, and is made, locked and written
to before the command starts: an emulation cannot be computed again. If it cannot be written to
afterwards, the results go elsewhere.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import libraries, signals
from aqmlab.errors import EmulationError, FolderError, StorageError, input_error, stored
from aqmlab.files import LOCK, OWNER, lock, unlock

if TYPE_CHECKING:
    from aqmlab._core import Emulation, Scenario

PROBE_BYTES = 1 << 20
"""Size that must be free before anything is run."""
WHOLE = 1 << 18
"""Bytes of each packet that are kept: all of them."""
LEAST_RING = 10**6
NEAR = "near"
"""Where packets are captured if nothing else is said: where the command sends or gets them."""
Log = tuple[str, str, Sequence[str]]
"""A log as the engine takes it: the link, the file, and the lines that it begins with."""

Capture = tuple[str, int | None, int, str]
"""A capture: the file, of how many bytes the last are kept, how many of each packet, and where."""


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
    for option, value in (("ring", ring), ("places", places)):
        if pcap is None and value is not None:
            raise input_error("this is for a capture, which needs a file (--pcap)", key=option)
    logs = []
    for text in log:
        link, equals, file = text.partition("=")
        if not equals or not link or not file:
            raise input_error("expected LINK=FILE, such as up=up.log", key="log", given=text)
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
        raise input_error(problem, key="ring", given=text)
    return size


class Reserved:
    """A folder for results, held from before the command starts. Use it in a `with` statement.

    Without a folder nothing is kept. `place` is where the results are in the end, `problem` why
    they are not in the folder.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.place: Path | None = None
        self.problem = ""
        self._lock = -1
        self._made = False

    def __enter__(self) -> Reserved:
        if self.folder is not None:
            if obstacle := libraries.obstacle():
                raise EmulationError(f"{self.folder}: {obstacle}; nothing was run")
            with stored(self.folder, "nothing was run"):
                self._reserve(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._release()
        if kind is not None:
            self._remove_empty()

    def _reserve(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise FolderError(f"{folder}: this is a file, not a folder for results")
        self._made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = lock(folder)
        except BlockingIOError:
            problem = "another aqmlab process is writing to this folder; nothing was run"
            raise FolderError(f"{folder}: {problem}") from None
        try:
            if any(each.name not in (LOCK, OWNER) for each in folder.iterdir()):
                advice = "nothing was run. Choose another folder with --out"
                raise FolderError(f"{folder}: this folder is not empty; {advice}")
            size = os.fstat(self._lock).st_size
            left = PROBE_BYTES  # A disk that fills up takes a part of it first.
            while left:
                left -= os.pwrite(self._lock, bytes(left), size + PROBE_BYTES - left)
            os.fsync(self._lock)
            os.ftruncate(self._lock, size)
        except (FolderError, OSError):
            self._release()
            self._remove_empty()
            raise

    def _remove_empty(self) -> None:
        if self._made and self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()

    def _release(self) -> None:
        if self._lock >= 0 and self.folder is not None:
            unlock(self.folder, self._lock)
            self._lock = -1

    def keep(self, emulation: Emulation, command: str = "") -> None:
        """Writes tables, manifest and report; `command` is the command that made them.

        A second Ctrl-C does not interrupt it: the first one ended the command, and its results
        cannot be computed again.
        """
        if self.folder is None:
            return
        self._release()
        with signals.ignored():
            try:
                self.problem = _write(emulation, self.folder, command)
                self.place = self.folder
            except (FolderError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self.problem = f"{self.folder}: {reason}"
                self.place = _elsewhere(emulation, command)

    def told(self) -> list[str]:
        """Lines for the terminal: where the results are."""
        if self.folder is None:
            return []
        if not self.problem:
            return [f"results: {self.place}; report: {self.place}/report.html"]
        if self.place is None:
            return [f"{self.problem}; the results could be written nowhere else"]
        return [f"{self.problem}; the results are in {self.place}"]


def _elsewhere(emulation: Emulation, command: str) -> Path | None:
    """A folder of its own among the temporary files; `None` if there is no room either."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="aqmlab-results-"))
        _write(emulation, folder, command)
    except (FolderError, OSError):
        return None
    return folder


def _write(emulation: Emulation, folder: Path, command: str) -> str:
    """Writes the tables, the page and its figures. Returns the problem if only those failed."""
    from aqmlab.emulator.report import document, title
    from aqmlab.report.document.files import FIGURES, save
    from aqmlab.results import resolved
    from aqmlab.study import Study
    from aqmlab.study.execute import folder_of

    text = emulation.scenario.resolved
    study = Study(
        {"name": folder.name or "emulation", "title": title(command), "scenario": resolved(text)}
    )
    with folder_of(study, folder, emulated=True) as results:
        results.add([emulation.results])
        results.finish()
        page = document(results.result(computed=1).single(), command, folder)
        try:
            save(page, folder, figures=True)
        except StorageError as error:
            if error.filename != str(folder / FIGURES):
                raise
            return f"{folder}: the figures were not written: {error.strerror}"
    return ""
