"""A congestion control evaluated by the criteria of RFC 9743, beside Reno and CUBIC.

    from aqmlab.evaluate import evaluate

    result = evaluate("bbr", out="results/evaluate-bbr")
    result.write_report("results/evaluate-bbr")

docs/evaluate.md says what is run for each criterion.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab.document import Document, save
from aqmlab.errors import unknown
from aqmlab.evaluate.compare import Row, rows_of, worst
from aqmlab.evaluate.console import show
from aqmlab.evaluate.criteria import UNTESTED, all_criteria
from aqmlab.evaluate.criterion import GROUPS, Criterion, Results, Tables
from aqmlab.evaluate.page import document
from aqmlab.evaluate.scene import STANDARD, Control, Table
from aqmlab.study import Study

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.console import Console

    from aqmlab.results import StudyResult

__all__ = ["GROUPS", "STANDARD", "Control", "Evaluation", "Line", "criteria", "evaluate"]

REPLICATIONS = 20
QUICK_REPLICATIONS = 5
SEED = 9743


def criteria(wanted: Sequence[str] = ()) -> list[Criterion]:
    """The criteria with these ids, or of these groups; all if none is wanted.

    Raises `InputError` for an id that is none.
    """
    known = all_criteria()
    names = [*GROUPS, *(each.id for each in known)]
    for name in wanted:
        if name not in names:
            raise unknown("criterion", name, names, key="--only")
    return [each for each in known if not wanted or each.id in wanted or each.group in wanted]


def evaluate(
    control: Any,
    *,
    name: str | None = None,
    transport: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    replications: int = REPLICATIONS,
    seed: int = SEED,
    out: str | Path | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Evaluates a congestion control by the criteria of RFC 9743, beside Reno and CUBIC.

    Parameters
    ----------
    control : str, mapping or class
        Name (`aqmlab list`), table with `algorithm` and parameters, `"FILE:CLASS"`, or a class
        (`aqmlab.CongestionControl`).
    name : str, optional
        Name of the control in tables.
    transport : mapping, optional
        Keys of its transport, such as `ecn`.
    only : sequence of str, optional
        Criteria, or groups of criteria, to run.
    replications : int, default 20
        Replications of each case.
    seed : int, default 9743
        Seed of all random streams.
    out : path, optional
        Results folder, from which an interrupted evaluation resumes.
    threads, executor, progress
        As in `Study.run`.

    Returns
    -------
    Evaluation
        Criteria with their rows, report and tables.

    Raises
    ------
    InputError
        If an argument is invalid.
    FolderError, StorageError, StuckError, ClusterError
        As in `Study.run`.
    """
    subject = Control(name or _name(control), control, dict(transport or {}))
    plan = Plan(subject, criteria(only))
    result = plan.study(replications, seed).run(
        out, threads=threads, progress=progress, executor=executor
    )
    return Evaluation(plan, result)


def _name(control: Any) -> str:
    if isinstance(control, type):
        return control.__name__
    if isinstance(control, Mapping):
        return str(control.get("algorithm", "control"))
    return str(control).rpartition(":")[2]


