"""Where the tables of a result are: in memory or in the Parquet files of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from aqmlab.storage import decoded, slices

PART = 1 << 17
"""Rows of a large table that are read at a time: the row group of `packets`."""


class Tables(Protocol):
    """Where the tables of a result are: in memory or in a folder."""

    def names(self) -> list[str]:
        """The names of the tables there are."""
        ...

    def load(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """The table called `name`, or some columns of it."""
        ...

    def columns(self, name: str) -> list[str]:
        """The columns of the table called `name`."""
        ...

    def parts(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Some columns of the table called `name`, in frames of `PART` rows at most."""
        ...


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


def plain_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table with texts instead of codes."""
    codes = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Categorical)]
    return frame.with_columns(pl.col(codes).cast(pl.String)) if codes else frame


class MemoryTables:
    """Tables that were never written. Large ones have codes for their texts, which take a third
    of the memory, until they are asked for."""

    def __init__(self, frames: Mapping[str, pl.DataFrame]) -> None:
        self._frames = frames
        self._plain: dict[str, pl.DataFrame] = {}

    def names(self) -> list[str]:
        """The names of the tables there are."""
        return list(self._frames)

    def load(self, name: str, columns: list[str] | None = None) -> pl.DataFrame:
        """The table called `name`, or some columns of it."""
        if name not in self._plain:
            frame = self._frames[name]
            if frame.height > PART:
                return plain_texts(frame if columns is None else frame.select(columns))
            self._plain[name] = plain_texts(frame)
        small = self._plain[name]
        return small if columns is None else small.select(columns)

    def columns(self, name: str) -> list[str]:
        """The columns of the table called `name`."""
        return self._frames[name].columns

    def parts(self, name: str, columns: list[str]) -> Iterator[pl.DataFrame]:
        """Some columns of the table called `name`, in frames of `PART` rows at most."""
        for part in self._frames[name].select(columns).iter_slices(PART):
            yield plain_texts(part)


class FolderTables:
    """The Parquet files of a results folder, read when they are asked for."""

    def __init__(self, folder: Path, names: Sequence[str], runs: range | None = None) -> None:
        self._folder, self._names = folder, list(names)
        self._chosen = None if runs is None else pl.col("run").is_between(runs.start, runs.stop - 1)
        """Rows to read; None for all."""

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
