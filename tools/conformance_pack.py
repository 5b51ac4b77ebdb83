"""Makes the archive of recorded cases from a folder: `python -m tools.conformance_pack DIR`."""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from aqmlab.conformance.archive import (
    ARRIVALS_KEPT,
    FACTS,
    MARKS,
    OUTCOMES_KEPT,
    SHIPPED,
    TAKEN_OUT,
    Archive,
    expected_time,
    with_arrivals,
)
from aqmlab.conformance.folder import RecordedCase, find_cases, read_case
from aqmlab.conformance.senders import SHIPPED as SENDERS
from aqmlab.conformance.senders import find_senders, pack_case
from aqmlab.conformance.settings import queue_of
from aqmlab.errors import InputError, input_error


def main() -> None:
    """Packs all cases of a folder; writes nothing if one of them cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m tools.conformance_pack", description=__doc__)
    parser.add_argument("cases", type=Path, help="a folder of cases, ALGORITHM/CASE/")
    parser.add_argument("--tcp", action="store_true", help="senders: CASE/ (out: recorded/)")
    parser.add_argument("out", type=Path, nargs="?", default=SHIPPED, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        if arguments.tcp:
            write_archive(arguments.cases)
            return
        pack([read_case(folder) for _, _, folder in find_cases(arguments.cases)], arguments.out)
    except InputError as error:
        sys.exit(f"error: {error}")


def pack(cases: Iterable[RecordedCase], folder: Path) -> None:
    """Writes `cases` to `folder` and makes sure that they can be read again as they are.

    Raises `Unsupported` if there is no counterpart of a case here.
    """
    entries: list[dict[str, Any]] = []
    patterns: list[pl.DataFrame] = []
    kept = list(cases)
    for case in kept:
        known = (i for i, pattern in enumerate(patterns) if pattern.equals(case.arrivals))
        place = next(known, len(patterns))
        if place == len(patterns):
            patterns.append(case.arrivals)
        queue, mtu, _ = queue_of(case)
        facts = {key: getattr(case, key) for key in FACTS}
        entries.append(facts | {"queue": queue, "mtu": mtu, "arrivals": place})
    reasons = sorted({str(each) for case in kept for each in case.outcomes["reason"].drop_nulls()})
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    lengths = [pattern.height for pattern in patterns]
    head = f'"arrivals": {json.dumps(lengths)},\n"reasons": {json.dumps(reasons)}'
    (folder / "cases.json").write_text(
        f'{{\n{head},\n"cases": [\n{lines}\n]\n}}\n', encoding="utf-8"
    )
    _write(folder / "arrivals.zlib", ARRIVALS_KEPT, [_packed_arrivals(each) for each in patterns])
    outcomes = [_numbered(_packed_outcomes(case), pl.Enum(reasons)) for case in kept]
    _write(folder / "outcomes.zlib", OUTCOMES_KEPT, outcomes)
    _check(Archive(folder), kept)


def _check(archive: Archive, cases: Sequence[RecordedCase]) -> None:
    for index, case in enumerate(cases):
        again = archive.case(index)
        try:
            assert_frame_equal(again.arrivals, case.arrivals)
            assert_frame_equal(again.outcomes, case.outcomes)
        except AssertionError as error:
            problem = f"differs after reading it from the archive: {error}"
            raise input_error(problem, file=case.path) from None


def _write(file: Path, kinds: Mapping[str, str], frames: Sequence[pl.DataFrame]) -> None:
    frame = pl.concat(frames)
    columns = (frame[name].to_numpy().astype(kind) for name, kind in kinds.items())
    planes = (column.view(np.uint8).reshape(frame.height, -1).T.tobytes() for column in columns)
    file.write_bytes(zlib.compress(b"".join(planes), 9))


def _numbered(outcomes: pl.DataFrame, reasons: pl.Enum) -> pl.DataFrame:
    """Names as numbers: the verdict's from 0, the others' from 1."""
    number = [
        pl.col(name).cast(kind).to_physical().add(1).fill_null(0)
        for name, kind in (("mark", MARKS), ("reason", reasons))
    ]
    return outcomes.with_columns(pl.col("verdict").to_physical(), *number)


def _packed_arrivals(arrivals: pl.DataFrame) -> pl.DataFrame:
    times = pl.col("t_ns").cast(pl.Int64)
    return arrivals.select(
        times.diff().fill_null(times).alias("gap_ns"), "flow", "size_bytes", "ecn"
    )


def _packed_outcomes(case: RecordedCase) -> pl.DataFrame:
    number = pl.col("id").cast(pl.Int64)
    step = (number - number.shift(1).over(TAKEN_OUT)).fill_null(number)
    lag = pl.col("t_ns").cast(pl.Int64) - expected_time(case.ns_per_byte)
    mark = (
        pl.when(pl.col("t_mark_ns") == pl.col("t_ns"))
        .then(pl.lit("decision", MARKS))
        .when(pl.col("t_mark_ns") == pl.col("arrival_ns"))
        .then(pl.lit("arrival", MARKS))
    )
    return with_arrivals(case.outcomes, case.arrivals).select(
        "verdict",
        step.cast(pl.Int32).alias("step"),
        lag.alias("lag_ns"),
        mark.alias("mark"),
        "reason",
    )


def write_archive(folder: Path, file: Path = SENDERS) -> None:
    """Packs all cases of `folder` into one file."""
    packed = b"".join(pack_case(case) for case in find_senders(folder))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}]
    file.write_bytes(lzma.compress(packed, lzma.FORMAT_XZ, filters=filters))


if __name__ == "__main__":
    main()
