"""Recorded cases, arrivals at a reference implementation and its decisions, and folders of them.

docs/conformance.md describes the format for people who bring their own cases.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import BaseModel, Field

from aqmlab.errors import input_error
from aqmlab.files import read_bytes, unpack
from aqmlab.scenario.form import checked

CASE = "case.json"
LAYOUT = f"ALGORITHM/CASE/{{{CASE},arrivals.csv.gz,outcomes.csv.gz}}"
LATEST = 2**53
"""About 104 days: whole nanoseconds up to here are exact in floating point, too."""
LARGEST = 2**64 - 1
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
BITS: dict[pl.DataType, int] = {pl.UInt8(): 8, pl.UInt32(): 32, pl.UInt64(): 64}
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


def find_cases(folder: Path) -> list[tuple[str, str, Path]]:
    """Algorithm, name and folder of the cases in `folder`, sorted.

    A folder counts as a case even if all of its files are missing, and an algorithm without
    cases as one without a name: nothing goes unseen.
    """
    if not folder.is_dir():
        raise input_error(f"this is not a folder; cases are in {LAYOUT}", file=str(folder))
    algorithms = _folders(folder)
    for each in [folder, *algorithms]:
        if (each / CASE).exists():
            root = each.absolute().parent.parent
            hint = f"--vectors {root}"
            raise input_error(f"cases are expected in {LAYOUT}", file=str(each), hint=hint)
    if not algorithms:
        raise input_error(f"there are no cases here; they are in {LAYOUT}", file=str(folder))
    return [
        (algorithm.name, case.name if case != algorithm else "", case)
        for algorithm in algorithms
        for case in _folders(algorithm) or [algorithm]
    ]


def _folders(folder: Path) -> list[Path]:
    within = (each for each in folder.iterdir() if each.is_dir())
    return sorted(each for each in within if not each.name.startswith((".", "__")))


class LinkForm(BaseModel, strict=True):
    """The link of a case."""

    rate_bps: Positive
    ns_per_byte: Positive


class TimerForm(BaseModel, strict=True):
    """When the timer runs, of algorithms that have one."""

    first_ns: Positive
    period_ns: Positive


class CaseForm(BaseModel, strict=True):
    """Content of a `case.json`; other keys are ignored."""

    algorithm: str
    case: str
    description: str = ""
    reference: str = ""
    link: LinkForm
    parameters: dict[str, Any]
    timer: TimerForm | None = None
    random_seed: int | None = Field(ge=0, le=LARGEST)
    """Where the random numbers start; null if none were drawn."""


def read_case(folder: Path) -> RecordedCase:
    """Reads the case in `folder`. Raises `InputError` with the file and the mistake in it."""
    file = folder / CASE
    facts = checked(CaseForm, read_object(file), str(file), table="a JSON object")
    arrivals = _read_table(folder / "arrivals.csv.gz", ARRIVALS)
    _check_arrivals(folder / "arrivals.csv.gz", arrivals)
    outcomes = _read_table(folder / "outcomes.csv.gz", OUTCOMES)
    _check_outcomes(folder / "outcomes.csv.gz", outcomes, arrivals.height)
    own = facts.model_dump(exclude={"case", "link"})
    return RecordedCase(
        name=facts.case, **facts.link.model_dump(), **own, arrivals=arrivals, outcomes=outcomes
    )


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        content = json.loads(read(file))
    except ValueError as error:
        raise input_error(f"this is not JSON: {error}", file=str(file)) from None
    if not isinstance(content, dict):
        raise input_error("expected a JSON object", file=str(file), given=json.dumps(content))
    return content


def read(file: Path) -> bytes:
    """The bytes of a file, unpacked if it is a `.gz`."""
    try:
        content = read_bytes(file)
    except FileNotFoundError:
        names = sorted(each.name for each in file.parent.iterdir())
        found = f"found: {', '.join(names)}" if names else "the folder is empty"
        raise input_error(f"this file is missing; {found}", file=str(file)) from None
    except OSError as error:
        raise input_error(f"cannot be read: {error.strerror}", file=str(file)) from None
    try:
        unpacked = unpack(content, file)
    except OSError as error:
        raise input_error(str(error.strerror), file=str(file)) from None
    if file.suffix == ".gz" and unpacked is content:
        raise input_error("it is no gzip file", file=str(file))
    return unpacked


def _read_table(file: Path, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A table with these columns, everything in it of the right kind."""
    content = read(file).removeprefix(codecs.BOM_UTF8)
    if not content:
        raise input_error("this file is empty", file=str(file))
    header = content.partition(b"\n")[0].decode(errors="replace").strip().split(",")
    if missing := [name for name in schema if name not in header]:
        problem = f"column {missing[0]} is missing; expected: {','.join(schema)}"
        shown = "".join(each if each.isprintable() else "?" for each in ",".join(header)[:200])
        raise input_error(problem, file=str(file), given=shown)
    try:
        text = pl.read_csv(content, infer_schema=False, columns=list(schema))
    except pl.exceptions.PolarsError as error:
        problem = str(error).strip().splitlines()[0]
        raise input_error(f"CSV is expected: {problem}", file=str(file)) from None
    return pl.DataFrame([_converted(text[name], schema[name], file) for name in schema])


