"""A search from start to end: trials, the best of them, confirmation, the smallest file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.errors import InputError, input_error
from aqmlab.numbers import count
from aqmlab.report.document import write_text
from aqmlab.results import StudyResult
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.settings import parse_toml, read_text, whole
from aqmlab.search.confirm import BROKEN, CONFIRMED, CheckedConstraint, Confirmed, confirm
from aqmlab.search.keys import Key, parse_keys, settings
from aqmlab.search.optimisers import Attacker, Optimiser, Places, Tuner, load
from aqmlab.search.shrink import Attack, finding, shrink
from aqmlab.search.trials import START, Measure, Trial, Trials, with_settings
from aqmlab.study.execute import Backend
from aqmlab.study.sweep import Study

if TYPE_CHECKING:
    from aqmlab.report.document import Document
    from aqmlab.study.sweep import Progress

Source = str | Path | Mapping[str, Any] | Scenario
Keys = Mapping[str, str | Sequence[Any]]

KEPT = 0.95
"""Share of the damage that a smaller scenario must keep."""
MOST_CONFIRMED = 6
"""Largest number of trials of a front that are confirmed."""
FINDING = "finding.toml"


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes
    ----------
    kind : {"tune", "attack"}
    keys : tuple of Key
    measures : tuple of Measure
        The goals, or the metric that is hurt.
    start : Trial
        The scenario as it was given.
    trials : tuple of Trial
        All trials, in order.
    best : tuple of Trial
        The best trial; of several goals the Pareto front, by the first goal.
    confirmed : tuple of Confirmed
        The best beside the start, with fresh seeds.
    constraints : tuple of CheckedConstraint
        The constraints of these trials, with fresh seeds.
    findings : tuple of Finding
        A scenario file for each confirmed trial that breaks no constraint; none for a study of
        several points.
    study : StudyResult or None
        All trials as an ordinary study with the axis `trial`; None without a folder.
    folder : Path or None
        Folder of the search.
    """

    kind: str
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    start: Trial
    trials: tuple[Trial, ...]
    best: tuple[Trial, ...]
    confirmed: tuple[Confirmed, ...]
    constraints: tuple[CheckedConstraint, ...]
    findings: tuple[Attack, ...]
    study: StudyResult | None
    folder: Path | None

    def __repr__(self) -> str:
        what = f"{count(len(self.keys), 'key')}, {count(len(self.trials), 'trial')}"
        confirmed = sum(each.verdict == CONFIRMED for each in self.confirmed)
        return f"<SearchResult of {self.kind}: {what}, {confirmed} confirmed>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    @property
    def finding(self) -> Attack | None:
        """The first scenario file, if any; of an attack the only one."""
        return self.findings[0] if self.findings else None

    @property
    def statements(self) -> list[str]:
        """One sentence for each comparison and constraint with fresh seeds."""
        if not any(each.counts for each in self.trials if each.number):
            return ["not decided: no trial has values and satisfies the constraints"]
        if not self.best:
            return ["not decided: no trial is better than the scenario as it was given"]
        shown: list[Confirmed | CheckedConstraint] = [*self.confirmed, *self.constraints]
        return [each.text for each in shown]

    def report(self) -> Document:
        """Returns the report as a document."""
        from aqmlab.search.page import document

        return document(self)

    def write_report(
        self, folder: str | Path | None = None, *, command: str = "", figures: bool = True
    ) -> Path:
        """Writes `report.html` into a folder (default: that of the search); returns its path."""
        from aqmlab.report.document import save
        from aqmlab.search.page import document

        place = folder or self.folder
        if place is None:
            problem = "this search is in memory: pass the folder for the report"
            raise input_error(problem, key="folder")
        return save(document(self, command), Path(place), figures=figures)

    def to_json(self) -> dict[str, Any]:
        """Trials, the best of them, statements and the finding."""

        def told(trial: Trial) -> dict[str, Any]:
            names = [each.text for each in self.measures]
            own = dict(zip(names, trial.values, strict=False))
            return {"trial": trial.number, "set": dict(trial.settings), "values": own,
                    "excess": trial.excess, "problem": trial.problem}  # fmt: skip

        return {
            "kind": self.kind,
            "folder": None if self.folder is None else str(self.folder),
            "start": told(self.start),
            "best": [told(each) for each in self.best],
            "confirmed": [each.to_json() for each in self.confirmed],
            "statements": self.statements,
            "findings": [each.text for each in self.findings],
            "trials": [told(each) for each in self.trials],
        }


