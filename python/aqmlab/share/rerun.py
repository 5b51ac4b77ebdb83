"""Repetition of results: verified, run again from their own files, compared byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from aqmlab import _core, custom
from aqmlab._core import Files, Scenario
from aqmlab.errors import FolderError, input_error
from aqmlab.report import own
from aqmlab.results import Scenarios
from aqmlab.results.tables import FolderTables
from aqmlab.share.archive import unpack
from aqmlab.share.bundle import results_in, verified
from aqmlab.study.folder import scenarios_of
from aqmlab.study.manifest import (
    MANIFEST,
    SCENARIOS,
    first_difference,
    host,
    read_manifest,
    seals_of,
    study_info,
)
from aqmlab.study.points import Axis, AxisValue, Point, Points
from aqmlab.study.sources import CODE, INPUT, METRICS, SOURCES, Sources, code_in, current_command
from aqmlab.study.sweep import Study

if TYPE_CHECKING:
    from aqmlab.study.sweep import Progress

ORIGINAL, RERUN = "original", "rerun"
SAME, VALUES, DIFFERS = "same bytes", "same values", "differs"


@dataclass(frozen=True)
class RerunTable:
    """A table of the rerun beside the original."""

    table: str
    state: str
    """`same bytes`, `same values` or `differs`."""
    text: str = ""
    """First difference."""


@dataclass(frozen=True)
class RerunFolder:
    """A results folder and its repetition."""

    name: str
    """Folder relative to that of all results."""
    command: str
    """Command that made the original."""
    environment: tuple[str, ...]
    """Differences of program and machine."""
    scenario: str
    """First difference of the scenarios, if any."""
    tables: tuple[RerunTable, ...]
    """Empty if the runs were not repeated."""
    emulated: bool = False


@dataclass(frozen=True)
class Rerun:
    """Results of `aqmlab.rerun`."""

    original: Path
    """Folder of the verified results."""
    folder: Path | None
    """Folder of the new results; None if nothing was run."""
    parts: tuple[RerunFolder, ...]

    @property
    def agrees(self) -> bool:
        """True unless a value of a table differs."""
        return not any(each.state == DIFFERS for part in self.parts for each in part.tables)

    @property
    def lines(self) -> list[str]:
        """The comparison in sentences."""
        return [line for part in self.parts for line in _told(part, len(self.parts) > 1)]

    def to_json(self) -> dict[str, Any]:
        """`{"agrees", "original", "folder", "parts"}`."""
        folder = None if self.folder is None else str(self.folder)
        parts = [asdict(each) for each in self.parts]
        return {"agrees": self.agrees, "original": str(self.original), "folder": folder,
                "parts": parts}  # fmt: skip


def rerun(
    source: str | Path,
    out: str | Path | None = None,
    *,
    trust: bool = False,
    verify: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Rerun:
    """Verifies results, repeats their runs, and compares the tables byte for byte.

    Parameters
    ----------
    source : path
        Bundle (`aqmlab.bundle`) or results folder.
    out : path, optional
        New folder: a bundle is unpacked into `original/` there, and the new results go to `rerun/`.
        Default: `results/NAME-rerun`.
    trust : bool, default False
        Executes the custom queues, congestion controls and metrics (Python) of the results.
    verify : bool, default False
        Only verifies files and versions.
    threads : int, optional
        Number of cores. Default: all.
    progress : callable, optional
        As in `Study.run`.

    Returns
    -------
    Rerun
        Differences of program and machine, of the scenarios, and of each table. Results of real
        packets are verified, not repeated.

    Raises
    ------
    FolderError
        If the results or the bundle are damaged, or `out` has other contents.
    InputError
        If the results have Python code and `trust` is False, or this version of aqmlab does not
        accept a scenario.

    Examples
    --------
    >>> aqmlab.rerun("mine.aqmlab.zip").agrees
    True
    """
    given = Path(source)
    name = given.resolve().name.removesuffix(".zip").removesuffix(".aqmlab")
    place = Path("results") / f"{name}-rerun" if out is None else Path(out)
    original = given if given.is_dir() else place / ORIGINAL
    if original is not given:
        unpack(given, original)
    parts, ran = [], False
    for folder in results_in(original):
        manifest = verified(folder)
        name = str(folder.relative_to(original))
        tables: tuple[RerunTable, ...] = ()
        difference = ""
        about = manifest[SOURCES]
        if not (verify or about["emulated"]):
            _refuse_code(given, folder, manifest, trust)
            target = place / RERUN / name
            difference = _repeat(folder, manifest, target, threads, progress)
            tables, ran = tuple(_compared(folder, target)), True
        found = tuple(_environment(manifest))
        parts.append(RerunFolder(name, about["command"], found, difference, tables,
                                 about["emulated"]))  # fmt: skip
    return Rerun(original, place / RERUN if ran else None, tuple(parts))


def _refuse_code(given: Path, folder: Path, manifest: Mapping[str, Any], trust: bool) -> None:
    if missing := manifest[SOURCES]["missing"]:
        raise FolderError(f"{folder}: the class {missing[0]} is in no file, so it cannot be rerun")
    if trust or not (code := code_in(manifest)):
        return
    files = ", ".join(str(folder / each) for each in code)
    problem = f"the rerun would execute code: {files}"
    hint = "read it; --trust executes it, --verify runs nothing"
    raise input_error(problem, given=str(given), hint=hint)


def _repeat(
    folder: Path,
    manifest: Mapping[str, Any],
    target: Path,
    threads: int | None,
    progress: Progress | None,
) -> str:
    """Runs the study of `folder` again into `target`; the first difference of its scenarios."""
    if (target / MANIFEST).exists() and read_manifest(target)["complete"]:
        hint = "choose another folder with --out"
        raise FolderError(f"{target}: there are results already; nothing was changed; {hint}")
    study = RecordedStudy(folder)
    for path in study.files_of(METRICS).values():
        own.load(path)
    with custom.files_only(study.files_of(CODE)):
        difference = study.difference() if study.digest != manifest["digest"] else ""
        result = study.run(target, threads=threads, progress=progress)
    if study.total == 1:
        result.single().write_report(target, study.title, figures=False)
    else:
        result.write_report(figures=False)
    return difference


class RecordedPoints(Points):
    """The points of a results folder."""

    texts: Scenarios

    def _build(self, index: int) -> Point:
        text = self.texts[index]
        scenario = Scenario(text, file=self.file, folders=self.folders, files=self.files)
        return Point(index, self.labels(index), scenario)


class RecordedStudy(Study):
    """The study of the results in a folder.

    It depends on the files of that folder alone. Custom classes are loaded from the files in
    `code`: use it inside `custom.files_only`. Raises `InputError` if this version of aqmlab does
    not accept a scenario.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        info = study_info(manifest)
        self.file, self.name, self.title = str(folder), info.name, info.title
        self.replications, self.precision = info.replications, None
        self.axes = tuple(
            Axis(name, tuple(AxisValue(label, {}) for label in labels))
            for name, labels in info.axes
        )
        self._texts = scenarios_of(folder, info)
        self._folder, self._sources = folder, manifest[SOURCES]
        inputs = self.files_of(INPUT)
        contents = [(([str(folder)], name), path.read_bytes()) for name, path in inputs.items()]
        self.points = points = RecordedPoints(
            {}, str(folder / SCENARIOS), [str(folder)], self.axes, {}, Files(contents)
        )
        points.texts = self._texts

    def sources(self, *, emulated: bool = False) -> Sources:
        """The sources of the results, and the command of this process."""
        found = Sources.read(self._folder, read_manifest(self._folder))
        return replace(found, command=current_command())

    def files_of(self, kind: str) -> dict[str, Path]:
        """The sources of a kind: name to file."""
        found = (each for each in self._sources["files"] if each["kind"] == kind)
        return {each["name"]: self._folder / each["file"] for each in found}

    def difference(self) -> str:
        """The first key of a scenario that is another here than in the results; empty if all are
        alike."""
        for there, here in zip(self._texts, self.points.scenarios, strict=True):
            if found := first_difference(there, here):
                key, before, now = found
                return f"{key} is {before} there and {now} here"
        return ""


