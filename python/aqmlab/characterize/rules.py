"""The rules of the verdict, fixed before anything was measured, but for one exception: that 4.4
does not judge disciplines with a queue for each flow. docs/characterize.md lists them.

A rule compares the discipline with one other in one section and gives an outcome with the
numbers that led to it. Thresholds are the constants here, the same for all disciplines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from aqmlab._core import reference
from aqmlab.characterize.measure import ratio_interval
from aqmlab.characterize.sections.methodology import BOTH_WAYS
from aqmlab.characterize.sections.mixes import MIX, UP
from aqmlab.infer import Interval
from aqmlab.metrics.rfc7928 import unfairness

if TYPE_CHECKING:
    from aqmlab.characterize.environment import Environment
    from aqmlab.characterize.measure import Measures

BETTER, TRADE, EVEN, WORSE, VIOLATION, OPEN = (
    "better",
    "trade-off",
    "even",
    "worse",
    "violation",
    "not judged",
)
OUTCOMES = {
    BETTER: "better than the other by the section's rule",
    TRADE: "shorter queues at the cost of goodput",
    EVEN: "no difference that the rule counts",
    WORSE: "worse than the other by the section's rule",
    VIOLATION: "contradicts an IETF recommendation, whatever the other does",
    OPEN: "nothing to judge",
}

SHORTER, LONGER = 0.8, 1.25
"""Ratios of delays (times, losses) from which one is shorter or longer than another."""
KEPT, LOST = -0.02, -0.10
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


@dataclass(frozen=True)
class Finding:
    """What a rule says of one section, against one other discipline."""

    outcome: str
    text: str
    """The numbers, in words."""


@dataclass(frozen=True)
class View:
    """What a rule looks at: one section, the discipline, and one other."""

    measures: Measures
    environment: Environment
    section: str
    own: str
    other: str
    has_flow_queues: bool = False
    """Whether the discipline has a queue for each flow."""

    def cases(self) -> list[str]:
        """The cases that both have."""
        theirs = self.measures.names(self.section, self.other)
        return [each for each in self.measures.names(self.section, self.own) if each in theirs]

    def pair(self, case: str, subject: str, measure: str) -> tuple[float, float]:
        """Means of the discipline and of the other."""
        get = self.measures.mean
        return (
            get(self.section, case, self.own, subject, measure),
            get(self.section, case, self.other, subject, measure),
        )

    def both(
        self, measure: str, *subjects: str, cases: Sequence[str] | None = None
    ) -> tuple[float, float]:
        """Geometric means over the cases (all if none are given) and subjects (`down` if none
        is); those without either are passed over."""
        chosen = self.cases() if cases is None else cases
        pairs = [
            self.pair(case, subject, measure) for case in chosen for subject in subjects or ["down"]
        ]
        kept = [(a, b) for a, b in pairs if a > 0 and b > 0]
        if not kept:
            return float("nan"), float("nan")
        own, other = np.exp(np.mean(np.log(np.array(kept)), axis=0))
        return float(own), float(other)


Rule = Callable[[View], Finding]


def compared(delay: tuple[float, float], goodput: tuple[float, float], what: str) -> Finding:
    """The rule of most sections: delay and goodput of the discipline and of the other."""
    ratio, change = _ratio(*delay), goodput[0] / goodput[1] - 1
    words = f"{what} {ms(delay[0])} against {ms(delay[1])}, goodput {percent(change)}"
    if not (isfinite(ratio) and isfinite(change)):
        return Finding(OPEN, "nothing was measured")
    if change < LOST:
        # What is lost is a trade where delay falls by at least as large a factor.
        traded = ratio <= SHORTER and ratio <= 1 + change
        return Finding(TRADE if traded else WORSE, words)
    if ratio <= SHORTER:
        return Finding(BETTER if change >= KEPT else TRADE, words)
    if ratio >= LONGER or change < KEPT:
        return Finding(WORSE, words)
    return Finding(EVEN if change <= -KEPT else BETTER, words)


def queue_and_goodput(view: View, cases: Sequence[str] | None = None) -> Finding:
    """Mean time in the queue and goodput of all flows, over the section's cases."""
    delay, goodput = (
        view.both(measure, subject, cases=cases)
        for measure, subject in (("queue_delay", "down"), ("goodput", "all"))
    )
    return compared(delay, goodput, "queue")