def tune(
    source: Source,
    keys: Keys | Iterable[str],
    goals: Sequence[str],
    *,
    within: Sequence[str] = (),
    out: str | Path | None = None,
    trials: int = 96,
    replications: int = 3,
    batch: int = 8,
    confirm: int = 20,
    set: Mapping[str, Any] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> SearchResult:
    """Finds parameters that suit one goal or several (optuna's TPE).

    Parameters
    ----------
    source : path, mapping or Scenario
        Scenario or study. The values of a trial are means over all points and replications.
    keys : mapping, or texts
        Range or choices of each key: `{"queue.target": "1ms..50ms,log"}`; see `Key.parse`.
    goals : str or sequence of str
        Metrics such as `"min:sojourn_p95"` and `"max:goodput@bulk"`.
    within : sequence of str
        Constraints such as `"drop_share<=1%"`.
    out : path, optional
        Folder of the search, from which an interrupted one resumes. Default: nothing is kept.
    trials, replications : int
        Number of trials, and of replications of each.
    batch : int
        Trials that are proposed together. Results depend on it, and not on `threads`.
    confirm : int
        Fresh replications of the start and of the best trials.
    set, only, seed, threads, executor, progress
        As in `aqmlab.study`.
    command : str
        Command line that the finding names.

    Returns
    -------
    SearchResult
        Trials, Pareto front and statements.

    Raises
    ------
    InputError
        If a key, range, metric or scenario is invalid, or the extra `search` is missing.
    FolderError
        If `out` has another search.

    Examples
    --------
    >>> found = aqmlab.search.tune("scenario.toml", {"queue.target": "1ms..50ms,log"},
    ...                            ["min:sojourn_p95", "max:goodput@bulk"])
    """
    given = [goals] if isinstance(goals, str) else goals
    measures = tuple(Measure.parse(each, "goals") for each in given)
    if not measures:
        raise input_error("a search needs a goal, such as min:sojourn_p95", key="goals")
    search = _Search("tune", source, keys, measures, within, set, only, seed, replications, trials,
                     batch, confirm, out, Backend(threads, executor, progress))  # fmt: skip
    optimiser = Tuner(search.keys, len(measures), search.seed, max(batch, min(24, trials // 3)))
    asked = search.run(optimiser, lambda trial: _signed(measures, trial))
    front = _front(measures, [search.start, *(trial for _, trial in asked)])
    front = [trial for trial in front if trial is not search.start]
    return search.result(front, _spread(front), command)


def attack(
    source: Source,
    keys: Keys | Iterable[str],
    hurt: str,
    *,
    within: Sequence[str] = (),
    out: str | Path | None = None,
    trials: int = 240,
    replications: int = 2,
    batch: int = 12,
    confirm: int = 20,
    set: Mapping[str, Any] | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> SearchResult:
    """Finds the conditions that hurt a metric most (CMA-ES), and the smallest file with them.

    Parameters
    ----------
    source : path, mapping or Scenario
        Scenario, or a study of one point.
    hurt : str
        Metric such as `"goodput@victim"`. Its better direction is the metric's own, or that of
        `min:` and `max:` before it.
    within : sequence of str
        The attacker's budget: `["throughput@attack<=2mbit"]`.
    keys, out, trials, replications, batch, confirm, set, only, seed, threads, executor, progress, \
command
        As in `tune`. CMA-ES takes the batch as its population.

    Returns
    -------
    SearchResult
        `finding.text` is the scenario file.

    Raises
    ------
    InputError, FolderError
        As in `tune`.
    """
    measure = Measure.parse(hurt, "hurt")
    search = _Search("attack", source, keys, (measure,), within, set, only, seed, replications,
                     trials, batch, confirm, out, Backend(threads, executor, progress))  # fmt: skip
    begun = search.start.values[0]
    unit = abs(begun) or 1.0

    def worth(trial: Trial) -> list[float] | None:
        """Relative value, from which more harm is less; beyond the budget no harm counts."""
        if not trial.values:
            return None
        if trial.excess:
            return [measure.direction * begun / unit + trial.excess]
        return [measure.direction * trial.values[0] / unit]

    def damage(trial: Trial) -> float:
        return measure.direction * (begun - trial.values[0]) if trial.counts else float("-inf")

    optimiser = Attacker(search.keys, search.seed, batch)
    asked = search.run(optimiser, worth)
    places, worst = max(asked, key=lambda each: damage(each[1]))
    if damage(worst) <= 0:
        return search.result([], [], command)
    least = KEPT * damage(worst)
    small = shrink(search.trials, search.keys, places, lambda trial: damage(trial) >= least)
    return search.result([small], [small], command)


class _Search:
    """Common part of both kinds of search."""

    def __init__(
        self,
        kind: str,
        source: Source,
        keys: Keys | Iterable[str],
        measures: tuple[Measure, ...],
        within: Sequence[str],
        set: Mapping[str, Any] | None,
        only: Mapping[str, Sequence[str]] | None,
        seed: int | None,
        replications: int,
        trials: int,
        batch: int,
        confirm: int,
        out: str | Path | None,
        means: Backend,
    ) -> None:
        self.kind, self.measures = kind, measures
        self.keys = parse_keys(keys)
        for key in self.keys:
            if key.name == "seed":
                problem = "the search draws the seeds; other seeds are other replications"
                raise input_error(problem, key="keys.seed")
            if key.name in (set or {}):
                problem = "a setting fixes this key, so there is nothing to search"
                raise input_error(problem, key=f"keys.{key.name}")
        for name, value, least in (("trials", trials, 1), ("batch", batch, 4),
                                   ("replications", replications, 1),
                                   ("confirm", confirm, 2)):  # fmt: skip
            whole(value, least, name)
        load("cma" if kind == "attack" else "optuna")
        study = _study(source, set, only, seed, replications)
        if kind == "attack" and len(study.points) > 1:
            raise input_error("an attack needs a study of one point: choose one", key="only")
        _check_ranges(study, self.keys)
        limits = tuple(Measure.limit(each) for each in within)
        for measure in (*measures, *limits):
            measure.check(study.points.scenarios[0])
        question = {
            "kind": kind,
            "keys": [asdict(key) for key in self.keys],
            "measures": [[each.text, each.direction] for each in measures],
            "within": [[each.text, each.most] for each in limits],
            "trials": trials,
            "batch": batch,
        }
        self.seed = study.seed
        self._count, self._batch, self._confirm = trials, batch, confirm
        self._out = None if out is None else Path(out)
        self.trials = Trials(study, measures, limits, self._out, means, question, trials + 1)
        self.start = self.trials.evaluate([{}])[0]
        if not self.start.values:
            raise input_error(f"{self.start.problem} in the scenario as it is")

    def run(
        self, optimiser: Optimiser, worth: Callable[[Trial], Sequence[float] | None]
    ) -> list[tuple[Places, Trial]]:
        """Asks, runs and tells, until there are enough trials; whole batches."""
        found: list[tuple[Places, Trial]] = []
        while len(found) < self._count:
            asked = optimiser.ask(self._batch)
            trials = self.trials.evaluate([settings(self.keys, each) for each in asked])
            optimiser.tell([worth(trial) for trial in trials])
            found += zip(asked, trials, strict=True)
        return found

    def result(self, best: Sequence[Trial], checked: Sequence[Trial], command: str) -> SearchResult:
        """Confirms the best, writes the findings, and joins the batches to one study."""
        confirmed, kept = list[Confirmed](), list[CheckedConstraint]()
        if checked:
            harm = self.kind == "attack"
            confirmed, kept = confirm(self.trials, checked, self._confirm, harm=harm)
        for path in self._out.glob("finding*.toml") if self._out else ():
            path.unlink()  # of an earlier confirmation
        findings = []
        for trial in checked if len(self.trials.study.points) == 1 else ():
            own = [each for each in confirmed if each.trial is trial]
            limits = [each for each in kept if each.trial is trial]
            shown = [each.measure for each in own if each.verdict == CONFIRMED]
            if shown and not any(each.verdict == BROKEN for each in limits):
                told = [*(each.text for each in own), *(each.text for each in limits), command]
                findings.append(finding(self.trials.study, trial, shown[0], told))
                name = f"finding-{trial.number}.toml" if len(checked) > 1 else FINDING
                if self._out is not None:
                    write_text(self._out / name, findings[-1].text, "all trials are kept")
        study = self.trials.joined()
        return SearchResult(self.kind, self.keys, self.measures, self.start,
                            tuple(self.trials.all()), tuple(best), tuple(confirmed),
                            tuple(kept), tuple(findings), study, self._out)  # fmt: skip


def _study(
    source: Source,
    set: Mapping[str, Any] | None,
    only: Mapping[str, Sequence[str]] | None,
    seed: int | None,
    replications: int,
) -> Study:
    """The study of a scenario or study, with settings."""
    given: Any = source
    if isinstance(source, str | Path):
        table = parse_toml(read_text(Path(source)), str(source))
        if "scenario" not in table:
            given = {"scenario": str(source), "name": Path(source).stem}
    elif isinstance(source, Mapping) and "scenario" not in source:
        given = {"scenario": source}
    return Study(given, set=set, only=only, seed=seed, replications=replications)


def _check_ranges(study: Study, keys: Sequence[Key]) -> None:
    """Raises `InputError` for a key that is unknown or has no valid value at an end of its range,
    whatever the other keys are."""

    def error(given: Mapping[str, Any]) -> InputError | None:
        try:
            with_settings(study, [(START, given)])
        except InputError as found:
            return found
        return None

    corners = [settings(keys, [place] * sum(key.size for key in keys)) for place in (0.0, 0.5, 1.0)]
    for key in keys:
        count = len(key.choices) or 2
        for number in range(count):
            place = (number + 0.5) / count if key.choices else float(number)
            own = {key.name: key.value([place] * key.size)}
            first = error(own)
            if first and all(error({**corner, **own}) for corner in corners):
                text = first.problem + (f" ({first.hint})" if first.hint else "")
                raise input_error(text, key=f"keys.{key.name}", given=first.given)


def _signed(measures: Sequence[Measure], trial: Trial) -> list[float] | None:
    if not trial.counts:
        return None
    return [-measure.direction * value
            for measure, value in zip(measures, trial.values, strict=True)]  # fmt: skip


def _front(measures: Sequence[Measure], trials: Sequence[Trial]) -> list[Trial]:
    """Trials than which no other is better in one goal and as good in all, by the first goal; of
    equal ones the first."""
    known = [(own, trial.number, trial) for trial in trials if (own := _signed(measures, trial))]
    front: list[tuple[list[float], Trial]] = []
    # In this order a trial is beaten, or equalled, only by one before it.
    for own, _, trial in sorted(known, key=lambda each: each[:2]):
        if not any(all(map(le, other, own)) for other, _ in front):
            front.append((own, trial))
    return [trial for _, trial in front]


def _spread(front: Sequence[Trial]) -> list[Trial]:
    """At most `MOST_CONFIRMED` of a front, from end to end."""
    if len(front) <= MOST_CONFIRMED:
        return list(front)
    last = len(front) - 1
    return [front[round(number * last / (MOST_CONFIRMED - 1))] for number in range(MOST_CONFIRMED)]
