"""The results folder: Parquet tables beside a manifest that says what they are.

While a study runs, finished runs are kept in `chunks/`, one folder a second, each
written under another name, synced and renamed: it is there as a whole or not at
all. At the end the chunks become one file a table, sorted by run, so that the
bytes depend neither on the threads nor on interruptions. A folder is only ever
written to by the study (digest) and the build of aqmlab that began it.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from aqmlab import _core
from aqmlab.errors import FolderError, StorageError
from aqmlab.results import METRICS, FolderTables, StudyInfo, StudyResult, by_run, gather

FORMAT = 1
MANIFEST = "manifest.json"
SCENARIOS = "scenarios.json"
CHUNKS = "chunks"
LOCK = ".lock"
REST = {LOCK, f"{MANIFEST}.tmp", f"{SCENARIOS}.tmp", SCENARIOS}
"""What may lie in a folder in which the very first write was interrupted."""


class ResultsFolder:
    """A folder that one study writes to. Use it in a `with` statement: it is locked."""

    def __init__(self, path: Path, info: StudyInfo, scenarios: Sequence[str]) -> None:
        self.path = path
        self.info = info
        self.done: set[int] = set()
        """The numbers of the runs that are on the disk."""
        self._scenarios = scenarios
        self._started = time.monotonic()
        self._chunk = 0
        self._lock = -1

    @property
    def total(self) -> int:
        """The number of runs of the study."""
        return self.info.points * self.info.replications

    def __enter__(self) -> ResultsFolder:
        """Checks that the folder is this study's or new, and reads what is done."""
        self._refuse_strangers()
        with self._storage():
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
            self._take_lock()
            if not (self.path / MANIFEST).exists():
                self._write_scenarios()
                self._write_manifest({"complete": False, "wall_seconds": 0.0})
            elif self._read_manifest()["complete"]:
                self.done = set(range(self.total))
                self._clean()
            else:
                self._find_chunks()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            (self.path / LOCK).unlink(missing_ok=True)
            os.close(self._lock)

    @property
    def kept(self) -> str:
        """In words, what is on the disk."""
        return f"{len(self.done):,} of {self.total:,} runs are kept in {self.path}"

    @property
    def complete(self) -> bool:
        """Whether the final tables are there."""
        return bool(self._read_manifest()["complete"])

    def add(self, batches: Sequence[_core.Results]) -> None:
        """Puts finished runs on the disk, all of them or none."""
        with self._storage():
            write_chunk(self.next_chunk(), batches)
        self.done.update(run for batch in batches for run in batch.runs)

    def next_chunk(self) -> Path:
        """Where the next finished runs belong, whoever writes them (`write_chunk`)."""
        self._chunk += 1
        return self.path / CHUNKS / f"{self._chunk - 1:06}"

    def pause(self) -> None:
        """Adds the time spent to the manifest of a study that is not finished."""
        with self._storage():
            self._write_manifest({"complete": False, "wall_seconds": self._wall()})

    def finish(self) -> None:
        """Makes the final tables of the chunks."""
        chunks = [each for each in sorted((self.path / CHUNKS).iterdir()) if not each.suffix]
        tables = {}
        with self._storage():
            for name in _core.Results.table_names():
                frame = by_run(
                    [pl.read_parquet(each / f"{name}.parquet", glob=False) for each in chunks]
                )
                tables[name] = frame.height
                replace(self.path / f"{name}.parquet", parquet(frame))
            computed = self._result(list(tables), 0).raw(METRICS)
            tables[METRICS] = computed.height
            replace(self.path / f"{METRICS}.parquet", parquet(computed))
            self._write_manifest({"complete": True, "wall_seconds": self._wall(), "tables": tables})
            self._clean()

    def result(self, computed: int) -> StudyResult:
        """The finished results."""
        return self._result(list(self._read_manifest()["tables"]), computed)

    def _result(self, names: Sequence[str], computed: int) -> StudyResult:
        scenarios = [json.loads(text) for text in self._scenarios]
        tables = FolderTables(self.path, names)
        return StudyResult(self.info, tables, scenarios, folder=self.path, computed=computed)

    def _refuse_strangers(self) -> None:
        """Raises `FolderError` for a folder of something else; changes nothing."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise FolderError(f"{self.path}: this is a file, not a folder for results")
        if not (self.path / MANIFEST).exists():
            if any(each.name not in REST for each in self.path.iterdir()):
                raise FolderError(
                    f"{self.path}: this folder has other things in it, and no results of aqmlab; "
                    "nothing was changed. Choose another with --out"
                )
            return
        manifest = self._read_manifest()
        where = f"{self.path}: this folder holds results"
        advice = (
            f"; nothing was changed. Choose another with --out, or remove it (rm -r {self.path})"
        )
        if manifest["version"] != self.info.version:
            versions = f"{manifest['version']}, and this is {self.info.version}"
            raise FolderError(f"{where} of aqmlab {versions}{advice}")
        if manifest["digest"] != self.info.digest:
            raise FolderError(f"{where} of another scenario: {self._difference(manifest)}{advice}")
        if manifest["engine"] != engine_digest():
            version = self.info.version
            raise FolderError(f"{where} of another build of aqmlab {version}{advice}")

    def _difference(self, manifest: Mapping[str, Any]) -> str:
        """In words, how the study in the folder differs from this one."""
        for key, word in (("name", "study"), ("replications", "replications"), ("seed", "seed")):
            mine = getattr(self.info, key)
            if manifest[key] != mine:
                return f"{word} {manifest[key]}, not {mine}"
        if manifest["axes"] != axes_json(self.info):
            return "other axes"
        return self._other_setting() or "its settings differ (see scenarios.json there)"

    def _other_setting(self) -> str | None:
        """The first setting that differs, if the scenarios in the folder can be read."""
        try:
            theirs = json.loads((self.path / SCENARIOS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        for their, own in zip(theirs, self._scenarios, strict=False):
            if found := first_difference(their, json.loads(own)):
                key, there, here = found
                return f"{key} is {there} there and {here} here"
        return None

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = -1
            raise FolderError(f"{self.path}: another aqmlab is writing to it just now") from None

    def _find_chunks(self) -> None:
        folder = self.path / CHUNKS
        for chunk in sorted(folder.iterdir()) if folder.exists() else []:
            if chunk.suffix:
                shutil.rmtree(chunk)
                continue
            runs = pl.read_parquet(chunk / "runs.parquet", columns=["run"], glob=False)
            self.done.update(runs["run"].to_list())
            self._chunk = int(chunk.name) + 1

    def _clean(self) -> None:
        shutil.rmtree(self.path / CHUNKS, ignore_errors=True)

    def _wall(self) -> float:
        before = float(self._read_manifest()["wall_seconds"])
        now = time.monotonic()
        spent, self._started = now - self._started, now
        return round(before + spent, 3)

    def _write_scenarios(self) -> None:
        replace(self.path / SCENARIOS, b"[\n" + ",\n".join(self._scenarios).encode() + b"\n]\n")

    def _write_manifest(self, state: Mapping[str, Any]) -> None:
        content = {
            "format": FORMAT,
            "name": self.info.name,
            "title": self.info.title,
            "version": self.info.version,
            "engine": engine_digest(),
            "digest": self.info.digest,
            "seed": self.info.seed,
            "replications": self.info.replications,
            "runs": self.total,
            "axes": axes_json(self.info),
            "host": host(),
            **state,
        }
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        replace(self.path / MANIFEST, text.encode())

    def _read_manifest(self) -> dict[str, Any]:
        return read_manifest(self.path)

    def _storage(self) -> _Storage:
        return _Storage(self)


class _Storage:
    """Turns an `OSError` on the way out into a `StorageError` that says what is kept."""

    def __init__(self, folder: ResultsFolder) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            done, total = len(self._folder.done), self._folder.total
            kept = f"{done:,} of {total:,} runs are kept"
            raise StorageError(error, self._folder.path, kept) from error


def write_chunk(chunk: Path, batches: Sequence[_core.Results]) -> None:
    """Writes finished runs, all of them or none. Raises `OSError`."""
    temporary = chunk.with_name(f"{chunk.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        for table, frame in gather(batches).items():
            write_synced(temporary / f"{table}.parquet", parquet(frame))
        sync(temporary)
        temporary.rename(chunk)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(chunk.parent)


def open_results(path: Path) -> StudyResult:
    """The finished results in `path`, whatever version of aqmlab computed them."""
    if not (path / MANIFEST).exists():
        raise FolderError(f"{path}: there are no results of aqmlab here")
    manifest = read_manifest(path)
    if not manifest["complete"]:
        raise FolderError(f"{path}: these results are not finished; run the same command again")
    axes = tuple((axis["name"], tuple(axis["labels"])) for axis in manifest["axes"])
    keys = ("name", "title", "replications", "seed", "digest", "version")
    info = StudyInfo(axes=axes, **{key: manifest[key] for key in keys})
    scenarios = json.loads((path / SCENARIOS).read_text(encoding="utf-8"))
    return StudyResult(info, FolderTables(path, list(manifest["tables"])), scenarios, folder=path)


def first_difference(theirs: Any, own: Any, place: str = "") -> tuple[str, str, str] | None:
    """Dotted key and both values of the first place where two scenarios differ."""
    if theirs == own:
        return None
    if not (isinstance(theirs, Mapping) and isinstance(own, Mapping)):
        there, here = ("not set" if each is None else str(each) for each in (theirs, own))
        return place, there, here
    for key in dict.fromkeys([*own, *theirs]):
        inner = f"{place}.{key}" if place else str(key)
        if found := first_difference(theirs.get(key), own.get(key), inner):
            return found
    return None


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a results folder; `FolderError` if it is not one."""
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise FolderError(f"{file}: results in a format of another version of aqmlab")
        for key in ("version", "engine", "digest", "name", "replications", "seed", "axes"):
            manifest[key]
        manifest["complete"], manifest["wall_seconds"]
    except (ValueError, KeyError, TypeError):
        raise FolderError(f"{file}: this is not a manifest of aqmlab") from None
    return dict(manifest)


def parquet(frame: pl.DataFrame) -> bytes:
    """The table as Parquet. The options are pinned, so equal tables give equal bytes."""
    buffer = io.BytesIO()
    frame.rechunk().write_parquet(
        buffer,
        compression="zstd",
        compression_level=3,
        statistics=True,
        row_group_size=1 << 18,
        data_page_size=1 << 20,
    )
    return buffer.getvalue()


def replace(path: Path, content: bytes) -> None:
    """Puts `content` in the place of the file at `path`, as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        write_synced(temporary, content)
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Writes a file and waits until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Waits until the names in `folder` are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@cache
def engine_digest() -> str:
    """The first 16 digits of the SHA-256 of the engine's binary: which build it is."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:16]


def axes_json(info: StudyInfo) -> list[dict[str, Any]]:
    """The axes as they stand in the manifest."""
    return [{"name": name, "labels": list(labels)} for name, labels in info.axes]


def host() -> dict[str, Any]:
    """The machine, for the manifest."""
    return {
        "name": platform.node(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
