"""Results folder: Parquet tables with a manifest that describes them.

While a study runs, finished runs are kept in `chunks/` (`aqmlab.study.chunks`). At the end the
chunks become one file a table, sorted by run, so that the bytes depend neither on the
threads nor on interruptions. A folder is only ever written to by the study (digest) and the
build of aqmlab that began it.

Every file has its checksum, in the manifest or in its chunk. What does not match it is
moved to `damaged/`, and made again where that is possible.
"""

from __future__ import annotations

import errno
import json
import shutil
import time
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from aqmlab import _core
from aqmlab.errors import DamageWarning, FolderError, StorageError
from aqmlab.files import LOCK, OWNER, free, lock, unlock
from aqmlab.metrics.table import COLUMNS, computed
from aqmlab.results import METRICS, Batch, Scenarios, StudyInfo, StudyResult, check_process
from aqmlab.results.tables import FolderTables
from aqmlab.storage import (
    MALFORMED,
    Damaged,
    Seal,
    Target,
    group_rows,
    make_folder,
    opened,
    replace,
    slices,
    stream,
    sync,
)
from aqmlab.study.chunks import (
    Chunk,
    NamedFrames,
    file_of,
    merged,
    read_chunk,
    shape,
    write_chunk,
    write_frames,
)
from aqmlab.study.manifest import (
    ADVICE,
    MANIFEST,
    SCENARIOS,
    found_manifest,
    other_origin,
    read_manifest,
    seals_of,
    study_info,
    write_manifest,
)
from aqmlab.study.precision import Precision
from aqmlab.study.sequential import renumbered
from aqmlab.study.shards import WHOLE, Shard, shard_of
from aqmlab.study.sources import FILE, NO_SOURCES, SOURCES, Sources

