"""Judges of the sections. docs/characterize.md lists them, and which were fixed before anything was
measured.

A judge compares the discipline with one other in one section, and returns an outcome with the
numbers that led to it. Thresholds are constants, the same for all disciplines. An outcome is given
only if the whole interval of each number leads to it (`aqmlab.campaign.outcomes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from operator import methodcaller

import numpy as np

from aqmlab._core import reference
from aqmlab.campaign import Filled
from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    TRADE,
    VIOLATION,
    WORSE,
    Beside,
    Outcome,
    RuleNumber,
    geometric,
    judged,
)
from aqmlab.metrics.samples import unfairness
from aqmlab.packs.rfc7928.cases import TARGETS
from aqmlab.packs.rfc7928.metrics import phases as phases_of
from aqmlab.scenario.quantity import canonical

# The thresholds, the same for all disciplines.

SHORTER, LONGER = 0.8, 1.25
"""Ratios of delays (times, losses) from which one is shorter or longer than another."""
KEPT, LOST, GAINED = -0.02, -0.10, 0.02
"""Relative changes of goodput: down to the first it is kept, below the second it is lost."""
WON = 1 / (1 + LOST) - 1
"""The change of one whose goodput the other has lost."""
BIAS = 0.8
"""Packet sizes: small packets may not be lost at less than this share of the large ones' rate."""
REST = 0.5
"""Unresponsive senders: TCP should get at least this share of the rest."""
YIELDS = 0.25
"""LEDBAT gives way if it has at most this share of the goodput."""
MARKS_HELP = 0.5
"""ECN spares losses if drops fall to this share."""
SENSITIVE, ROBUST = 0.15, 0.05
"""Parameters: relative ranges of goodput over half to twice the value."""
MIXED = 0.02
"""Scheduling: a smaller share of the drops on arrival (or from the queue) is not told."""
STREAM_LOSS = 0.005
"""Bursts: the same for packets of the constant stream."""
RATIO, CHANGE = (SHORTER, LONGER), (LOST, KEPT, GAINED, WON)


# What several judges share.

Pair = Callable[[Beside], tuple[float, float]]
"""Gives a number of the discipline and of the other."""


def trade(ratio: float, change: float) -> str:
    """The rule of most sections, of a ratio of delays and a relative change of goodput. Seen from
    the other, better is worse and a trade-off is one."""
    if change < LOST:
        # A loss is a trade where delay falls by at least as large a factor.
        return TRADE if ratio <= SHORTER and ratio <= 1 + change else WORSE
    if ratio <= SHORTER:
        return BETTER if change >= KEPT else TRADE
    if ratio >= LONGER and change > GAINED:
        return BETTER if change > WON and ratio < 1 + change else TRADE
    if ratio >= LONGER or change < KEPT:
        return WORSE
    return EVEN if change <= GAINED else BETTER


def _graded(better: float, worse: float) -> Callable[[float], str]:
    return lambda value: BETTER if value <= better else WORSE if value >= worse else EVEN


def ratio(view: Beside, pair: Pair, *edges: float) -> RuleNumber:
    """The discipline's number over the other's."""
    return view.measured(lambda each: ratio_of(*pair(each)), *(edges or RATIO))


def change(view: Beside, pair: Pair, *edges: float) -> RuleNumber:
    """The relative change from the other's number to the discipline's."""
    return view.measured(lambda each: ratio_of(*pair(each)) - 1, *(edges or CHANGE))


Numbers = tuple[str, RuleNumber, RuleNumber]
"""Words, and the two numbers of `trade`."""


def compared(view: Beside, delay: Pair, goodput: Pair, what: str) -> Numbers:
    """The ratio of delays and the change of goodput, with words for both."""
    own, other = delay(view)
    changed = change(view, goodput)
    words = f"{what} {ms(own)} against {ms(other)}, goodput {percent(changed.value)}"
    return words, ratio(view, delay), changed


def queue_and_goodput(view: Beside, cases: Sequence[str] | None = None) -> Numbers:
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


# The discipline itself: packet sizes, marks, scheduling, its parameter.


