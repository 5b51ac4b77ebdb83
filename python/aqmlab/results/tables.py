"""Where the tables of a result are: in memory or in the Parquet files of a folder; and tables of
finished runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from aqmlab._core import Results
from aqmlab.errors import ForkError
from aqmlab.storage import decoded, slices

PART = 1 << 17
"""Rows of a large table that are read at a time: the row group of `packets`."""


MEASURED = ("links", "flows", "times")
"""The tables with what was measured in a run."""


def copied_points(tables: Tables, points: int, replications: int) -> list[int]:
    """Points whose replications all measured the same, to the last digit: copies of one run."""
    if replications == 1:
        return []
    prints = np.zeros((points * replications, len(MEASURED)), dtype=np.uint64)
    for column, name in enumerate(MEASURED):
        if name not in tables.names():
            continue
        rows = tables.load(name)
        if rows.height:
            own = rows.drop("run").hash_rows(seed=column).to_numpy()
            np.add.at(prints[:, column], rows["run"].to_numpy(), own)
    of_points = prints.reshape(points, replications, -1)
    alike = (of_points == of_points[:, :1]).all(axis=(1, 2)) & of_points.any(axis=(1, 2))
    return [int(point) for point in np.flatnonzero(alike)]


LARGE_TABLES = frozenset(Results.large_tables())
"""Tables that may have more than `PART` rows: the engine makes codes of their texts."""


def plain_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table with texts instead of codes."""
    kinds = zip(frame.columns, frame.dtypes, strict=True)  # `schema` takes longer than the rest
    codes = [name for name, kind in kinds if isinstance(kind, pl.Categorical)]
    return frame.with_columns(pl.col(codes).cast(pl.String)) if codes else frame


def _chosen(runs: range | None) -> pl.Expr | None:
    """Rows to read; None for all."""
    return None if runs is None else pl.col("run").is_between(runs.start, runs.stop - 1)