def packet_sizes(view: View) -> Finding:
    """RFC 7567, section 4.4: no advantage for small packets, one way and both ways. Their loss
    rate is set against that of the large ones; the other discipline only shows what is common."""
    ratio, interval = _small_to_large(view, "")
    ratio_both, interval_both = _small_to_large(view, BOTH_WAYS)
    small, large = (view.pair("", name, "goodput")[0] for name in ("small", "large"))
    small_other, large_other = (view.pair("", name, "goodput")[1] for name in ("small", "large"))
    words = (
        f"small packets lost {ratio:.2f} times as often as large ones "
        f"({interval.low:.2f}–{interval.high:.2f}); their flows get {small / large:.2f} of the "
        f"others' goodput, with {view.other} {small_other / large_other:.2f}"
    )
    if isfinite(ratio_both):
        words += (
            f"; both ways {ratio_both:.2f} times as often "
            f"({interval_both.low:.2f}–{interval_both.high:.2f})"
        )
    if not isfinite(ratio):
        return Finding(OPEN, "nothing was lost")
    if view.has_flow_queues:
        # Equal shares of the bytes need fewer losses of small packets: RFC 7928, section 4.6.
        return Finding(OPEN, f"a queue for each flow shares by bytes: {words}")
    is_biased = any(
        found < BIAS and within.high < 1
        for found, within in ((ratio, interval), (ratio_both, interval_both))
    )
    return Finding(VIOLATION if is_biased else EVEN, words)


def _small_to_large(view: View, case: str) -> tuple[float, Interval]:
    runs = view.measures.runs
    small, large = (
        runs(view.section, case, view.own, name, "loss_share") for name in ("small", "large")
    )
    return ratio_interval(small, large)


def ecn(view: View) -> Finding:
    """The same with marks as without (6.2), by drops and by the time in the queue."""
    get = view.measures.mean
    names = view.measures.names("4.5", view.own)
    marks = np.mean([get("4.5", name, view.own, "down", "mark_share") for name in names])
    if not marks > 0:
        return Finding(OPEN, "it does not mark")
    plain = "6.2" if view.measures.names("6.2", view.own) else "4.5"
    if plain == "4.5":
        return Finding(OPEN, f"{marks:.2%} of the packets were marked; 6.2 was not run")
    drops, delays, goods = (
        [
            float(np.mean([get(number, name, view.own, subject, measure) for name in names]))
            for number in ("4.5", "6.2")
        ]
        for subject, measure in (
            ("down", "drop_share"),
            ("down", "queue_delay"),
            ("all", "goodput"),
        )
    )
    words = (
        f"{marks:.2%} marked; drops {drops[1]:.2%} without ECN, {drops[0]:.2%} with it; queue "
        f"{ms(delays[1])} and {ms(delays[0])}, goodput {percent(goods[0] / goods[1] - 1)}"
    )
    if delays[0] / delays[1] >= LONGER or goods[0] / goods[1] - 1 < KEPT:
        return Finding(WORSE, words)
    return Finding(BETTER if drops[0] <= MARKS_HELP * drops[1] else EVEN, words)


def scheduling(view: View) -> Finding:
    """What section 4.6 wants to be discussed, as far as it shows: nothing is judged."""
    get = view.measures.mean
    queued = get("4.6", "", view.own, "down", "drops_from_queue")
    if not isfinite(queued):
        where = "it dropped nothing"
    elif MIXED < queued < 1 - MIXED:
        where = f"{queued:.0%} of its drops are from the queue, the others on arrival"
    else:
        where = f"drops {'from the queue' if queued > 0.5 else 'on arrival'}"
    thin, bulk = (get("4.6", "", view.own, name, "waiting") for name in ("thin", "bulk"))
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
    return compared(
        view.both("completion", "short"), view.both("goodput", "bulk"), "short flows done in"
    )


