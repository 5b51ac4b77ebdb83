"""Sources of a study: the files that its results were made of, kept in `sources/` of their folder.

The scenarios of all points are in `scenarios.json`. Beside them a rerun needs what they name: input
files (traces) and the files of custom queues and congestion controls; custom metrics are in the
tables. The study file and the scenario file are kept for readers. The manifest describes and seals
these files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import custom
from aqmlab.errors import InputError

if TYPE_CHECKING:
    from aqmlab.storage import Seal
    from aqmlab.study.sweep import Study

SOURCES = "sources"
STUDY, SCENARIO, INPUT, CODE, METRICS = "study", "scenario", "input", "code", "metrics"
"""Kinds of sources."""
FILE = re.compile(rf"{SOURCES}/[A-Za-z0-9][A-Za-z0-9._-]*")
"""Name of a source in a folder."""
CLASS = re.compile(r'"(?:discipline|algorithm)":"([^"\\]+:[^"\\]+)","code":"([0-9a-f]{16})"')
"""A custom class in a resolved scenario: its name and the digest of its code."""

_command = [""]
_metrics: dict[str, bytes] = {}


@contextmanager
def made_by(command: str) -> Iterator[None]:
    """Records `command` in the results that are written meanwhile."""
    _command.append(command)
    try:
        yield
    finally:
        _command.pop()


def current_command() -> str:
    """The command that makes results now; empty in Python."""
    return _command[-1]


def add_metrics(file: str) -> None:
    """Adds a file with custom metrics to the sources of later results."""
    _metrics[file] = Path(file).read_bytes()


@dataclass(frozen=True)
class Source:
    """A file that results were made of."""

    kind: str
    name: str
    """Name by which a command, study or scenario refers to it."""
    content: bytes


@dataclass(frozen=True)
class Sources:
    """The files that results were made of, and the command."""

    files: tuple[Source, ...]
    missing: tuple[str, ...] = ()
    """Custom classes that are in no file."""
    command: str = ""
    emulated: bool = False
    """True if the runs sent real packets, so that another run has other results."""

    @staticmethod
    def of(study: Study, *, emulated: bool = False) -> Sources:
        """The sources of a study whose points were checked."""
        files = [*study.documents(), *(Source(INPUT, *each) for each in study.points.inputs())]
        missing = []
        for name, code in sorted(study.points.classes()):
            content = _code(name, code, study.points.folders)
            if content is None:
                missing.append(name)
            else:
                files.append(Source(CODE, name.rpartition(":")[0], content))
        files += [Source(METRICS, *each) for each in _metrics.items()]
        return Sources(tuple(dict.fromkeys(files)), tuple(missing), current_command(), emulated)

    @staticmethod
    def read(folder: Path, manifest: Mapping[str, Any]) -> Sources:
        """The sources in a results folder; those that are damaged are left out."""
        from aqmlab.storage import Damaged, Seal

        form = manifest[SOURCES]
        files = []
        for each in form["files"]:
            with suppress(Damaged):
                seal = Seal.from_json(manifest["files"][each["file"]])
                content = seal.read(folder / each["file"])
                files.append(Source(each["kind"], each["name"], content))
        return Sources(tuple(files), tuple(form["missing"]), form["command"], form["emulated"])

    def write(self, folder: Path) -> tuple[dict[str, Any], dict[str, Seal]]:
        """Writes the files into `folder`; returns their description for the manifest, and their
        seals. Raises `OSError`."""
        from aqmlab.storage import content, make_folder, replace

        taken: dict[str, Source] = {}
        for source in self.files:
            name = _free(source.name, taken)
            taken[name] = source
        if taken:
            make_folder(folder / SOURCES)
        seals, files = {}, []
        for name, each in taken.items():
            seals[name] = replace(folder / name, content(each.content))
            files.append({"file": name, "kind": each.kind, "name": each.name})
        form = {"command": self.command, "emulated": self.emulated, "missing": list(self.missing)}
        return {**form, "files": files}, seals


def _free(name: str, taken: Mapping[str, object]) -> str:
    """A safe name in the folder that no other source has."""
    word = re.sub(r"[^A-Za-z0-9._-]", "_", Path(name).name).lstrip("._-") or "file"
    stem, dot, suffix = word.partition(".")
    number, found = 1, f"{SOURCES}/{word}"
    while found in taken:
        number += 1
        found = f"{SOURCES}/{stem}-{number}{dot}{suffix}"
    return found


def _code(name: str, code: str, folders: Sequence[str]) -> bytes | None:
    """Content of the file of a class; None if it is in no file, or its file has changed."""
    try:
        file = custom.file_of(name, folders)
        content = file.read_bytes() if file else None
    except (OSError, InputError):
        return None
    return content if content is not None and custom.digest(content) == code else None


def checked(given: Any) -> dict[str, Any]:
    """The description in a manifest. Raises `KeyError`, `TypeError` or `ValueError`."""
    texts = [given["command"], *given["missing"]]
    files = [{key: each[key] for key in ("file", "kind", "name")} for each in given["files"]]
    texts += [text for each in files for text in each.values()]
    if type(given["emulated"]) is not bool or not all(isinstance(each, str) for each in texts):
        raise ValueError
    if not all(FILE.fullmatch(each["file"]) for each in files):
        raise ValueError
    return {**given, "files": files}


NO_SOURCES: Mapping[str, Any] = {"command": "", "emulated": False, "missing": [], "files": []}
"""Description in a manifest, under `SOURCES`, before sources were written."""


def code_in(manifest: Mapping[str, Any]) -> list[str]:
    """The files with code that a rerun executes."""
    files = manifest[SOURCES]["files"]
    return [each["file"] for each in files if each["kind"] in (CODE, METRICS)]


def rerun_command(folder: Path, manifest: Mapping[str, Any]) -> str:
    """The command that repeats the results in `folder`."""
    return shlex.join(["aqmlab", "rerun", str(folder), *(["--trust"] if code_in(manifest) else [])])
