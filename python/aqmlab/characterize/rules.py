"""The rules of the verdict. docs/characterize.md lists them, and which were fixed before anything
was measured.

A rule compares the discipline with one other in one section and gives an outcome with the
numbers that led to it. Thresholds are the constants here, the same for all disciplines. An
outcome is given only if the whole interval of each number leads to it (see `outcomes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from aqmlab._core import reference
from aqmlab.characterize.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    TRADE,
    VIOLATION,
    WORSE,
    Finding,
    Measured,
    judged,
)
from aqmlab.characterize.sections.methodology import BOTH_WAYS, TARGETS
from aqmlab.characterize.sections.mixes import MIX, UP
from aqmlab.characterize.view import View, geometric
from aqmlab.metrics.rfc7928 import unfairness

SHORTER, LONGER = 0.8, 1.25
"""Ratios of delays (times, losses) from which one is shorter or longer than another."""
KEPT, LOST, GAINED = -0.02, -0.10, 0.02
"""Relative changes of goodput: down to the first it is kept, below the second it is lost."""
BIAS = 0.8
"""Packet sizes: small packets may not be lost at less than this share of the large ones' rate."""
REST = 0.5
"""Unresponsive senders: TCP should get at least this share of what they leave."""
YIELDS = 0.25
"""LEDBAT gives way if it has at most this share of the goodput."""
MARKS_HELP = 0.5
"""ECN spares losses if drops fall to this share."""
SENSITIVE, ROBUST = 0.15, 0.05
"""Parameters: relative ranges of goodput over half to twice the value."""
MIXED = 0.02
"""Scheduling: a smaller share of the drops on arrival (or from the queue) is not told."""
CONTROL_LOSS = 0.001
"""Bidirectional traffic: more acknowledgements lost than this, and than with the other."""
STREAM_LOSS = 0.005
"""Bursts: the same for packets of the constant stream."""
OPINION = 0.3
"""Calls: the difference of MOS that counts; the best two categories of ITU-T G.109 are 0.31 apart
(4.34 and 4.03)."""
RATIO, CHANGE = (SHORTER, LONGER), (LOST, KEPT, GAINED)

Rule = Callable[[View], Finding]
Pair = Callable[[View], tuple[float, float]]
"""Gives a number of the discipline and of the other."""


def trade(ratio: float, change: float) -> str:
    """The rule of most sections, of a ratio of delays and a relative change of goodput."""
    if change < LOST:
        # What is lost is a trade where delay falls by at least as large a factor.
        return TRADE if ratio <= SHORTER and ratio <= 1 + change else WORSE
    if ratio <= SHORTER:
        return BETTER if change >= KEPT else TRADE
    if ratio >= LONGER or change < KEPT:
        return WORSE
    return EVEN if change <= GAINED else BETTER


class Compared(NamedTuple):
    """Two numbers and the words for them."""

    ratio: Measured
    change: Measured
    words: str


def compared(view: View, delay: Pair, goodput: Pair, what: str) -> Compared:
    """The ratio of delays and the change of goodput."""
    own, other = delay(view)
    ratio = view.measured(lambda each: _ratio(*delay(each)), *RATIO)
    change = view.measured(lambda each: _ratio(*goodput(each)) - 1, *CHANGE)
    words = f"{what} {ms(own)} against {ms(other)}, goodput {percent(change.value)}"
    return Compared(ratio, change, words)


def queue_and_goodput(view: View) -> Finding:
    """Mean time in the queue and goodput of all flows, over the section's cases."""
    found = _queue_and_goodput(view)
    return judged(trade, found.words, found.ratio, found.change)


def _queue_and_goodput(view: View, cases: Sequence[str] | None = None) -> Compared:
    return compared(
        view,
        lambda each: each.both("queue_delay", "down", cases=cases),
        lambda each: each.both("goodput", "all", cases=cases),
        "queue",
    )


