"""Rules for kinds of senders, round-trip times, levels of load and paths."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from operator import methodcaller

import numpy as np

from aqmlab.campaign import Filled
from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    TRADE,
    WORSE,
    Beside,
    Outcome,
    geometric,
    judged,
)
from aqmlab.metrics.samples import unfairness
from aqmlab.packs.rfc7928.metrics import phases as phases_of
from aqmlab.packs.rfc7928.rules.common import (
    Pair,
    compared,
    more_than_theirs,
    ms,
    percent,
    queue_and_goodput,
    ratio,
    ratio_of,
)
from aqmlab.packs.rfc7928.rules.thresholds import LONGER, REST, SHORTER, STREAM_LOSS, YIELDS
from aqmlab.scenario.quantity import canonical


def of_all_flows(view: Beside) -> Outcome:
    """Mean time in the queue and goodput of all flows, over the section's cases."""
    return queue_and_goodput(view).outcome()


def short_flows(view: Beside) -> Outcome:
    """Completion times of the short flows, and the long flow's goodput."""
    return compared(
        view,
        methodcaller("typical", "completion_mean", "short"),
        methodcaller("typical", "goodput", "bulk"),
        "short flows done in",
    ).outcome()


def unresponsive(view: Beside) -> Outcome:
    """Time in the queue, and TCP's share of the capacity that the datagrams leave."""
    mixed = [case for case in view.cases() if "TCP" in case]
    if not mixed:
        return Outcome(OPEN, "nothing was measured")
    left = 0.25 * canonical(view.own.scenario(mixed[0])["links"]["down"]["rate"])

    delay: Pair = methodcaller("typical", "sojourn_mean", "down")
    bulk: Pair = methodcaller("pair", mixed[0], "goodput", "bulk")

    def rule(ratio: float, rest: float, change: float) -> str:
        if rest < REST and change < SHORTER:
            return TRADE if ratio <= SHORTER else WORSE
        if ratio <= SHORTER or change >= 1 / SHORTER:
            return BETTER
        return WORSE if ratio >= LONGER else EVEN

    own, other = (each / left for each in bulk(view))
    words = (
        f"queue {' against '.join(map(ms, delay(view)))}; TCP gets {own:.0%} of what is left, "
        f"with {view.other.contender} {other:.0%}"
    )
    rest = view.measured(lambda each: bulk(each)[0] / left, REST)
    return judged(rule, words, ratio(view, delay), rest, ratio(view, bulk))


def background(view: Beside) -> Outcome:
    """LEDBAT's share of the goodput beside NewReno."""

    def share(place: int) -> Callable[[Beside], float]:
        def of(each: Beside) -> float:
            low = each.pair("", "goodput", "ledbat")[place]
            return ratio_of(low, low + each.pair("", "goodput", "bulk")[place])

        return of

    def rule(own: float, other: float) -> str:
        if own <= YIELDS:
            return BETTER if other > YIELDS else EVEN
        return WORSE if other <= YIELDS else EVEN

    own, other = (view.measured(share(place), YIELDS) for place in (0, 1))
    words = (
        f"LEDBAT has {own.value:.0%} of the goodput, with {view.other.contender} {other.value:.0%}"
    )
    return judged(rule, words, own, other)


def rtt_fairness(view: Beside) -> Outcome:
    """Distance of goodput_Cat_II / goodput_Cat_I from 1, over all round-trip times."""

    def apart(of: Filled, cases: list[str]) -> float:
        return unfairness(
            [
                ratio_of(*(of.mean(case, "goodput", name) for name in ("cat2", "cat1")))
                for case in cases
            ]
        )

    def both(each: Beside) -> tuple[float, float]:
        return apart(each.own, each.cases()), apart(each.other, each.cases())

    own, other = both(view)
    words = f"shares a factor {own:.2f} apart, with {view.other.contender} {other:.2f}"
    return judged(
        lambda ratio: BETTER if ratio <= SHORTER else WORSE if ratio >= LONGER else EVEN,
        words,
        # A factor of 1 is fair: the excess over it counts.
        ratio(view, lambda each: (both(each)[0] - 1, both(each)[1] - 1)),
    )


def levels(view: Beside) -> Outcome:
    """Time in the queue and goodput; drops and synchronisation are reported."""
    drops, other = view.pair("", "drop_share", "down")
    together, theirs = view.pair("", "loss_synchronisation", "down")
    words = f"; {drops:.2%} dropped against {other:.2%}"
    if isfinite(together) and isfinite(theirs):
        words += f", {together:.0%} of the flows lose at once against {theirs:.0%}"
    return queue_and_goodput(view).outcome(words)


def phases(view: Beside) -> Outcome:
    """Time in the queue over the phases, each with the same weight, and the goodput; realistic
    capacities are told besides."""
    names = {case: [each.name for each in phases_of(view.own.scenario(case))]
             for case in view.cases()}  # fmt: skip
    cases = [case for case, phases in names.items() if phases]

    def delays(each: Beside) -> list[tuple[float, float]]:
        return [each.pair(case, "phase_delay", name) for case in cases for name in names[case]]

    found = compared(
        view,
        lambda each: geometric(delays(each)),
        lambda each: each.typical("goodput", "all", cases=cases),
        "queue over the phases",
    )
    worst = [np.nanmax([pair[place] for pair in delays(view)] or [np.nan]) for place in (0, 1)]
    words = f"; worst phase {ms(worst[0])} against {ms(worst[1])}"
    for name in view.cases():
        if name not in cases:
            own, other = view.pair(name, "sojourn_mean", "down")
            change = ratio_of(*view.pair(name, "goodput", "all")) - 1
            words += f"; {name}: queue {ms(own)} against {ms(other)}, goodput {percent(change)}"
    return found.outcome(words)


def bursts(view: Beside) -> Outcome:
    """Page load time, and what the constant stream loses."""
    load: Pair = methodcaller("typical", "page_load_mean", "web")

    def rule(ratio: float, larger: float, more: float) -> str:
        worse_loss = larger > 0 and more > STREAM_LOSS
        if ratio <= SHORTER:
            return TRADE if worse_loss else BETTER
        return WORSE if ratio >= LONGER or worse_loss else EVEN

    pages, (own, other) = load(view), view.average("loss_share", "cbr")
    words = (
        f"pages in {pages[0]:.2f} s against {pages[1]:.2f} s; the constant stream loses {own:.2%} "
        f"against {other:.2%}"
    )
    more = more_than_theirs(view, "loss_share", "cbr", STREAM_LOSS)
    return judged(rule, words, ratio(view, load), *more)


def in_series(view: Beside) -> Outcome:
    """The delay of those who pass both queues, and all goodput, with the same queue twice."""
    found = compared(
        view,
        methodcaller("pair", "same", "waiting", "a"),
        methodcaller("pair", "same", "goodput", "all"),
        "both queues together",
    )
    every, a = view.pair("same", "goodput", "all"), view.pair("same", "goodput", "a")
    own, other = map(ratio_of, a, every)
    return found.outcome(
        f"; senders A have {own:.0%} of it, with {view.other.contender} {other:.0%}"
    )
