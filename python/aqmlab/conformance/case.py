"""A recorded case: arrivals at a reference implementation, and its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

VERDICTS = ["delivered", "marked", "dropped_enqueue", "dropped_dequeue", "dropped_overlimit"]
ARRIVALS = {
    "id": pl.UInt32(),
    "t_ns": pl.UInt64(),
    "flow": pl.UInt32(),
    "size_bytes": pl.UInt32(),
    "ecn": pl.UInt8(),
}
OUTCOMES = {
    "id": pl.UInt32(),
    "verdict": pl.Enum(VERDICTS),
    "t_ns": pl.UInt64(),
    "sojourn_ns": pl.UInt64(),
    "t_mark_ns": pl.UInt64(),
    "reason": pl.String(),
}
MAY_BE_EMPTY = {"t_mark_ns", "reason"}


class Unsupported(Exception):
    """A case without counterpart in aqmlab; `str(error)` names the missing feature."""


@dataclass(frozen=True)
class RecordedCase:
    """A run of a reference implementation."""

    algorithm: str
    name: str
    description: str
    reference: str
    rate_bps: int
    ns_per_byte: int
    parameters: Mapping[str, Any]
    timer: Mapping[str, int] | None
    random_seed: int | None
    arrivals: pl.DataFrame
    """Columns `ARRIVALS`, in the order of the arrivals; `id` counts them from 0."""
    outcomes: pl.DataFrame
    """Columns `OUTCOMES`, in the order of the decisions; one for each arrival."""

    @property
    def path(self) -> str:
        """What the case is called in messages, and its folder in a folder of cases."""
        return f"{self.algorithm}/{self.name}"