def _environment(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Differences between the program and machine of the results and these."""
    now = host()
    there = {"aqmlab": manifest["version"], "build of the engine": manifest["engine"]}
    here = {"aqmlab": _core.__version__, "build of the engine": _core.__engine__}
    for key in ("python", "polars", "machine"):
        there[key], here[key] = manifest["host"].get(key, "unknown"), now[key]
    for key, value in there.items():
        if value != here[key]:
            yield f"{key}: {value} there, {here[key]} here"


def _compared(original: Path, again: Path) -> Iterator[RerunTable]:
    """Every table of the original beside that of the rerun."""
    manifests = read_manifest(original), read_manifest(again)
    seals = [seals_of(each) for each in manifests]
    for name in dict.fromkeys([*manifests[0]["tables"], *manifests[1]["tables"]]):
        there, here = (each.get(f"{name}.parquet") for each in seals)
        if there == here:
            yield RerunTable(name, SAME)
        elif there is None or here is None:
            yield RerunTable(name, DIFFERS, f"only {'there' if here is None else 'here'}")
        else:
            text = _difference(name, FolderTables(original, [name]), FolderTables(again, [name]))
            yield RerunTable(name, DIFFERS if text else VALUES, text)


def _difference(name: str, original: FolderTables, again: FolderTables) -> str:
    """The first difference of two tables, and the number of rows that differ in the part of the
    table where it is; empty if all values are equal."""
    columns, now = (list(each.load(name, None).columns) for each in (original, again))
    if columns != now:
        only = sorted({*columns} ^ {*now})
        return f"columns {', '.join(only)} are in one only" if only else "other order of columns"
    first = 0
    parts = (each.parts(name, columns) for each in (original, again))
    for there, here in zip(*parts, strict=False):
        rows = min(there.height, here.height)
        pairs = [(there[each].head(rows), here[each].head(rows)) for each in columns]
        equal = pl.DataFrame([a.eq_missing(b).alias(a.name) for a, b in pairs])
        wrong = equal.select(~pl.all_horizontal(pl.all())).to_series()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            column = next(each for each in columns if not equal[each][row])
            keys = ", ".join(f"{key} {there[key][row]}" for key in columns[:2] if key != column)
            values = f"{there[column][row]} there, {here[column][row]} here"
            return f"{int(wrong.sum()):,} rows; first row {first + row} ({keys}): {column} {values}"
        if there.height != here.height:
            return f"{there.height - here.height:+,} rows there"
        first += rows
    return ""


def _told(part: RerunFolder, several: bool) -> Iterator[str]:
    of = f"{part.name}: " if several else ""
    yield f"{of}Files: all checksums are right."
    yield from (f"{of}Other {each}." for each in part.environment)
    if part.scenario:
        yield f"{of}Other scenario: {part.scenario}."
    if part.emulated:
        again = f" ({part.command})" if part.command else ""
        yield (
            f"{of}Real packets made these results: no other run has the same bytes, so only the "
            f"files were compared. Run the command again{again} and compare both folders with "
            "`aqmlab compare`."
        )
        return
    if not part.tables:
        return
    count = {state: [e for e in part.tables if e.state == state] for state in (SAME, VALUES)}
    yield f"{of}Tables: {len(count[SAME])} of {len(part.tables)} have the same bytes."
    if count[VALUES]:
        names = ", ".join(each.table for each in count[VALUES])
        yield f"{of}Same values in other bytes: {names} (another version of polars or zstd)."
    for each in part.tables:
        if each.state == DIFFERS:
            yield f"{of}Differs: {each.table}: {each.text}."