def same_targets(view: View) -> Finding:
    """Nothing is judged: where the curves of delay and goodput lie at the same delay."""
    own, other = (curve(view, name) for name in (view.own, view.other))
    if not own:
        return Finding(OPEN, "it has no parameter that moves its queue")
    words = f"told to keep {ms(TARGETS[0])} to {ms(TARGETS[-1])}: queue {_span(own)}"
    if not other:
        return Finding(OPEN, words)
    words += f", with {view.other} {_span(other)}"
    low = max(min(each[0] for each in points) for points in (own, other))
    high = min(max(each[0] for each in points) for points in (own, other))
    if low >= high:
        return Finding(OPEN, f"{words}; no delay is on both curves")
    middle = float(np.sqrt(low * high))
    goods = [rate(at_delay(points, middle)) for points in (own, other)]
    return Finding(OPEN, f"{words}; at {ms(middle)} goodput {goods[0]} against {goods[1]}")


def curve(view: View, name: str) -> list[tuple[float, float]]:
    """Measured delay and goodput of a discipline by its main parameter."""
    found = []
    for case in view.measures.names("4.3.1", name):
        point = (
            view.mean(case, name, "down", "queue_delay", "4.3.1"),
            view.mean(case, name, "all", "goodput", "4.3.1"),
        )
        if all(map(isfinite, point)) and point[0] > 0:
            found.append(point)
    return found


def at_delay(points: Sequence[tuple[float, float]], delay: float) -> float:
    """The goodput of a curve at a delay, between its points along the logarithm of the delay."""
    ordered = sorted(points)
    x = np.log([each[0] for each in ordered])
    return float(np.interp(np.log(delay), x, [each[1] for each in ordered]))


def _span(points: Sequence[tuple[float, float]]) -> str:
    delays = [each[0] for each in points]
    return f"{ms(min(delays))} to {ms(max(delays))}"


def packet_sizes(view: View) -> Finding:
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
    small, large = (view.pair("", name, "goodput") for name in ("small", "large"))
    words = (
        f"loss of small packets over that of large ones: {', '.join(told)}; their flows get "
        f"{_ratio(small[0], large[0]):.2f} of the others' goodput, with {view.other} "
        f"{_ratio(small[1], large[1]):.2f}"
    )
    if not told:
        return Finding(OPEN, "nothing was lost")
    if view.has_flow_queues:
        # Equal shares of the bytes need fewer losses of small packets: RFC 7928, section 4.6.
        return Finding(OPEN, f"a queue for each flow shares by bytes: {words}")
    kept = [each for each in asked.values() if isfinite(each.value)]
    return judged(_favours, words, *kept)


def _favours(*ratios: float) -> str:
    return VIOLATION if all(each < BIAS for each in ratios) else EVEN


def _small_to_large(case: str) -> Callable[[View], float]:
    return lambda each: _ratio(
        *(each.mean(case, each.own, name, "loss_share") for name in ("small", "large"))
    )


def _sender(case: str) -> str:
    return {"": "bulk", "jitter": "with jitter", BOTH_WAYS: BOTH_WAYS}.get(case, case)


def ecn(view: View) -> Finding:
    """The same with marks as without (6.2), by drops and by the time in the queue."""
    names = view.measures.names("4.5", view.own)
    marks = _over(view, names, "4.5", "down", "mark_share")
    if not marks > 0:
        return Finding(OPEN, "it does not mark")
    if not view.measures.names("6.2", view.own):
        return Finding(OPEN, f"{marks:.2%} of the packets were marked; 6.2 was not run")
    values = {
        measure: [_over(view, names, number, subject, measure) for number in ("4.5", "6.2")]
        for subject, measure in (("down", "drop_share"), ("down", "queue_delay"))
    }

    def ratio(subject: str, measure: str) -> Callable[[View], float]:
        return lambda each: _ratio(
            *(_over(each, names, number, subject, measure) for number in ("4.5", "6.2"))
        )

    goodput = ratio("all", "goodput")
    delays = view.measured(ratio("down", "queue_delay"), LONGER)
    change = view.measured(lambda each: goodput(each) - 1, KEPT)
    drops = view.measured(ratio("down", "drop_share"), MARKS_HELP)
    words = (
        f"{marks:.2%} marked; drops {values['drop_share'][1]:.2%} without ECN, "
        f"{values['drop_share'][0]:.2%} with it; queue {ms(values['queue_delay'][1])} and "
        f"{ms(values['queue_delay'][0])}, goodput {percent(change.value)}"
    )

    def rule(longer: float, lost: float, spared: float) -> str:
        if longer >= LONGER or lost < KEPT:
            return WORSE
        return BETTER if spared <= MARKS_HELP else EVEN

    return judged(rule, words, delays, change, drops)


