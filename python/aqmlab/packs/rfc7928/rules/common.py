"""Comparisons of several judges, and numbers in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from aqmlab.campaign.outcomes import BETTER, EVEN, TRADE, WORSE, Beside, Outcome, RuleNumber, judged
from aqmlab.packs.rfc7928.rules.thresholds import CHANGE, GAINED, KEPT, LONGER, LOST, RATIO, SHORTER

Rule = Callable[[Beside], Outcome]
Pair = Callable[[Beside], tuple[float, float]]
"""Gives a number of the discipline and of the other."""


def trade(ratio: float, change: float) -> str:
    """The rule of most sections, of a ratio of delays and a relative change of goodput."""
    if change < LOST:
        # A loss is a trade where delay falls by at least as large a factor.
        return TRADE if ratio <= SHORTER and ratio <= 1 + change else WORSE
    if ratio <= SHORTER:
        return BETTER if change >= KEPT else TRADE
    if ratio >= LONGER or change < KEPT:
        return WORSE
    return EVEN if change <= GAINED else BETTER


class TwoNumbers(NamedTuple):
    """Two numbers and the words for them."""

    ratio: RuleNumber
    change: RuleNumber
    words: str

    def outcome(self, more: str = "") -> Outcome:
        """The outcome by the rule of most sections; `more` are words behind these."""
        return judged(trade, f"{self.words}{more}", self.ratio, self.change)


def ratio(view: Beside, pair: Pair, *edges: float) -> RuleNumber:
    """The discipline's number over the other's."""
    return view.measured(lambda each: ratio_of(*pair(each)), *(edges or RATIO))


def change(view: Beside, pair: Pair, *edges: float) -> RuleNumber:
    """The relative change from the other's number to the discipline's."""
    return view.measured(lambda each: ratio_of(*pair(each)) - 1, *(edges or CHANGE))


def compared(view: Beside, delay: Pair, goodput: Pair, what: str) -> TwoNumbers:
    """The ratio of delays and the change of goodput."""
    own, other = delay(view)
    changed = change(view, goodput)
    words = f"{what} {ms(own)} against {ms(other)}, goodput {percent(changed.value)}"
    return TwoNumbers(ratio(view, delay), changed, words)


def queue_and_goodput(view: Beside, cases: Sequence[str] | None = None) -> TwoNumbers:
    """Mean time in the queue and goodput of all flows, over some (default: all) of the cases."""
    return compared(
        view,
        lambda each: each.typical("sojourn_mean", "down", cases=cases),
        lambda each: each.typical("goodput", "all", cases=cases),
        "queue",
    )


def more_than_theirs(
    view: Beside, measure: str, subject: str, margin: float, cases: Sequence[str] | None = None
) -> tuple[RuleNumber, RuleNumber]:
    """By how much a share is above `LONGER` times the other's, and above the other's."""

    def above(factor: float) -> Callable[[Beside], float]:
        def of(each: Beside) -> float:
            own, other = each.average(measure, subject, cases)
            return own - factor * other

        return of

    return view.measured(above(LONGER), 0.0), view.measured(above(1.0), margin)


def ratio_of(own: float, other: float) -> float:
    """One over the other; NaN over nothing."""
    return own / other if other > 0 else float("nan")


def ms(value: float) -> str:
    """A time in words."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{1e3 * value:.0f} ms" if value >= 0.02 else f"{1e3 * value:.1f} ms"


def percent(change: float) -> str:
    """A relative change: `-3.1 %`."""
    return f"{100 * change:+.1f} %".replace("-", "−")


def rates(both: Iterable[float]) -> str:
    """Two rates in words."""
    return " against ".join(f"{each / 1e6:.2f} Mbit/s" for each in both)
