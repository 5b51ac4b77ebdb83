"""The recorded cases that come with aqmlab: a folder of cases in about half a megabyte.

`python -m aqmlab.conformance.pack DIR` makes it again from a folder of cases.

* `cases.json`: what `case.json` says and a replay needs, and which arrivals a case has.
* `arrivals.parquet`: many cases share their arrivals, which are kept once; times as the gap to
  the arrival before.
* `outcomes.parquet`: what a link and a queue have in common is left out, so that most numbers
  are 0 or 1. An id is kept as the step from the packet before that was taken out, or turned
  away, like it. A time is kept as the lag behind what is expected: for a packet that is sent,
  that the link is never idle while the packet waits; for one dropped while it is taken out,
  the time of the packet sent next; for the others, their arrival.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from aqmlab.conformance.case import ARRIVALS, OUTCOMES, Case
from aqmlab.errors import input_error

SHIPPED = Path(__file__).parent / "recorded"
FACTS = (
    "algorithm",
    "name",
    "description",
    "reference",
    "rate_bps",
    "ns_per_byte",
    "parameters",
    "timer",
    "random_seed",
)
MARKS = pl.Enum(["arrival", "decision"])
SENT = pl.col("verdict").is_in(["delivered", "marked"])
TAKEN_OUT = SENT | (pl.col("verdict") == "dropped_dequeue")


class Archive:
    """Cases in one folder of three files."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        self.folder = folder
        self.entries: list[dict[str, Any]] = json.loads((folder / "cases.json").read_bytes())

    @cached_property
    def _arrivals(self) -> list[pl.DataFrame]:
        frame = pl.read_parquet(self.folder / "arrivals.parquet", glob=False)
        return frame.partition_by("pattern", include_key=False, maintain_order=True)

    @cached_property
    def _outcomes(self) -> list[pl.DataFrame]:
        frame = pl.read_parquet(self.folder / "outcomes.parquet", glob=False)
        return frame.partition_by("case", include_key=False, maintain_order=True)

    def case(self, index: int) -> Case:
        """The case that `entries[index]` is about."""
        entry = self.entries[index]
        facts = {key: entry[key] for key in FACTS}
        arrivals = _unpacked_arrivals(self._arrivals[entry["arrivals"]])
        outcomes = _unpacked_outcomes(self._outcomes[index], arrivals, facts["ns_per_byte"])
        return Case(**facts, arrivals=arrivals, outcomes=outcomes)


def pack(cases: Iterable[Case], folder: Path) -> None:
    """Writes `cases` to `folder` and makes sure that they can be read again as they are."""
    entries: list[dict[str, Any]] = []
    patterns: list[pl.DataFrame] = []
    outcomes: list[pl.DataFrame] = []
    kept = list(cases)
    for case in kept:
        known = (i for i, pattern in enumerate(patterns) if pattern.equals(case.arrivals))
        place = next(known, len(patterns))
        if place == len(patterns):
            patterns.append(case.arrivals)
        entries.append({key: getattr(case, key) for key in FACTS} | {"arrivals": place})
        outcomes.append(_packed_outcomes(case))
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    (folder / "cases.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    _write(folder / "arrivals.parquet", "pattern", [_packed_arrivals(each) for each in patterns])
    _write(folder / "outcomes.parquet", "case", outcomes)
    _check(Archive(folder), kept)


def _check(archive: Archive, cases: Sequence[Case]) -> None:
    for index, case in enumerate(cases):
        again = archive.case(index)
        try:
            assert_frame_equal(again.arrivals, case.arrivals)
            assert_frame_equal(again.outcomes, case.outcomes)
        except AssertionError as error:
            problem = f"does not come back from the archive as it is: {error}"
            raise input_error(problem, file=case.path) from None


def _write(file: Path, key: str, frames: Sequence[pl.DataFrame]) -> None:
    numbered = (
        frame.insert_column(0, pl.repeat(i, frame.height, dtype=pl.UInt16, eager=True).alias(key))
        for i, frame in enumerate(frames)
    )
    pl.concat(numbered).rechunk().write_parquet(
        file, compression="zstd", compression_level=22, statistics=False, row_group_size=1 << 24
    )


def _packed_arrivals(arrivals: pl.DataFrame) -> pl.DataFrame:
    times = pl.col("t_ns").cast(pl.Int64)
    return arrivals.select(
        times.diff().fill_null(times).alias("gap_ns"), "flow", "size_bytes", "ecn"
    )


def _unpacked_arrivals(packed: pl.DataFrame) -> pl.DataFrame:
    columns = packed.with_row_index("id").with_columns(pl.col("gap_ns").cum_sum().alias("t_ns"))
    return columns.select(pl.col(name).cast(kind) for name, kind in ARRIVALS.items())


def _packed_outcomes(case: Case) -> pl.DataFrame:
    number = pl.col("id").cast(pl.Int64)
    step = (number - number.shift(1).over(TAKEN_OUT)).fill_null(number)
    lag = pl.col("t_ns").cast(pl.Int64) - _expected_time(case.ns_per_byte)
    mark = (
        pl.when(pl.col("t_mark_ns") == pl.col("t_ns"))
        .then(pl.lit("decision", MARKS))
        .when(pl.col("t_mark_ns") == pl.col("arrival_ns"))
        .then(pl.lit("arrival", MARKS))
    )
    return _with_arrivals(case.outcomes, case.arrivals).select(
        "verdict",
        step.cast(pl.Int32).alias("step"),
        lag.alias("lag_ns"),
        mark.alias("mark"),
        pl.col("reason").cast(pl.Categorical),
    )


def _unpacked_outcomes(
    packed: pl.DataFrame, arrivals: pl.DataFrame, ns_per_byte: int
) -> pl.DataFrame:
    numbered = packed.with_columns(
        pl.col("step").cast(pl.Int64).cum_sum().over(TAKEN_OUT).cast(pl.UInt32).alias("id")
    )
    time = (_expected_time(ns_per_byte) + pl.col("lag_ns")).alias("t_ns")
    arrival, decision = pl.col("arrival_ns"), pl.col("t_ns")
    mark = pl.when(pl.col("mark") == "decision").then(decision)
    marked = mark.when(pl.col("mark") == "arrival").then(arrival)
    frame = _with_arrivals(numbered, arrivals).with_columns(time)
    frame = frame.with_columns((decision - arrival).alias("sojourn_ns"), marked.alias("t_mark_ns"))
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def _with_arrivals(outcomes: pl.DataFrame, arrivals: pl.DataFrame) -> pl.DataFrame:
    """Outcomes with the time of arrival and the size of their packets."""
    about = arrivals.select(
        "id", pl.col("t_ns").cast(pl.Int64).alias("arrival_ns"), pl.col("size_bytes").cast(pl.Int64)
    )
    return outcomes.join(about, on="id", how="left", maintain_order="left")


def _expected_time(ns_per_byte: int) -> pl.Expr:
    """When a decision is expected: a link that is never idle starts a transmission at the end of
    the one before, but not before the packet has come."""
    duration = pl.when(SENT).then(pl.col("size_bytes") * ns_per_byte).otherwise(0)
    busy = duration.cum_sum() - duration
    start = pl.when(SENT).then(busy + pl.when(SENT).then(pl.col("arrival_ns") - busy).cum_max())
    late = pl.when(TAKEN_OUT).then(start.fill_null(strategy="backward"))
    return late.otherwise(pl.col("arrival_ns")).fill_null(pl.col("arrival_ns"))
