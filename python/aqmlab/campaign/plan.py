"""Plan of the runs of a pack, and its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import aqmlab
from aqmlab.campaign import page
from aqmlab.campaign.baseline import Baseline
from aqmlab.campaign.beside import QuestionRows, rows_of
from aqmlab.campaign.outcomes import OPEN, OUTCOMES, WORDS, Beside, Outcome
from aqmlab.campaign.pack import Pack, Question, Reading
from aqmlab.campaign.readings import CaseResults, Readings
from aqmlab.campaign.reported import SCHEMA, Reported
from aqmlab.campaign.rule import VERBS, VERDICTS, Answer, Replicated, answers, picks
from aqmlab.errors import InputError, renamed, unknown
from aqmlab.metrics.samples import Floats, Whole
from aqmlab.numbers import count
from aqmlab.report.document import Document
from aqmlab.report.exports import plain_text
from aqmlab.results import StudyResult
from aqmlab.scenario import Scenario
from aqmlab.study import Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

COLUMNS = ("case", "metric", "subject", "unit", "mean", "low", "high")
"""Columns of the table of readings."""
QUESTION = ("id", "title", "text", "source", "group", "level")
"""Fields of a question in JSON."""


class Plan:
    """The cases of every question with every contender, equal scenarios once.

    Raises `InputError` if `pack.beside` names no contender.
    """

    def __init__(self, pack: Pack, contenders: Mapping[str, Any]) -> None:
        self.pack = pack
        self.contenders = dict(contenders)
        """Name to what fills the slot."""
        self.points: dict[tuple[str, str, str], int] = {}
        """(question, contender, case) to the number of its point."""
        self.scenarios: list[tuple[str, Mapping[str, Any]]] = []
        """Label and scenario of each point."""
        for name in pack.beside:
            if name not in self.contenders:
                raise unknown("contender", name, self.contenders, key="beside")
        known: dict[str, int] = {}
        for question in pack.questions:
            for name, contender in self.contenders.items():
                for case in question.cases:
                    table = case.fill(contender)
                    if table is None:
                        continue
                    text = json.dumps(table, sort_keys=True, default=repr)
                    if text not in known:
                        known[text] = len(self.scenarios)
                        parts = (question.id, case.name, name)
                        label = " | ".join(part for part in parts if part)
                        self.scenarios.append((label, table))
                    self.points[question.id, name, case.name] = known[text]

    def table(self) -> dict[str, Any]:
        """The cases as a study with one axis, as a study file has it."""
        values = [{"label": label, "set": dict(table)} for label, table in self.scenarios]
        link = {"rate": "10mbit", "delay": "10ms"}
        flow = {"path": "down", "return_path": "up"}
        whole = {"links": {"down": link, "up": link}, "flows": {"own": flow}}
        return {
            "name": self.pack.name,
            "title": self.pack.title,
            "replications": self.pack.replications,
            "scenario": self.pack.scenario or whole,
            "axes": [{"name": self.pack.axis, "values": values}],
        }

    def study(self, replications: int | None = None, seed: int | None = None) -> Study:
        """The study of the cases. Raises `InputError` for a case that is no scenario."""
        table, file = self.table(), self.pack.file
        if file:
            folders = [str(Path(file).parent)]
            table["scenario"] = Scenario.from_table(table["scenario"], folders=folders)
        try:
            return Study(
                table,
                replications=self.pack.replications if replications is None else replications,
                seed=self.pack.seed if seed is None else seed,
            )
        except InputError as error:
            place = (error.file or "<study>").replace("<study>", file or self.pack.name)
            raise renamed(error, error.key, place) from error

    def run(
        self,
        replications: int | None = None,
        seed: int | None = None,
        *,
        out: str | Path | None = None,
        threads: int | None = None,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
        baseline: Baseline | None = None,
    ) -> Campaign:
        """Runs all cases; in the folder `out` only those that are missing. With a `baseline` its
        replications and seed are the default. Raises what `Study.run` does, and `InputError` if
        the baseline has other cases, contenders, replications or another seed."""
        if baseline is not None:
            baseline.check(self)
            replications = baseline.agreed("replications", replications)
            seed = baseline.agreed("seed", seed)
        study = self.study(replications, seed)
        result = study.run(out, threads=threads, progress=progress, executor=executor)
        return Campaign(self, result, baseline)


@dataclass(frozen=True)
class Filled(Replicated):
    """The results of one question's cases with one contender."""

    campaign: Campaign
    question: Question
    contender: str
    number: int | None = None
    """Number of the draw of the replications; None: all of them."""

    @property
    def replications(self) -> int:  # type: ignore[override]
        """Number of replications."""
        return self.campaign.result.info.replications

    def drawn(self, number: int) -> Filled:
        """The same for one draw of the replications."""
        return replace(self, number=number)

    def beside(self, contender: str) -> Filled:
        """The results of another contender, for the same replications."""
        return replace(self, contender=contender)

    def of(self, question: str) -> Filled:
        """The results of another question, for the same replications; it has no cases if it was
        not run."""
        return self.campaign.at(question, self.contender, self.number)

    @property
    def _picked(self) -> Whole | slice:
        return slice(None) if self.number is None else picks(self.replications)[self.number]

    @property
    def slot(self) -> Any:
        """Content of the slot."""
        return self.campaign.plan.contenders[self.contender]

    def point(self, case: str) -> int | None:
        """The number of the point of a case; None if there is none with this contender."""
        return self.campaign.plan.points.get((self.question.id, self.contender, case))

    def scenario(self, case: str) -> Mapping[str, Any]:
        """The scenario of a case with every default."""
        scenario: Mapping[str, Any] = self.campaign.result.scenarios[self[case].point]
        return scenario

    def baseline_values(self, case: str, metric: str, subject: str) -> Floats:
        """A metric of the campaign's baseline for the same replications."""
        baseline = self.campaign.baseline
        assert baseline is not None
        return baseline.values(self.contender, case, metric, subject)[self._picked]

    def baseline_mean(self, case: str, metric: str, subject: str) -> float:
        """Mean of the baseline for the same replications, as `mean`."""
        return _mean(self.baseline_values(case, metric, subject))

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in self.question.cases if self.point(each.name) is not None)

    def places(self) -> dict[str, float]:
        """The cases that have a place on the axis of the question."""
        found = {each.name: each.place(self.slot) for each in self.question.cases}
        return {case: place for case in self if (place := found[case]) is not None}

    def __getitem__(self, case: str) -> CaseResults:
        point = self.point(case)
        if point is None:
            raise KeyError(case)
        return CaseResults(self.campaign.readings, point, self._picked)

    def values(self, case: str, metric: str, subject: str) -> Floats:
        """A metric of the registry or the pack, in its unit; one value a replication, NaN for those
        without."""
        point = self.point(case)
        if point is None:
            return np.full(self.replications, np.nan)
        row: Floats = self.campaign.readings.grid(metric, subject)[point]
        return row[self._picked]

    def reading(self, case: str, metric: str, subject: str) -> Reading:
        """A metric of the registry or the pack as a reading of a case."""
        found = self.campaign.readings.described(metric)
        values = self.values(case, metric, subject)
        kind = found.unit, found.direction
        point = self.point(case)
        event = 0.0 if point is None else self.campaign.readings.event(metric, subject, point)
        return Reading(case, metric, subject, *kind, values, bounds=found.bounds, event=event)

    def mean(self, case: str, metric: str, subject: str) -> float:
        """The mean over the replications that have the metric; NaN without any."""
        point = self.point(case)
        if self.number is not None and point is not None:
            return float(self.campaign.readings.means(metric, subject, point)[self.number])
        return _mean(self.values(case, metric, subject))


