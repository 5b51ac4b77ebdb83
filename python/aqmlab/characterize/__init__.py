"""Characterisation of a queue discipline by RFC 7928, against others.

    from aqmlab.characterize import characterize

    result = characterize("codel", against=["pie"], out="results/characterize-codel")
    result.write_report("results/characterize-codel")

docs/characterize.md says what is run, and what was chosen where the RFC leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars.selectors as cs

import aqmlab
from aqmlab import campaign
from aqmlab.campaign import Campaign, Pack, Question
from aqmlab.characterize.case import STEPS
from aqmlab.characterize.environment import Contender, Environment
from aqmlab.characterize.figures import Album
from aqmlab.characterize.measure import Measures
from aqmlab.characterize.questions import SECTIONS, Section, figures
from aqmlab.errors import input_error, unknown

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import polars as pl
    from rich.console import Console

    from aqmlab.characterize.verdict import Verdict
    from aqmlab.report.document import Document, Figure
    from aqmlab.results import StudyResult

__all__ = ["Characterization", "Contender", "Environment", "characterize", "sections"]

BASELINE = "droptail"
"""Always compared with: RFC 7928, section 8.2.6."""
REPLICATIONS = 10
SEED = 7928
Discipline = str | type


def sections(wanted: Sequence[str] = ()) -> list[Section]:
    """The sections whose numbers are `wanted`, or begin so (`8.2`); all if none is.

    Raises `InputError` for a number that is none.
    """
    known = list(SECTIONS)
    for number in wanted:
        if not any(_within(each.number, number) for each in known):
            raise unknown("section", number, [each.number for each in known], key="only")
    if not wanted:
        return known
    return [each for each in known if any(_within(each.number, number) for number in wanted)]


def _within(number: str, wanted: str) -> bool:
    return f"{number}.".startswith(f"{wanted}.")


def characterize(
    discipline: Discipline,
    *,
    against: Sequence[Discipline] = (),
    set: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    environment: Environment | None = None,
    replications: int = REPLICATIONS,
    seed: int = SEED,
    scale: float = 1.0,
    out: str | Path | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Characterization:
    """Characterises a queue discipline by the scenarios of RFC 7928, beside drop-tail and others.

    Parameters
    ----------
    discipline : str or class
        Name (`aqmlab list`), `"FILE:CLASS"`, or a class (`aqmlab.Queue`).
    against : sequence of str or class, optional
        Disciplines to compare with, besides drop-tail.
    set : mapping, optional
        Parameters of the discipline.
    only : sequence of str, optional
        Section numbers of the RFC to run, such as `"8.2"`.
    environment : Environment, optional
        Rate, round-trip time, buffer and senders.
    replications : int, default 10
        Replications of each case. Verdicts need at least five.
    seed : int, default 7928
        Seed of all random streams.
    scale : float, default 1
        Factor for the duration of every case.
    out : path, optional
        Results folder, from which an interrupted characterisation resumes.
    threads, executor, progress
        As in `Study.run`.

    Returns
    -------
    Characterization
        Verdicts, measures, report and tables.

    Raises
    ------
    InputError
        If an argument is invalid.
    FolderError, StorageError, StuckError, ClusterError
        As in `Study.run`.
    """
    plan = Plan.of(discipline, against, set or {}, only, environment or Environment(), scale)
    study = plan.study(replications, seed)
    result = study.run(out, threads=threads, progress=progress, executor=executor)
    return Characterization(plan, result)


class Plan(campaign.Plan):
    """The cases of the chosen sections with every contender."""

    def __init__(
        self,
        environment: Environment,
        contenders: Sequence[Contender],
        chosen: Sequence[Section],
        scale: float = 1.0,
    ) -> None:
        self.environment = environment
        self.sections = list(chosen)
        self.scale = scale
        self.cases = [
            case.shortened(scale)
            for section in chosen
            for contender in contenders
            for case in section.cases(environment, contender, contenders)
        ]
        first = contenders[0].name
        pack = Pack(
            f"characterize-{first}",
            f"{first}, characterised by RFC 7928",
            tuple(self._question(section) for section in chosen),
            "RFC 7928",
            REPLICATIONS,
            SEED,
        )
        super().__init__(pack, {each.name: each for each in contenders})

    def _question(self, section: Section) -> Question:
        """A section as a question; a contender lacks the cases that do not concern it."""
        own = {case.key: case for case in self.cases if case.section == section.number}

        def filled(name: str) -> campaign.Case:
            def fill(contender: Contender) -> Mapping[str, Any] | None:
                case = own.get((section.number, contender.name, name))
                return case.scenario if case else None

            return campaign.Case(name, fill)

        return Question(
            section.number,
            section.title,
            section.question,
            tuple(filled(name) for name in dict.fromkeys(case.name for case in own.values())),
            source=f"RFC 7928, section {section.number}",
            level=section.requirement,
        )

    @staticmethod
    def of(
        discipline: Discipline,
        against: Sequence[Discipline],
        settings: Mapping[str, Any],
        only: Sequence[str],
        environment: Environment,
        scale: float = 1.0,
    ) -> Plan:
        """The plan that the arguments of `characterize` make."""
        contenders = [Contender.of(discipline, settings)]
        for other in [BASELINE, *against]:
            contender = Contender.of(other, given_as="against")
            if contender.name not in [each.name for each in contenders]:
                contenders.append(contender)
        if len(contenders) == 1:
            problem = "every discipline is compared with drop-tail; name another one"
            raise input_error(problem, key="against", given=contenders[0].name)
        plan = Plan(environment, contenders, sections(only), scale)
        short = next((case for case in plan.cases if case.lasting < case.interval), None)
        if short:
            problem = (
                f"the path is too long: goodput is sampled every {STEPS} round-trip times, and "
                f"section {short.section} lasts {short.lasting:g} s"
            )
            raise input_error(problem, key="rtt", given=f"{environment.rtt:g}s")
        return plan


class Characterization(Campaign):
    """What came out."""

    plan: Plan

    def __init__(self, plan: Plan, result: StudyResult) -> None:
        super().__init__(plan, result)
        self.measures = Measures(result, plan.cases, [plan.points[case.key] for case in plan.cases])

    @property
    def discipline(self) -> str:
        """Name of the discipline that is characterised."""
        return self.subject

    @property
    def others(self) -> list[str]:
        """Names of the disciplines that it is compared with; drop-tail is the first."""
        return list(self.plan.contenders)[1:]

    @cached_property
    def verdict(self) -> Verdict:
        """What the discipline does, section by section."""
        from aqmlab.characterize.verdict import judge

        return judge(self)

    @cached_property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the sections."""
        return list(figures(Album(self), self.plan.sections))

    @property
    def table(self) -> pl.DataFrame:
        """All measures: section, case, discipline, subject, measure, mean, median, low, high."""
        return self.measures.summary

    def to_json(self) -> dict[str, Any]:
        """The verdict and all measures; see docs/characterize.md."""
        return {
            "discipline": self.discipline,
            "against": self.others,
            "version": aqmlab.__version__,
            "runs": self.runs,
            "verdict": self.verdict.to_json(),
            "measures": self.table.with_columns(cs.float().fill_nan(None)).to_dicts(),
        }

    def print(self, console: Console) -> None:
        """Prints the verdict."""
        from aqmlab.characterize.console import show

        show(self, console)

    def write_tables(self, folder: str | Path) -> None:
        """Writes measures.parquet, measures.csv and verdict.json into `folder`.

        Raises `StorageError` if a file cannot be written.
        """
        from aqmlab.characterize.page import write_tables

        write_tables(self, Path(folder))

    def report(self) -> Document:
        """The characterisation as a document."""
        from aqmlab.characterize.page import document

        return document(self)

    def write_report(self, folder: str | Path, *, figures: bool = True) -> Path:
        """Writes report.html, the tables measures.parquet, .csv and verdict.json, and with
        `figures` the pictures; the path of the report."""
        from aqmlab.characterize.page import write

        return write(self, Path(folder), figures=figures)
