"""The statements of the article, and of Hill and Shah (2015) about it, checked one by one.

A statement is one row with one rule (`aqmlab.campaign`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from aqmlab.campaign import Asked, Rule, above, asked, at_least, at_most, below, within
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.nichols2012.curves import (
    CODEL,
    FALLS,
    LARGE,
    QUEUES,
    RED,
    RISES,
    SINGLE,
    SMALL,
    STEP,
    TAIL,
    Metric,
    average,
    drop_fairness,
    inside,
    median_delay,
    median_of,
    megabytes,
    over,
    points,
    together,
    utilisation,
)
from aqmlab_studies.shared import each, percent

FAST = ("10 Mbit/s", "45 Mbit/s", "100 Mbit/s")
SLOW = "3 Mbit/s"
SHORT = ("10 ms", "30 ms", "100 ms", "200 ms")
LONG = "500 ms"
AnyRule = Rule[Measurements, Any]
Pairs = dict[str, tuple[float, float]]
"""Numbers of the queue in question and of the other, by place."""


def _medians(
    metric: Metric, axis: str, places: Iterable[str], queue: str = CODEL
) -> Callable[[Measurements], dict[str, float]]:
    """The median over all points with each label of an axis."""
    return lambda static: {
        place: median_of(static, metric, queue=queue, **{axis: place}) for place in places
    }


def _pairs(
    metric: Metric, one: str, other: str, axis: str, places: Sequence[str]
) -> Callable[[Measurements], Pairs]:
    of_one, of_other = (_medians(metric, axis, places, queue) for queue in (one, other))

    def pairs(static: Measurements) -> Pairs:
        theirs = of_other(static)
        return {place: (value, theirs[place]) for place, value in of_one(static).items()}

    return pairs


def _told(one: str, other: str, digits: int, unit: str = "") -> Callable[[Pairs], str]:
    def told(found: Pairs) -> str:
        each = (f"{place} {a:.{digits}f} and {b:.{digits}f}" for place, (a, b) in found.items())
        return f"{one} and {other} at {'; '.join(each)}{unit}"

    return told


def _target_delays(static: Measurements) -> dict[str, float]:
    """CoDel's mean median delay in ms, four FTPs, where a packet takes less than the target."""
    return {
        f"{labels['rate']}, {labels['rtt']}": float(np.mean(median_delay(static, **labels)))
        for labels in points(static, queue=CODEL, load="4 FTPs")
        if labels["rate"] in FAST and labels["rtt"] in SHORT
    }


def _target_told(found: dict[str, float]) -> str:
    low, high = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    inside = sum(2.5 <= delay <= 10 for delay in found.values())
    return (
        f"{inside} of {len(found)} points inside, from {found[low]:.1f} ms ({low}) to "
        f"{found[high]:.1f} ms ({high})"
    )


def _load_spread(static: Measurements) -> tuple[float, float]:
    """Difference between the loads' median delays at 100 and at 3 Mbit/s, in ms."""

    def spread(rate: str) -> float:
        delays = over(static, median_delay, queue=CODEL, rate=rate, rtt="100 ms").mean(axis=1)
        return float(delays.max() - delays.min())

    return spread("100 Mbit/s"), spread(SLOW)


def _low_delays(queue: str) -> Callable[[Measurements], float]:
    """The share of the points with a median delay of at most 20 ms."""
    return lambda static: float(np.mean(over(static, median_delay, queue=queue).mean(axis=1) <= 20))


def _named(number: Callable[[float], str]) -> Callable[[dict[str, float]], str]:
    return lambda found: "; ".join(f"{name} {number(each)}" for name, each in found.items())


_one, _two, _three = (_named(f"{{:.{digits}f}}".format) for digits in (1, 2, 3))

Spread = tuple[dict[str, float], str]


def _spread(static: Measurements) -> Spread:
    """Difference between CoDel's utilisations at each round-trip time; the least at the longest."""
    ranges, lowest = {}, ""
    for rtt in (*SHORT, LONG):
        values = {
            f"{labels['rate']}, {labels['load']}": float(np.mean(utilisation(static, **labels)))
            for labels in points(static, queue=CODEL, rtt=rtt)
        }
        ranges[rtt] = max(values.values()) - min(values.values())
        lowest = min(values, key=values.__getitem__)
    return ranges, lowest