def unresponsive(view: View) -> Finding:
    """Time in the queue, and what TCP gets of what the datagrams leave."""
    delay = view.both("queue_delay")
    mixed = [case for case in view.cases() if "TCP" in case]
    if not mixed:
        return Finding(OPEN, "nothing was measured")
    left = 0.25 * view.environment.rate
    own, other = (each / left for each in view.pair(mixed[0], "bulk", "goodput"))
    words = (
        f"queue {ms(delay[0])} against {ms(delay[1])}; TCP gets {own:.0%} of what is left, "
        f"with {view.other} {other:.0%}"
    )
    ratio = _ratio(*delay)
    if own < REST and own < SHORTER * other:
        return Finding(TRADE if ratio <= SHORTER else WORSE, words)
    if ratio <= SHORTER or own >= other / SHORTER:
        return Finding(BETTER, words)
    return Finding(WORSE if ratio >= LONGER else EVEN, words)


def background(view: View) -> Finding:
    """LEDBAT's share of the goodput beside NewReno."""
    shares = []
    for place in (0, 1):
        low = view.pair("", "ledbat", "goodput")[place]
        shares.append(low / (low + view.pair("", "bulk", "goodput")[place]))
    words = f"LEDBAT has {shares[0]:.0%} of the goodput, with {view.other} {shares[1]:.0%}"
    if not isfinite(shares[0]):
        return Finding(OPEN, "nothing was measured")
    if shares[0] <= YIELDS:
        return Finding(BETTER if shares[1] > YIELDS else EVEN, words)
    return Finding(WORSE if shares[1] <= YIELDS else EVEN, words)


def rtt_fairness(view: View) -> Finding:
    """How far goodput_Cat_II / goodput_Cat_I is from 1, over all round-trip times."""
    own, other = (
        unfairness([_ratio(view.pair(case, "cat2", "goodput")[place],
                           view.pair(case, "cat1", "goodput")[place]) for case in view.cases()])
        for place in (0, 1)
    )  # fmt: skip
    words = f"shares a factor {own:.2f} apart, with {view.other} {other:.2f}"
    # A factor of 1 is fair: the excess over it counts.
    ratio = _ratio(own - 1, other - 1)
    if not isfinite(ratio):
        return Finding(OPEN, "nothing was measured")
    return Finding(BETTER if ratio <= SHORTER else WORSE if ratio >= LONGER else EVEN, words)


def levels(view: View) -> Finding:
    """As for most, with how drops compare with the level that was aimed at."""
    found = queue_and_goodput(view)
    drops, other = view.pair("", "down", "drop_share")
    together, theirs = view.pair("", "down", "loss_synchronisation")
    words = f"{found.text}; {drops:.2%} dropped against {other:.2%}"
    if isfinite(together) and isfinite(theirs):
        words += f", {together:.0%} of the flows lose at once against {theirs:.0%}"
    return Finding(found.outcome, words)


def phases(view: View) -> Finding:
    """Time in the queue over the phases, each with the same weight, and the goodput."""
    delays = []
    for name in view.cases():
        for phase in view.measures.case(view.section, name, view.own).phases:
            delays.append(view.pair(name, f"down/{phase.name}", "queue_delay"))
    kept = np.array([(a, b) for a, b in delays if a > 0 and b > 0])
    if not kept.size:
        return Finding(OPEN, "nothing was measured")
    own, other = (float(each) for each in np.exp(np.log(kept).mean(axis=0)))
    found = compared((own, other), view.both("goodput", "all"), "queue over the phases")
    worst = max(each[0] for each in kept), max(each[1] for each in kept)
    return Finding(
        found.outcome, f"{found.text}; worst phase {ms(worst[0])} against {ms(worst[1])}"
    )


def sensitivity(view: View) -> Finding:
    """How much goodput and delay move from half the parameter's value to twice of it."""
    values = {}
    for name in view.measures.names(view.section, view.own):
        factor = view.measures.case(view.section, name, view.own).value
        if factor is not None and 0.5 <= factor <= 2:
            get = view.measures.mean
            values[factor] = (
                get(view.section, name, view.own, "down", "queue_delay"),
                get(view.section, name, view.own, "all", "goodput"),
                name,
            )
    if len(values) < 2:
        return Finding(OPEN, "it has no parameter that moves its queue")
    low, high = values[min(values)], values[max(values)]
    goods = [each[1] for each in values.values()]
    spread = (max(goods) - min(goods)) / max(goods)
    words = (
        f"from {low[2]} to {high[2].split()[-1]}: queue {ms(low[0])} to {ms(high[0])}, goodput "
        f"within {spread:.1%}"
    )
    outcome = BETTER if spread <= ROBUST else WORSE if spread >= SENSITIVE else EVEN
    return Finding(outcome, words)