def _over(view: View, names: Sequence[str], number: str, subject: str, measure: str) -> float:
    """The mean over the cases of a section, of the discipline."""
    each = [view.mean(name, view.own, subject, measure, number) for name in names]
    return float(np.mean(each)) if each else float("nan")


def scheduling(view: View) -> Finding:
    """What section 4.6 wants to be discussed, as far as it shows: nothing is judged."""
    queued = view.mean("", view.own, "down", "drops_from_queue")
    if not isfinite(queued):
        where = "it dropped nothing"
    elif MIXED < queued < 1 - MIXED:
        where = f"{queued:.0%} of its drops are from the queue, the others on arrival"
    else:
        where = f"drops {'from the queue' if queued > 0.5 else 'on arrival'}"
    thin, bulk = (view.mean("", view.own, name, "waiting") for name in ("thin", "bulk"))
    waits = f"a thin flow waits {ms(thin)}, bulk flows {ms(bulk)}"
    if view.has_flow_queues:
        return Finding(OPEN, f"a queue for each flow; {where}; {waits}")
    with_scheduler = [
        entry["name"]
        for entry in reference()
        if entry["section"] == "queue"
        and entry["name"].endswith(f"_{view.own}")
        and any(param["name"] == "hashing" for param in entry["params"])
    ]
    more = f"; with a queue for each flow: {', '.join(with_scheduler)}" if with_scheduler else ""
    return Finding(OPEN, f"one queue for all; {where}; {waits}{more}")


def short_flows(view: View) -> Finding:
    """Completion times of the short flows, and the long flow's goodput."""
    found = compared(
        view,
        lambda each: each.both("completion", "short"),
        lambda each: each.both("goodput", "bulk"),
        "short flows done in",
    )
    return judged(trade, found.words, found.ratio, found.change)


def unresponsive(view: View) -> Finding:
    """Time in the queue, and what TCP gets of what the datagrams leave."""
    mixed = [case for case in view.cases() if "TCP" in case]
    if not mixed:
        return Finding(OPEN, "nothing was measured")
    left = 0.25 * view.environment.rate
    delay = view.both("queue_delay")
    own, other = (each / left for each in view.pair(mixed[0], "bulk", "goodput"))
    words = (
        f"queue {ms(delay[0])} against {ms(delay[1])}; TCP gets {own:.0%} of what is left, "
        f"with {view.other} {other:.0%}"
    )

    def rule(ratio: float, rest: float, change: float) -> str:
        if rest < REST and change < SHORTER:
            return TRADE if ratio <= SHORTER else WORSE
        if ratio <= SHORTER or change >= 1 / SHORTER:
            return BETTER
        return WORSE if ratio >= LONGER else EVEN

    return judged(
        rule,
        words,
        view.measured(lambda each: _ratio(*each.both("queue_delay")), *RATIO),
        view.measured(lambda each: each.pair(mixed[0], "bulk", "goodput")[0] / left, REST),
        view.measured(lambda each: _ratio(*each.pair(mixed[0], "bulk", "goodput")), *RATIO),
    )


def background(view: View) -> Finding:
    """LEDBAT's share of the goodput beside NewReno."""

    def share(place: int) -> Callable[[View], float]:
        def of(each: View) -> float:
            low = each.pair("", "ledbat", "goodput")[place]
            return _ratio(low, low + each.pair("", "bulk", "goodput")[place])

        return of

    def rule(own: float, other: float) -> str:
        if own <= YIELDS:
            return BETTER if other > YIELDS else EVEN
        return WORSE if other <= YIELDS else EVEN

    own, other = (view.measured(share(place), YIELDS) for place in (0, 1))
    words = f"LEDBAT has {own.value:.0%} of the goodput, with {view.other} {other.value:.0%}"
    return judged(rule, words, own, other)


