"""What a study says: which label is best in what, where, and whether that is more than chance.

Every comparison that a page makes is one contest of `aqmlab.stats.compare`: each measure, at
each combination of the other axes. Nothing is averaged over unlike points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from aqmlab.metrics import Shown, headlines
from aqmlab.metrics.registry import NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import capital, listed
from aqmlab.report.measures import BUSY, Layout, by_point
from aqmlab.stats import Contest, ContestResult, compare

if TYPE_CHECKING:
    from aqmlab.results import StudyResult

EMULATED = "timer_lateness"
"""A quantity of the table `times` that runs in real time alone have."""
QUEUE = "time in the queue"
MOST_WHERE = 3
"""Places that are named in a sentence; of more, their number."""


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
    paired = is_paired(result)
    contests = [
        contest
        for number, each in enumerate(told)
        for contest in _contests(result, each, layout.compared, paired, number == 0)
    ]
    return compare(contests, looked=result.info.precision is not None)


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


def _contests(
    result: StudyResult, measure: Shown, axis: str, paired: bool, first: bool
) -> Iterator[Contest]:
    values = by_point(result, measure)
    others = [name for name, labels in result.info.axes if name != axis and len(labels) > 1]
    places: dict[tuple[str, ...], dict[str, Floats]] = {}
    copies: dict[tuple[str, ...], list[str]] = {}
    for row in result.points.to_dicts():
        place = tuple(str(row[name]) for name in others)
        at = places.setdefault(place, {})
        if (own := values.get(row["point"])) is not None:
            at[str(row[axis])] = own
            if row["point"] in result.copied:
                copies.setdefault(place, []).append(str(row[axis]))
    for place, samples in places.items():
        full = {
            label: own for label, own in samples.items() if own.size == result.info.replications
        }
        if len(full) > 1:
            where = dict(zip(others, place, strict=True))
            alike = copies.get(place, ())
            yield Contest(
                measure.title, measure.unit, full, measure.direction, where, paired, first, alike
            )


def sentences(found: Sequence[ContestResult], told: Sequence[Shown], axis: str | None) -> list[str]:
    """The findings in words, those of one measure together."""
    return [line for _, line in by_measure(found, told, axis)]


def by_measure(
    found: Sequence[ContestResult], told: Sequence[Shown], axis: str | None
) -> list[tuple[Shown, str]]:
    """The findings in words, each with its measure."""
    lines = []
    for measure in told:
        own = [each for each in found if each.measure == measure.title]
        groups: dict[tuple[object, ...], list[ContestResult]] = {}
        for each in own:
            groups.setdefault((each.shown, each.best, each.worst, each.why), []).append(each)
        for same in groups.values():
            lines.append((measure, _sentence(same, measure, len(own), axis or "")))
    return lines


def _sentence(same: Sequence[ContestResult], measure: Shown, places: int, axis: str) -> str:
    what = capital(measure.title) + _where(same, places)
    one = same[0] if len(same) == 1 else None
    if same[0].shown:
        return f"{what}: {_shown(same, measure, one)}."
    if same[0].why == "every run gave the same" and one:
        value = measure.text(next(iter(one.means.values())))
        return f"{what}: {value} with every {axis.replace('_', ' ')}."
    if same[0].why:
        return f"{what}: means {_span(same, measure)}; {same[0].why}."
    most = max(each.detectable for each in same)
    return (
        f"{what}: no difference shown (means {_span(same, measure)}; a measured difference of "
        f"{measure.text(most)} or more would have been)."
    )


def _shown(same: Sequence[ContestResult], measure: Shown, one: ContestResult | None) -> str:
    best, worst = (listed(each) for each in (same[0].best, same[0].worst))
    # The interval of the difference; of several places, from the least end to the greatest.
    ends = sorted(abs(end) for each in same for end in (each.low, each.high))
    apart = f"difference {measure.number(ends[0])} to {measure.text(ends[-1])}"
    if one is None:
        return f"best with {best}, worst with {worst}; {apart}"
    first, *_, last = (measure.text(each) for each in one.means.values())
    return f"best with {best} ({first}), worst with {worst} ({last}); {apart}"


def _span(same: Sequence[ContestResult], measure: Shown) -> str:
    """The smallest and the largest mean."""
    means = [value for each in same for value in each.means.values()]
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
