"""The statements of the paper, checked one by one: the conclusion, then figure by figure.

A statement is one row with one rule (`aqmlab_studies.rules`). It is judged by the sweeps as the
paper has them; what the sweeps without a limit of the window give is told beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
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
    document,
    unlimited,
)
from aqmlab_studies.rules import Rule

Series = dict[str, list[float]]
"""Queue to its means along a sweep."""
Wins = tuple[int, int, int]
"""At how many points sfqCoDel is not behind the best of the others, at how many it is ahead of it,
and of how many."""
MOST = 0.9
"""The share of the points that "almost all scenarios" needs."""
SLOW = 4
"""The bandwidths up to 10 Mbit/s."""
BELOW_100_MS = 4
"""The round-trip times below 100 ms."""


def claims(measured: Measurements) -> list[Claim]:
    """All statements, if all queues and places were run."""
    points, free = document(measured), unlimited(measured)
    if not _complete(points):
        return []
    rules = RULES
    if free and all(free.places(sweep) for sweep in SWEEPS):
        rules = tuple(replace(rule, beside=_without_limit(rule, free)) for rule in RULES)
    return [claim for rule in rules if (claim := rule.claim(points))]


def _complete(points: Points) -> bool:
    return all(len(points.places(sweep)) == len(sweep.places) for sweep in SWEEPS)


def _without_limit(rule: Rule[Points, Any], free: Points) -> Callable[[Points], str]:
    """What the sweeps without a limit of the window give: these have fewer bandwidths."""

    def told(_: Points) -> str:
        found = rule.measure(free)
        assert found is not None
        so = "so it is" if rule.holds(found) else "it is not so"
        return f"without a limit of the window {so}: {rule.told(found)}"

    return told


def along(metric: Metric, sweep: Sweep) -> Callable[[Points], Series]:
    """What measures the means of every queue along a sweep."""

    def measure(points: Points) -> Series:
        places = points.places(sweep)
        return {queue: points.along(metric, queue, places) for queue in QUEUES}

    return measure


def _words(metric: Metric, sweep: Sweep) -> Callable[[Series], str]:
    def told(found: Series) -> str:
        each = "; ".join(f"{queue} {metric.text(values)}" for queue, values in found.items())
        return f"{metric.title} in {metric.unit} along the {sweep.title}: {each}"

    return told


def _figure(
    ident: str,
    text: str,
    rule: str,
    metric: Metric,
    sweep: Sweep,
    holds: Callable[[Series], bool],
    refuted_by: Series,
) -> Rule[Points, Series]:
    words = _words(metric, sweep)
    return Rule(ident, text, rule, along(metric, sweep), holds, words, refuted_by)


def _others(found: Series) -> list[tuple[float, ...]]:
    """The values of the other queues, place by place."""
    return list(zip(*(found[queue] for queue in QUEUES if queue != SFQ), strict=True))


def _ahead(found: Series) -> list[float]:
    """By how much sfqCoDel is ahead of the best of the others."""
    return [own - max(others) for own, others in zip(found[SFQ], _others(found), strict=True)]


def _slowest(found: Series) -> list[tuple[float, tuple[float, ...]]]:
    """sfqCoDel and the others up to 10 Mbit/s; without a limit of the window these are two."""
    pairs = list(zip(found[SFQ], _others(found), strict=True))
    return pairs[: SLOW if len(pairs) == len(BANDWIDTH.places) else 2]


def _aqms(found: Series) -> list[tuple[float, ...]]:
    return list(zip(*(found[queue] for queue in AQMS), strict=True))


def _never_rises(values: Sequence[float]) -> bool:
    return all(b <= 1.1 * a for a, b in pairwise(values))


def _dropping(found: Series) -> list[int]:
    """The places with drops."""
    return [i for i, at in enumerate(zip(*found.values(), strict=True)) if max(at) > 0.01]


def _same(values: Sequence[float], **own: Sequence[float]) -> Series:
    """All queues alike but for those given by name (`_DT` for -DT)."""
    named = {name.replace("_", "-"): list(each) for name, each in own.items()}
    return {queue: named.get(queue, list(values)) for queue in QUEUES}


def _wins(metric: Metric, ahead: Callable[[float, list[float]], int]) -> Callable[[Points], Wins]:
    def measure(points: Points) -> Wins:
        places = dict.fromkeys(place for sweep in SWEEPS for place in points.places(sweep))
        signs = [
            ahead(
                points.mean(metric, SFQ, place),
                [points.mean(metric, queue, place) for queue in QUEUES if queue != SFQ],
            )
            for place in places
        ]
        return sum(sign >= 0 for sign in signs), sum(sign > 0 for sign in signs), len(signs)

    return measure


def _conclusion(
    ident: str, what: str, margin: str, metric: Metric, ahead: Callable[[float, list[float]], int]
) -> Rule[Points, Wins]:
    """`ahead` is 1, 0 or -1: ahead of the best of the others by more than a margin, behind it by
    more, or neither."""
    return Rule(
        ident,
        f"Conclusion: in almost all scenarios sfqCoDel outperforms the others in {what}.",
        f"at nine of ten points it is not behind the best of the others by more than {margin}, and "
        "it is ahead of it by more at more points than behind",
        _wins(metric, ahead),
        lambda found: found[0] >= MOST * found[2] and found[1] > found[2] - found[0],
        lambda found: f"not behind at {found[0]} of {found[2]} points, ahead at {found[1]}",
        (23, 0, 23),
    )


def _sign(better: bool, worse: bool) -> int:
    return better - worse


def _lower_drops(queue: str) -> Rule[Points, Series]:
    return _figure(
        f"drops-{queue.lower()}-lower",
        f"Figure 4: the packet drop rate is slightly lower with {queue}.",
        "its mean over the bandwidths is below DropTail's",
        DROPS,
        BANDWIDTH,
        lambda found: fmean(found[queue]) < fmean(found["DropTail"]),
        _same([1.0] * 10, **{queue: [1.5] * 10}),
    )


def _constant(queue: str) -> Rule[Points, Series]:
    return _figure(
        f"ftp-queue-constant-{queue.lower()}",
        f"Figure 6: with {queue} the mean queue remains almost constant.",
        "over the numbers of FTP flows its largest is at most twice its smallest",
        QUEUE,
        FLOWS,
        lambda found: max(found[queue]) <= 2 * min(found[queue]),
        _same([5.0] * 8, **{queue: [5.0] * 7 + [50.0]}),
    )


def _drops_more(queue: str) -> Rule[Points, Series]:
    return _figure(
        f"rtt-drops-more-{queue.lower()}",
        f"Figure 10: {queue} drops more than DropTail.",
        "at each round-trip time with more than 0.01 % of drops, of which there are some",
        DROPS,
        RTT,
        lambda found: (
            _dropping(found) != []
            and all(found[queue][i] > found["DropTail"][i] for i in _dropping(found))
        ),
        _same([2.0] * 7, DropTail=[1, 1, 1, 3, 1, 1, 1]),
    )


def _sfq_drops_less(other: str) -> Rule[Points, Series]:
    return _figure(
        f"rtt-sfq-drops-less-{other.lower()}",
        f"Figure 10: sfqCoDel drops less than {other}.",
        "at each round-trip time with more than 0.01 % of drops, of which there are some",
        DROPS,
        RTT,
        lambda found: (
            _dropping(found) != []
            and all(found[SFQ][i] < found[other][i] for i in _dropping(found))
        ),
        _same([2.0] * 7, sfqCoDel=[1, 1, 1, 3, 1, 1, 1]),
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
        lambda found: all(
            values[-1] < values[0] / 2 and all(b - a <= 5 for a, b in pairwise(values))
            for values in found.values()
        ),
        _same([100, 90, 80, 70, 60, 50, 40, 30, 20, 10], CoDel=[100.0] * 10),
    ),
    _figure(
        "sfq-utilisation-with-bandwidth",
        "Figure 2: with sfqCoDel the utilisation remains better.",
        "nowhere more than a point below the best of the others, and somewhere more than a point "
        "above it",
        UTILISATION, BANDWIDTH,
        lambda found: min(_ahead(found)) >= -1 and max(_ahead(found)) > 1,
        _same([90.0] * 10),
    ),
    _figure(
        "queue-falls-with-bandwidth",
        "Figure 3: the mean queue is shorter at higher bandwidths.",
        "shorter at 1 Gbit/s than at 1 Mbit/s with every queue",
        QUEUE, BANDWIDTH,
        lambda found: all(values[-1] < values[0] for values in found.values()),
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5], DropTail=[9.0] * 9 + [99.0]),
    ),
    _figure(
        "sfq-queue-at-low-bandwidth",
        "Figure 3: at low bandwidths sfqCoDel's mean queue is tremendously shorter.",
        "up to 10 Mbit/s at most half of any other's",
        QUEUE, BANDWIDTH,
        lambda found: all(
            own <= 0.5 * min(others)
            for own, others in _slowest(found)
        ),
        _same([10.0] * 10, sfqCoDel=[2.0, 9.0, *[2.0] * 8]),
    ),
    _figure(
        "droptail-queue-first-rises",
        "Figure 3: DropTail's mean queue first rises and then falls.",
        "its largest is more than 10 % above that at 1 Mbit/s, and that at 1 Gbit/s below its "
        "largest",
        QUEUE, BANDWIDTH,
        lambda found: max(found["DropTail"]) > 1.1 * found["DropTail"][0]
        and found["DropTail"][-1] < max(found["DropTail"]),
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5]),
    ),
    _figure(
        "drops-similar",
        "Figure 4: the packet drop rate is almost similar for all queues.",
        "at each bandwidth all are within 2 points",
        DROPS, BANDWIDTH,
        lambda found: all(max(at) - min(at) <= 2 for at in zip(*found.values(), strict=True)),
        _same([1.0] * 10, CoDel=[9.0, *[1.0] * 9]),
    ),
    _lower_drops("CoDel"),
    _lower_drops(SFQ),
    _figure(
        "drops-fall-with-bandwidth",
        "Figure 4: the packet drop rate falls at higher bandwidths.",
        "lower at 1 Gbit/s than at 1 Mbit/s, and no step up by more than a point, with every queue",
        DROPS, BANDWIDTH,
        lambda found: all(
            values[-1] < values[0] and all(b - a <= 1 for a, b in pairwise(values))
            for values in found.values()
        ),
        _same([9, 8, 7, 6, 5, 4, 3, 2, 1, 0.5], CoDel=[9, 3, 9, 6, 5, 4, 3, 2, 1, 0.5]),
    ),
    _figure(
        "ftp-utilisation-rises",
        "Figure 5: the utilisation is low with few FTP flows and high with many.",
        "with 1 flow more than 10 points below that with 1000, with every queue",
        UTILISATION, FLOWS,
        lambda found: all(values[0] < values[-1] - 10 for values in found.values()),
        _same([60, 90, 90, 90, 90, 90, 90, 90], CoDel=[88.0] + [90.0] * 7),
    ),
    _figure(
        "ftp-aqms-alike",
        "Figure 5: over 1 to 1000 FTP flows the utilisation is almost the same for the three AQMs.",
        "within 5 points of each other at every number of flows",
        UTILISATION, FLOWS,
        lambda found: all(max(at) - min(at) <= 5 for at in _aqms(found)),
        _same([90.0] * 8, CoDel=[70.0] + [90.0] * 7),
    ),
    _figure(
        "ftp-droptail-degraded",
        "Figure 5: with DropTail the utilisation is severely degraded.",
        "more than 10 points below the lowest of the AQMs at every number of flows",
        UTILISATION, FLOWS,
        lambda found: all(
            min(at) - own > 10 for at, own in zip(_aqms(found), found["DropTail"], strict=True)
        ),
        _same([90.0] * 8, DropTail=[60.0, 60.0, *[89.0] * 6]),
    ),
    _figure(
        "ftp-droptail-queue-grows",
        "Figure 6: with DropTail the mean queue grows with the FTP flows.",
        "it more than doubles from 1 to 1000, and never falls by more than 10 %",
        QUEUE, FLOWS,
        lambda found: found["DropTail"][-1] > 2 * found["DropTail"][0]
        and all(b >= 0.9 * a for a, b in pairwise(found["DropTail"])),
        _same([5.0] * 8),
    ),
    *(_constant(queue) for queue in AQMS),
    _figure(
        "ftp-drops-low",
        "Figure 7: the drop rate is low with few FTP flows.",
        "at most 1 % with 1 and with 3, with every queue",
        DROPS, FLOWS,
        lambda found: all(max(values[:2]) <= 1 for values in found.values()),
        _same([0.5, 3.0, 5, 5, 5, 5, 5, 5]),
    ),
    _figure(
        "ftp-drops-jump",
        "Figure 7: as the load approaches 5 flows there is a spike in the drop rate.",
        "with 5 at least a point more than with 3, with every queue",
        DROPS, FLOWS,
        lambda found: all(v[2] >= v[1] + 1 for v in found.values()),
        _same([0.1, 0.2, 0.4, 0.8, 2, 4, 8, 16]),
    ),
    _figure(
        "rtt-utilisation-good",
        "Figure 8: below 100 ms the utilisation is fairly good for all AQMs.",
        "at least 80 % with each",
        UTILISATION, RTT,
        lambda found: all(value >= 80 for queue in AQMS for value in found[queue][:BELOW_100_MS]),
        _same([70, 95, 95, 95, 90, 60, 20]),
    ),
    _figure(
        "rtt-utilisation-falls",
        "Figure 8: the utilisation degrades further towards 1 s.",
        "from 100 over 300 ms to 1 s it falls with every queue",
        UTILISATION, RTT,
        lambda found: all(v[-3] > v[-2] > v[-1] for v in found.values()),
        _same([95, 95, 95, 95, 90, 91, 20]),
    ),
    _figure(
        "rtt-queue-falls",
        "Figure 9: the queue falls as the round-trip time rises.",
        "no step up by more than 10 %, with every queue",
        QUEUE, RTT,
        lambda found: all(_never_rises(values) for values in found.values()),
        _same([5, 5, 6, 7, 8, 9, 10]),
    ),
    _figure(
        "rtt-sfq-lowest",
        "Figure 9: sfqCoDel's queue is consistently better.",
        "it is the shortest at every round-trip time",
        QUEUE, RTT,
        lambda found: all(
            own < min(others) for own, others in zip(found[SFQ], _others(found), strict=True)
        ),
        _same([5.0] * 7),
    ),
    _figure(
        "rtt-sfq-much-lower",
        "Figure 9: sfqCoDel's queue is significantly better.",
        "its mean over the round-trip times is at least a quarter below that of any other",
        QUEUE, RTT,
        lambda found: fmean(found[SFQ])
        <= 0.75 * min(fmean(found[queue]) for queue in QUEUES if queue != SFQ),
        _same([5.0] * 7, sfqCoDel=[4.5] * 7),
    ),
    *(_drops_more(queue) for queue in AQMS),
    *(_sfq_drops_less(queue) for queue in AQMS if queue != SFQ),
)  # fmt: skip