def _mean(each: Floats) -> float:
    each = each[np.isfinite(each)]
    return float(each.mean()) if each.size else float("nan")


class Campaign(Reported):
    """Results of a plan."""

    def __init__(self, plan: Plan, result: StudyResult, baseline: Baseline | None = None) -> None:
        self.plan = plan
        self.result = result
        self.baseline = baseline
        pack = plan.pack
        self.readings = Readings(result, pack.pool, pack.metrics)
        self._read: dict[tuple[str, str], Sequence[Reading]] = {}

    def __repr__(self) -> str:
        pack, runs = self.plan.pack, count(self.runs, "run")
        return f"<Campaign {pack.name!r}: {count(len(pack.questions), 'question')}, {runs}>"

    @property
    def runs(self) -> int:
        """The number of simulations behind it."""
        return self.result.info.points * self.result.info.replications

    def at(self, question: str, contender: str, number: int | None = None) -> Filled:
        """The results of the question with this id, all or a draw; without cases if it was not
        run."""
        asked = {each.id: each for each in self.plan.pack.questions}
        return Filled(self, asked.get(question, Question(question, "", "", ())), contender, number)

    @property
    def subject(self) -> str:
        """Name of the first contender, which is compared with those in `beside` of the pack."""
        return next(iter(self.plan.contenders))

    @property
    def others(self) -> list[str]:
        """Names of the contenders that the first one is compared with."""
        return [each for each in self.plan.pack.beside if each != self.subject]

    @cached_property
    def lines(self) -> list[QuestionRows]:
        """The questions without a judge in order, the first contender beside the others."""
        questions = [each for each in self.plan.pack.questions if each.judge is None]
        if not self.others:
            return []
        names = (self.subject, *self.others)
        reads = [{name: self.readings_of(each, name) for name in names} for each in questions]
        return list(map(QuestionRows, questions, rows_of(reads, self.subject)))

    def line(self, ident: str) -> QuestionRows:
        """The question with this id. Raises `KeyError` if it was not run."""
        return {line.question.id: line for line in self.lines}[ident]

    def document(self, command: str = "") -> Document:
        """The page as a value, to HTML, Markdown or JSON; `command` made it."""
        return page.document(self, command)

    def summary(self) -> Document:
        """The overview, for a terminal."""
        return page.summary(self)

    def csv_files(self) -> dict[str, str]:
        """readings.csv: `table`."""
        return {"readings.csv": plain_text(self.table).write_csv()}

    @property
    def table(self) -> pl.DataFrame:
        """All readings: question, contender, case, metric, subject, unit, mean, low and high."""
        rows = [
            {"question": question.id, "contender": name}
            | {key: value for key, value in each.to_json().items() if key in COLUMNS}
            for question in self.plan.pack.questions
            for name in self.plan.contenders
            for each in self.readings_of(question, name)
        ]
        numbers = dict.fromkeys(("mean", "low", "high"), pl.Float64)
        schema = dict.fromkeys(("question", "contender", *COLUMNS), pl.String) | numbers
        return pl.DataFrame(rows, schema=schema)

    @cached_property
    def findings(self) -> dict[str, dict[str, Outcome]]:
        """Question to the outcome of the first contender beside each other one, of those with a
        judge."""
        return {
            each.id: {
                other: each.judge(Beside(self.at(each.id, self.subject), self.at(each.id, other)))
                for other in self.others
            }
            for each in self.plan.pack.questions
            if each.judge is not None
        }

    def with_outcome(self, outcome: str) -> list[Question]:
        """The questions with this outcome beside the first other contender."""
        first = {ident: found[self.others[0]].outcome for ident, found in self.findings.items()}
        return [each for each in self.plan.pack.questions if first.get(each.id) == outcome]

    @cached_property
    def answers(self) -> dict[tuple[str, str], list[Answer]]:
        """(question, contender) to the answers of the question's rules; of the first contender also
        its outcomes."""
        return {
            (question.id, name): [
                *answers(question.rules, self.at(question.id, name)),
                *(
                    finding.answer(question, other)
                    for other, finding in self.findings.get(question.id, {}).items()
                    if name == self.subject
                ),
            ]
            for question in self.plan.pack.questions
            for name in self.plan.contenders
        }

    def counts(self) -> dict[str, int]:
        """Number of answers with each verdict."""
        words = [each.verdict for found in self.answers.values() for each in found]
        return {word: words.count(word) for word in VERDICTS}

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if self.findings:
            counts = {each: len(self.with_outcome(each)) for each in OUTCOMES if each != OPEN}
            words = ", ".join(
                f"{number} {WORDS.get(each, each)}" for each, number in counts.items() if number
            )
            total = count(sum(counts.values()), "question")
            source = self.plan.pack.source
            return f"Of {total} of {source}, {self.subject} is against {self.others[0]}: {words}."
        counts = self.counts()
        info = self.result.info
        listed = ", ".join(
            f"{number} {VERBS[word][number != 1]}" for word, number in counts.items() if number
        )
        return (
            f"{count(sum(counts.values()), 'answer')}: {listed or 'none'} ("
            f"{count(self.runs, 'simulation')}, {count(info.replications, 'replication')})."
        )

    def readings_of(self, question: Question, contender: str) -> Sequence[Reading]:
        """The readings of a question with one contender."""
        if (question.id, contender) not in self._read:
            self._read[question.id, contender] = question.read(self.at(question.id, contender))
        return self._read[question.id, contender]

    def notes_of(self, question: Question) -> list[dict[str, Any]]:
        """The engine's notes on the runs of a question, each kind once: `id`, `text` of the first,
        and `cases`."""
        cases: dict[int, str] = {}
        for name in self.plan.contenders:
            filled = self.at(question.id, name)
            for case in filled:
                parts = (case, "" if name == self.subject else name)
                cases.setdefault(filled[case].point, ", ".join(filter(None, parts)))
        rows = self.result.pooled_notes.filter(pl.col("point").is_in(list(cases)))
        return [
            {
                "id": ident,
                "text": part["text"][0],
                "cases": sorted({cases[point] for point in part["point"]} - {""}),
            }
            for (ident,), part in rows.group_by("id", maintain_order=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """The answers and readings of every question and contender; docs/packs.md has the keys."""
        pack, info = self.plan.pack, self.result.info
        compared = {line.question.id: line.to_json() for line in self.lines}
        return {
            "schema": SCHEMA,
            "version": aqmlab.__version__,
            "pack": pack.name,
            "title": pack.title,
            "source": pack.source,
            "contenders": list(self.plan.contenders),
            "seed": info.seed,
            "replications": info.replications,
            "runs": self.runs,
            "questions": [
                {
                    **{key: getattr(question, key) for key in QUESTION},
                    **compared.get(question.id, {}),
                    "notes": self.notes_of(question),
                    "contenders": [
                        {
                            "name": name,
                            "answers": [each.to_json() for each in self.answers[question.id, name]],
                            "readings": [
                                each.to_json() for each in self.readings_of(question, name)
                            ],
                        }
                        for name in self.plan.contenders
                    ],
                }
                for question in pack.questions
            ],
            "untested": [dict(each) for each in pack.untested],
        }
