"""The recorded cases that come with aqmlab: a folder of cases in about half a megabyte.

`python -m tools.conformance_pack DIR` makes it again from a folder of cases.

* `cases.json`: what `case.json` says and a replay needs, the settings of the queue here
  (`settings.py`), which arrivals a case has, how many packets these are, and the names of reasons.
* `arrivals.zlib`: many cases share their arrivals, which are kept once; times as the gap to
  the arrival before.
* `outcomes.zlib`: what a link and a queue have in common is left out, so that most numbers
  are 0 or 1. An id is kept as the step from the packet before that was taken out, or turned
  away, like it. A time is kept as the lag behind what is expected: for a packet that is sent,
  that the link is never idle while the packet waits; for one dropped while it is taken out,
  the time of the packet sent next; for the others, their arrival.

Both `.zlib` files hold their columns (`ARRIVALS_KEPT`, `OUTCOMES_KEPT`) one after another: first
the lowest byte of every row, then the next. The rows of all patterns, or cases, follow each other.
`cargo test -p aqmlab-conformance` reads the same files.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab.conformance.folder import ARRIVALS, OUTCOMES, RecordedCase

SHIPPED = Path(__file__).parent / "recorded"
FACTS = [each.name for each in fields(RecordedCase) if each.name not in ("arrivals", "outcomes")]
MARKS = pl.Enum(["arrival", "decision"])
ARRIVALS_KEPT = {"gap_ns": "<i8", "flow": "<u4", "size_bytes": "<u4", "ecn": "<u1"}
OUTCOMES_KEPT = {"verdict": "<u1", "step": "<i4", "lag_ns": "<i8", "mark": "<u1", "reason": "<u1"}
"""`mark` and `reason` are 0 without a mark or reason."""
SENT = pl.col("verdict").is_in(["delivered", "marked"])
TAKEN_OUT = SENT | (pl.col("verdict") == "dropped_dequeue")


class Archive:
    """Cases in one folder of three files."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        self.folder = folder
        content = json.loads((folder / "cases.json").read_bytes())
        self.entries: list[dict[str, Any]] = content["cases"]
        self._lengths: list[int] = content["arrivals"]
        self._reasons = pl.Enum(content["reasons"])

    @cached_property
    def _arrivals(self) -> list[pl.DataFrame]:
        return _read(self.folder / "arrivals.zlib", ARRIVALS_KEPT, self._lengths)

    @cached_property
    def _outcomes(self) -> list[pl.DataFrame]:
        lengths = [self._lengths[entry["arrivals"]] for entry in self.entries]
        return _read(self.folder / "outcomes.zlib", OUTCOMES_KEPT, lengths)

    def case(self, index: int) -> RecordedCase:
        """The case that `entries[index]` is about."""
        entry = self.entries[index]
        facts = {key: entry[key] for key in FACTS}
        arrivals = _unpacked_arrivals(self._arrivals[entry["arrivals"]])
        packed = _named(self._outcomes[index], self._reasons)
        outcomes = _unpacked_outcomes(packed, arrivals, facts["ns_per_byte"])
        return RecordedCase(**facts, arrivals=arrivals, outcomes=outcomes)


def _read(file: Path, kinds: Mapping[str, str], lengths: Sequence[int]) -> list[pl.DataFrame]:
    content = np.frombuffer(zlib.decompress(file.read_bytes()), dtype=np.uint8)
    rows, at = sum(lengths), 0
    columns = {}
    for name, kind in kinds.items():
        width = np.dtype(kind).itemsize
        planes = content[at : at + rows * width].reshape(width, rows)
        columns[name] = np.ascontiguousarray(planes.T).view(kind).reshape(rows)
        at += rows * width
    frame = pl.DataFrame(columns)
    starts = accumulate(lengths, initial=0)
    return [frame.slice(start, length) for start, length in zip(starts, lengths, strict=False)]


def _named(outcomes: pl.DataFrame, reasons: pl.Enum) -> pl.DataFrame:
    """Numbers as names again."""
    kinds = (("verdict", OUTCOMES["verdict"], 0), ("mark", MARKS, 1), ("reason", reasons, 1))
    return outcomes.with_columns(
        pl.col(name).replace_strict(
            dict(enumerate(kind.categories, first)), default=None, return_dtype=kind
        )
        for name, kind, first in kinds
        if isinstance(kind, pl.Enum)
    )


def _unpacked_arrivals(packed: pl.DataFrame) -> pl.DataFrame:
    columns = packed.with_row_index("id").with_columns(pl.col("gap_ns").cum_sum().alias("t_ns"))
    return columns.select(pl.col(name).cast(kind) for name, kind in ARRIVALS.items())


def _unpacked_outcomes(
    packed: pl.DataFrame, arrivals: pl.DataFrame, ns_per_byte: int
) -> pl.DataFrame:
    numbered = packed.with_columns(
        pl.col("step").cast(pl.Int64).cum_sum().over(TAKEN_OUT).cast(pl.UInt32).alias("id")
    )
    time = (expected_time(ns_per_byte) + pl.col("lag_ns")).alias("t_ns")
    arrival, decision = pl.col("arrival_ns"), pl.col("t_ns")
    mark = pl.when(pl.col("mark") == "decision").then(decision)
    marked = mark.when(pl.col("mark") == "arrival").then(arrival)
    frame = with_arrivals(numbered, arrivals).with_columns(time)
    frame = frame.with_columns((decision - arrival).alias("sojourn_ns"), marked.alias("t_mark_ns"))
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def with_arrivals(outcomes: pl.DataFrame, arrivals: pl.DataFrame) -> pl.DataFrame:
    """Outcomes with the time of arrival and the size of their packets."""
    about = arrivals.select(
        "id", pl.col("t_ns").cast(pl.Int64).alias("arrival_ns"), pl.col("size_bytes").cast(pl.Int64)
    )
    return outcomes.join(about, on="id", how="left", maintain_order="left")


def expected_time(ns_per_byte: int) -> pl.Expr:
    """When a decision is expected: a link that is never idle starts a transmission at the end of
    the one before, but not before the packet has come."""
    duration = pl.when(SENT).then(pl.col("size_bytes") * ns_per_byte).otherwise(0)
    busy = duration.cum_sum() - duration
    start = pl.when(SENT).then(busy + pl.when(SENT).then(pl.col("arrival_ns") - busy).cum_max())
    late = pl.when(TAKEN_OUT).then(start.fill_null(strategy="backward"))
    return late.otherwise(pl.col("arrival_ns")).fill_null(pl.col("arrival_ns"))