CHUNKS = "chunks"
DAMAGED = "damaged"
SPILL = "spill"
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of a folder that this process may only read."""
REST = {LOCK, OWNER, f"{MANIFEST}.tmp", f"{SCENARIOS}.tmp", SCENARIOS}
"""Files that may be in a folder after an interrupted first write."""
LARGE_ROWS = 1 << 18
"""Rows of series and packets that are put together in memory, for a chunk of several batches."""
PART_ROWS = 1_000
"""Rows of a table, roughly, of the runs whose metrics are computed together; a parsed scenario has
20 kB."""


class ResultsFolder:
    """A folder that one study writes to. Use it in a `with` statement: it is locked.

    What is found to be damaged is told as a `DamageWarning`.
    """

    def __init__(
        self,
        path: Path,
        info: StudyInfo,
        scenarios: Scenarios,
        shard: Shard = WHOLE,
        sources: Sources | None = None,
    ) -> None:
        self.path = path
        self.info = info
        self.shard = shard
        """Runs that belong in this folder."""
        self._done = np.zeros(self.total, bool)
        """Whether each run is on the disk."""
        self._scenarios = scenarios
        self._started = time.monotonic()
        self._chunks: list[Chunk] = []
        self._next = 0
        self._lock = -1
        self._sources = sources
        self._described = NO_SOURCES
        """Description of the sources in the folder."""
        self._files: dict[str, Seal] = {}
        """Seals of the files in the folder."""
        self._rows: dict[str, int] = {}
        """Numbers of rows of the final tables."""

    @property
    def total(self) -> int:
        """The number of runs of the study."""
        return self.info.points * self.info.replications

    def __enter__(self) -> ResultsFolder:
        """Checks that the folder is this study's or new, and reads its finished runs."""
        self._refuse_strangers()
        try:
            with self.storage():
                make_folder(self.path)
                self._take_lock()
                self.clean_spill()
                # Once more: another aqmlab may have been at work until now.
                self._refuse_strangers()
                if self._has_manifest:
                    self._find()
                else:
                    self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            unlock(self.path, self._lock)
            self._lock = -1

    @property
    def kept(self) -> str:
        """Description of the contents of the disk."""
        return f"{self.done:,} of {self.total:,} runs are kept in {self.path}"

    @property
    def done(self) -> int:
        """Number of runs on the disk."""
        return int(self._done.sum())

    @property
    def complete(self) -> bool:
        """Whether the final tables are there."""
        return bool(read_manifest(self.path)["complete"])

    def missing(self) -> Sequence[int]:
        """The numbers of the runs of the shard that are not on the disk, ascending."""
        own = np.fromiter(self.shard.runs(self.total), np.int64)
        return array("q", own[~self._done[own]].tobytes())

    def has_any(self, chunk: Chunk) -> bool:
        """True if a run of the chunk is on the disk already."""
        return bool(self._done[chunk.runs].any())

    def add(self, batches: Sequence[Batch]) -> None:
        """Puts finished runs on the disk. Of those of a chunk all are there or none; batches
        of very many rows have a chunk of their own, as they are not put together in memory."""
        with self.storage():
            for part in _together(batches):
                self.take(write_chunk(self.next_chunk(), part))

    @property
    def spill(self) -> Path:
        """The folder in which records of packets wait while runs go on; made when it is needed."""
        return self.path / SPILL

    def clean_spill(self) -> None:
        """Removes files of runs that did not end."""
        shutil.rmtree(self.spill, ignore_errors=True)

    def next_chunk(self) -> Path:
        """Path for the next finished runs (`write_chunk`)."""
        self._next += 1
        return self.path / CHUNKS / f"{self._next - 1:06}"

    def pause(self) -> None:
        """Adds the time spent to the manifest of a study that is not finished."""
        with self.storage():
            self._write_manifest(complete=False)

    def finish(self) -> None:
        """Makes the final tables of the chunks.

        Raises `FolderError` if a chunk turns out to be damaged: then it has been set aside, and
        its runs are `missing` again.
        """
        with self.storage():
            for name in _core.Results.table_names():
                self._merge(name)
            self._complete()
            shutil.rmtree(self.path / CHUNKS, ignore_errors=True)

    def grow(self, info: StudyInfo) -> None:
        """Makes the finished study an unfinished one with more replications, of which it has
        the runs there are. Until the manifest is written it is finished as it was."""
        before, now = self.info.replications, info.replications

        def table(name: str) -> NamedFrames:
            path = file_of(self.path, name)
            schema = pl.scan_parquet(path, glob=False).collect_schema()
            parts = slices(path, group_rows(schema))
            return name, (renumbered(part, before, now) for part in parts), schema

        with self.storage():
            runs = renumbered(pl.DataFrame({"run": np.arange(self.total)}), before, now)["run"]
            tables = map(table, _core.Results.table_names())
            chunk = write_frames(self.next_chunk(), runs.to_numpy(), tables)
            self.info, self._chunks = info, []
            self._done = np.zeros(self.total, bool)
            self._write_manifest(complete=False)
            self.take(chunk)

    def result(self, computed: int) -> StudyResult:
        """The finished results."""
        names = list(read_manifest(self.path)["tables"])
        tables = FolderTables(self.path, names)
        return StudyResult(self.info, tables, self._scenarios, folder=self.path, computed=computed)

    # Reading the folder

    def _begin(self) -> None:
        self._write_scenarios()
        self._write_manifest(complete=False)  # from here on the folder is the study's
        self._write_sources()
        self._write_manifest(complete=False)

    def _find(self) -> None:
        """Reads finished runs; sets damaged files aside."""
        manifest = read_manifest(self.path)
        bad = damaged_files(self.path, manifest)
        complete = manifest["complete"]
        for name, error in bad.items():
            if name == SCENARIOS or FILE.fullmatch(name):
                then = "it was written again"
            elif name == f"{METRICS}.parquet":
                then = "it is made again from the other tables"
            else:
                then = "the runs are computed again"
            self._set_aside(error, self.path / name, then)
        self._files, self._rows = seals_of(manifest), manifest.get("tables", {})
        if SCENARIOS in bad or SCENARIOS not in self._files:
            self._write_scenarios()
        self._described = manifest[SOURCES]
        bad_sources = {name for name in bad if FILE.fullmatch(name)}
        if self._sources and (not complete or bad_sources):
            self._write_sources()
        if complete and not bad.keys() - {SCENARIOS, f"{METRICS}.parquet"} - bad_sources:
            self._done[:] = True
            self._keep_precision(study_info(manifest).precision)
            if bad:
                self._complete()
            shutil.rmtree(self.path / CHUNKS, ignore_errors=True)
            return
        if complete:
            self._write_manifest(complete=False)
        self._find_chunks()

    def _keep_precision(self, there: Precision | None) -> None:
        """Has the manifest of a finished study say for what its replications were chosen last;
        once they were chosen, that is not forgotten."""
        if self.info.precision is None:
            self.info = replace_fields(self.info, precision=there)
        elif there != self.info.precision:
            self._write_manifest(complete=True)

    def _find_chunks(self) -> None:
        folder = self.path / CHUNKS
        for path in sorted(folder.iterdir()) if folder.exists() else []:
            if path.suffix == ".tmp":
                shutil.rmtree(path)
                continue
            self._next = max(self._next, int(path.name) + 1)
            try:
                self.take(read_chunk(path))
            except Damaged as error:
                self._set_aside(error, path, "its runs are computed again")

    def take(self, chunk: Chunk) -> None:
        """Counts the runs of a chunk, which another process may have written to `next_chunk()`, or
        which may be in another folder. Raises `Damaged`."""
        if chunk.runs.max(initial=0) >= self.total:
            raise Damaged(chunk.path, "it has runs that this study does not")
        if self.has_any(chunk):
            raise Damaged(chunk.path, "it has runs that another chunk has, too")
        self._chunks.append(chunk)
        self._done[chunk.runs] = True

    def _set_aside(self, error: Damaged, path: Path, then: str) -> None:
        """Moves damaged files to `damaged/`, where they do not count, and warns."""
        place = free(self.path / DAMAGED / path.name)
        kept = ""
        if path.exists():
            make_folder(place.parent)
            path.rename(place)
            sync(place.parent)
            sync(path.parent)
            kept = f"; kept as {place.relative_to(self.path)}"
        warnings.warn(DamageWarning(f"{error}{kept}; {then}"), stacklevel=2)

    # The final tables

    def _merge(self, name: str) -> None:
        """Writes the table called `name` of all chunks."""
        path = file_of(self._chunks[0].path, name)
        schema = pl.scan_parquet(path, glob=False).collect_schema()
        try:
            self._write(name, merged(self._chunks, name, group_rows(schema)), schema)
        except Damaged as error:
            chunk = error.path.parent
            if chunk.parent != self.path / CHUNKS:
                raise
            self._set_aside(error, chunk, "its runs are computed again")
            bad = [each for each in self._chunks if each.path == chunk]
            self._chunks = [each for each in self._chunks if each.path != chunk]
            for each in bad:
                self._done[each.runs] = False
            raise FolderError(f"{error}; {self.kept}") from None

    def _write(self, name: str, frames: Iterable[pl.DataFrame], schema: Mapping[str, Any]) -> None:
        """Writes the rows of `frames` as the table called `name`."""
        path = file_of(self.path, name)
        self._files[path.name] = replace(path, stream(frames, schema))
        self._rows[name] = shape(path)[0]

    def _complete(self) -> None:
        """Computes the metrics of the tables there are; then the folder is complete."""
        self._write(METRICS, self._metrics(), COLUMNS)
        self._write_manifest(complete=True)

    def _metrics(self) -> Iterator[pl.DataFrame]:
        """The table of metrics, for some points at a time."""
        names = [name for name in self._rows if name != METRICS]
        most = max(self._rows[name] for name in ("runs", "links", "flows", "groups", "times"))
        replications = self.info.replications
        points = max(1, self.info.points * PART_ROWS // max(most, 1))
        for first in range(0, self.info.points, points):
            scenarios = self._scenarios[first : first + points]
            part = range(first * replications, (first + len(scenarios)) * replications)
            tables = FolderTables(self.path, names, part)
            yield computed(tables.load, scenarios, replications, first)

    # Whose folder it is

    def _refuse_strangers(self) -> None:
        """Raises `FolderError` for a folder of something else; changes nothing."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise FolderError(f"{self.path}: this is a file, not a folder for results")
        if not self._has_manifest:
            if any(each.name not in REST for each in self.path.iterdir()):
                raise FolderError(
                    f"{self.path}: this folder has other files in it and no results of aqmlab; "
                    "nothing was changed. Choose another folder with --out"
                )
            return
        manifest = read_manifest(self.path)
        if found := other_origin(self.path, manifest, self.info, self._scenarios):
            advice = f"Choose another folder with --out, or remove this one (rm -r {self.path})"
            problem = f"this folder holds results of {found}; nothing was changed"
            raise FolderError(f"{self.path}: {problem}. {advice}")

    def _take_lock(self) -> None:
        try:
            self._lock = lock(self.path)
        except BlockingIOError as error:
            problem = "another aqmlab process is writing to this folder"
            problem += f" ({error.strerror})" if error.filename else ""
            raise FolderError(f"{self.path}: {problem}") from None
        except OSError as error:
            # Finished results are only read.
            if error.errno not in UNWRITABLE or not (self._has_manifest and self.complete):
                raise

    @property
    def _has_manifest(self) -> bool:
        return (self.path / MANIFEST).exists()

    # The manifest

    def _write_scenarios(self) -> None:
        """Writes them one by one: a study may have a million."""

        def fill(target: Target) -> None:
            for place, text in enumerate(self._scenarios.texts()):
                target.write(f"{',' if place else '['}\n{text}".encode())
            target.write(b"\n]\n")

        self._files[SCENARIOS] = replace(self.path / SCENARIOS, fill)

    def _write_sources(self) -> None:
        if self._sources:
            kept = {name: seal for name, seal in self._files.items() if not FILE.fullmatch(name)}
            self._described, seals = self._sources.write(self.path)
            self._files = kept | seals

    def _write_manifest(self, *, complete: bool) -> None:
        """Writes the manifest, without the tables of a study that is not complete."""
        files = {
            name: seal
            for name, seal in self._files.items()
            if complete or name == SCENARIOS or FILE.fullmatch(name)
        }
        state: dict[str, Any] = {
            "complete": complete,
            "wall_seconds": self._wall(),
            **({} if complete or self.shard.whole else {"shard": self.shard.to_json()}),
            SOURCES: self._described,
            "files": {name: seal.to_json() for name, seal in sorted(files.items())},
        }
        write_manifest(self.path, self.info, state | ({"tables": self._rows} if complete else {}))

    def _wall(self) -> float:
        """The time spent, with that of the sessions before."""
        there = (self.path / MANIFEST).exists()
        before = float(read_manifest(self.path)["wall_seconds"]) if there else 0.0
        now = time.monotonic()
        spent, self._started = now - self._started, now
        return round(before + spent, 3)

    @contextmanager
    def storage(self) -> Iterator[None]:
        """Converts an `OSError` into a `StorageError` that states which results are kept."""
        try:
            yield
        except StorageError:
            raise
        except OSError as error:
            kept = f"{self.done:,} of {self.total:,} runs are kept"
            if self._lock < 0 and self._has_manifest:  # they were not counted
                kept = "the runs in it are kept"
            raise StorageError(error, self.path, kept) from error


def _together(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """The batches of each chunk: those of few rows together, but not of too many in all."""
    small: list[Batch] = []
    rows = 0
    for batch in batches:
        if batch.large_rows > LARGE_ROWS:
            yield [batch]
            continue
        if small and rows + batch.large_rows > LARGE_ROWS:
            yield small
            small, rows = [], 0
        small.append(batch)
        rows += batch.large_rows
    if small:
        yield small


def open_results(path: Path) -> StudyResult:
    """Opens the finished results in `path`, of any version of aqmlab.

    Raises `FolderError` if there are none, if they are not finished, or if a file is not what
    was written; a damaged table of metrics is left out, as it follows from the others.
    """
    manifest = found_manifest(path)
    if not manifest["complete"]:
        shard = shard_of(manifest)
        if not shard.whole:
            hint = "`aqmlab merge` puts all parts together"
            raise FolderError(f"{path}: this is part {shard} of a study; {hint}")
        raise FolderError(f"{path}: these results are incomplete; rerun the same command to resume")
    check_process()
    names = list(manifest["tables"])
    bad = damaged_files(path, manifest)
    if error := bad.pop(f"{METRICS}.parquet", None):
        warnings.warn(DamageWarning(f"{error}; computed from the other tables"), stacklevel=2)
        names.remove(METRICS)
    for name, error in bad.items():
        if not FILE.fullmatch(name):
            raise FolderError(f"{error}; {ADVICE}")
        warnings.warn(DamageWarning(f"{error}; a rerun needs it"), stacklevel=2)
    info = study_info(manifest)
    return StudyResult(info, FolderTables(path, names), scenarios_of(path, info), folder=path)


def scenarios_of(path: Path, info: StudyInfo) -> Scenarios:
    """The scenarios in a results folder. Raises `FolderError` unless there is one for a point."""
    file = path / SCENARIOS
    try:
        with opened(file) as handle:
            scenarios = Scenarios(_lines(handle))
        if len(scenarios) == info.points:
            return scenarios
    except Damaged as error:
        raise FolderError(f"{error}; {ADVICE}") from None
    except MALFORMED:
        pass
    raise FolderError(f"{file}: these are not the scenarios of this study")


def _lines(handle: IO[bytes]) -> Iterator[str]:
    """The scenarios in an open file, one a line, each checked."""
    for line in handle:
        text = line.decode().strip().rstrip(",")
        if text not in ("[", "]"):
            table = json.loads(text)
            table["links"].keys(), table["flows"].keys()
            yield text


def damaged_files(path: Path, manifest: Mapping[str, Any]) -> dict[str, Damaged]:
    """Files of the folder `path` that differ from its manifest, with reasons."""
    found = {}
    for name, seal in seals_of(manifest).items():
        try:
            seal.check(path / name)
        except Damaged as error:
            found[name] = error
    return found