def bursts(view: View) -> Finding:
    """Page load time, and what the constant stream loses."""
    load = view.both("page_load", "web")
    ratio = _ratio(*load)
    losses = [view.pair(case, "cbr", "loss_share") for case in view.cases()]
    own, other = (float(np.nanmean([each[place] for each in losses])) for place in (0, 1))
    words = (
        f"pages in {load[0]:.2f} s against {load[1]:.2f} s; the constant stream loses {own:.2%} "
        f"against {other:.2%}"
    )
    if not isfinite(ratio):
        return Finding(OPEN, "no page was loaded")
    worse_loss = own > other / SHORTER and own - other > 0.005
    if ratio <= SHORTER:
        return Finding(TRADE if worse_loss else BETTER, words)
    return Finding(WORSE if ratio >= LONGER or worse_loss else EVEN, words)


def mix(view: View, cases: Sequence[str] | None = None) -> Finding:
    """Four questions, one a class: page load time, MOS, bit rate of the video, bulk goodput;
    of both directions where there are two."""
    rules: Sequence[tuple[str, str, str, bool, Callable[[float], str]]] = (
        ("web", "page_load", "pages in", False, lambda value: f"{value:.2f} s"),
        ("voip", "mos", "MOS", True, lambda value: f"{value:.2f}"),
        ("video", "bitrate", "video at", True, rate),
        ("bulk", "goodput", "bulk at", True, rate),
    )
    score, words = 0, []
    for subject, measure, name, more_is_better, form in rules:
        own, other = view.both(measure, subject, f"{subject}{UP}", cases=cases)
        ratio = _ratio(own, other)
        if not isfinite(ratio):
            continue
        words.append(f"{name} {form(own)} against {form(other)}")
        better = ratio >= 1 / SHORTER if more_is_better else ratio <= SHORTER
        worse = ratio <= SHORTER if more_is_better else ratio >= 1 / SHORTER
        score += better - worse
        if worse:
            words[-1] += " (worse)"
    if not words:
        return Finding(OPEN, "nothing was measured")
    any_worse = any(word.endswith("(worse)") for word in words)
    outcome = (
        TRADE if any_worse and score >= 0 else WORSE if any_worse else BETTER if score else EVEN
    )
    return Finding(outcome, "; ".join(words))


def bidirectional(view: View) -> Finding:
    """As for most, and whether more acknowledgements are lost than with the other, and whether
    the mix is worse."""
    mixes = [case for case in view.cases() if case.startswith(MIX)]
    mild = [case for case in view.cases() if case not in mixes]
    found, mixed = queue_and_goodput(view, mild), mix(view, mixes)
    shares = [view.pair(case, "all", "ack_loss") for case in mild]
    own, other = (float(np.nanmean([each[place] for each in shares])) for place in (0, 1))
    words = (
        f"{found.text}; {own:.2%} of the acknowledgements lost against {other:.2%}; "
        f"mix: {mixed.text}"
    )
    more = own > LONGER * other and own - other > CONTROL_LOSS
    if (more or mixed.outcome == WORSE) and found.outcome in (BETTER, EVEN):
        return Finding(TRADE if found.outcome == BETTER else WORSE, words)
    return Finding(found.outcome, words)


def in_series(view: View) -> Finding:
    """The delay of those who pass both queues, and all goodput, with the same queue twice."""
    delay, goodput = view.pair("same", "a", "waiting"), view.pair("same", "all", "goodput")
    found = compared(delay, goodput, "both queues together")
    shares = [view.pair("same", "a", "goodput")[i] / goodput[i] for i in (0, 1)]
    return Finding(
        found.outcome,
        f"{found.text}; senders A have {shares[0]:.0%} of it, with {view.other} {shares[1]:.0%}",
    )


RULES: dict[str, Rule] = {
    "4.4": packet_sizes,
    "4.5": ecn,
    "4.6": scheduling,
    "5.1.1": queue_and_goodput,
    "5.1.2": short_flows,
    "5.2": queue_and_goodput,
    "5.3": unresponsive,
    "5.4": background,
    "6.2": rtt_fairness,
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
