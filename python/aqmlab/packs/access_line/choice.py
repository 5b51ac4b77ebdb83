"""The recommended queue: comparisons, the choice, and sentences about it.

A queue is recommended only if it is noticeably better than the line as it is in something that
users notice, and its mean is noticeably worse in nothing. Better must be shown; for worse the means
are enough, because what is not shown may still be harm. Goodput and throughput do not decide: a
shaper costs some by design, and queues share it out in another way. The page states them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from aqmlab import stats
from aqmlab.numbers import count, listed, short
from aqmlab.packs.access_line.setup import BASELINE

if TYPE_CHECKING:
    from aqmlab.packs.access_line.trial import LineTrial, Noticed

NOTICEABLE = 0.05
"""Minimum difference that counts, as a share of the smaller mean: 0.1 ms of delay between two
queues may be significant, and no user notices it."""
LEAST = f"{NOTICEABLE * 100:.0f} %"


@dataclass(frozen=True)
class PairedDifference:
    """Two queues by one measure, replication by replication: they met the same arrivals."""

    what: Noticed
    one: str
    other: str
    found: stats.ContestResult
    least: float
    """Minimum difference that a user notices."""
    runs: int = 0
    """Number of runs of each queue; one without a value, as no page loaded, is worse."""

    @property
    def difference(self) -> tuple[float, float, float]:
        """One less the other, in the measure's unit, and the ends of its interval; NaN without."""
        effect = self.found.effect
        is_best = next(iter(self.found.means)) == self.one
        return -effect if is_best else effect, *self.found.difference_of(self.one)

    @property
    def better(self) -> str | None:
        """The queue that is noticeably better, if one is."""
        _, low, high = self.difference
        if not self.found.shown or (low <= self.least and high >= -self.least):
            return None
        return self.found.best[0]

    @property
    def ahead(self) -> str | None:
        """The queue whose mean is noticeably better, or which has noticeably more runs with a
        value; shown or not."""
        if self.lacks:
            return self.other if self.lacks > 0 else self.one
        if len(self.found.means) < 2:
            return None
        best, other = (self.found.means[each] for each in (self.one, self.other))
        if abs(best - other) <= self.least:
            return None
        return self.one if (best - other) * self.what.direction > 0 else self.other

    @property
    def lacks(self) -> int:
        """Number of runs without a value that one queue has more than the other, if noticeable."""
        more = self.found.missing.get(self.one, 0) - self.found.missing.get(self.other, 0)
        return more if abs(more) > NOTICEABLE * self.runs else 0

    def told(self, queue: str) -> str:
        """The means of `queue` and of the other one, with the interval of their difference."""
        other = self.other if queue == self.one else self.one
        unit = f" {self.what.unit}" if self.what.unit else ""
        if self.lacks:
            lacks = " instead of ".join(f"{self.found.missing[each]}" for each in (queue, other))
            return f"{self.what.words} without a value in {lacks} of {self.runs} runs"
        one, two = (self.found.means[each] for each in (queue, other))
        text = f"{self.what.words} {short(one)}{unit} instead of {short(two)}{unit}"
        _, *ends = self.difference
        if any(isnan(end) for end in ends):
            return text
        low, high = ends if queue == self.one else (-end for end in reversed(ends))
        if low < 0 < high:
            return f"{text} ({short(-low)} less to {short(high)} more)"
        least, most = sorted((abs(low), abs(high)))
        return f"{text} ({short(least)} to {short(most)} {'less' if one < two else 'more'})"