def rtt_fairness(view: View) -> Finding:
    """How far goodput_Cat_II / goodput_Cat_I is from 1, over all round-trip times."""

    def apart(each: View) -> list[float]:
        one, two = (
            [each.pair(case, name, "goodput") for case in each.cases()] for name in ("cat1", "cat2")
        )
        return [
            unfairness([_ratio(b[place], a[place]) for a, b in zip(one, two, strict=True)])
            for place in (0, 1)
        ]

    own, other = apart(view)
    words = f"shares a factor {own:.2f} apart, with {view.other} {other:.2f}"
    # A factor of 1 is fair: the excess over it counts.
    ratio = view.measured(lambda each: _ratio(*(factor - 1 for factor in apart(each))), *RATIO)
    return judged(
        lambda ratio: BETTER if ratio <= SHORTER else WORSE if ratio >= LONGER else EVEN,
        words,
        ratio,
    )


def levels(view: View) -> Finding:
    """As for most, with how drops compare with the level that was aimed at."""
    found = _queue_and_goodput(view)
    drops, other = view.pair("", "down", "drop_share")
    together, theirs = view.pair("", "down", "loss_synchronisation")
    words = f"{found.words}; {drops:.2%} dropped against {other:.2%}"
    if isfinite(together) and isfinite(theirs):
        words += f", {together:.0%} of the flows lose at once against {theirs:.0%}"
    return judged(trade, words, found.ratio, found.change)


def phases(view: View) -> Finding:
    """Time in the queue over the phases, each with the same weight, and the goodput; realistic
    capacities are told besides."""
    cases = [
        name for name in view.cases() if view.measures.case(view.section, name, view.own).phases
    ]

    def delays(each: View) -> list[tuple[float, float]]:
        return [
            each.pair(name, f"down/{phase.name}", "queue_delay")
            for name in cases
            for phase in each.measures.case(each.section, name, each.own).phases
        ]

    found = compared(
        view,
        lambda each: geometric(delays(each)),
        lambda each: each.both("goodput", "all", cases=cases),
        "queue over the phases",
    )
    worst = [np.nanmax([pair[place] for pair in delays(view)] or [np.nan]) for place in (0, 1)]
    words = f"{found.words}; worst phase {ms(worst[0])} against {ms(worst[1])}"
    for name in view.cases():
        if name not in cases:
            own, other = view.pair(name, "down", "queue_delay")
            change = _ratio(*view.pair(name, "all", "goodput")) - 1
            words += f"; {name}: queue {ms(own)} against {ms(other)}, goodput {percent(change)}"
    return judged(trade, words, found.ratio, found.change)


def sensitivity(view: View) -> Finding:
    """How much goodput and delay move from half the parameter's value to twice of it; how steady
    the queue is under other conditions is told besides."""
    names = {}
    for name in view.measures.names(view.section, view.own):
        factor = view.measures.case(view.section, name, view.own).value
        if factor is not None and 0.5 <= factor <= 2:
            names[factor] = name
    if len(names) < 2:
        return Finding(OPEN, "it has no parameter that moves its queue")
    low, high = names[min(names)], names[max(names)]
    goods = {name: view.mean(name, view.own, "all", "goodput") for name in names.values()}
    least, most = min(goods, key=lambda each: goods[each]), max(goods, key=lambda each: goods[each])
    spread = view.measured(
        lambda each: (
            1 - _ratio(*(each.mean(name, each.own, "all", "goodput") for name in (least, most)))
        ),
        ROBUST,
        SENSITIVE,
    )
    queues = (ms(view.mean(name, view.own, "down", "queue_delay")) for name in (low, high))
    words = (
        f"from {low} to {high.split()[-1]}: queue {' to '.join(queues)}, goodput "
        f"within {spread.value:.1%}{_steadiness(view)}"
    )
    return judged(
        lambda within: BETTER if within <= ROBUST else WORSE if within >= SENSITIVE else EVEN,
        words,
        spread,
    )


