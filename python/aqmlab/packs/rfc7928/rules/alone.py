"""Rules that look at the discipline itself: packet sizes, marks, scheduling, its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from aqmlab._core import reference
from aqmlab.campaign import Filled
from aqmlab.campaign.outcomes import BETTER, EVEN, OPEN, VIOLATION, WORSE, Beside, Outcome, judged
from aqmlab.packs.rfc7928.cases import BOTH_WAYS, TARGETS
from aqmlab.packs.rfc7928.rules.common import Pair, change, ms, percent, rates, ratio, ratio_of
from aqmlab.packs.rfc7928.rules.thresholds import (
    BIAS,
    KEPT,
    LONGER,
    MARKS_HELP,
    MIXED,
    ROBUST,
    SENSITIVE,
)


def same_targets(view: Beside) -> Outcome:
    """Nothing is judged: where the curves of delay and goodput lie at the same delay."""
    own, other = (curve(each) for each in (view.own, view.other))
    if not own:
        return Outcome(OPEN, "it has no parameter that moves its queue")
    words = f"told to keep {ms(TARGETS[0])} to {ms(TARGETS[-1])}: queue {_span(own)}"
    if not other:
        return Outcome(OPEN, words)
    words += f", with {view.other.contender} {_span(other)}"
    low = max(min(each[0] for each in points) for points in (own, other))
    high = min(max(each[0] for each in points) for points in (own, other))
    if low >= high:
        return Outcome(OPEN, f"{words}; no delay is on both curves")
    middle = float(np.sqrt(low * high))
    goods = rates(at_delay(points, middle) for points in (own, other))
    return Outcome(OPEN, f"{words}; at {ms(middle)} goodput {goods}")


def curve(of: Filled) -> list[tuple[float, float]]:
    """Measured delay and goodput of a discipline by its main parameter."""
    points = [
        (of.mean(case, "sojourn_mean", "down"), of.mean(case, "goodput", "all")) for case in of
    ]
    return [each for each in points if isfinite(sum(each)) and each[0] > 0]


def at_delay(points: Sequence[tuple[float, float]], delay: float) -> float:
    """The goodput of a curve at a delay, between its points along the logarithm of the delay."""
    ordered = sorted(points)
    x = np.log([each[0] for each in ordered])
    return float(np.interp(np.log(delay), x, [each[1] for each in ordered]))


def _span(points: Sequence[tuple[float, float]]) -> str:
    delays = [each[0] for each in points]
    return f"{ms(min(delays))} to {ms(max(delays))}"


def packet_sizes(view: Beside) -> Outcome:
    """RFC 7567, section 4.4: no advantage for small packets. Their loss rate is set against that
    of the large ones for each kind of sender and both ways. None decides alone: how packets come
    in trains is the senders' doing, so only what they all have in common is the discipline's."""
    asked = {case: view.measured(_small_to_large(case), BIAS) for case in view.cases()}
    told = [
        f"{_sender(case)} {each.value:.2f}"
        + ("" if each.why else f" ({max(each.low, 0.0):.2f}–{each.high:.2f})")
        for case, each in asked.items()
        if isfinite(each.value)
    ]
    small, large = (view.pair("", "goodput", name) for name in ("small", "large"))
    words = (
        f"loss of small packets over that of large ones: {', '.join(told)}; their flows get "
        f"{ratio_of(small[0], large[0]):.2f} of the others' goodput, with {view.other.contender} "
        f"{ratio_of(small[1], large[1]):.2f}"
    )
    if not told:
        return Outcome(OPEN, "nothing was lost")
    if view.own.slot.has_flow_queues:
        # Equal shares of the bytes need fewer losses of small packets: RFC 7928, section 4.6.
        return Outcome(OPEN, f"a queue for each flow shares by bytes: {words}")
    kept = [each for each in asked.values() if isfinite(each.value)]
    return judged(_favours, words, *kept)


def _favours(*ratios: float) -> str:
    return VIOLATION if all(each < BIAS for each in ratios) else EVEN


def _small_to_large(case: str) -> Callable[[Beside], float]:
    return lambda each: ratio_of(
        *(each.own.mean(case, "loss_share", name) for name in ("small", "large"))
    )


def _sender(case: str) -> str:
    return {"": "bulk", "jitter": "with jitter", BOTH_WAYS: BOTH_WAYS}.get(case, case)


def ecn(view: Beside) -> Outcome:
    """The same with marks as without (6.2), by drops and by the time in the queue."""
    marks = _over(view.own, "mark_share", "down")
    if not marks > 0:
        return Outcome(OPEN, "it does not mark")
    if not list(view.own.of("6.2")):
        return Outcome(OPEN, f"{marks:.2%} of the packets were marked; 6.2 was not run")

    def both(metric: str, subject: str = "down") -> Pair:
        """With ECN, and without."""
        return lambda each: (
            _over(each.own, metric, subject), _over(each.own.of("6.2"), metric, subject)
        )  # fmt: skip

    drops, queue = both("drop_share"), both("sojourn_mean")
    changed = change(view, both("goodput", "all"), KEPT)
    (dropped, without), (marked, unmarked) = drops(view), queue(view)
    words = (
        f"{marks:.2%} marked; drops {without:.2%} without ECN, {dropped:.2%} with it; queue "
        f"{ms(unmarked)} and {ms(marked)}, goodput {percent(changed.value)}"
    )

    def rule(longer: float, lost: float, spared: float) -> str:
        if longer >= LONGER or lost < KEPT:
            return WORSE
        return BETTER if spared <= MARKS_HELP else EVEN

    longer, spared = ratio(view, queue, LONGER), ratio(view, drops, MARKS_HELP)
    return judged(rule, words, longer, changed, spared)


def _over(of: Filled, metric: str, subject: str) -> float:
    """The mean over the cases."""
    return float(np.mean([of.mean(case, metric, subject) for case in of]))


def scheduling(view: Beside) -> Outcome:
    """Discusses the topics of section 4.6 that the runs show: nothing is judged."""
    queued = view.own.mean("", "queued_drop_share", "down")
    if not isfinite(queued):
        where = "it dropped nothing"
    elif MIXED < queued < 1 - MIXED:
        where = f"{queued:.0%} of its drops are from the queue, the others on arrival"
    else:
        where = f"drops {'from the queue' if queued > 0.5 else 'on arrival'}"
    thin, bulk = (view.own.mean("", "waiting", name) for name in ("thin", "bulk"))
    waits = f"a thin flow waits {ms(thin)}, bulk flows {ms(bulk)}"
    if view.own.slot.has_flow_queues:
        return Outcome(OPEN, f"a queue for each flow; {where}; {waits}")
    with_scheduler = [
        entry["name"]
        for entry in reference()
        if entry["section"] == "queue"
        and entry["name"].endswith(f"_{view.own.contender}")
        and any(param["name"] == "hashing" for param in entry["params"])
    ]
    more = f"; with a queue for each flow: {', '.join(with_scheduler)}" if with_scheduler else ""
    return Outcome(OPEN, f"one queue for all; {where}; {waits}{more}")


def sensitivity(view: Beside) -> Outcome:
    """How much goodput and delay move from half the parameter's value to twice of it; how steady
    the queue is under other conditions is told besides."""
    names = {factor: case for case, factor in view.own.places().items() if 0.5 <= factor <= 2}
    if len(names) < 2:
        return Outcome(OPEN, "it has no parameter that moves its queue")
    low, high = names[min(names)], names[max(names)]
    goods = {name: view.own.mean(name, "goodput", "all") for name in names.values()}
    least, most = min(goods, key=lambda each: goods[each]), max(goods, key=lambda each: goods[each])
    spread = view.measured(
        lambda each: (
            1 - ratio_of(*(each.own.mean(name, "goodput", "all") for name in (least, most)))
        ),
        ROBUST,
        SENSITIVE,
    )
    queues = (ms(view.own.mean(name, "sojourn_mean", "down")) for name in (low, high))
    words = (
        f"from {low} to {high.split()[-1]}: queue {' to '.join(queues)}, goodput "
        f"within {spread.value:.1%}{_steadiness(view)}"
    )
    return judged(
        lambda within: BETTER if within <= ROBUST else WORSE if within >= SENSITIVE else EVEN,
        words,
        spread,
    )


def _steadiness(view: Beside) -> str:
    places = view.own.places()
    swings = {name: view.own.mean(name, "swing", "down") for name in view.own if name not in places}
    swings = {name: swing for name, swing in swings.items() if isfinite(swing)}
    if not swings:
        return ""
    most = max(swings, key=lambda each: swings[each])
    return (
        f"; under other conditions the delay varies by {min(swings.values()):.0%} to "
        f"{swings[most]:.0%} of its mean (most with {most})"
    )