def same_targets(view: Beside) -> Outcome:
    """Nothing is judged: where the curves of delay and goodput lie at the same delay."""
    own, other = (curve(each) for each in (view.own, view.other))
    if not own:
        return Outcome(OPEN, "it has no parameter that moves its queue")
    words = (
        f"target swept from {ms(TARGETS[0])} to {ms(TARGETS[-1])}: mean queuing delay {_span(own)}"
    )
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

    def small_to_large(case: str) -> Callable[[Beside], float]:
        names = ("small", "large")
        return lambda each: ratio_of(*(each.own.mean(case, "loss_share", of) for of in names))

    senders = {"": "bulk", "jitter": "with jitter"}
    asked = {case: view.measured(small_to_large(case), BIAS) for case in view.cases()}
    told = [
        f"{senders.get(case, case)} {each.value:.2f}"
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
    # Not by the largest: a ratio that cannot be computed, NaN, shows no bias.
    return VIOLATION if all(each < BIAS for each in ratios) else EVEN


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
    """Changes of goodput and delay from half the parameter's value to twice of it. The text adds
    how steady the queue is under other conditions."""
    names = {factor: case for case, factor in view.own.places().items() if 0.5 <= factor <= 2}
    if len(names) < 2:
        return Outcome(OPEN, "it has no parameter that moves its queue")
    low, high = names[min(names)], names[max(names)]
    goods = {name: view.own.mean(name, "goodput", "all") for name in names.values()}
    least, most = min(goods, key=lambda each: goods[each]), max(goods, key=lambda each: goods[each])

    def within(each: Beside) -> float:
        return 1 - ratio_of(*(each.own.mean(name, "goodput", "all") for name in (least, most)))

    spread = view.measured(within, ROBUST, SENSITIVE)
    queues = (ms(view.own.mean(name, "sojourn_mean", "down")) for name in (low, high))
    words = (
        f"from {low} to {high.split()[-1]}: queue {' to '.join(queues)}, goodput "
        f"within {spread.value:.1%}{_steadiness(view)}"
    )
    return judged(_graded(ROBUST, SENSITIVE), words, spread)


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


# Kinds of senders, round-trip times, levels of load and paths.


def of_all_flows(view: Beside) -> Outcome:
    """Mean time in the queue and goodput of all flows, over the section's cases."""
    return judged(trade, *queue_and_goodput(view))


def short_flows(view: Beside) -> Outcome:
    """Completion times of the short flows, and the long flow's goodput."""
    times = methodcaller("typical", "completion_mean", "short")
    goodput = methodcaller("typical", "goodput", "bulk")
    return judged(trade, *compared(view, times, goodput, "short flows done in"))


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
        if ratio >= LONGER:
            return TRADE if change >= LONGER else WORSE
        return BETTER if ratio <= SHORTER or change >= LONGER else EVEN

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
        pairs = ([of.mean(case, "goodput", name) for name in ("cat2", "cat1")] for case in cases)
        return unfairness([ratio_of(*pair) for pair in pairs])

    def both(each: Beside) -> tuple[float, float]:
        return apart(each.own, each.cases()), apart(each.other, each.cases())

    own, other = both(view)
    words = f"shares a factor {own:.2f} apart, with {view.other.contender} {other:.2f}"
    # A factor of 1 is fair: the excess over it counts.
    excess = ratio(view, lambda each: (both(each)[0] - 1, both(each)[1] - 1))
    return judged(_graded(SHORTER, LONGER), words, excess)


def levels(view: Beside) -> Outcome:
    """Time in the queue and goodput; drops and synchronisation are reported."""
    drops, other = view.pair("", "drop_share", "down")
    together, theirs = view.pair("", "loss_synchronisation", "down")
    words, *numbers = queue_and_goodput(view)
    words += f"; {drops:.2%} dropped against {other:.2%}"
    if isfinite(together) and isfinite(theirs):
        words += f", {together:.0%} of the flows lose at once against {theirs:.0%}"
    return judged(trade, words, *numbers)


def phases(view: Beside) -> Outcome:
    """Time in the queue over the phases, each with the same weight, and the goodput; realistic
    capacities are told besides."""
    names = {case: [each.name for each in phases_of(view.own.scenario(case))]
             for case in view.cases()}  # fmt: skip
    cases = [case for case, phases in names.items() if phases]

    def delays(each: Beside) -> list[tuple[float, float]]:
        return [each.pair(case, "phase_delay", name) for case in cases for name in names[case]]

    words, *numbers = compared(
        view,
        lambda each: geometric(delays(each)),
        lambda each: each.typical("goodput", "all", cases=cases),
        "queue over the phases",
    )
    worst = [np.nanmax([pair[place] for pair in delays(view)] or [np.nan]) for place in (0, 1)]
    words += f"; worst phase {ms(worst[0])} against {ms(worst[1])}"
    for name in view.cases():
        if name not in cases:
            own, other = view.pair(name, "sojourn_mean", "down")
            change = ratio_of(*view.pair(name, "goodput", "all")) - 1
            words += f"; {name}: queue {ms(own)} against {ms(other)}, goodput {percent(change)}"
    return judged(trade, words, *numbers)


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
    words, *numbers = compared(
        view,
        methodcaller("pair", "same", "waiting", "a"),
        methodcaller("pair", "same", "goodput", "all"),
        "both queues together",
    )
    every, a = view.pair("same", "goodput", "all"), view.pair("same", "goodput", "a")
    own, other = map(ratio_of, a, every)
    words += f"; senders A have {own:.0%} of it, with {view.other.contender} {other:.0%}"
    return judged(trade, words, *numbers)