def _steadiness(view: View) -> str:
    swings = {
        name: view.mean(name, view.own, "down", "swing")
        for name in view.measures.names(view.section, view.own)
        if view.measures.case(view.section, name, view.own).value is None
    }
    swings = {name: swing for name, swing in swings.items() if isfinite(swing)}
    if not swings:
        return ""
    most = max(swings, key=lambda each: swings[each])
    return (
        f"; under other conditions the delay varies by {min(swings.values()):.0%} to "
        f"{swings[most]:.0%} of its mean (most with {most})"
    )


def bursts(view: View) -> Finding:
    """Page load time, and what the constant stream loses."""
    load = view.both("page_load", "web")
    own, other = view.average("loss_share", "cbr")
    words = (
        f"pages in {load[0]:.2f} s against {load[1]:.2f} s; the constant stream loses {own:.2%} "
        f"against {other:.2%}"
    )

    def rule(ratio: float, larger: float, more: float) -> str:
        worse_loss = larger > 0 and more > STREAM_LOSS
        if ratio <= SHORTER:
            return TRADE if worse_loss else BETTER
        return WORSE if ratio >= LONGER or worse_loss else EVEN

    ratio = view.measured(lambda each: _ratio(*each.both("page_load", "web")), *RATIO)
    return judged(rule, words, ratio, *_more(view, "loss_share", "cbr", STREAM_LOSS))


def _more(
    view: View, measure: str, subject: str, margin: float, cases: Sequence[str] | None = None
) -> tuple[Measured, Measured]:
    """By how much a share is above `LONGER` times the other's, and above the other's."""

    def above(factor: float) -> Callable[[View], float]:
        def of(each: View) -> float:
            own, other = each.average(measure, subject, cases)
            return own - factor * other

        return of

    return view.measured(above(LONGER), 0.0), view.measured(above(1.0), margin)


class Aspect(NamedTuple):
    """One of the questions about a mix of applications, and how it is answered."""

    words: str
    number: Measured
    sign: Callable[[float], int]
    """1 for better, -1 for worse, 0 for no difference that counts."""


def mix(view: View) -> Finding:
    """Four questions: load time of pages, the call's MOS, bit rate of the video, and the goodput
    of everything. What browsers take from bulk flows is no loss."""
    aspects = _aspects(view)
    if not aspects:
        return Finding(OPEN, "nothing was measured")
    words = "; ".join(each.words for each in aspects)
    return judged(_answers(aspects), words, *(each.number for each in aspects))


def _answers(aspects: Sequence[Aspect]) -> Callable[..., str]:
    def rule(*values: float) -> str:
        signs = [each.sign(value) for each, value in zip(aspects, values, strict=True)]
        if -1 in signs:
            return TRADE if 1 in signs else WORSE
        return BETTER if 1 in signs else EVEN

    return rule


def _aspects(view: View, cases: Sequence[str] | None = None) -> list[Aspect]:
    """Of both directions where there are two."""
    both = {
        (subject, measure): view.both(measure, subject, f"{subject}{UP}", cases=cases)
        for subject, measure in (("web", "page_load"), ("video", "bitrate"), ("bulk", "goodput"))
    }

    def ratio(subject: str, measure: str) -> Measured:
        names = (subject, f"{subject}{UP}")
        return view.measured(lambda each: _ratio(*each.both(measure, *names, cases=cases)), *RATIO)

    pages, video, bulk = both.values()
    call = view.average("mos", "voip", cases)
    every = view.both("goodput", "all", cases=cases)
    total = view.measured(
        lambda each: _ratio(*each.both("goodput", "all", cases=cases)) - 1, KEPT, GAINED
    )
    opinion = view.measured(
        lambda each: np.subtract(*each.average("mos", "voip", cases)).item(), -OPINION, OPINION
    )
    found = [
        Aspect(
            f"pages in {pages[0]:.2f} s against {pages[1]:.2f} s",
            ratio("web", "page_load"),
            lambda value: (value <= SHORTER) - (value >= LONGER),
        ),
        Aspect(
            f"MOS {call[0]:.2f} against {call[1]:.2f}",
            opinion,
            lambda value: (value >= OPINION) - (value <= -OPINION),
        ),
        Aspect(
            f"video at {rate(video[0])} against {rate(video[1])}",
            ratio("video", "bitrate"),
            lambda value: (value >= LONGER) - (value <= SHORTER),
        ),
        Aspect(
            f"all at {rate(every[0])} against {rate(every[1])}, of that bulk {rate(bulk[0])} "
            f"against {rate(bulk[1])}",
            total,
            lambda value: (value > GAINED) - (value < KEPT),
        ),
    ]
    return [
        each._replace(words=each.words + (" (worse)" if each.sign(each.number.value) < 0 else ""))
        for each in found
        if isfinite(each.number.value)
    ]