STATIC: tuple[AnyRule, ...] = (
    Rule(
        "similar-delay-at-3-mbit", "RED's delays are similar to CoDel's on links of 3 Mbit/s.",
        "the medians of the median delays are within 30 %",
        _pairs(median_delay, RED, CODEL, "rate", (SLOW,)),
        lambda found: within(found[SLOW][0] / found[SLOW][1], 1, 0.3),
        _told("RED", "CoDel", 1, " ms"), {SLOW: (14.0, 10.0)},
    ),
    Rule(
        "similar-utilisation-at-3-mbit",
        "RED's utilisations are similar to CoDel's on links of 3 Mbit/s.",
        "the medians of the utilisations are within 3 points",
        _pairs(utilisation, RED, CODEL, "rate", (SLOW,)),
        lambda found: within(found[SLOW][0] - found[SLOW][1], 0, 0.03),
        _told("RED", "CoDel", 3), {SLOW: (0.90, 0.95)},
    ),
    Rule(
        "red-smaller-delays", "From 10 Mbit/s on RED's delays are smaller than CoDel's.",
        "at each rate the median of the median delays is more than 5 % smaller",
        _pairs(median_delay, RED, CODEL, "rate", FAST),
        lambda found: [below(a / b, 0.95, place) for place, (a, b) in found.items()],
        _told("RED", "CoDel", 1, " ms"), dict.fromkeys(FAST, (6.0, 5.0)),
    ),
    Rule(
        "red-overcontrols",
        "From 10 Mbit/s on RED's utilisations are smaller than CoDel's: it overcontrols.",
        "at each rate the median of the utilisations is smaller by more than a point",
        _pairs(utilisation, RED, CODEL, "rate", FAST),
        lambda found: [below(a - b, -0.01, place) for place, (a, b) in found.items()],
        _told("RED", "CoDel", 3), dict.fromkeys(FAST, (0.9, 0.9)),
    ),
    Rule(
        "near-target",
        "Where a packet takes less than 5 ms and all load is long FTPs, CoDel's median delay "
        "approaches its target of 5 ms.",
        "with four FTPs, 10 Mbit/s or more and round-trip times to 200 ms it is within a factor of "
        "two at every point (2.5 to 10 ms)",
        _target_delays,
        lambda found: [
            compare(delay, limit, place) for place, delay in found.items()
            for compare, limit in ((at_least, 2.5), (at_most, 10.0))
        ],
        _target_told, {"10 Mbit/s, 100 ms": 5.0, "100 Mbit/s, 200 ms": 0.5},
    ),
    Rule(
        "load-matters-less",
        "The faster the link, the less the load changes CoDel's median delay.",
        "at 100 ms the loads' median delays are at most 0.9 as far apart at 100 as at 3 Mbit/s",
        _load_spread, lambda found: at_most(found[0] / found[1], 0.9),
        lambda found: f"{found[0]:.1f} and {found[1]:.1f} ms", (5.0, 3.0),
    ),
    Rule(
        "utilisation-0.9",
        "CoDel consistently achieves a link utilisation of around 0.9 or more (Hill and Shah).",
        "the median over round-trip times and loads is at least 0.88 at each rate",
        _medians(utilisation, "rate", (SLOW, *FAST)), each(at_least, 0.88), _three,
        {"3 Mbit/s": 0.95, "100 Mbit/s": 0.8},
    ),
    *(
        Rule(
            f"low-{queue.lower()}",
            f"{queue} keeps the median delay low, at all round-trip times.",
            "it is at most 20 ms at 95 % of the points",
            _low_delays(queue), lambda found: at_least(found, 0.95), percent, 0.8,
        )
        for queue in (CODEL, RED)
    ),
    Rule(
        "close-to-tail-drop",
        "CoDel's utilisation is very close to tail drop's (except at 500 ms).",
        "at each round-trip time the medians are within 5 points",
        _pairs(utilisation, CODEL, TAIL, "rtt", SHORT),
        lambda found: [within(a - b, 0, 0.05, rtt) for rtt, (a, b) in found.items()],
        _told("CoDel", "tail drop", 3), dict.fromkeys(SHORT, (0.8, 0.9)),
    ),
    Rule(
        "much-less-delay", "CoDel's delay is much less than tail drop's.",
        "at each round-trip time the median of the median delays is at most a quarter",
        _pairs(median_delay, CODEL, TAIL, "rtt", SHORT),
        lambda found: [at_most(a / b, 0.25, rtt) for rtt, (a, b) in found.items()],
        _told("CoDel", "tail drop", 1, " ms"), dict.fromkeys(SHORT, (10.0, 20.0)),
    ),
    Rule(
        "same-utilisation-30-to-200-ms",
        "CoDel's utilisation is not significantly different between 30 and 200 ms.",
        "the medians are within 5 points",
        _medians(utilisation, "rtt", SHORT[1:]),
        lambda found: at_most(max(found.values()) - min(found.values()), 0.05),
        _three, {"30 ms": 0.95, "100 ms": 0.9, "200 ms": 0.85},
    ),
    Rule(
        "same-delay-30-to-200-ms",
        "CoDel's median delay is not significantly different between 30 and 200 ms.",
        "the medians of the median delays are within a factor of two",
        _medians(median_delay, "rtt", SHORT[1:]),
        lambda found: at_most(max(found.values()) / min(found.values()), 2),
        _one, {"30 ms": 6.0, "100 ms": 4.0, "200 ms": 1.0},
    ),
    Rule(
        "varied-at-500-ms", "The utilisation at 500 ms varies most.",
        "CoDel's least and largest utilisation lie further apart there, by more than a point",
        _spread,
        lambda found: [
            above(found[0][LONG] - apart, 0.01, rtt)
            for rtt, apart in found[0].items() if rtt != LONG
        ],
        lambda found: f"apart by {_two(found[0])}", ({"10 ms": 0.5, LONG: 0.3}, ""),
    ),
    Rule(
        "single-ftps-low", "The low end of the utilisation at 500 ms are single FTPs.",
        "CoDel's least utilisation there is that of a single FTP",
        _spread, lambda found: at_least(SINGLE in found[1], 1),
        lambda found: f"the least at 500 ms is at {found[1]}", ({}, "3 Mbit/s, 4 FTPs"),
    ),
    Rule(
        "fairer-drops",
        "CoDel consistently outperforms RED in the fairness of the drops' shares.",
        "at each round-trip time Jain's index of the FTPs' shares of retransmitted segments (the "
        "median over rates and loads) is larger by more than 0.01",
        _pairs(drop_fairness, CODEL, RED, "rtt", (*SHORT, LONG)),
        lambda found: [above(a - b, 0.01, rtt) for rtt, (a, b) in found.items()],
        _told("CoDel", "RED", 3), dict.fromkeys((*SHORT, LONG), (0.9, 0.9)),
    ),
)  # fmt: skip


