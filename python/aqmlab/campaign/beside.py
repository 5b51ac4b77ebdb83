"""Rows: a reading of one contender beside those of others, and where it compares worst.

Replications are pairs, so a difference is that of the pairs. Its interval is the one that
`aqmlab.stats` gives it among all comparisons of the page (Holm): the chance that a page says
anything that is not so is 5 %. Nothing here is a threshold of the RFC: a row says better, worse,
or not shown to differ, with the numbers: 0 lies in the interval, or all of it within a margin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from aqmlab import stats
from aqmlab.campaign.pack import Question, Reading
from aqmlab.metrics.registry import LESS, NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import finite, short

BETTER, ALIKE, WORSE, OTHER = "better", "not shown to differ", "worse", "different"
UNKNOWN = "not compared"
"""With too few replications, or with one in which only one of the two has a value."""
MARGIN = 0.05
"""A difference whose whole interval is within this share counts as none."""


@dataclass(frozen=True)
class ReadingRow:
    """One measure of one case."""

    own: Reading
    """Reading of the subject."""
    others: Mapping[str, float]
    """Means of the others."""
    differences: Mapping[str, stats.Interval | None]
    """The intervals of the paired differences, subject less other: 95 % for the whole page."""

    @property
    def value(self) -> float:
        """The mean of the subject."""
        return self.own.mean

    def word(self, other: str) -> str:
        """How the subject compares with one of them."""
        interval = self.differences[other]
        if interval is None:
            return UNKNOWN
        margin = MARGIN * self._scale(other)
        is_small = -margin <= interval.low and interval.high <= margin
        if is_small or interval.low <= 0 <= interval.high:
            return ALIKE
        if self.own.direction == NEITHER:
            return OTHER
        return BETTER if (interval.high < 0) == (self.own.direction == LESS) else WORSE

    @property
    def words(self) -> str:
        """`worse than both`, `worse than reno, not shown to differ from cubic`."""
        words = {other: self.word(other) for other in self.others}
        if len(set(words.values())) == 1 and len(words) > 1:
            word = next(iter(words.values()))
            return f"{word} {_than(word)} {'both' if len(words) == 2 else 'all others'}"
        return ", ".join(f"{word} {_than(word)} {other}" for other, word in words.items())

    @property
    def short(self) -> str:
        """The word if it is the same for all others, else `mixed`."""
        words = {self.word(other) for other in self.others}
        return words.pop() if len(words) == 1 else "mixed"

    @property
    def excess(self) -> float:
        """Distance by which the subject is behind the worst of the others: 0 if it is not behind, 1
        if the difference is the whole larger number. It is a share of that number, or of twenty
        grains if these are more: a tiny number instead of 0 does not give 1."""
        if self.own.direction == NEITHER:
            return 0.0
        behind = []
        for other, value in self.others.items():
            if self.word(other) != WORSE:
                return 0.0
            behind.append(abs(self.value - value) / self._scale(other))
        return min(behind, default=0.0)

    def _scale(self, other: str) -> float:
        """The number of which a difference is a share."""
        return max(abs(self.value), abs(self.others[other]), 20 * self.own.grain)

    def to_json(self) -> dict[str, Any]:
        """All of it, numbers unrounded."""
        own = self.own
        return {
            "case": own.case,
            "measure": own.metric,
            "unit": own.unit,
            "direction": own.direction,
            "value": finite(self.value),
            "low": own.estimate.low,
            "high": own.estimate.high,
            "others": {other: finite(value) for other, value in self.others.items()},
            "differences": {
                other: [each.low, each.high] if each else None
                for other, each in self.differences.items()
            },
            "compared": self.words,
        }


def value_of(value: float, row: ReadingRow) -> str:
    """A value of a row with its unit, in three digits."""
    if not isfinite(value):
        return "not measured"
    return f"{short(value)} {row.own.unit}".strip()


def _than(word: str) -> str:
    return {BETTER: "than", WORSE: "than", UNKNOWN: "with"}.get(word, "from")


def rows_of(
    reads: Sequence[Mapping[str, Sequence[Reading]]], subject: str
) -> list[tuple[ReadingRow, ...]]:
    """The readings of all contenders of each question, row by row. All comparisons are those of
    one page."""
    pairs = [
        [
            (own, {name: read[name][row] for name in read if name != subject})
            for row, own in enumerate(read[subject])
        ]
        for read in reads
    ]
    found = iter(
        stats.compare(
            [
                stats.Contest(own.metric, own.unit, {"own": one, "other": two})
                for question in pairs
                for own, others in question
                for one, two in (_paired(own, other) for other in others.values())
            ]
        )
    )
    return [
        tuple(
            ReadingRow(
                own,
                {name: other.mean for name, other in others.items()},
                {name: _difference(own, other, next(found)) for name, other in others.items()},
            )
            for own, others in question
        )
        for question in pairs
    ]


def _difference(
    own: Reading, other: Reading, finding: stats.ContestResult
) -> stats.Interval | None:
    """Where the difference of the means lies; none with few pairs."""
    assert (other.case, other.metric) == (own.case, own.metric)
    one, two = _paired(own, other)
    if one.size < stats.FEWEST:
        return None
    apart = float(np.clip(one.mean(), *own.bounds) - np.clip(two.mean(), *own.bounds))
    # What does not vary from replication to replication is as it is.
    ends = (apart, apart) if finding.why else finding.difference_of("own")
    most = own.bounds[1] - own.bounds[0]
    return stats.Interval(*ends, finding.level).inside((-most, most))


def _paired(own: Reading, other: Reading) -> tuple[Floats, Floats]:
    """The values of the replications in which both have one; none if only one has in some: what
    these have in common would decide."""
    known = np.isfinite(own.values)
    if (known != np.isfinite(other.values)).any():
        known = np.zeros_like(known)
    return own.values[known], other.values[known]


@dataclass(frozen=True)
class QuestionRows:
    """A question with its rows."""

    question: Question
    rows: tuple[ReadingRow, ...]

    @property
    def worst(self) -> ReadingRow:
        """The row in which the subject is furthest behind all others; if it is behind in none, one
        that is not measured, or the first one."""
        return max(self.rows, key=lambda row: (row.excess, not isfinite(row.value)))

    @property
    def behind(self) -> int:
        """Number of rows in which the subject is behind all others."""
        return sum(row.excess > 0 for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The rows, and the one that is furthest behind."""
        return {"worst": self.worst.to_json(), "rows": [row.to_json() for row in self.rows]}
