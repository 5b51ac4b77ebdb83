"""The chunks of a study that is not finished: runs on the disk, and how they become tables.

A chunk is a folder with all tables of some runs and `seal.json`, the checksums of these
tables. It is written under another name, synced and renamed: it is there as a whole or not
at all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import _core
from aqmlab.metrics.samples import Whole
from aqmlab.results import Batch, gather, in_parts
from aqmlab.results.tables import LARGE_TABLES
from aqmlab.storage import (
    MALFORMED,
    Damaged,
    Seal,
    content,
    decoded,
    group_rows,
    make_folder,
    opened,
    read_table,
    slices,
    stream,
    sync,
    write_synced,
)

SEAL = "seal.json"
LARGE = 1 << 25
"""Bytes of a table in memory, roughly, from which on it is read in parts."""
LARGE_PART = 1 << 20
"""Rows of a column of such a file that are read at a time."""


NamedFrames = tuple[str, Iterable[pl.DataFrame], Mapping[str, Any]]
"""Name of a table, its rows in frames that are sorted by run, and its schema."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Runs on the disk."""

    path: Path
    runs: Whole
    """Numbers of the runs, ascending."""
    seals: Mapping[str, Seal]
    """Seal of the file of each table."""


def file_of(folder: Path, name: str) -> Path:
    """The file of the table called `name`."""
    return folder / f"{name}.parquet"


def write_chunk(path: Path, batches: Sequence[Batch]) -> Chunk:
    """Writes finished runs, all of them or none. Raises `OSError`."""
    runs = sorted(run for batch in batches for run in batch.runs)
    return write_frames(path, np.array(runs), _tables(batches))


def write_frames(path: Path, runs: Whole, tables: Iterable[NamedFrames]) -> Chunk:
    """Writes runs whose tables are there, under another name, then renames the chunk. Raises
    `OSError`."""
    fills = ((name, stream(frames, schema)) for name, frames, schema in tables)
    temporary = path.with_name(f"{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    make_folder(temporary)
    try:
        seals = {name: write_synced(file_of(temporary, name), fill) for name, fill in fills}
        form = {"files": {name: seal.to_json() for name, seal in seals.items()}}
        write_synced(temporary / SEAL, content(json.dumps(form, indent=2).encode()))
        sync(temporary)
        temporary.rename(path)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync(path.parent)
    return Chunk(path, runs, seals)


def _tables(batches: Sequence[Batch]) -> Iterator[NamedFrames]:
    """Content of each file. Large tables of one batch, whose runs are in order, are made a
    row group at a time."""
    for name in _core.Results.table_names():
        if len(batches) == 1 and name in LARGE_TABLES:
            schema = next(in_parts(batches[0], name, 1)).schema
            yield name, in_parts(batches[0], name, group_rows(schema)), schema
        else:
            frame = gather(batches, [name])[name]
            yield name, [frame], frame.schema


def read_chunk(path: Path) -> Chunk:
    """The chunk at `path`, every file compared with its checksum. Raises `Damaged`."""
    with opened(path / SEAL) as file:
        text = file.read()
    try:
        files = json.loads(text)["files"]
        seals = {name: Seal.from_json(seal) for name, seal in files.items()}
    except MALFORMED:
        raise Damaged(path / SEAL, "it is not a list of checksums") from None
    if set(seals) != set(_core.Results.table_names()):
        raise Damaged(path / SEAL, "it names other tables")
    return sealed_chunk(path, seals)


def sealed_chunk(path: Path, seals: Mapping[str, Seal]) -> Chunk:
    """The tables in a folder as a chunk, each compared with its checksum. Raises `Damaged`."""
    for name, seal in seals.items():
        seal.check(file_of(path, name))
    runs = file_of(path, "runs")
    return Chunk(path, read_table(runs, runs, ["run"])["run"].cast(pl.Int64).to_numpy(), seals)


def merged(chunks: Sequence[Chunk], name: str, rows: int) -> Iterator[pl.DataFrame]:
    """The table called `name` of all chunks, sorted by run, in frames of about `rows` rows.

    What is in memory is a chunk, or as many as there are whose runs overlap; of a large one
    it is `rows` rows. Raises `Damaged` if a file is not what was written.
    """
    left = [len(chunk.runs) for chunk in chunks]
    sources: dict[int, _Source] = {}
    for place, first, last, length in _stretches(chunks):
        if place not in sources:
            sources[place] = _Source(chunks[place], name)
        yield from sources[place].rows(first, last, rows)
        left[place] -= length
        if not left[place]:
            del sources[place]


def _stretches(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, int, int]]:
    """All runs in order, in stretches that are in one chunk: its place, the first run and the
    last, and how many."""
    runs = np.concatenate([chunk.runs for chunk in chunks])
    places = np.repeat(np.arange(len(chunks)), [len(chunk.runs) for chunk in chunks])
    order = np.argsort(runs, kind="stable")
    runs, places = runs[order], places[order]
    ends = np.append(np.flatnonzero(np.diff(places)), len(runs) - 1)
    start = 0
    for end in ends:
        yield int(places[end]), int(runs[start]), int(runs[end]), int(end) - start + 1
        start = int(end) + 1


def shape(path: Path) -> tuple[int, int]:
    """The numbers of rows and columns of the table in a file. Raises `Damaged`."""
    with decoded(path):
        lazy = pl.scan_parquet(path, glob=False)
        return int(lazy.select(pl.len()).collect().item()), len(lazy.collect_schema())


def _ends(column: Iterable[pl.Series]) -> tuple[Whole, Whole]:
    """The runs of a sorted column, given in parts, and the place behind the last row of each."""
    runs: list[Whole] = []
    counts: list[Whole] = []
    for part in column:
        lengths = part.rle().struct.unnest()
        runs.append(lengths["value"].cast(pl.Int64).to_numpy())
        counts.append(lengths["len"].cast(pl.Int64).to_numpy())
    return np.concatenate(runs), np.cumsum(np.concatenate(counts))


class _Source:
    """A table of one chunk, checked: in memory, or on the disk if it is large."""

    def __init__(self, chunk: Chunk, name: str) -> None:
        path, seal = file_of(chunk.path, name), chunk.seals[name]
        self._path = path
        self._frame: pl.DataFrame | None = None
        seal.check(path)
        rows, columns = shape(path)
        if 8 * rows * columns < LARGE:
            self._frame = read_table(seal.read(path), path)
            self._ends = _ends([self._frame["run"]])
        else:
            self._ends = _ends(part["run"] for part in slices(path, LARGE_PART, ["run"]))

    def rows(self, first: int, last: int, most: int) -> Iterator[pl.DataFrame]:
        """The rows of the runs from `first` to `last`, `most` at a time."""
        runs, ends = self._ends
        places = np.append(0, ends)
        start = int(places[np.searchsorted(runs, first, side="left")])
        end = int(places[np.searchsorted(runs, last, side="right")])
        if self._frame is not None:
            yield self._frame.slice(start, end - start)
            return
        for place in range(start, end, most):
            with decoded(self._path):
                part = pl.scan_parquet(self._path, glob=False)
                yield part.slice(place, min(most, end - place)).collect()