def bidirectional(view: View) -> Finding:
    """As for most, and whether more acknowledgements are lost than with the other, and whether
    the mix is worse."""
    mixes = [case for case in view.cases() if case.startswith(MIX)]
    mild = [case for case in view.cases() if case not in mixes]
    found, aspects = _queue_and_goodput(view, mild), _aspects(view, mixes)
    own, other = view.average("ack_loss", "all", mild)
    words = (
        f"{found.words}; {own:.2%} of the acknowledgements lost against {other:.2%}; "
        f"mix: {'; '.join(each.words for each in aspects)}"
    )
    answers = _answers(aspects)

    def rule(ratio: float, change: float, larger: float, more: float, *values: float) -> str:
        outcome = trade(ratio, change)
        is_worse = (larger > 0 and more > CONTROL_LOSS) or answers(*values) == WORSE
        if is_worse and outcome in (BETTER, EVEN):
            return TRADE if outcome == BETTER else WORSE
        return outcome

    lost = _more(view, "ack_loss", "all", CONTROL_LOSS, mild)
    numbers = (each.number for each in aspects)
    return judged(rule, words, found.ratio, found.change, *lost, *numbers)


def in_series(view: View) -> Finding:
    """The delay of those who pass both queues, and all goodput, with the same queue twice."""
    found = compared(
        view,
        lambda each: each.pair("same", "a", "waiting"),
        lambda each: each.pair("same", "all", "goodput"),
        "both queues together",
    )
    every, a = view.pair("same", "all", "goodput"), view.pair("same", "a", "goodput")
    shares = [_ratio(a[i], every[i]) for i in (0, 1)]
    words = (
        f"{found.words}; senders A have {shares[0]:.0%} of it, with {view.other} {shares[1]:.0%}"
    )
    return judged(trade, words, found.ratio, found.change)


RULES: dict[str, Rule] = {
    "4.3.1": same_targets,
    "4.4": packet_sizes,
    "4.5": ecn,
    "4.6": scheduling,
    "5.1.1": queue_and_goodput,
    "5.1.2": short_flows,
    "5.2": queue_and_goodput,
    "5.3": unresponsive,
    "5.4": background,
    "6.2": rtt_fairness,
    "7.1": bursts,
    "7.2": bursts,
    "8.2.2": levels,
    "8.2.3": levels,
    "8.2.4": levels,
    "8.2.5": phases,
    "8.2.6": phases,
    "8.3": sensitivity,
    "9.1": mix,
    "9.2": bidirectional,
    "10.2": in_series,
}
ALONE = ("4.4", "4.5", "4.6", "8.3")
"""Sections whose rule looks at the discipline alone."""


def _ratio(own: float, other: float) -> float:
    return own / other if other > 0 else float("nan")


def ms(value: float) -> str:
    """A time in words."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{1e3 * value:.0f} ms" if value >= 0.02 else f"{1e3 * value:.1f} ms"


def percent(change: float) -> str:
    """A relative change: `-3.1 %`."""
    return f"{100 * change:+.1f} %".replace("-", "−")


def rate(value: float) -> str:
    """A rate in Mbit/s."""
    return f"{value / 1e6:.2f} Mbit/s"