def _below(low: str, high: str) -> Callable[[Measurements], float]:
    """The share of the half seconds in which one queue's mean delay is below another's."""

    def value(dynamic: Measurements) -> float:
        _, curves = together(dynamic, "sojourn_mean_s", (low, high), buffer=LARGE)
        return float(np.mean(curves[low] < curves[high]))

    return value


def _calm(dynamic: Measurements) -> list[tuple[float, float]]:
    """Seconds from each drop of the rate until the delay stays at 100 ms or less: RED, CoDel."""

    def calm(queue: str, step: int) -> float:
        times, delay = average(dynamic, "sojourn_mean_s", queue=queue, buffer=LARGE)
        above = inside(times, times, step)[inside(times, delay, step) > 0.1]
        return float(above.max()) - step * STEP if above.size else 0.0

    return [(calm(RED, step), calm(CODEL, step)) for step in FALLS]


def _spikes(*steps: int) -> Callable[[Measurements], dict[str, float]]:
    """CoDel's largest delay in the 10 s after the beginning of these steps."""

    def value(dynamic: Measurements) -> dict[str, float]:
        times, largest = average(dynamic, "sojourn_max_s", queue=CODEL, buffer=LARGE)
        begins = {f"{int(step * STEP)} s": step * STEP for step in steps}
        return {
            name: float(largest[(times > begin) & (times <= begin + 10)].max())
            for name, begin in begins.items()
        }

    return value


def _full(dynamic: Measurements) -> float:
    """The share of the half seconds in which tail drop's buffer is at least half full."""
    times, packets = average(dynamic, "backlog_packets", queue=TAIL, buffer=LARGE)
    return float(np.mean(packets[times >= 1] >= 415))


def _carried(dynamic: Measurements, queue: str, buffer: str = LARGE) -> float:
    """Megabytes, the mean over the replications."""
    return float(megabytes(dynamic, queue, buffer).mean())


def _less(dynamic: Measurements) -> float:
    """By which share CoDel carries fewer bytes than tail drop."""
    return 1 - _carried(dynamic, CODEL) / _carried(dynamic, TAIL)


def _at_the_jumps(dynamic: Measurements) -> float:
    """The share of what CoDel carries less that is missing from the 15 s after the rises."""
    times, sent = together(dynamic, "delivered_bytes", (TAIL, CODEL), buffer=LARGE)
    gap = sent[TAIL] - sent[CODEL]
    at = [
        float(np.interp(step * STEP + 15, times, gap) - np.interp(step * STEP, times, gap))
        for step in RISES
    ]
    return sum(at) / float(gap[-1])


def _small(dynamic: Measurements) -> dict[str, float]:
    """By which share each queue carries less than CoDel's large buffer with 10 packets."""
    reference = _carried(dynamic, CODEL)
    return {queue: 1 - _carried(dynamic, queue, SMALL) / reference for queue in QUEUES}


_delays = _named(lambda delay: f"{1e3 * delay:.0f} ms")

