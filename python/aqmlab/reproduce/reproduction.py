"""A published study, run and compared with its paper."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import aqmlab
from aqmlab.campaign import UNDECIDED, Answer
from aqmlab.campaign.reported import SCHEMA, Reported
from aqmlab.errors import input_error
from aqmlab.numbers import count
from aqmlab.report.document import Document, Figure
from aqmlab.report.exports import plain_text
from aqmlab.report.setup_diagram import caption, diagram
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, CellTable, Warning
from aqmlab.reproduce.page import document
from aqmlab.reproduce.published import MAIN, Published
from aqmlab.reproduce.schema import Remark
from aqmlab.reproduce.signs import same_signs
from aqmlab.scenario.settings import each_of
from aqmlab.stats import estimate
from aqmlab.study import Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from aqmlab.results import StudyResult


def reproduce(
    name: str,
    *,
    only: str | Sequence[str] = (),
    beside: str | Sequence[str] = (),
    replications: int | None = None,
    seed: int | None = None,
    trace: str | Path | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    emulate: bool = False,
    step: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    told: Callable[[str], None] | None = None,
) -> Reproduction:
    """Reproduces a published study and compares it with its paper.

    Parameters
    ----------
    name : str
        Name (`aqmlab list studies`) or folder of the study.
    only : str or sequence of str, optional
        Part of the study (of jarvinen2014, `"paper"` or `"short"`), or labels to keep
        (`["queue=CoDel", "rest=11 ms"]`).
    beside : str or sequence of str, optional
        Labels that the paper lacks, as `AXIS=VALUE`: `["queue=fq_codel"]`. The tables get cells of
        them, marked "not in the paper".
    replications : int, optional
        Replications of each point. Default: those of the study, doubled until every statement is
        decided up to the study's maximum (`most`).
    seed : int, optional
        Seed of all random streams. Default: that of the study.
    trace : path, optional
        File of delivery opportunities, for studies with a recorded link (cs244_2015).
    out : path, optional
        Results folder, from which an interrupted study resumes. Needed for `emulate`.
    threads, executor, progress
        As in `Study.run`.
    emulate : bool, default False
        Also runs each point once with real packets, and simulates it at the same length.
    step : str, optional
        Length of the steps with real packets, such as `"10s"`.
    told : callable, optional
        Called with a text before each stage.

    Returns
    -------
    Reproduction
        Tables of published and measured numbers, claims with verdicts, report.

    Raises
    ------
    InputError
        If the study or part is unknown, an argument is invalid, or `emulate` has no `out`.
    FolderError, StorageError, StuckError, ClusterError
        As in `Study.run`.
    """
    if step is not None and not emulate:
        raise input_error("this needs emulate", key="step", given=step)
    if emulate and out is None:
        raise input_error("real packets need a folder for their results", key="out")
    only = each_of(only)
    published = Published.load(name).beside(each_of(beside))
    studies = published.studies(
        only, seed=seed, replications=replications, trace=Path(trace) if trace else None
    )
    shortened = published.emulation(only, step) if emulate else None
    most = {} if replications else published.form.most
    found = {name: _looks(study, most.get(name, 0)) for name, study in studies.items()}
    planned = max(len(looks) for looks in found.values())
    with ExitStack() as stack:
        folder = out
        if folder is None and planned > 1:  # in which further replications are added to the first
            folder = stack.enter_context(TemporaryDirectory(prefix="aqmlab-"))
        for name, looks in found.items():
            there = [] if folder is None else [each.is_in(_folder(folder, name)) for each in looks]
            begun = max((place for place, is_there in enumerate(there) if is_there), default=0)
            found[name] = looks[begun:]
        while True:
            first = {name: looks[0] for name, looks in found.items()}
            results = _run(first, folder, threads, executor, progress)
            made = Reproduction(published, results, only=only, trace=trace, looks=planned)
            undecided = sum(each.verdict == UNDECIDED for each in made.claims)
            if not undecided or all(len(looks) == 1 for looks in found.values()):
                break
            if told:
                open_ = f"{undecided} of {count(len(made.claims), 'statement')} not decided"
                told(f"{published.name}: {made.extent}: {open_}")
            found = {name: looks[1:] or looks for name, looks in found.items()}
        if out is None and folder is not None:
            for result in results.values():
                result.detach()
    if shortened is not None and out is not None:
        results |= _emulated(shortened, seed, replications, out, threads, told)
        made = Reproduction(published, results, only=only, trace=trace, looks=planned)
    return made


def _looks(study: Study, most: int) -> list[Study]:
    """The study, and the same with twice as many replications until these are as many as `most`."""
    found = [study]
    while found[-1].replications < most:
        found.append(study.with_replications(min(2 * found[-1].replications, most)))
    return found


def _folder(out: str | Path, part: str) -> Path:
    return Path(out) if part == MAIN else Path(out) / part


def _run(
    studies: Mapping[str, Study],
    out: str | Path | None,
    threads: int | None,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, StudyResult]:
    """The results of each part."""
    total = sum(study.total for study in studies.values())
    results, before = {}, 0

    def counted(done: int, _: int) -> None:
        if progress:
            progress(before + done, total)

    for part, study in studies.items():
        folder = None if out is None else _folder(out, part)
        results[part] = study.run(folder, threads=threads, progress=counted, executor=executor)
        before += study.total
    return results


def _emulated(
    shortened: tuple[str, dict[str, Any], dict[str, list[str]]],
    seed: int | None,
    replications: int | None,
    out: str | Path,
    threads: int | None,
    told: Callable[[str], None] | None,
) -> dict[str, StudyResult]:
    """The study shortened: simulated, and with real packets."""
    from aqmlab.emulator.study import run

    file, settings, axes = shortened
    given: dict[str, Any] = {"source": file, "set": settings, "only": axes, "seed": seed}
    short = Study(**given, replications=replications)
    return {
        "short": short.run(Path(out) / "short", threads=threads),
        "emulated": run(given | {"replications": 1}, Path(out) / "emulated", told),
    }


class Reproduction(Reported):
    """A study that was run again: its tables, claims, causes of differences and figures.

    `results` are those of its parts, by name; most studies have one, called `study`. `looks` is
    the planned number of times that statements are judged while replications are added.
    """

    answers_file = "verdicts.json"

    def __init__(
        self,
        published: Published,
        results: Mapping[str, StudyResult],
        *,
        only: Sequence[str] = (),
        trace: str | Path | None = None,
        looks: int = 1,
    ) -> None:
        self.published = published
        self.results = dict(results)
        self.only = tuple(only)
        self.trace = trace
        parts: dict[str, Measurements] = {}
        for name, result in self.results.items():
            parts[name] = Measurements(
                result, published.paper["link"], parts, added=published.added,
                paper=published.paper, looks=looks,
            )  # fmt: skip
        self.parts = parts

    @property
    def measured(self) -> Measurements:
        """The measurements of the first part that was run; it knows the others."""
        return next(iter(self.parts.values()))

    @property
    def result(self) -> StudyResult:
        """The results of the first part that was run."""
        return self.measured.result

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.published.name

    @property
    def title(self) -> str:
        """The title of the study."""
        return str(self.published.study.get("title", self.name))

    @property
    def runs(self) -> int:
        """The number of simulations behind it."""
        return sum(each.info.points * each.info.replications for each in self.results.values())

    @property
    def extent(self) -> str:
        """`200 points, 100 replications`, for each part, with its name if there are several."""

        def told(name: str, result: StudyResult) -> str:
            part = f"{name}: " if len(self.results) > 1 else ""
            points = count(result.info.points, "point")
            return f"{part}{points}, {count(result.info.replications, 'replication')}"

        return "; ".join(told(*each) for each in self.results.items())

    @property
    def without_intervals(self) -> str:
        """A sentence if a part has too few replications for intervals."""
        fewest = min(each.info.replications for each in self.results.values())
        why = estimate(np.arange(float(fewest))).why
        return f"There are no intervals: {why}." if why else ""

    @property
    def command(self) -> str:
        """What gives the same numbers on any machine."""
        words = ["aqmlab", "reproduce", self.name]
        for each in self.only:
            words += ["--only", each]
        for addition in self.published.additions:
            words += ["--with", f"{addition.axis}={addition.label}"]
        if self.trace:
            words += ["--trace", str(self.trace)]
        counts = {each.info.replications for each in self.results.values()}
        if self.measured.looks == 1 and len(counts) == 1:
            words += ["--replications", str(counts.pop())]
        return shlex.join([*words, "--seed", str(self.result.info.seed)])

    @cached_property
    def tables(self) -> list[CellTable]:
        """Published and measured numbers."""
        return self.published.tables(self.measured)

    @cached_property
    def claims(self) -> list[Answer]:
        """The statements of the paper, and the project's own comparisons, checked."""
        return [each.answer() for each in self.published.claims(self.measured)]

    @cached_property
    def held_if_alike(self) -> int | None:
        """Number of the paper's statements that would hold if all its queues (or other labels of
        the axis `subject`) were the same: the most over the labels on that axis, whose results then
        count for all. None if the study has no such axis or its statements are all its own."""
        asked = [each for each in self.published.claims(self.measured) if not each.rule.own]
        axis = self.published.form.subject
        labels = next((part.axes[axis] for part in self.parts.values() if axis in part.axes), ())
        if not asked or len(labels) < 2:
            return None
        there = {each.rule.id for each in asked}
        counts = []
        for label in labels:
            world = self.measured.relabelled(axis, dict.fromkeys(labels, label))
            alike = self.published.claims(world)
            counts.append(sum(each.holds for each in alike if each.rule.id in there))
        return max(counts)

    @cached_property
    def causes(self) -> list[Cause]:
        """Why some of the cells differ, and where they lean to one side."""
        leaning = same_signs(self.tables, self.published.main_rows)
        return [*self.published.hook("causes", self.measured), *leaning]

    @property
    def contradictions(self) -> list[Remark]:
        """Where the paper contradicts itself."""
        return self.published.form.contradictions

    @cached_property
    def figures(self) -> list[Figure]:
        """The set-up, the figures of the paper, and ours."""
        return [*self._set_ups(), *self.published.hook("figures", self.measured)]

    def _set_ups(self) -> Iterator[Figure]:
        """The set-up of each part whose links are others than those of the parts before it."""
        drawn: list[object] = []
        for name, result in self.results.items():
            scenario = result.scenarios[0]
            links = [(each, link["rate"]) for each, link in scenario["links"].items()]
            if name == "emulated" or links in drawn:
                continue
            drawn.append(links)
            first = len(drawn) == 1
            yield Figure(
                "setup" if first else f"setup-{name}",
                "Set-up" if first else f"Set-up of the part {name}",
                f"{scenario['bottleneck']} is the bottleneck.",
                f"As at the first point. {caption(scenario)}",
                diagram(scenario),
            )

    @property
    def warnings(self) -> list[Warning]:
        """What the engine noted in the runs, each kind once: in the first part that has it, and
        the names of the others."""
        found: dict[str, tuple[Warning, list[str]]] = {}
        for name, part in self.parts.items():
            for each in part.warnings:
                first, more = found.setdefault(each.id, (each, []))
                if first is not each:
                    found[each.id] = (replace(first, runs=first.runs + each.runs), [*more, name])
        return [
            replace(each, where=f"{each.where}; also in {', '.join(more)}") if more else each
            for each, more in found.values()
        ]

    def table(self, ident: str) -> CellTable:
        """The table with this id. Raises `KeyError` if there is none."""
        return {table.id: table for table in self.tables}[ident]

    def to_json(self) -> dict[str, Any]:
        """Tables, statements and contradictions; docs/reproductions.md describes the keys."""
        info = self.result.info
        return {
            "schema": SCHEMA,
            "study": self.name,
            "version": aqmlab.__version__,
            "seed": info.seed,
            "digests": {name: each.info.digest for name, each in self.results.items()},
            "replications": {name: each.info.replications for name, each in self.results.items()},
            "tables": [table.to_json() for table in self.tables],
            "claims": [claim.to_json() for claim in self.claims],
            "held_if_alike": self.held_if_alike,
            "contradictions": [each.model_dump() for each in self.contradictions],
        }

    def document(self, command: str = "") -> Document:
        """The reproduction as a document."""
        return document(self)

    def csv_files(self) -> dict[str, str]:
        """cells.csv and claims.csv."""
        cells = [
            {"table": table.id, "reference": table.reference, "unit": table.unit, **cell}
            for table in self.tables
            for cell in table.to_json()["cells"]
        ]
        claims = [each.to_json() for each in self.claims]
        files = {}
        for name, rows in {"cells.csv": cells, "claims.csv": claims}.items():
            frame = pl.DataFrame(rows, infer_schema_length=None)
            told = frame.drop("possible", "comparisons", strict=False)
            files[name] = plain_text(told).write_csv()
        return files