class MemoryTables:
    """Tables that were never written. Large ones have codes for their texts, which take a third
    of the memory, until they are asked for."""

    def __init__(self, frames: Mapping[str, pl.DataFrame], runs: range | None = None) -> None:
        self._frames, self._chosen = frames, _chosen(runs)
        self._plain: dict[str, pl.DataFrame] = {}

    def names(self) -> list[str]:
        """The names of the tables there are."""
        return list(self._frames)

    def load(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """The table called `name`, or some columns of it."""
        if name not in self._plain:
            frame = self._frame(name)
            if frame.height > PART:
                return plain_texts(frame if columns is None else frame.select(columns))
            self._plain[name] = plain_texts(frame) if name in LARGE_TABLES else frame
        small = self._plain[name]
        return small if columns is None else small.select(columns)

    def columns(self, name: str) -> list[str]:
        """The columns of the table called `name`."""
        return self._frames[name].columns

    def parts(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Some columns of the table called `name`, in frames of `PART` rows at most."""
        for part in self._frame(name).select(columns).iter_slices(PART):
            yield plain_texts(part)

    def of_runs(self, runs: range) -> MemoryTables:
        """The rows of these runs."""
        return MemoryTables(self._frames, runs)

    def _frame(self, name: str) -> pl.DataFrame:
        check_process()
        frame = self._frames[name]
        return frame if self._chosen is None else frame.filter(self._chosen)


class FolderTables:
    """The Parquet files of a results folder, read when they are asked for."""

    def __init__(self, folder: Path, names: Sequence[str], runs: range | None = None) -> None:
        self._folder, self._names, self._chosen = folder, list(names), _chosen(runs)

    def names(self) -> list[str]:
        """The names of the tables there are."""
        return self._names

    def load(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """The table called `name`, or some columns of it.

        Raises `FolderError` if its file is damaged.
        """
        path = self._folder / f"{name}.parquet"
        with decoded(path):
            if self._chosen is None:
                return pl.read_parquet(path, columns=columns, glob=False)
            chosen = pl.scan_parquet(path, glob=False).filter(self._chosen)
            return (chosen if columns is None else chosen.select(columns)).collect()

    def columns(self, name: str) -> list[str]:
        """The columns of the table called `name`. Raises `FolderError` if its file is damaged."""
        path = self._folder / f"{name}.parquet"
        with decoded(path):
            return pl.scan_parquet(path, glob=False).collect_schema().names()

    def parts(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Some columns of the table called `name`, in frames of `PART` rows at most.

        Raises `FolderError` if its file is damaged.
        """
        for frame in slices(self._folder / f"{name}.parquet", PART, {"run", *columns}):
            own = frame if self._chosen is None else frame.filter(self._chosen)
            yield own.select(columns)

    def of_runs(self, runs: range) -> FolderTables:
        """The rows of these runs."""
        return FolderTables(self._folder, self._names, runs)


Tables = MemoryTables | FolderTables
"""Where the tables of a result are."""


class Batch(Protocol):
    """Finished runs: `_core.Results`, or results received from another process."""

    runs: list[int]
    """Numbers of the runs."""
    large_rows: int
    """Number of rows of the large tables (series and packets)."""
    small_rows: int
    """Approximate number of rows of the other tables."""

    def table(self, name: str) -> Any:
        """Returns the table `name`, for `pl.DataFrame`."""
        ...

    def part(self, name: str, start: int, rows: int) -> Any:
        """Returns at most `rows` rows of a large table, from row `start`."""
        ...


_processes: set[int] = set()
"""The processes that computed tables, up to this one: one, unless it was forked."""


def check_process(*, computes: bool = True) -> None:
    """Call it before tables are computed. Raises `ForkError` in a forked copy of a process that has
    computed some: polars would wait for threads that only the original has."""
    own = {os.getpid()}
    if _processes - own:
        raise ForkError(
            "this process is a forked copy of one that has computed tables, and would wait for "
            "threads that only that one has: start it with "
            'multiprocessing.get_context("spawn"), or fork before the first table'
        )
    if computes:
        _processes.update(own)


def gather(batches: Iterable[Batch], names: Iterable[str] | None = None) -> dict[str, pl.DataFrame]:
    """Joins the tables of finished runs, sorted by run; all tables, or those in `names`.

    Within a run the rows keep the engine's order, so the result does not depend
    on the order in which the runs finished.
    """
    check_process()
    batches = list(batches)
    joined = _joined(batches)

    def parts(name: str) -> list[pl.DataFrame]:
        if name in LARGE_TABLES:
            return [plain_texts(pl.DataFrame(batch.table(name))) for batch in batches]
        return [pl.DataFrame(batch.table(name)) for batch in joined]

    every = Results.table_names() if names is None else names
    return {name: by_run(parts(name)) for name in every}


def _joined(batches: Sequence[Batch]) -> list[Batch]:
    """The same runs, those of this process in one batch: a table of it is made at once."""
    own = [each for each in batches if isinstance(each, Results)]
    joined = own if len(own) == 1 else [Results.join(own)]
    return [*joined, *(each for each in batches if not isinstance(each, Results))]


def in_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    """A large table of finished runs in frames of at most `rows` rows."""
    return (by_run([plain_texts(part)]) for part in _engine_parts(batch, name, rows))


def _engine_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    start, height = 0, rows
    while height == rows:
        frame = pl.DataFrame(batch.part(name, start, rows))
        height = frame.height
        start += height
        yield frame


def by_run(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Joins parts, sorted by run, in contiguous memory."""
    whole = pl.concat(parts) if len(parts) > 1 else parts[0]
    in_order = whole if whole["run"].is_sorted() else whole.sort("run", maintain_order=True)
    return in_order.rechunk()


class Gathered(Mapping[str, pl.DataFrame]):
    """Tables of finished runs for `MemoryTables`, each made when it is asked for.

    Large tables are made in parts, not copied if the runs are in order, and keep categorical texts.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._made: dict[str, pl.DataFrame] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies the tables: the engine's results cannot be."""
        return dict, (dict(self),)

    def __len__(self) -> int:
        return len(Results.table_names())

    def __iter__(self) -> Iterator[str]:
        return iter(Results.table_names())

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._made and name in LARGE_TABLES:
            parts = [part for each in self._batches for part in _engine_parts(each, name, PART)]
            whole = pl.concat(parts)
            in_order = whole["run"].is_sorted()
            self._made[name] = whole if in_order else whole.sort("run", maintain_order=True)
        elif name not in self._made:
            self._made |= gather(self._batches, [name])
        return self._made[name]
