"""What a study says: which label is best in what, where, and whether that is more than chance.

Every comparison that a page makes is one contest of `aqmlab.stats.compare`: each measure, at
each combination of the other axes. Nothing is averaged over unlike points.

Where it says how many replications a difference of a given size needs, that is of the variance that
was seen and the test of one pair of labels at 5 %; the power is 80 %. Findings are held to a
stricter level where a page compares more than that, and then need more replications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aqmlab import libraries
from aqmlab.metrics import Shown, headlines
from aqmlab.metrics.registry import NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import capital, listed
from aqmlab.report.measures import BUSY, Layout, by_point
from aqmlab.results import groups_of
from aqmlab.stats import Contest, ContestResult, compare, is_constant
from aqmlab.stats.comparisons import pooled_variance, typical_reach

if TYPE_CHECKING:
    from aqmlab.results import StudyResult

EMULATED = "timer_lateness"
"""A quantity of the table `times` that runs in real time alone have."""
QUEUE = "time in the queue"
MOST_WHERE = 3
"""Places that are named in a sentence; of more, their number."""
DIFFERENCE = 0.1
"""Difference of which a page gives the replications that it needs, as a share of the mean."""
ALPHA, POWER = 0.05, 0.8
MOST_REPLICATIONS = 10_000
LARGE_SHIFT = 30.0


def findings(result: StudyResult) -> list[ContestResult]:
    """All comparisons of the first axis with more than one label; none without such an axis."""
    return of_measures(result, headlines(result), Layout.of(result.info.axes))


def of_measures(result: StudyResult, found: Sequence[Shown], layout: Layout) -> list[ContestResult]:
    """Comparisons of these measures; the first is the main one."""
    if layout.compared is None:
        return []
    goodput = any(each.unit == "Mbit/s" for each in found)
    told = [each for each in found if not (goodput and each.title == BUSY)]
    told = [each for each in told if each.direction != NEITHER]
    paired, grid = is_paired(result), _grid(result, layout.compared)
    contests = [
        Contest(
            each.title, each.unit, samples, each.direction, where, paired, number == 0, copies,
            missing, each.bounds[1] - each.bounds[0], _event(each),
        )
        for number, each in enumerate(told)
        for where, samples, copies, missing in _places(result, each, grid)
        if len(samples) + len(missing) > 1
    ]  # fmt: skip
    return compare(contests, looked=result.info.precision is not None)


def _event(measure: Shown) -> float:
    """A lost SYN costs a second on any line. What a shared queue costs depends on the line: 100 ms
    in one of ten runs would hide most differences of delays."""
    return 0.0 if callable(measure.metric.event) else measure.event(0)


QUESTIONS = ("What do users notice?", "How much gets through?", "How long do packets wait?")


def question(measure: Shown) -> str:
    """What a measure answers."""
    if QUEUE in measure.title:
        return QUESTIONS[2]
    return QUESTIONS[1] if measure.unit == "Mbit/s" or measure.title == BUSY else QUESTIONS[0]


def is_paired(result: StudyResult) -> bool:
    """True if replication r has the same random streams at all points: simulated, with one seed."""
    if len(result.seeds) > 1:
        return False
    return EMULATED not in set(result.raw("times")["quantity"].cast(pl.String))


Grid = Sequence[tuple[dict[str, str], dict[str, int]]]


def _grid(result: StudyResult, axis: str | None) -> Grid:
    """Each place on the axes other than `axis`, with the point of each label of `axis`."""
    others = [name for name, labels in result.info.axes if name != axis and len(labels) > 1]
    places: dict[tuple[str, ...], dict[str, int]] = {}
    rows = result.points.select(axis or pl.lit(""), *others).rows()
    for point, (label, *place) in enumerate(rows):
        places.setdefault(tuple(place), {})[label] = point
    return [(dict(zip(others, place, strict=True)), points) for place, points in places.items()]


def _places(
    result: StudyResult, measure: Shown, grid: Grid
) -> Iterator[tuple[dict[str, str], dict[str, Floats], list[str], dict[str, int]]]:
    """At each place: the place, the values of each label that has one in every replication in which
    any label has one, those of these labels whose replications are copies of one run, and the other
    labels that have the subject, with the number of their runs without a value. No place where no
    run has one."""
    values, replications = by_point(result, measure), result.info.replications
    run, copied = pl.col("run"), set(result.copied)
    has = dict.fromkeys(values, frozenset(range(replications)))
    if measure.values["run"].n_unique() < replications * len(values):
        runs = measure.values.group_by(point=run // replications).agg(run.unique() % replications)
        has = {point: frozenset(found) for point, found in runs.iter_rows()}
    for place, points in grid:
        every = frozenset().union(*{has.get(point, frozenset()) for point in points.values()})
        samples = {name: values[point] for name, point in points.items() if has.get(point) == every}
        copies = [name for name in samples if points[name] in copied]
        missing = {
            name: replications - len(has.get(point, ()))
            for name, point in points.items()
            if name not in samples
            and (point in has or measure.subject in _subjects(result.scenarios[point]))
        }
        if every:
            yield place, samples, copies, missing


def _subjects(scenario: Mapping[str, Any]) -> list[str]:
    return ["", *scenario["links"], *groups_of(scenario)]


def replications_for(spread: float, difference: float) -> int:
    """Smallest number of pairs with which a difference is shown with the chance `POWER`; `spread`
    is the standard deviation of the difference within a pair. At most `MOST_REPLICATIONS`."""
    low, high = 1, MOST_REPLICATIONS
    while high - low > 1:
        count = (low + high) // 2
        limit = typical_reach(count, ALPHA)
        shift = difference / spread * count**0.5
        # scipy's function may be NaN there, and the normal value hardly matters beside the shift.
        if shift > LARGE_SHIFT:
            missed = float(libraries.special.chdtrc(count - 1, (count - 1) * (shift / limit) ** 2))
        else:
            missed = float(libraries.special.nctdtr(count - 1, shift, limit))
        low, high = (low, count) if missed <= 1 - POWER else (count, high)
    return high


def spread_of(samples: Sequence[Floats], *, paired: bool) -> float:
    """Standard deviation of the difference of two labels in one replication."""
    variance, _ = pooled_variance(samples, paired=paired and len(samples) > 1)
    return float((2 * variance) ** 0.5)


def needed(result: StudyResult, found: Sequence[Shown], layout: Layout) -> str:
    """The replications that a difference of 10 % would need, of each measure; empty without any."""
    if result.info.replications < 3:
        return ""
    told, paired, grid = [], is_paired(result), _grid(result, layout.compared)
    for measure in (each for each in found if each.direction != NEITHER):
        if numbers := list(_needed(result, measure, grid, paired)):
            most = max(numbers)
            more = " or more" if most == MOST_REPLICATIONS else ""
            told.append(f"{measure.title} {most:,}{more}")
    if not told:
        return ""
    return (
        f"Replications that would show a difference of {100 * DIFFERENCE:.0f} % in 8 of 10 such "
        f"studies (of one pair at 5 %, by the variance seen): {'; '.join(told)}."
    )


def _needed(result: StudyResult, measure: Shown, grid: Grid, paired: bool) -> Iterator[int]:
    """The replications of each place with values."""
    for _, samples, copies, _ in _places(result, measure, grid):
        own = [values for label, values in samples.items() if label not in copies]
        if own and not all(map(is_constant, own)):
            mean, spread = abs(float(np.mean(own))), spread_of(own, paired=paired)
            if spread > 1e-9 * mean > 0:
                yield replications_for(spread, DIFFERENCE * mean)


def sentences(
    result: StudyResult, told: Sequence[Shown], layout: Layout
) -> list[tuple[Shown, str]]:
    """The findings in words, those of one measure together; each with its measure."""
    found = of_measures(result, told, layout)
    lines = []
    for measure in told:
        own = [each for each in found if each.measure == measure.title]
        groups: dict[tuple[object, ...], list[ContestResult]] = {}
        for each in own:
            missing = tuple(each.missing.items())
            key = each.shown, each.best, each.worst, each.why, missing
            groups.setdefault(key, []).append(each)
        for same in groups.values():
            text = _sentence(same, measure, len(own), layout.compared or "")
            lines.append((measure, text + _left_out(same[0], result.info.replications)))
    return lines


def _left_out(of: ContestResult, replications: int) -> str:
    """The labels that are not compared, and why."""
    if not of.missing:
        return ""
    told = [f"{name} (no value in {n} of {replications} runs)" for name, n in of.missing.items()]
    return f" Not compared: {listed(told)}."


def _sentence(same: Sequence[ContestResult], measure: Shown, places: int, axis: str) -> str:
    what = capital(measure.title) + _where(same, places)
    one = same[0] if len(same) == 1 else None
    if same[0].shown:
        return f"{what}: {_shown(same, measure, one)}."
    if same[0].why == "every run gave the same" and one:
        value = measure.text(next(iter(one.means.values())))
        return f"{what}: {value} with every {axis.replace('_', ' ')}."
    if same[0].why:
        means = f"means {_span(same, measure)}; " if same[0].means else ""
        return f"{what}: {means}{same[0].why}."
    most = max(each.detectable for each in same)
    if most == 0:
        apart = "" if one else "of the cases "
        return f"{what}: equal in each replication (means {apart}{_span(same, measure)})."
    least, largest = measure.bounds
    able = f"a measured difference of {measure.text(most)} or more would have been significant"
    if most > largest - least:
        able = "so few replications could not have shown any"
    # Means of several places differ for other reasons.
    seen = f"means {_span(same, measure)}"
    if one is None:
        seen = f"differences up to {measure.text(max(abs(each.effect) for each in same))}"
    return f"{what}: no significant difference ({seen}; {able})."


def _shown(same: Sequence[ContestResult], measure: Shown, one: ContestResult | None) -> str:
    best, worst = (listed(each) for each in (same[0].best, same[0].worst))
    # The interval of the difference; of several places, from the least end to the greatest.
    ends = sorted(abs(end) for each in same for end in (each.low, each.high))
    apart = f"difference {measure.number(ends[0])} to {measure.text(ends[-1])}"
    if one is None:
        return f"best with {best}, worst with {worst}; {apart}"
    first, last = (
        _ends([one.means[each] for each in own], measure) for own in (one.best, one.worst)
    )
    return f"best with {best} ({first}), worst with {worst} ({last}); {apart}"


def _span(same: Sequence[ContestResult], measure: Shown) -> str:
    """The smallest and the largest mean."""
    return _ends([value for each in same for value in each.means.values()], measure)


def _ends(means: Sequence[float], measure: Shown) -> str:
    ends = [measure.text(each) for each in (min(means), max(means))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _where(same: Sequence[ContestResult], places: int) -> str:
    """Place of the finding; empty with a single place."""
    if places == 1:
        return ""
    if len(same) == places:
        return ", in both cases" if places == 2 else f", in all {places} cases"
    if len(same) > MOST_WHERE:
        return f", in {len(same)} of {places} cases"
    return f", with {'; '.join(_place(each.where) for each in same)}"


def _place(where: Mapping[str, str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {label}" for name, label in where.items())
