"""The statements of the paper, checked one by one: the conclusion, then figure by figure.

A statement is one row with one rule (`aqmlab.campaign`). It is judged by the sweeps as the
paper has them; what the sweeps without a limit of the window give is told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from aqmlab.campaign import Asked, Comparison, Rule, above, asked, at_least, at_most, below
from aqmlab.campaign.rule import Compared
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.monga2016.sweeps import (
    AQMS,
    BANDWIDTH,
    DROPS,
    FLOWS,
    QUEUE,
    QUEUES,
    RTT,
    SFQ,
    SWEEPS,
    UTILISATION,
    Metric,
    Points,
    Sweep,
    unlimited,
)

Series = dict[str, list[float]]
"""Queue to its means along a sweep."""
Compare = Callable[[float, float, str], Comparison]
Wins = tuple[int, int, int]
"""At how many points sfqCoDel is not behind the best of the others, at how many it is ahead of it,
and of how many."""
MOST = 0.9
"""The share of the points that "almost all scenarios" needs."""
SLOW = 4
"""The bandwidths up to 10 Mbit/s."""
BELOW_100_MS = 4
"""The round-trip times below 100 ms."""


def claims(measured: Measurements) -> list[Asked]:
    """All statements, if all queues and places were run."""
    points, free = Points(measured), unlimited(measured)
    if any(len(points.places(sweep)) < len(sweep.places) for sweep in SWEEPS):
        return []
    rules = RULES
    if free and all(free.places(sweep) for sweep in SWEEPS):
        rules = tuple(replace(rule, beside=_without_limit(rule, free)) for rule in RULES)
    return asked(rules, points)


def _without_limit(rule: Rule[Points, Any], free: Points) -> Callable[[Points], str]:
    """What the sweeps without a limit of the window give: these have fewer bandwidths."""

    def told(_: Points) -> str:
        found = rule.measure(free)
        assert found is not None
        return f"without a limit of the window {rule.told(found)}"

    return told


def _figure(
    ident: str,
    text: str,
    rule: str,
    metric: Metric,
    sweep: Sweep,
    compared: Callable[[Series], Compared],
    refuted_by: Series,
) -> Rule[Points, Series]:
    """A rule about the means of every queue along a sweep."""

    def along(points: Points) -> Series:
        places = points.places(sweep)
        return {queue: points.along(metric, queue, places) for queue in QUEUES}

    def words(found: Series) -> str:
        each = "; ".join(f"{queue} {metric.text(values)}" for queue, values in found.items())
        return f"{metric.title} in {metric.unit} along the {sweep.title}: {each}"

    return Rule(ident, text, rule, along, compared, words, refuted_by)


def _others(found: Series) -> list[tuple[float, ...]]:
    """The values of the other queues, place by place."""
    return list(zip(*(found[queue] for queue in QUEUES if queue != SFQ), strict=True))


def _ahead(found: Series) -> list[float]:
    """By how much sfqCoDel is ahead of the best of the others."""
    return [own - max(others) for own, others in zip(found[SFQ], _others(found), strict=True)]


def _aqms(found: Series) -> list[tuple[float, ...]]:
    return list(zip(*(found[queue] for queue in AQMS), strict=True))


FALLING = (
    "the last is less than 0.9 of the first, and no step up by more than 10 %, with every queue"
)


def _falls(
    found: Series, end: float = 0.9, factor: float = 1.1, points: float = 0.0
) -> list[Comparison]:
    """With every queue the last is less than this part of the first, and no step up is by more
    than a factor and so many points; by default `FALLING`."""
    ends = (below(v[-1] - end * v[0], 0, f"{queue}, ends") for queue, v in found.items())
    return [*ends, *_no_step_up(found, factor, points)]


def _no_step_up(found: Series, factor: float, points: float) -> list[Comparison]:
    return [
        at_most(b - factor * a, points, f"{queue}, step {number}")
        for queue, values in found.items()
        for number, (a, b) in enumerate(pairwise(values), start=1)
    ]


def _drops_more(found: Series, one: str, other: str) -> list[Comparison]:
    """One queue's drop rate is at least 0.01 points above the other's wherever any queue has more
    than 0.01 %, which some place has."""
    dropping = [max(at) > 0.01 for at in zip(*found.values(), strict=True)]
    pairs = zip(dropping, found[one], found[other], strict=True)
    return [
        at_least(sum(dropping), 1, "places with drops"),
        *(
            at_least(a - b if drops else 0.01, 0.01, f"place {number}")
            for number, (drops, a, b) in enumerate(pairs, start=1)
        ),
    ]


def _over_droptail(found: Series, queue: str) -> float:
    """The mean over the places of a queue's number as a share of DropTail's, with 0.1 added to
    both: nothing beside next to nothing is the same."""
    pairs = zip(found[queue], found["DropTail"], strict=True)
    return fmean((own + 0.1) / (tail + 0.1) for own, tail in pairs)


def _rises_and_falls(values: Sequence[float]) -> list[Comparison]:
    """The largest is above both ends by more than 10 %, and there is one peak."""
    peak = max(range(len(values)), key=values.__getitem__)
    steps = enumerate(pairwise(values))
    return [
        *(below(end - values[peak] / 1.1, 0, "end") for end in (values[0], values[-1])),
        *(
            at_most(0.9 * a - b if place < peak else b - 1.1 * a, 0, f"step {place + 1}")
            for place, (a, b) in steps
        ),
    ]


def _shorter(
    found: Series, ratio: float, compare: Compare = below, most: int | None = None
) -> list[Comparison]:
    """sfqCoDel's number is below this multiple of every other's at each place, or at the first."""
    pairs = list(zip(found[SFQ], _others(found), strict=True))[:most]
    return [
        compare(own - ratio * other, 0, f"place {number}")
        for number, (own, others) in enumerate(pairs, start=1)
        for other in others
    ]


def _same(values: Sequence[float], **own: Sequence[float]) -> Series:
    """All queues alike but for those given by name (`_DT` for -DT)."""
    named = {name.replace("_", "-"): list(each) for name, each in own.items()}
    return {queue: named.get(queue, list(values)) for queue in QUEUES}


def _conclusion(
    ident: str, what: str, margin: str, metric: Metric, ahead: Callable[[float, list[float]], int]
) -> Rule[Points, Wins]:
    """`ahead` is 1, 0 or -1: ahead of the best of the others by more than a margin, behind it by
    more, or neither."""

    def wins(points: Points) -> Wins:
        signs = []
        for place in dict.fromkeys(each for sweep in SWEEPS for each in points.places(sweep)):
            means = {queue: points.mean(metric, queue, place) for queue in QUEUES}
            signs.append(ahead(means.pop(SFQ), list(means.values())))
        return sum(sign >= 0 for sign in signs), sum(sign > 0 for sign in signs), len(signs)

    return Rule(
        ident,
        f"Conclusion: in almost all scenarios sfqCoDel outperforms the others in {what}.",
        f"at nine of ten points it is not behind the best of the others by more than {margin}, and "
        "it is ahead of it by more at more points than behind",
        wins,
        lambda found: [
            at_least(found[0] / found[2], MOST, "share not behind"),
            above(found[0] + found[1] - found[2], 0, "ahead less behind"),
        ],
        lambda found: f"not behind at {found[0]} of {found[2]} points, ahead at {found[1]}",
        (23, 0, 23),
    )


def _sign(better: bool, worse: bool) -> int:
    return better - worse


def _lower_drops(queue: str) -> Rule[Points, Series]:
    return _figure(
        f"drops-{queue.lower()}-lower",
        f"Figure 4: the packet drop rate is slightly lower with {queue}.",
        "the mean over the bandwidths of its share of DropTail's (of their sum with 0.1 points) is "
        "from 0.5 to 0.98",
        DROPS,
        BANDWIDTH,
        lambda found: [
            at_least(_over_droptail(found, queue), 0.5),
            at_most(_over_droptail(found, queue), 0.98),
        ],
        _same([1.0] * 10, **{queue: [1.5] * 10}),
    )


def _constant(queue: str) -> Rule[Points, Series]:
    return _figure(
        f"ftp-queue-constant-{queue.lower()}",
        f"Figure 6: with {queue} the mean queue remains almost constant.",
        "over the numbers of FTP flows its largest is at most twice its smallest",
        QUEUE,
        FLOWS,
        lambda found: at_most(max(found[queue]) - 2 * min(found[queue]), 0),
        _same([5.0] * 8, **{queue: [5.0] * 7 + [50.0]}),
    )


def _dropping(ident: str, more: str, verb: str, other: str, wrong: str) -> Rule[Points, Series]:
    """One queue drops more (or `less`, by the verb) than the other."""
    pair = (more, other) if verb == "more" else (other, more)
    return _figure(
        ident.lower(),
        f"Figure 10: {more} drops {verb} than {other}.",
        DROPPING,
        DROPS,
        RTT,
        lambda found: _drops_more(found, *pair),
        _same([2.0] * 7, **{wrong: [1, 1, 1, 3, 1, 1, 1]}),
    )


DROPPING = (
    "by at least 0.01 points, at each round-trip time with more than 0.01 % of drops, of which "
    "there are some"
)


RULES: tuple[Rule[Points, Any], ...] = (
    _conclusion(
        "conclusion-utilisation", "link utilisation", "a point", UTILISATION,
        lambda own, others: _sign(own > max(others) + 1, own < max(others) - 1),
    ),
    _conclusion(
        "conclusion-queue", "mean queue length", "10 %", QUEUE,
        lambda own, others: _sign(1.1 * own < min(others), own > 1.1 * min(others)),
    ),
    _conclusion(
        "conclusion-drops", "packet drop rate", "0.1 points", DROPS,
        lambda own, others: _sign(own < min(others) - 0.1, own > min(others) + 0.1),
    ),
    _figure(
        "utilisation-falls-with-bandwidth",
        "Figure 2: the utilisation falls for all queues as the bandwidth rises.",
        "at 1 Gbit/s less than half of that at 1 Mbit/s, and no step up by more than 5 points",
        UTILISATION, BANDWIDTH,
        lambda found: _falls(found, 0.5, 1.0, 5),
        _same([100, 90, 80, 70, 60, 50, 40, 30, 20, 10], CoDel=[100.0] * 10),
    ),
    _figure(
        "sfq-utilisation-with-bandwidth",
        "Figure 2: with sfqCoDel the utilisation remains better.",
        "nowhere more than a point below the best of the others, and somewhere more than a point "
        "above it",
        UTILISATION, BANDWIDTH,
        lambda found: [
            *(at_least(each, -1, "ahead") for each in _ahead(found)),
            above(max(_ahead(found)), 1, "most ahead"),
        ],
        _same([90.0] * 10),
    ),
    _figure(
        "queue-falls-with-bandwidth",
        "Figure 3: the mean queue is shorter at higher bandwidths.",
        FALLING,
        QUEUE, BANDWIDTH,
        _falls,
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5], DropTail=[9.0] * 9 + [99.0]),
    ),
    _figure(
        "sfq-queue-at-low-bandwidth",
        "Figure 3: at low bandwidths sfqCoDel's mean queue is tremendously shorter.",
        "up to 10 Mbit/s at most half of any other's",
        QUEUE, BANDWIDTH,
        # Up to 10 Mbit/s without a limit of the window there are two bandwidths.
        lambda found: _shorter(
            found, 0.5, at_most, SLOW if len(found[SFQ]) == len(BANDWIDTH.places) else 2),
        _same([10.0] * 10, sfqCoDel=[2.0, 9.0, *[2.0] * 8]),
    ),
    _figure(
        "droptail-queue-first-rises",
        "Figure 3: DropTail's mean queue first rises and then falls.",
        "its largest is more than 10 % above that at 1 Mbit/s and at 1 Gbit/s; before its largest "
        "no step down, and after it no step up, by more than 10 %",
        QUEUE, BANDWIDTH,
        lambda found: _rises_and_falls(found["DropTail"]),
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5]),
    ),
    _figure(
        "drops-similar",
        "Figure 4: the packet drop rate is almost similar for all queues.",
        "at each bandwidth all are within 2 points",
        DROPS, BANDWIDTH,
        lambda found: [
            at_most(max(at) - min(at), 2, f"place {number}")
            for number, at in enumerate(zip(*found.values(), strict=True), start=1)
        ],
        _same([1.0] * 10, CoDel=[9.0, *[1.0] * 9]),
    ),
    _lower_drops("CoDel"),
    _lower_drops(SFQ),
    _figure(
        "drops-fall-with-bandwidth",
        "Figure 4: the packet drop rate falls at higher bandwidths.",
        "at 1 Gbit/s less than 0.9 of that at 1 Mbit/s, and no step up by more than a point, with "
        "every queue",
        DROPS, BANDWIDTH,
        lambda found: _falls(found, 0.9, 1.0, 1),
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5], CoDel=[9, 3, 9, 6, 5, 4, 3, 2, 1, 0.5]),
    ),
    _figure(
        "ftp-utilisation-rises",
        "Figure 5: the utilisation is low with few FTP flows and high with many.",
        "with 1 flow more than 10 points below that with 1000, and no step down by more than 5 "
        "points, with every queue",
        UTILISATION, FLOWS,
        lambda found: [
            *(above(v[-1] - v[0], 10, f"{q}, ends") for q, v in found.items()),
            *_no_step_up({q: v[::-1] for q, v in found.items()}, 1.0, 5),
        ],
        _same([60, 90, 90, 90, 90, 90, 90, 90], CoDel=[88.0] + [90.0] * 7),
    ),
    _figure(
        "ftp-aqms-alike",
        "Figure 5: over 1 to 1000 FTP flows the utilisation is almost the same for the three AQMs.",
        "within 5 points of each other at every number of flows",
        UTILISATION, FLOWS,
        lambda found: [
            at_most(max(at) - min(at), 5, f"place {number}")
            for number, at in enumerate(_aqms(found), start=1)
        ],
        _same([90.0] * 8, CoDel=[70.0] + [90.0] * 7),
    ),
    _figure(
        "ftp-droptail-degraded",
        "Figure 5: with DropTail the utilisation is severely degraded.",
        "more than 10 points below the lowest of the AQMs at every number of flows",
        UTILISATION, FLOWS,
        lambda found: [
            above(min(at) - own, 10, "below the AQMs")
            for at, own in zip(_aqms(found), found["DropTail"], strict=True)
        ],
        _same([90.0] * 8, DropTail=[60.0, 60.0, *[89.0] * 6]),
    ),
    _figure(
        "ftp-droptail-queue-grows",
        "Figure 6: with DropTail the mean queue grows with the FTP flows.",
        "it more than doubles from 1 to 1000, and never falls by more than 10 %",
        QUEUE, FLOWS,
        lambda found: [
            above(found["DropTail"][-1] - 2 * found["DropTail"][0], 0, "ends"),
            *(at_least(b - 0.9 * a, 0, "step") for a, b in pairwise(found["DropTail"])),
        ],
        _same([5.0] * 8),
    ),
    *(_constant(queue) for queue in AQMS),
    _figure(
        "ftp-drops-low",
        "Figure 7: the drop rate is low with few FTP flows.",
        "at most 1 % with 1 and with 3, with every queue",
        DROPS, FLOWS,
        lambda found: [at_most(each, 1, q) for q, v in found.items() for each in v[:2]],
        _same([0.5, 3.0, 5, 5, 5, 5, 5, 5]),
    ),
    _figure(
        "ftp-drops-jump",
        "Figure 7: as the load approaches 5 flows there is a spike in the drop rate.",
        "with 5 at least a point more than with 3, with every queue",
        DROPS, FLOWS,
        lambda found: [at_least(v[2] - v[1], 1, queue) for queue, v in found.items()],
        _same([0.1, 0.2, 0.4, 0.8, 2, 4, 8, 16]),
    ),
    _figure(
        "rtt-utilisation-good",
        "Figure 8: below 100 ms the utilisation is fairly good for all AQMs.",
        "at least 80 % with each",
        UTILISATION, RTT,
        lambda found: [
            at_least(value, 80, queue) for queue in AQMS for value in found[queue][:BELOW_100_MS]
        ],
        _same([70, 95, 95, 95, 90, 60, 20]),
    ),
    _figure(
        "rtt-utilisation-falls",
        "Figure 8: the utilisation degrades further towards 1 s.",
        "from 100 over 300 ms to 1 s it falls by more than a point each, with every queue",
        UTILISATION, RTT,
        lambda found: [
            above(a - b, 1, queue) for queue, v in found.items() for a, b in pairwise(v[-3:])
        ],
        _same([95, 95, 95, 95, 90, 91, 20]),
    ),
    _figure(
        "rtt-queue-falls",
        "Figure 9: the queue falls as the round-trip time rises.",
        FALLING,
        QUEUE, RTT,
        _falls,
        _same([5, 5, 6, 7, 8, 9, 10]),
    ),
    _figure(
        "rtt-sfq-lowest",
        "Figure 9: sfqCoDel's queue is consistently better.",
        "it is the shortest at every round-trip time, by more than 5 %",
        QUEUE, RTT,
        lambda found: _shorter(found, 0.95),
        _same([5.0] * 7),
    ),
    _figure(
        "rtt-sfq-much-lower",
        "Figure 9: sfqCoDel's queue is significantly better.",
        "it is at least a quarter shorter than any other at every round-trip time",
        QUEUE, RTT,
        lambda found: _shorter(found, 0.75),
        _same([5.0] * 7, sfqCoDel=[4.5] * 7),
    ),
    *(_dropping(f"rtt-drops-more-{q}", q, "more", "DropTail", "DropTail") for q in AQMS),
    *(_dropping(f"rtt-sfq-drops-less-{q}", SFQ, "less", q, SFQ) for q in AQMS if q != SFQ),
)  # fmt: skip