DYNAMIC: tuple[AnyRule, ...] = (
    Rule(
        "tail-drop-full", "Tail drop generally keeps its buffer full.",
        "it is at least half full in 80 % of the half seconds",
        _full,
        lambda found: at_least(found, 0.8), percent, 0.5,
    ),
    Rule(
        "tail-drop-10-s", "With tail drop the delay can be as much as 10 s.",
        "the largest delay is between 9 and 11 s",
        lambda dynamic: float(dynamic.maxima(queue=TAIL, buffer=LARGE).max()),
        lambda found: within(found, 10, 1), lambda found: f"{found:.2f} s", 2.0,
    ),
    Rule(
        "red-below-tail-drop", "RED keeps the delay below tail drop's.",
        "its mean delay is below it in 95 % of the half seconds",
        _below(RED, TAIL), lambda found: at_least(found, 0.95), percent, 0.8,
    ),
    Rule(
        "red-slower", "RED does not respond to changes as quickly as CoDel.",
        "after each drop of the rate (at 50, 100 and 200 s) its mean delay is longer above 100 "
        "ms, by more than half a second",
        _calm, lambda found: [above(red - codel, 0.5, "longer") for red, codel in found],
        lambda found: "RED and CoDel " + ", ".join(f"{r:.1f} and {c:.1f} s" for r, c in found),
        [(5.0, 1.0), (5.0, 1.0), (1.0, 5.0)],
    ),
    Rule(
        "codel-spikes", "CoDel's delays spike when the link rate drops, at 50 and at 100 s.",
        "the largest delay in the 10 s after each is at least 100 ms",
        _spikes(1, 2), each(at_least, 0.1), _delays,
        {"50 s": 0.5, "100 s": 0.02},
    ),
    Rule(
        "codel-spike-250",
        "CoDel's delays spike when the link rate drops, at 250 s (where it rises; it drops at "
        "200 s: see the contradictions).",
        "the largest delay in the 10 s after it is at least 100 ms",
        _spikes(5), each(at_least, 0.1), _delays, {"250 s": 0.02},
    ),
    Rule(
        "almost-the-same", "CoDel transfers almost the same total kilobytes as tail drop.",
        "less or more by at most 5 %", _less, lambda found: within(found, 0, 0.05), percent, 0.1,
    ),
    Rule(
        "ten-percent-less",
        "It was actually about 10 % less (Hill and Shah, by the pixels of the figure).",
        "between 5 and 15 %", _less, lambda found: within(found, 0.1, 0.05), percent, 0.03,
    ),
    Rule(
        "at-the-jumps",
        "The differences come at the rate jumps (150 and 250 s), where CoDel's FTPs have to ramp "
        "up.",
        "at least half of what CoDel carries less is missing from the 15 s after them",
        _at_the_jumps, lambda found: at_least(found, 0.5), percent, 0.3,
    ),
    Rule(
        "more-than-red", "CoDel has better throughput than RED (Hill and Shah).",
        "at least 5 % more",
        lambda dynamic: _carried(dynamic, CODEL) / _carried(dynamic, RED) - 1,
        lambda found: above(found, 0.05), percent, 0.01,
    ),
    *(
        Rule(
            f"less-delay-than-{queue}".replace(" ", "-").lower(),
            f"CoDel's delay is consistently less than that of {queue} (Hill and Shah).",
            "its mean delay is below it in 99 % of the half seconds",
            _below(CODEL, queue), lambda found: at_least(found, 0.99), percent, 0.9,
        )
        for queue in (TAIL, RED)
    ),
    Rule(
        "small-buffers", "With buffers of 10 packets throughput is about 75 % less for all three.",
        "less than CoDel's with 830 packets by 70 to 80 %, with each",
        _small, lambda found: [within(less, 0.75, 0.05, queue) for queue, less in found.items()],
        _named(percent),
        {CODEL: 0.75, TAIL: 0.75, RED: 0.9},
    ),
    Rule(
        "small-buffers-identical",
        "With buffers of 10 packets tail drop and CoDel are identical.",
        "their bytes are within 2 %",
        lambda dynamic: _carried(dynamic, TAIL, SMALL) / _carried(dynamic, CODEL, SMALL) - 1,
        lambda found: within(found, 0, 0.02),
        lambda found: f"tail drop carries {100 * found:+.1f} %", 0.1,
    ),
)  # fmt: skip


def _static(measured: Measurements) -> list[Asked]:
    static = measured.part("study")
    static.require(queue=QUEUES, rate=(SLOW, *FAST), rtt=(*SHORT, LONG))
    return asked(STATIC, static)


def _dynamic(measured: Measurements) -> list[Asked]:
    dynamic = measured.part("dynamic")
    dynamic.require(queue=QUEUES, buffer=(LARGE, SMALL))
    return asked(DYNAMIC, dynamic)


claims = (_static, _dynamic)
"""All statements, of the parts that were run with everything."""
