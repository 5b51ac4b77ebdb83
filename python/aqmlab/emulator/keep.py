"""The results of an emulation, in a folder like that of any run.

The folder must be new, and is made, locked and written to before the command starts: an emulation
cannot be computed again. If it cannot be written to afterwards, the results go elsewhere.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import signals
from aqmlab.errors import FolderError, stored
from aqmlab.files import LOCK, OWNER, lock, unlock

if TYPE_CHECKING:
    from aqmlab._core import Emulation

PROBE_BYTES = 1 << 20
"""Size that must be free before anything is run."""


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
            with stored(self.folder, "nothing was run"):
                self._reserve(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._release()
        if kind is not None and self._made and self.folder is not None:
            with suppress(OSError):
                self.folder.rmdir()

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
            os.pwrite(self._lock, bytes(PROBE_BYTES), size)
            os.fsync(self._lock)
            os.ftruncate(self._lock, size)
        except (FolderError, OSError):
            self._release()
            raise

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
                _write(emulation, self.folder, command)
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


def _write(emulation: Emulation, folder: Path, command: str) -> None:
    from aqmlab.emulator.report import document, title
    from aqmlab.report.document import save
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
        save(page, folder, figures=True)
