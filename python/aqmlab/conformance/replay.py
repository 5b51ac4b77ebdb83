"""Replays a case and compares it, packet by packet, with the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from aqmlab import _core
from aqmlab.conformance.case import OUTCOMES, RecordedCase, Unsupported
from aqmlab.conformance.settings import queue_of
from aqmlab.errors import InputError

Status = Literal["equal", "different", "unsupported", "unreadable"]
COMPARED = ["id", "verdict", "t_ns", "sojourn_ns", "t_mark_ns"]
"""Quantities that must be equal, and in the same order, for a case to pass."""
REASONS = {
    "red_early": "red_prob",
    "flow_limit": "overlimit_depth",
    "blue": "cobalt",
    "pi2": "congested",
    "step": "congested",
}
"""Reasons of drops that are called something else in the records."""


@dataclass(frozen=True)
class Report:
    """How a case went; the records of `aqmlab conformance --json`."""

    algorithm: str
    case: str
    passed: bool
    status: Status
    problem: str | None = None
    """Why the case could not be replayed."""
    packets: int = 0
    equal_verdicts: int = 0
    equal_packets: int = 0
    """Packets of which verdict, times and place in the order are the same."""
    first_difference: dict[str, Any] | None = None
    worst_offset_ns: int | None = None
    """The largest difference between the times of two decisions about a packet."""
    drops: int = 0
    equal_reasons: int = 0
    """Drops that both sides give the same reason for."""
    ignored: tuple[str, ...] = ()
    """Parameters of the case without counterpart in aqmlab."""


def check(case: RecordedCase, *, emulator: bool = False) -> Report:
    """Replays `case` and counts equal decisions.

    With `emulator`, as packets through the emulator's data path, which does not know when a
    packet was marked: those times are then taken as right.
    """
    try:
        queue, mtu, ignored = queue_of(case)
        measured = replay(case, queue, mtu, emulator=emulator)
    except Unsupported as error:
        return Report(case.algorithm, case.name, False, "unsupported", str(error))
    return replace(compare(case, measured), ignored=tuple(ignored))


def replay(
    case: RecordedCase, queue: Mapping[str, Any], mtu: int, *, emulator: bool = False
) -> pl.DataFrame:
    """What a queue of these settings decides: a table like `Case.outcomes`.

    Raises `Unsupported` if they are not allowed.
    """
    columns = [case.arrivals[name].to_numpy() for name in ("t_ns", "flow", "size_bytes", "ecn")]
    try:
        table = _core.replay(
            queue,
            *columns,
            rate_bps=case.rate_bps,
            ns_per_byte=case.ns_per_byte,
            random_seed=case.random_seed or 0,
            mtu=mtu,
            emulator=emulator,
        )
    except InputError as error:
        raise Unsupported(str(error)) from None
    frame = pl.DataFrame(table).with_columns(pl.col("reason").cast(pl.String).replace(REASONS))
    if emulator:
        marks = case.outcomes.select("id", "t_mark_ns")
        frame = frame.drop("t_mark_ns").join(marks, on="id", how="left", maintain_order="left")
    return frame.select(pl.col(name).cast(kind) for name, kind in OUTCOMES.items())


def compare(case: RecordedCase, measured: pl.DataFrame) -> Report:
    """Compares the decisions of aqmlab's queue with the recorded ones."""
    recorded = case.outcomes
    both = recorded.join(measured, on="id", how="left", suffix="_ours", maintain_order="left")
    rows = pl.concat([recorded, measured.rename(lambda name: f"{name}_ours")], how="horizontal")
    same = rows.select(
        pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_ours")) for name in COMPARED)
    ).to_series()
    passed = bool(same.all())
    facts = both.select(
        verdicts=(pl.col("verdict") == pl.col("verdict_ours")).sum(),
        offset=pl.max_horizontal("t_ns", "t_ns_ours")
        .sub(pl.min_horizontal("t_ns", "t_ns_ours"))
        .max(),
        drops=pl.col("reason").count(),
        reasons=(pl.col("reason") == pl.col("reason_ours")).sum(),
    ).row(0, named=True)
    return Report(
        algorithm=case.algorithm,
        case=case.name,
        passed=passed,
        status="equal" if passed else "different",
        packets=recorded.height,
        equal_verdicts=facts["verdicts"],
        equal_packets=int(same.sum()),
        first_difference=None if passed else _first(rows, same, measured),
        worst_offset_ns=facts["offset"],
        drops=facts["drops"],
        equal_reasons=facts["reasons"],
    )


def _first(rows: pl.DataFrame, same: pl.Series, measured: pl.DataFrame) -> dict[str, Any]:
    """First decision that differs: the packet, the recorded and the replayed one."""
    place = same.arg_min()
    assert place is not None
    row = rows.row(place, named=True)
    expected = {name: row[name] for name in OUTCOMES if name != "id"}
    ours = measured.filter(pl.col("id") == row["id"])
    got = ours.drop("id").row(0, named=True) if ours.height else None
    return {
        "decision": place,
        "packet": row["id"],
        "expected": expected,
        "got": got,
        "packet_decided_instead": row["id_ours"],
    }
