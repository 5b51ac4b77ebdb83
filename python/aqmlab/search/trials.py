"""Trials: settings, run as points of ordinary studies, and their values.

Each batch is a study with the axis `trial`, in its own folder while the search goes on; in the end
all batches become one study, `trials`. `search.json` has the question and the values of all trials.
An interrupted search asks its optimiser again and finds the values there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab import _core
from aqmlab.errors import FolderError, InputError, input_error, unknown
from aqmlab.metrics import Metric, find, scale, values, with_unit
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.runs import OF_GROUP
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import write_text
from aqmlab.results import RunResult, StudyResult, groups_of
from aqmlab.scenario.quantity import numbers
from aqmlab.study.chunks import NamedFrames, file_of, write_frames
from aqmlab.study.execute import Backend, execute, folder_of
from aqmlab.study.folder import ResultsFolder
from aqmlab.study.points import Axis, AxisValue
from aqmlab.study.sweep import Study

Settings = Mapping[str, Any]
LOG, BATCHES, TRIALS = "search.json", "batches", "trials"
START = "start"


@dataclass(frozen=True)
class Measure:
    """A metric of a link or group, and its better direction."""

    text: str
    """Text without a direction: `goodput@victim`."""
    metric: Metric
    subject: str
    """Link or group; empty for the bottleneck, or the only one that has values."""
    direction: int
    """Direction that is better for users: `MORE` (1) or `LESS` (-1)."""
    most: float = 0.0
    """Largest allowed value of a constraint."""

    @staticmethod
    def parse(text: str, argument: str) -> Measure:
        """`[min:|max:]METRIC[@SUBJECT]`. Raises `InputError` for an unknown metric, and for a
        metric without a better direction if the text has none."""
        word, colon, rest = text.partition(":")
        given = {"min": LESS, "max": MORE}.get(word) if colon else None
        if colon and given is None:
            problem = "expected min:METRIC or max:METRIC, such as min:sojourn_p95"
            raise input_error(problem, key=argument, given=text)
        name, _, subject = (rest if colon else text).strip().partition("@")
        try:
            metric, _ = find(name)
        except InputError as error:
            raise input_error(error.problem, key=argument, given=name, hint=error.hint) from None
        direction = metric.direction if given is None else given
        if direction == NEITHER:
            problem = "neither more nor less of this metric is better: write min: or max: before it"
            raise input_error(problem, key=argument, given=text)
        return Measure(f"{name}@{subject}" if subject else name, metric, subject, direction)

    @staticmethod
    def limit(text: str) -> Measure:
        """A constraint `METRIC[@SUBJECT]<=VALUE`; the value may have a unit or be in percent."""
        left, sign, right = text.partition("<=")
        share = right.strip().endswith("%")
        found = numbers([right.strip().removesuffix("%")])
        if not sign or found is None:
            problem = "expected METRIC@SUBJECT<=VALUE, such as throughput@attack<=2mbit"
            raise input_error(problem, key="within", given=text)
        measure = Measure.parse(f"min:{left.strip()}", "within")
        if found[1] not in ("", measure.metric.unit):
            unit = measure.metric.unit or "no unit"
            problem = f"`{left.strip()}` has another unit: {unit}"
            raise input_error(problem, key="within", given=right.strip())
        return replace(measure, most=found[0][0] * (0.01 if share else 1.0))

    def check(self, scenario: Mapping[str, Any]) -> None:
        """Raises `InputError` if the scenario has no such link or group."""
        links, groups = scenario["links"], groups_of(scenario)
        both = (each + OF_GROUP for each in groups if each in links)
        known = list(dict.fromkeys([*links, *groups, *both, "all"]))
        if self.subject and self.subject not in known:
            raise unknown("link or group", self.subject, known, key=self.text)

    def of(self, result: StudyResult | RunResult) -> Floats:
        """The value of each run; NaN if it has none.

        Raises `InputError` if several links or groups have values and none is named, or if the
        scenario lacks the one that is named.
        """
        rows = values(result, self.text.partition("@")[0])
        names = rows["subject"].cast(pl.String)
        if isinstance(result, StudyResult):
            count, first = result.info.points * result.info.replications, result.scenarios[0]
        else:
            count, first = 1, result.scenario
        self.check(first)
        own = rows.filter(names == self._subject(sorted(set(names)), first["bottleneck"]))
        means = own.group_by("run").agg(pl.col("value").mean())
        found = np.full(count, np.nan)
        found[means["run"].to_numpy()] = means["value"].to_numpy()
        return found

    def _subject(self, subjects: Sequence[str], link: str) -> str:
        if self.subject or not subjects:
            return self.subject
        if link in subjects:
            return link
        if len(subjects) > 1:
            hint = f"{self.text}@{subjects[0]}"
            problem = f"name one that has this metric: {', '.join(subjects)}"
            raise input_error(problem, given=self.text, hint=hint)
        return subjects[0]

    def shown(self, value: float) -> str:
        """A value with its unit, for people."""
        unit, factor = scale(self.metric.unit, value)
        return with_unit(f"{value * factor:.4g}", unit)


@dataclass(frozen=True)
class Trial:
    """Settings and their values."""

    number: int
    """Number of the trial, from 1; 0 is the scenario as it was given."""
    settings: Settings
    values: tuple[float, ...]
    """Mean of each measure over points and replications; empty if the settings are invalid or a
    measure has no value."""
    excess: float = 0.0
    """Excess over the constraints, relative to them."""
    problem: str = ""
    """Reason for missing values."""

    @property
    def counts(self) -> bool:
        """True if it has values and satisfies the constraints."""
        return bool(self.values) and not self.excess


def means(values: Floats) -> list[float | None]:
    """Returns the mean of each trial; `values` has shape (points, trials, replications). A trial
    with a run that lacks a value, where other replications have one, has none: its worst runs
    would not count, such as those in which no page loads in time."""
    kept = [own[np.isfinite(own).any(axis=1)] for own in np.moveaxis(values, 1, 0)]
    return [float(own.mean()) if own.size and np.isfinite(own).all() else None for own in kept]


@dataclass
class Trials:
    """Runs settings and keeps their values."""

    study: Study
    measures: Sequence[Measure]
    within: Sequence[Measure]
    out: Path | None
    means: Backend
    question: Mapping[str, Any]
    total: int
    """Expected number of trials, for the progress."""
    done: int = 0
    _log: dict[str, dict[str, Any]] = field(default_factory=dict)
    _seen: dict[str, Trial] = field(default_factory=dict)
    _batches: list[list[Trial]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.question = {**self.question, "study": self.study.digest, "engine": _core.__engine__,
                         "version": _core.__version__}  # fmt: skip
        if self.out is not None:
            self._open(self.out)

    def _open(self, out: Path) -> None:
        path = out / LOG
        if path.exists():
            asked = json.loads(json.dumps(self.question))
            try:
                kept = json.loads(path.read_text(encoding="utf-8"))
                before, self._log = kept["question"], kept["trials"]
                differing = [key for key in asked if before.get(key) != asked[key]]
            except (ValueError, LookupError, TypeError, AttributeError):
                problem = f"{path}: damaged, so the search cannot resume"
                raise FolderError(f"{problem}; remove {out}, or choose another folder") from None
            if differing:
                problem = f"{out}: this folder has another search (other {differing[0]})"
                raise FolderError(f"{problem}; choose another")
        elif out.exists() and any(each.name != BATCHES for each in out.iterdir()):
            raise FolderError(f"{out}: this folder has other files; choose another")
        else:
            shutil.rmtree(out / BATCHES, ignore_errors=True)  # not even the start is complete

    def _write(self) -> None:
        if self.out is not None:
            text = json.dumps({"question": self.question, "trials": self._log}, indent=1)
            write_text(self.out / LOG, text, "earlier trials are kept")

    def evaluate(self, given: Sequence[Settings], *, keep: bool = True) -> list[Trial]:
        """The trials of these settings; those that are new are run together. With `keep` they are
        a part of the study `trials`."""
        names = [identity(each) for each in given]
        new: list[Trial] = []
        for name, each in zip(names, given, strict=True):
            if name not in self._seen:
                trial = Trial(len(self._seen), each, ())
                try:
                    self._of([trial])
                    new.append(trial)
                except InputError as error:
                    trial = replace(trial, problem=str(error))
                self._seen[name] = trial
        if new:
            if keep:
                self._batches.append(new)
            self._run(new, keep)
        self.done += len(given)
        self._tell()
        return [self._seen[name] for name in names]

    def _tell(self, part: float = 0.0) -> None:
        each = len(self.study.points) * self.study.replications
        most = max(self.total, self.done + 1)
        self.means.report(round((self.done + part) * each), most * each)

    def _of(self, batch: Sequence[Trial]) -> Study:
        return with_settings(self.study, [(str(each.number), each.settings) for each in batch])

    def _run(self, batch: Sequence[Trial], keep: bool) -> None:
        names = [identity(trial.settings) for trial in batch]
        if not all(name in self._log for name in names):
            folder = self._folder(len(self._batches) - 1) if keep else None
            result = self.run(self._of(batch), folder, count=len(batch))
            shape = (len(self.study.points), len(batch), -1)
            kept, limits = (
                [means(measure.of(result).reshape(shape)) for measure in each]
                for each in (self.measures, self.within)
            )
            for place, name in enumerate(names):
                self._log[name] = {
                    "values": [each[place] for each in kept],
                    "within": [each[place] for each in limits],
                }
            self._write()
        for name, trial in zip(names, batch, strict=True):
            self._seen[name] = self._judged(trial, self._log[name])

    def run(self, study: Study, folder: Path | None, *, count: int) -> StudyResult:
        """Runs a study; its runs count as so many trials in the progress."""

        def told(done: int, total: int) -> None:
            self._tell(count * done / total)

        return execute(study, folder, replace(self.means, progress=told))

    def _judged(self, trial: Trial, found: Mapping[str, Any]) -> Trial:
        kept, limits = found["values"], found["within"]
        if None in kept or None in limits:
            texts = [measure.text for measure in (*self.measures, *self.within)]
            without = texts[[*kept, *limits].index(None)]
            return replace(trial, problem=f"a run has no value of {without}")
        pairs = zip(self.within, limits, strict=True)
        excess = sum(max(0.0, value - each.most) / (each.most or 1.0) for each, value in pairs)
        return replace(trial, values=tuple(kept), excess=excess)

    def _folder(self, number: int) -> Path | None:
        return None if self.out is None else self.out / BATCHES / f"{number:04}"

    def all(self) -> list[Trial]:
        """All trials of batches that were run, in order."""
        return [self._seen[identity(each.settings)] for batch in self._batches for each in batch]

    def joined(self) -> StudyResult | None:
        """One study of all batches, in the folder `trials`; None without a folder."""
        if self.out is None:
            return None
        whole = self._of([trial for batch in self._batches for trial in batch])
        with folder_of(whole, self.out / TRIALS) as folder:
            if not folder.complete:
                self._fill(folder, whole)
                folder.finish()
            result = folder.result(computed=0)
        shutil.rmtree(self.out / BATCHES, ignore_errors=True)
        return result

    def _fill(self, folder: ResultsFolder, whole: Study) -> None:
        """Takes over the runs of all batches that are not there yet."""
        missing, before = set(folder.missing()), 0
        total, replications = len(whole.axes[-1].values), whole.replications
        for number, batch in enumerate(self._batches):
            place = self._folder(number)
            assert place is not None
            study = self._of(batch)
            self.run(study, place, count=0)  # only opened, if it is complete
            how = (len(batch), total, before, replications)
            runs = _moved(np.arange(study.total), *how)
            before += len(batch)
            if int(runs[0]) in missing:
                names = _core.Results.table_names()
                tables = (_renumbered(place, name, *how) for name in names)
                with folder.storage():
                    folder.take(write_frames(folder.next_chunk(), runs, tables))


def identity(settings: Settings) -> str:
    """A text that equal settings share."""
    return json.dumps(settings, sort_keys=True)


def with_settings(
    study: Study, named: Sequence[tuple[str, Settings]], seed: int | None = None
) -> Study:
    """A study with the axis `trial`: labels and settings."""
    values = tuple(AxisValue(label, settings) for label, settings in named)
    return study.with_axis(Axis("trial", values), seed=seed)


def _moved(runs: Any, count: int, total: int, before: int, replications: int) -> Any:
    """Numbers of the runs of a batch in the study of all trials; points vary slower."""
    point, replication = runs // replications, runs % replications
    moved = (point // count) * total + before + point % count
    return moved * replications + replication


def _renumbered(folder: Path, name: str, *how: int) -> NamedFrames:
    frame = pl.read_parquet(file_of(folder, name), glob=False)
    runs = _moved(pl.col("run").cast(pl.Int64), *how).cast(frame.schema["run"])
    return name, [frame.with_columns(run=runs)], frame.schema