def comparisons(trial: LineTrial) -> list[PairedDifference]:
    """All pairs of queues by all measures, held to the level for all of them together."""
    cases: list[tuple[Noticed, str, str]] = []
    contests: list[stats.Contest] = []
    for what in trial.noticed:
        for one, other in itertools.combinations(trial.queues, 2):
            has = {each: np.isfinite(trial.measured(what, each)) for each in (one, other)}
            if not np.any(list(has.values())):
                continue
            alike = np.array_equal(has[one], has[other])
            missing = {} if alike else {each: int((~own).sum()) for each, own in has.items()}
            samples = {each: trial.values(what, each) for each in has}
            cases.append((what, one, other))
            contests.append(
                stats.Contest(what.name, what.unit, samples, what.direction, missing=missing)
            )
    return [
        PairedDifference(
            *case, each, max(case[0].least, NOTICEABLE * min(map(abs, each.means.values()))),
            trial.result.info.replications,
        )
        for case, each in zip(cases, stats.compare(contests), strict=True)
    ]  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The queue to take."""

    queue: str
    is_best: bool
    """True if no other queue that improves on the line as it is is better in anything."""
    as_good: tuple[str, ...]
    """Others of these that are not noticeably better or worse in anything."""


def recommended(trial: LineTrial, compared: Sequence[PairedDifference]) -> Choice | None:
    """The recommended queue, or `None`.

    Of the queues that improve on the line as it is: one than which none of them is better in
    anything; of several the one that is better most often, and the first named of equals. If there
    is none: the one with most comparisons won less those lost.
    """
    able = [queue for queue in trial.queues if _improves(queue, compared)]
    if not able:
        return None
    won = [each for each in compared if each.better and {each.one, each.other} <= set(able)]
    better = Counter(each.better for each in won)
    worse = Counter(each.other if each.better == each.one else each.one for each in won)
    unbeaten = [queue for queue in able if not worse[queue]]
    best = max(unbeaten or able, key=lambda queue: better[queue] - worse[queue])
    alike = (
        queue
        for queue in able
        if queue != best and not any(each.better for each in _between(queue, best, compared))
    )
    return Choice(best, bool(unbeaten), tuple(alike))


def _improves(queue: str, compared: Sequence[PairedDifference]) -> bool:
    """Whether the queue is better than the line as it is in something, and worse in nothing."""
    own = _gains(queue, compared)
    is_worse = any(each.ahead == BASELINE for each in own)
    return any(each.better == queue for each in own) and not is_worse


def _gains(queue: str, compared: Sequence[PairedDifference]) -> list[PairedDifference]:
    """The comparisons with the line as it is that decide."""
    return [each for each in _between(queue, BASELINE, compared) if not each.what.is_cost]


def _between(one: str, other: str, compared: Sequence[PairedDifference]) -> list[PairedDifference]:
    return [each for each in compared if {each.one, each.other} == {one, other} and one != other]


def sentences(trial: LineTrial, compared: Sequence[PairedDifference]) -> list[str]:
    """The answer in one sentence, and the comparisons behind it."""
    queues = [queue for queue in trial.queues if queue != BASELINE]
    if not queues:
        return ["Only the line as it is was simulated. Name queues to compare with it."]
    choice = recommended(trial, compared)
    if choice is None:
        found = [_none(queues, compared)]
        for queue in queues:
            found += _against(queue, BASELINE, compared) + _doubtful(queue, compared)
        return found
    name = choice.queue
    found = [_answer(choice, compared)]
    if not choice.is_best:
        found.append(f"No queue is best in every measure; {name} is the best compromise.")
    for queue in trial.queues:
        found += _against(name, queue, compared) if queue != name else []
    return found


def _answer(choice: Choice, compared: Sequence[PairedDifference]) -> str:
    """The queue to use, and its gain over the line as it is."""
    name = choice.queue
    won = next(each for each in _gains(name, compared) if each.better == name)
    others = sum(each.better == name for each in _between(name, BASELINE, compared)) - 1
    more = f"and {count(others, 'more measure')} {'is' if others == 1 else 'are'} better than"
    alike = f" ({listed(choice.as_good)}: no difference shown)" if choice.as_good else ""
    costs = [each for each in _between(name, BASELINE, compared) if each.what.is_cost]
    worse = [each.what.words for each in costs if each.better == BASELINE]
    left = f"; shown to be worse: {listed(worse)}" if worse else "; nothing is shown to be worse"
    return (
        f"Use {name}{alike}: {won.told(name)}, {more if others else 'compared'} with the line as "
        f"it is{left}."
    )


def _none(queues: Sequence[str], compared: Sequence[PairedDifference]) -> str:
    """Why no queue is recommended."""
    better = [{each.better for each in _gains(queue, compared)} for queue in queues]
    able = [each for each in better if each - {None, BASELINE}]
    if able:
        worse = "is" if all(BASELINE in each for each in able) else "may be"
        return (
            f"No recommendation: each queue that is better in a measure {worse} worse in another."
        )
    if any(BASELINE in each for each in better):
        return (
            "Leave the line as it is: no queue is shown to be better in anything that users notice."
        )
    return f"Not decided: no difference of more than {LEAST} is shown in what users notice."


def _against(name: str, other: str, compared: Sequence[PairedDifference]) -> list[str]:
    """How the queue `name` compares with another one."""
    own = _between(name, other, compared)
    called = "the line as it is" if other == BASELINE else other
    lines = {
        word: "; ".join(each.told(name) for each in own if each.better == which)
        for word, which in (("better", name), ("worse", other))
    }
    if not any(lines.values()):
        return [f"{name} and {called}: no difference of more than {LEAST} is shown."]
    return [f"{name} is {word} than {called}: {text}." for word, text in lines.items() if text]


def _doubtful(queue: str, compared: Sequence[PairedDifference]) -> list[str]:
    """Measures with a worse mean, which keep a queue from being recommended."""
    told = [
        each.told(queue)
        for each in _gains(queue, compared)
        if each.ahead == BASELINE and each.better is None
    ]
    return [f"{queue} is worse in the mean, not shown: {'; '.join(told)}."] if told else []
