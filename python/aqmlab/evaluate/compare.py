"""Rows: a measure of the subject beside those of Reno and CUBIC, and where it compares worst.

Replications are pairs, so a difference is that of the pairs with its 95 % interval. Nothing here
is a threshold of the RFC: a row says better, worse, or indistinguishable, with the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import infer
from aqmlab.evaluate.criterion import Reading
from aqmlab.evaluate.scene import STANDARD

BETTER, ALIKE, WORSE, OTHER = "better", "indistinguishable", "worse", "different"
UNKNOWN = "not compared"
"""With too few replications for an interval."""


@dataclass(frozen=True)
class Row:
    """One measure of one case."""

    case: str
    measure: str
    unit: str
    less: bool | None
    grain: float
    value: float
    """Of the subject: the mean over the replications."""
    interval: infer.Interval | None
    others: Mapping[str, float]
    """Of Reno and CUBIC."""
    differences: Mapping[str, infer.Interval | None]
    """The 95 % intervals of the paired differences, subject less other."""

    def word(self, other: str) -> str:
        """How the subject compares with one of them."""
        interval = self.differences[other]
        if interval is None:
            return UNKNOWN
        if interval.low <= 0 <= interval.high:
            return ALIKE
        if self.less is None:
            return OTHER
        return BETTER if (interval.high < 0) == self.less else WORSE

    @property
    def words(self) -> str:
        """`worse than both`, `worse than reno, indistinguishable from cubic`."""
        words = {other: self.word(other) for other in self.others}
        if len(set(words.values())) == 1 and len(words) > 1:
            word = next(iter(words.values()))
            return f"{word} {_than(word)} both"
        return ", ".join(f"{word} {_than(word)} {other}" for other, word in words.items())

    @property
    def short(self) -> str:
        """The word if it is the same for both, else `mixed`."""
        words = {self.word(other) for other in self.others}
        return words.pop() if len(words) == 1 else "mixed"

    @property
    def excess(self) -> float:
        """How far it is behind the worse of the two: 0 if it is not, 1 if by all there is. The
        difference is a share of the larger number, or of twenty grains if that is more: next to
        nothing in place of nothing is not all there is."""
        if self.less is None:
            return 0.0
        behind = []
        for other, value in self.others.items():
            if self.word(other) != WORSE:
                return 0.0
            behind.append(
                abs(self.value - value) / max(abs(self.value), abs(value), 20 * self.grain)
            )
        return min(behind, default=0.0)

    def to_json(self) -> dict[str, Any]:
        """All of it, numbers unrounded."""
        return {
            "case": self.case,
            "measure": self.measure,
            "unit": self.unit,
            "better": None if self.less is None else "less" if self.less else "more",
            "value": self.value,
            "low": self.interval.low if self.interval else None,
            "high": self.interval.high if self.interval else None,
            "others": dict(self.others),
            "differences": {
                other: [each.low, each.high] if each else None
                for other, each in self.differences.items()
            },
            "compared": self.words,
        }


def _than(word: str) -> str:
    return {BETTER: "than", WORSE: "than", UNKNOWN: "with"}.get(word, "from")


def rows_of(read: Mapping[str, Sequence[Reading]], subject: str) -> Iterator[Row]:
    """The readings of all controls, row by row; Reno and CUBIC are not compared with themselves."""
    standard = [each for each in STANDARD if each in read and each != subject]
    for number, own in enumerate(read[subject]):
        beside = {other: read[other][number] for other in standard}
        for other in beside.values():
            assert (other.case, other.measure) == (own.case, own.measure)
        yield Row(
            own.case,
            own.measure,
            own.unit,
            own.less,
            own.grain,
            float(own.values.mean()),
            infer.interval(own.values),
            {name: float(other.values.mean()) for name, other in beside.items()},
            {name: infer.interval(own.values - other.values) for name, other in beside.items()},
        )


def worst(rows: Sequence[Row]) -> Row:
    """The row in which the subject is furthest behind both Reno and CUBIC; the first one if it is
    behind in none."""
    return max(rows, key=lambda row: row.excess)
