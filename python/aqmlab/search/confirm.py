"""Comparison of the best trials with the start, on random streams that the search did not use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aqmlab import stats
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import finite
from aqmlab.search.trials import START, Measure, Trial, Trials, with_settings

FRESH = 1
"""Fresh random streams have the seed of the search plus this."""
CONFIRMED, UNDECIDED, WORSE, BETTER = "confirmed", "not decided", "worse", "better"
KEPT, BROKEN = "kept", "broken"
CONFIRM = "confirm"
FOUND = "found"
SAME = "every replication gave the same"


@dataclass(frozen=True)
class Confirmed:
    """A setting beside the start of the search, with fresh seeds."""

    measure: Measure
    trial: Trial
    start: stats.Statistic
    found: stats.Statistic
    low: float
    high: float
    """Interval of the difference found - start, in the metric's unit; for all comparisons of a
    search together."""
    verdict: str
    """`confirmed`, `not decided`, or the opposite: `worse`, in an attack `better`."""
    why: str = ""
    """Why nothing could be tested."""

    @property
    def text(self) -> str:
        """The statement, in one sentence."""
        told = self.measure.shown
        pair = f"{told(self.found.value)} instead of {told(self.start.value)}"
        count = f"{self.found.count} fresh replications"
        if self.why:
            rest = f"{count}; {self.why}"
        else:
            ends = f"{told(self.low)} to {told(self.high)}"
            rest = f"difference {ends} at {stats.LEVEL:.0%}, {count}"
        return f"{self.measure.text}, trial {self.trial.number}: {self.verdict}: {pair} ({rest})"

    def to_json(self) -> dict[str, Any]:
        """{"measure", "trial", "start", "found", "low", "high", "verdict", "why"}."""
        numbers = {"low": self.low, "high": self.high}
        return {
            "measure": self.measure.text,
            "trial": self.trial.number,
            "start": self.start.value,
            "found": self.found.value,
            **{name: finite(value) for name, value in numbers.items()},
            "verdict": self.verdict,
            "why": self.why,
        }


@dataclass(frozen=True)
class CheckedConstraint:
    """A constraint of a setting, with fresh seeds."""

    measure: Measure
    trial: Trial
    found: stats.Statistic
    verdict: str
    """`kept` or `broken` if the whole interval of the mean is, otherwise `not decided`."""

    @property
    def text(self) -> str:
        """The statement, in one sentence."""
        told, ends = self.measure.shown, self.found.interval
        why = (
            f"{told(ends.low)} to {told(ends.high)} at {stats.LEVEL:.0%}"
            if ends
            else self.found.why
        )
        limit = f"{self.measure.text} <= {told(self.measure.most)}, trial {self.trial.number}"
        count = f"{self.found.count} fresh replications"
        return f"{limit}: {self.verdict}: {told(self.found.value)} ({why}, {count})"

    @staticmethod
    def of(measure: Measure, trial: Trial, values: Floats) -> CheckedConstraint:
        """Verdict on the values of the replications."""
        found = stats.estimate(values, bounds=measure.metric.bounds)
        ends = (found.interval.low, found.interval.high) if found.interval else (np.nan, np.nan)
        if stats.is_constant(values):
            ends = (found.value, found.value)
        verdict = UNDECIDED
        if np.isfinite(values).all():
            verdict = KEPT if ends[1] <= measure.most else verdict
            verdict = BROKEN if ends[0] > measure.most else verdict
        return CheckedConstraint(measure, trial, found, verdict)


def confirm(
    trials: Trials, found: Sequence[Trial], replications: int, *, harm: bool
) -> tuple[list[Confirmed], list[CheckedConstraint]]:
    """Each measure of each trial beside the start, and its constraints; with `harm` the search was
    for worse values."""
    named = [(START, {}), *((str(each.number), each.settings) for each in found)]
    fresh = trials.study.seed + FRESH
    study = with_settings(trials.study, named, seed=fresh).with_replications(replications)
    folder: Path | None = trials.out and trials.out / CONFIRM
    result = trials.run(study, folder, count=0)
    points = len(trials.study.points)

    def means(measure: Measure) -> Floats:
        shaped = measure.of(result).reshape(points, len(named), replications)
        return np.asarray(shaped.mean(axis=0))

    samples = {measure.text: means(measure) for measure in trials.measures}
    pairs = [(measure, place) for measure in trials.measures for place in range(1, len(named))]
    contests = []
    for measure, place in pairs:
        own = samples[measure.text]
        both = {START: own[0], FOUND: own[place]}
        contests.append(stats.Contest(measure.text, measure.metric.unit, both, measure.direction))
    findings = stats.compare(contests)
    confirmed = [
        _judged(measure, found[place - 1], samples[measure.text][[0, place]], finding, harm)
        for (measure, place), finding in zip(pairs, findings, strict=True)
    ]
    kept = [
        CheckedConstraint.of(measure, trial, values)
        for measure in trials.within
        for trial, values in zip(found, means(measure)[1:], strict=True)
    ]
    return confirmed, kept


def _judged(
    measure: Measure, trial: Trial, values: Floats, finding: stats.ContestResult, harm: bool
) -> Confirmed:
    bounds = measure.metric.bounds
    start, found = (stats.estimate(each, bounds=bounds) for each in values)
    difference = found.value - start.value
    sign = measure.direction * (-1 if harm else 1)
    verdict, why, ends = UNDECIDED, finding.why, (np.nan, np.nan)
    if not finding.why:
        ends = finding.difference_of(FOUND)
    # Runs that are copies of one run have no interval, and need none.
    elif all(stats.is_constant(each) for each in values) and difference:
        why = SAME
    if finding.shown or why == SAME:
        opposite = BETTER if harm else WORSE
        verdict = CONFIRMED if difference * sign > 0 else opposite
    low, high = map(float, ends)
    return Confirmed(measure, trial, start, found, low, high, verdict, why)
