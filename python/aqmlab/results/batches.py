"""Finished runs put together as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import polars as pl

from aqmlab._core import Results
from aqmlab.errors import ForkError
from aqmlab.results.tables import PART, plain_texts


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


def check_process() -> None:
    """Call it before tables are computed. Raises `ForkError` in a forked copy of a process that has
    computed some: polars would wait for threads that only the original has."""
    own = os.getpid()
    _processes.add(own)
    if len(_processes) > 1:
        _processes.discard(own)
        raise ForkError(
            "this process is a forked copy of one that has computed tables, and would wait for "
            "threads that only that one has: start it with "
            'multiprocessing.get_context("spawn"), or fork before the first study'
        )


def gather(batches: Iterable[Batch], names: Iterable[str] | None = None) -> dict[str, pl.DataFrame]:
    """Joins the tables of finished runs, sorted by run; all tables, or those in `names`.

    Within a run the rows keep the engine's order, so the result does not depend
    on the order in which the runs finished.
    """
    check_process()
    batches = list(batches)
    frames = {}
    for name in Results.table_names() if names is None else names:
        parts = [pl.DataFrame(batch.table(name)) for batch in batches]
        frames[name] = by_run(parts)
    return frames


def in_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    """A large table of finished runs in frames of at most `rows` rows."""
    return (by_run([part]) for part in _engine_parts(batch, name, rows))


def _engine_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    start, height = 0, rows
    while height == rows:
        frame = pl.DataFrame(batch.part(name, start, rows))
        height = frame.height
        start += height
        yield frame


def by_run(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Joins parts, sorted by run, in contiguous memory.

    Categorical texts become plain, because their codes depend on the tables read before.
    """
    whole = pl.concat(map(plain_texts, parts)) if len(parts) > 1 else plain_texts(parts[0])
    in_order = whole if whole["run"].is_sorted() else whole.sort("run", maintain_order=True)
    return in_order.rechunk()


class Gathered(Mapping[str, pl.DataFrame]):
    """Tables of finished runs for `MemoryTables`, each made when it is asked for.

    Large tables are made in parts, not copied if the runs are in order, and keep categorical texts.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._made: dict[str, pl.DataFrame] = {}

    def __len__(self) -> int:
        return len(Results.table_names())

    def __iter__(self) -> Iterator[str]:
        return iter(Results.table_names())

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._made and name in Results.large_tables():
            parts = [part for each in self._batches for part in _engine_parts(each, name, PART)]
            whole = pl.concat(parts)
            in_order = whole["run"].is_sorted()
            self._made[name] = whole if in_order else whole.sort("run", maintain_order=True)
        elif name not in self._made:
            self._made |= gather(self._batches, [name])
        return self._made[name]