class Plan:
    """What is run: the cases of every criterion with every control, equal ones once."""

    def __init__(self, subject: Control, chosen: Sequence[Criterion]) -> None:
        self.subject = subject
        self.criteria = list(chosen)
        self.controls = [subject] + [
            Control(each, each) for each in STANDARD if each != subject.name
        ]
        self.points: dict[tuple[str, str, str], int] = {}
        """(criterion, control, case) to the number of its point."""
        self._scenarios: list[tuple[str, Table]] = []
        known: dict[str, int] = {}
        for criterion in self.criteria:
            for control in self.controls:
                for case, table in criterion.cases(control).items():
                    text = json.dumps(table, sort_keys=True, default=repr)
                    label = f"{criterion.id} | {case} | {control.name}"
                    if text not in known:
                        known[text] = len(self._scenarios)
                        self._scenarios.append((label, table))
                    self.points[criterion.id, control.name, case] = known[text]

    def study(self, replications: int, seed: int) -> Study:
        """The cases as a study with one axis."""
        values = [{"label": label, "set": table} for label, table in self._scenarios]
        link = {"rate": "10mbit", "delay": "10ms"}
        table = {
            "name": f"evaluate-{self.subject.name}",
            "title": f"{self.subject.name}, evaluated by the criteria of RFC 9743",
            "scenario": {
                "links": {"down": link, "up": link},
                "flows": {"own": {"path": "down", "return_path": "up"}},
            },
            "axes": [{"name": "case", "values": values}],
        }
        return Study(table, replications=replications, seed=seed)

    def cases(self, criterion: Criterion, control: Control) -> dict[str, int]:
        """The points of a criterion with a control, by case."""
        return {
            case: point
            for (ident, name, case), point in self.points.items()
            if (ident, name) == (criterion.id, control.name)
        }


@dataclass(frozen=True)
class Line:
    """A criterion with all its rows, and the row in which the control compares worst."""

    criterion: Criterion
    rows: tuple[Row, ...]

    @property
    def worst(self) -> Row:
        """See `aqmlab.evaluate.compare.worst`."""
        return worst(self.rows)


class Evaluation:
    """What came out."""

    def __init__(self, plan: Plan, result: StudyResult) -> None:
        self.plan = plan
        self.result = result

    @property
    def control(self) -> str:
        """The name of the control that is evaluated."""
        return self.plan.subject.name

    @property
    def standard(self) -> list[str]:
        """The controls beside which it is evaluated."""
        return list(STANDARD)

    @property
    def runs(self) -> int:
        """The number of simulations behind it."""
        return self.result.info.points * self.result.info.replications

    @cached_property
    def lines(self) -> list[Line]:
        """The criteria in order, with what was measured."""
        return list(self._lines())

    def _lines(self) -> Iterator[Line]:
        tables = Tables(self.result)
        reads = [
            {
                control.name: criterion.read(Results(tables, self.plan.cases(criterion, control)))
                for control in self.plan.controls
            }
            for criterion in self.plan.criteria
        ]
        for criterion, rows in zip(self.plan.criteria, rows_of(reads, self.control), strict=True):
            yield Line(criterion, rows)

    def line(self, ident: str) -> Line:
        """The criterion with this id. Raises `KeyError` if it was not run."""
        for line in self.lines:
            if line.criterion.id == ident:
                return line
        raise KeyError(ident)

    @property
    def untested(self) -> list[dict[str, str]]:
        """What cannot be tested here, and why."""
        return [dict(each) for each in UNTESTED]

    def to_json(self) -> dict[str, Any]:
        """The criteria with all their rows, numbers unrounded; see docs/evaluate.md."""
        return {
            "control": self.control,
            "against": self.standard,
            "version": aqmlab.__version__,
            "replications": self.result.info.replications,
            "runs": self.runs,
            "criteria": [
                {
                    "id": line.criterion.id,
                    "title": line.criterion.title,
                    "group": line.criterion.group,
                    "level": line.criterion.level,
                    "question": line.criterion.question,
                    "worst": line.worst.to_json(),
                    "rows": [row.to_json() for row in line.rows],
                }
                for line in self.lines
            ],
            "untested": self.untested,
        }

    def document(self) -> Document:
        """The page as a value: to HTML, Markdown or JSON."""
        return document(self)

    def write_report(self, folder: str | Path, *, figures: bool = True) -> Path:
        """Writes report.html, and with `figures` figures/, into `folder`; the path of the report.

        Raises `StorageError` if a file cannot be written.
        """
        return save(self.document(), Path(folder), figures=figures)

    def print(self, console: Console) -> None:
        """Prints the overview and what cannot be tested."""
        show(self, console)
