"""Replays cases and compares them, packet by packet, with the recordings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

from aqmlab import _core
from aqmlab.conformance.archive import Archive
from aqmlab.conformance.folder import OUTCOMES, RecordedCase, Unsupported, find_cases, read_case
from aqmlab.conformance.settings import queue_of
from aqmlab.errors import InputError, input_error, nearest

Progress = Callable[[int, int], None]
Given = TypeVar("Given")
Made = TypeVar("Made")

Job = tuple[str, str, Callable[[], RecordedCase]]
"""Algorithm and name of a case, and what reads it."""
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


def check_all(
    vectors: Path | None = None,
    algorithms: Sequence[str] = (),
    *,
    emulator: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Report]:
    """Replays the cases of `algorithms` (all if none is named), in the order of their names.

    The beginning of names stands for all of them: `codel` for `codel_linux`, `codel_rfc8289`, ...
    `vectors` is a folder of cases; without it those that come with aqmlab are replayed. A case
    that cannot be read, or that there is no counterpart of here, is reported like the others.
    With `emulator`, packets go through the emulator's data path.
    """
    jobs = _jobs(vectors)
    known = list(dict.fromkeys(algorithm for algorithm, _, _ in jobs))
    meant = set()
    for name in algorithms:
        found = [each for each in known if each == name or each.startswith(f"{name}_")]
        if not found:
            families = {each.partition("_")[0] for each in known}
            meant_by = nearest(name, [*known, *sorted(families)])
            hint = f"did you mean `{meant_by}`?" if meant_by else None
            problem = f"unknown algorithm; known: {', '.join(known)}"
            raise input_error(problem, given=name, hint=hint)
        meant.update(found)

    def run(job: Job) -> Report:
        algorithm, name, read = job
        try:
            case = read()
        except InputError as error:
            return Report(algorithm, name, False, "unreadable", str(error))
        # The names are those of its folder.
        return replace(check(case, emulator=emulator), algorithm=algorithm, case=name)

    wanted = [job for job in jobs if not algorithms or job[0] in meant]
    return in_threads(run, wanted, threads, progress)


def in_threads(
    work: Callable[[Given], Made],
    given: Iterable[Given],
    threads: int | None,
    progress: Progress | None,
) -> list[Made]:
    """The results of `work` for each of `given`, in their order, computed on all cores."""
    every, made = list(given), []
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        for each in pool.map(work, every):
            made.append(each)
            if progress:
                progress(len(made), len(every))
    return made


def _jobs(vectors: Path | None) -> list[Job]:
    if vectors is not None:
        found = find_cases(vectors)
        return [(algorithm, name, partial(read_case, case)) for algorithm, name, case in found]
    archive = Archive()
    entries = enumerate(archive.entries)
    return [(each["algorithm"], each["name"], partial(archive.case, at)) for at, each in entries]