def _converted(text: pl.Series, kind: pl.DataType, file: Path) -> pl.Series:
    """The column in its type; an error names the first invalid line."""
    values = text.cast(kind, strict=False)
    wrong = values.is_null()
    if text.name in MAY_BE_EMPTY:
        wrong &= text.is_not_null()
    expected = "a whole number"
    if isinstance(kind, pl.Enum):
        expected = f"one of {', '.join(kind.categories)}"
    elif kind.is_integer():
        expected = f"a whole number below 2^{BITS[kind]}"
    _refuse(file, text, wrong, f"{expected} is expected")
    return values


def _refuse(file: Path, column: pl.Series, wrong: pl.Series, problem: str) -> None:
    """Raises an error about the first value of `column` that is `wrong`, if any is."""
    row = wrong.fill_null(False).arg_max()
    if row is None or not wrong[row]:
        return
    place = f"line {row + 2}, column {column.name}"
    given = "nothing" if column[row] is None else column[row]
    raise input_error(problem, file=str(file), key=place, given=given)


def _check_arrivals(file: Path, arrivals: pl.DataFrame) -> None:
    """Ids count from 0, time does not go backwards, codepoints are those of ECN."""
    if arrivals.is_empty():
        raise input_error("there are no arrivals", file=str(file))
    counted = pl.int_range(arrivals.height, dtype=pl.UInt32, eager=True)
    _refuse(file, arrivals["id"], arrivals["id"] != counted, "ids count from 0, line by line")
    times = arrivals["t_ns"]
    _refuse(file, times, times >= LATEST, "a time below 2^53 ns is expected")
    _refuse(file, times, times < times.shift(1), "arrivals are in the order of their times")
    _refuse(file, arrivals["ecn"], arrivals["ecn"] > 3, "an ECN codepoint (0 to 3) is expected")
    _refuse(file, arrivals["size_bytes"], arrivals["size_bytes"] == 0, "a size is expected")


def _check_outcomes(file: Path, outcomes: pl.DataFrame, arrivals: int) -> None:
    """Every arrival has one outcome."""
    ids = outcomes["id"]
    _refuse(file, ids, ids >= arrivals, f"there are only {arrivals} arrivals, counted from 0")
    _refuse(file, ids, ~ids.is_first_distinct(), "this packet already has an outcome")
    if outcomes.height < arrivals:
        missing = pl.int_range(arrivals, dtype=pl.UInt32, eager=True).is_in(ids.implode()).arg_min()
        raise input_error(
            f"{outcomes.height} outcomes for {arrivals} arrivals; packet {missing} has none",
            file=str(file),
        )
