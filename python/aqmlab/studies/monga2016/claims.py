"""The statements of the paper, checked one by one.

Each check is a rule fixed in advance and told in its evidence. It is applied to the sweeps as
the paper has them, which decides the verdict, and again without a limit of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.statistics import FAILS, HOLDS, PARTLY
from aqmlab.studies.monga2016.sweeps import (
    AQMS,
    BANDWIDTH,
    DROPS,
    FILL,
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

Series = dict[str, list[float]]


@dataclass(frozen=True)
class Finding:
    """What a rule says of a part of the study: the answers to its parts, and the numbers."""

    answers: tuple[bool | None, ...]
    """Whether each part of the statement is so; None: here and there."""
    numbers: str

    @property
    def verdict(self) -> str:
        """All of it, a part of it, or nothing."""
        if all(self.answers):
            return HOLDS
        return FAILS if all(each is False for each in self.answers) else PARTLY


@dataclass(frozen=True)
class Check:
    """A statement, and the rule by which it is checked."""

    id: str
    text: str
    rule: str
    find: Callable[[Points], Finding]

    def claim(self, measured: Measurements) -> Claim:
        """The statement with its verdict."""
        found = self.find(document(measured))
        evidence = f"Rule: {self.rule} Found: {found.numbers}"
        other = unlimited(measured)
        if other and all(other.places(sweep) for sweep in SWEEPS):
            free = self.find(other)
            evidence += f" Without a limit of the window: {free.verdict}. {free.numbers}"
        return Claim(self.id, self.text, found.verdict, evidence)


def claims(measured: Measurements) -> list[Claim]:
    """All statements, if all queues and places were run."""
    points = document(measured)
    complete = all(len(points.places(sweep)) == len(sweep.places) for sweep in SWEEPS)
    return [check.claim(measured) for check in CHECKS] if complete else []


def _series(points: Points, metric: Metric, sweep: Sweep) -> Series:
    places = points.places(sweep)
    return {queue: points.along(metric, queue, places) for queue in QUEUES}


def _told(series: Series, metric: Metric, points: Points, sweep: Sweep) -> str:
    """`utilisation in % at 1, 2, 5 Mbit/s: DropTail 100, ..; CoDel ..`."""
    ats = ", ".join(f"{sweep.places[place]:g}" for place in points.places(sweep))
    each = "; ".join(f"{queue} {metric.text(values)}" for queue, values in series.items())
    return f"{metric.title} in {metric.unit} at {ats} {sweep.unit}: {each}."


def _some(hits: Sequence[bool]) -> bool | None:
    """True if all, False if none, None if some."""
    return True if all(hits) else None if any(hits) else False


def _answers(names: Sequence[str], answers: Sequence[bool | None]) -> str:
    words = {True: "yes", False: "no", None: "here and there"}
    return "; ".join(f"{n}: {words[a]}" for n, a in zip(names, answers, strict=True)) + ". "


def _bandwidth_utilisation(points: Points) -> Finding:
    series = _series(points, UTILISATION, BANDWIDTH)
    rises = [b - a for values in series.values() for a, b in pairwise(values)]
    falls = all(values[-1] < values[0] / 2 for values in series.values()) and max(rises) <= 5
    ahead = [
        ours - max(others)
        for ours, *others in zip(series[SFQ], *(series[q] for q in QUEUES if q != SFQ), strict=True)
    ]
    best = min(ahead) >= -1 and max(ahead) > 1
    names = (f"falls (largest rise {max(rises):.1f} points)", "sfqCoDel best")
    numbers = _answers(names, (falls, best)) + (
        f"sfqCoDel is {max(ahead):.1f} points ahead at most, {-min(ahead):.1f} behind at most; "
    )
    return Finding((falls, best), numbers + _told(series, UTILISATION, points, BANDWIDTH))


def _bandwidth_queue(points: Points) -> Finding:
    series, fill = _series(points, QUEUE, BANDWIDTH), _series(points, FILL, BANDWIDTH)
    falls = _some([values[-1] < values[0] for values in series.values()])
    slow = [i for i, p in enumerate(points.places(BANDWIDTH)) if BANDWIDTH.places[p] <= 10]
    lowest = _some(
        [series[SFQ][i] <= 0.5 * min(series[q][i] for q in QUEUES if q != SFQ) for i in slow]
    )
    droptail = series["DropTail"]
    rises = max(droptail) > 1.1 * droptail[0]
    names = ("falls", "sfqCoDel far lowest up to 10 Mbit/s", "DropTail first rises")
    answers = (falls, lowest, rises)
    numbers = _answers(names, answers) + _told(series, QUEUE, points, BANDWIDTH)
    by_share = _some([values[-1] < values[0] for values in fill.values()])
    word = {True: "it falls", False: "it does not fall", None: "it falls for some"}[by_share]
    return Finding(
        answers,
        f"{numbers} As a share of the buffer {word}: DropTail {FILL.text(fill['DropTail'])} %; "
        f"CoDel {FILL.text(fill['CoDel'])} %.",
    )


def _bandwidth_drops(points: Points) -> Finding:
    series = _series(points, DROPS, BANDWIDTH)
    spreads = [max(at) - min(at) for at in zip(*series.values(), strict=True)]
    alike = _some([spread <= 2 for spread in spreads])
    droptail = series["DropTail"]
    lower = _some(
        [
            series[queue][i] <= droptail[i] + 0.1
            for queue in ("CoDel", SFQ)
            for i in range(len(droptail))
        ]
    )
    names = (f"alike (largest spread {max(spreads):.1f} points)", "CoDel and sfqCoDel not above")
    return Finding(
        (alike, lower),
        _answers(names, (alike, lower)) + _told(series, DROPS, points, BANDWIDTH),
    )


def _flows_utilisation(points: Points) -> Finding:
    series = _series(points, UTILISATION, FLOWS)
    aqms = list(zip(*(series[queue] for queue in AQMS), strict=True))
    alike = _some([max(at) - min(at) <= 5 for at in aqms])
    worse = [min(at) - own for at, own in zip(aqms, series["DropTail"], strict=True)]
    degraded = _some([each > 10 for each in worse])
    names = ("the AQMs alike", "DropTail degraded")
    where = [
        f"{FLOWS.places[place]:g}"
        for place, each in zip(points.places(FLOWS), worse, strict=True)
        if each > 10
    ]
    told = f"DropTail is degraded at {', '.join(where)} flows; " if where else ""
    return Finding(
        (alike, degraded),
        _answers(names, (alike, degraded)) + told + _told(series, UTILISATION, points, FLOWS),
    )


def _flows_queue(points: Points) -> Finding:
    series = _series(points, QUEUE, FLOWS)
    droptail = series["DropTail"]
    grows = droptail[-1] > 2 * droptail[0] and all(b >= 0.9 * a for a, b in pairwise(droptail))
    ratios = {queue: max(series[queue]) / min(series[queue]) for queue in AQMS}
    constant = _some([ratio <= 2 for ratio in ratios.values()])
    names = ("DropTail's grows", "the AQMs' stay")
    spans = "; ".join(f"{queue} {ratio:.0f}" for queue, ratio in ratios.items())
    return Finding(
        (grows, constant),
        _answers(names, (grows, constant))
        + f"largest over smallest: {spans}; "
        + _told(series, QUEUE, points, FLOWS),
    )


def _flows_drops(points: Points) -> Finding:
    series = _series(points, DROPS, FLOWS)
    low = _some([max(values[0], values[1]) <= 1 for values in series.values()])
    jumps = _some([values[3] >= values[1] + 1 for values in series.values()])
    names = ("low with 1 and 3", "higher by a point with 10")
    return Finding(
        (low, jumps), _answers(names, (low, jumps)) + _told(series, DROPS, points, FLOWS)
    )


def _rtt_utilisation(points: Points) -> Finding:
    series = _series(points, UTILISATION, RTT)
    numbers = [RTT.places[place] for place in points.places(RTT)]
    short = [i for i, number in enumerate(numbers) if number < 100]
    good = _some([values[i] >= 80 for values in series.values() for i in short])
    at = numbers.index(100)
    falls = _some([values[at] > values[at + 1] > values[at + 2] for values in series.values()])
    names = ("good below 100 ms", "falls to 1 s")
    return Finding(
        (good, falls), _answers(names, (good, falls)) + _told(series, UTILISATION, points, RTT)
    )


def _rtt_queue(points: Points) -> Finding:
    series, fill = _series(points, QUEUE, RTT), _series(points, FILL, RTT)
    falls = _some([_never_rises(values) for values in series.values()])
    lowest = _some(
        [
            ours <= 1.05 * min(others)
            for ours, *others in zip(
                series[SFQ], *(series[q] for q in QUEUES if q != SFQ), strict=True
            )
        ]
    )
    names = ("falls", "sfqCoDel lowest")
    by_share = sum(_never_rises(values) for values in fill.values())
    shares = "; ".join(f"{queue} {FILL.text(values)}" for queue, values in fill.items())
    return Finding(
        (falls, lowest),
        _answers(names, (falls, lowest))
        + _told(series, QUEUE, points, RTT)
        + f" As a share of the buffer, in %, it falls for {by_share} of 4 queues: {shares}.",
    )


def _never_rises(values: Sequence[float]) -> bool:
    return all(b <= 1.1 * a for a, b in pairwise(values))


def _rtt_drops(points: Points) -> Finding:
    series = _series(points, DROPS, RTT)
    dropping = [i for i in range(len(series[SFQ])) if max(v[i] for v in series.values()) > 0.01]
    more = _some([series[q][i] > series["DropTail"][i] for q in AQMS for i in dropping])
    less = _some(
        [series[SFQ][i] < min(series["CoDel"][i], series["CoDel-DT"][i]) for i in dropping]
    )
    names = ("the AQMs drop more than DropTail", "sfqCoDel less than the other two")
    return Finding((more, less), _answers(names, (more, less)) + _told(series, DROPS, points, RTT))


def _conclusion(points: Points) -> Finding:
    places = list(dict.fromkeys(place for sweep in SWEEPS for place in points.places(sweep)))
    wins: dict[str, int] = {}
    best = 0
    for place in places:
        at = {m: {q: points.mean(m, q, place) for q in QUEUES} for m in (UTILISATION, QUEUE, DROPS)}
        good = {
            UTILISATION: at[UTILISATION][SFQ] >= max(at[UTILISATION].values()) - 1,
            QUEUE: at[QUEUE][SFQ] <= 1.1 * min(at[QUEUE].values()),
            DROPS: at[DROPS][SFQ] <= min(at[DROPS].values()) + 0.1,
        }
        for metric, won in good.items():
            wins[metric.title] = wins.get(metric.title, 0) + won
        best += all(good.values())
    share = best / len(places)
    told = ", ".join(f"{name} {count}" for name, count in wins.items())
    return Finding(
        (True if share >= 0.9 else None if share >= 0.5 else False,),
        f"Of {len(places)} points sfqCoDel is best or as good in all three at {best}; in each "
        f"alone: {told}.",
    )


CHECKS = (
    Check(
        "utilisation-falls-with-bandwidth",
        "Figure 2: the utilisation falls for all queues as the bandwidth rises, least with "
        "sfqCoDel.",
        "at 1 Gbit/s less than half of that at 1 Mbit/s, and no step up by more than 5 points; "
        "sfqCoDel nowhere more than a point below the best, and somewhere more than a point ahead.",
        _bandwidth_utilisation,
    ),
    Check(
        "queue-falls-with-bandwidth",
        "Figure 3: the mean queue falls as the bandwidth rises; sfqCoDel's is far lowest at low "
        "bandwidths; DropTail's first rises.",
        "shorter at 1 Gbit/s than at 1 Mbit/s; sfqCoDel's at most half of any other's up to "
        "10 Mbit/s; DropTail's largest more than 10 % above that at 1 Mbit/s.",
        _bandwidth_queue,
    ),
    Check(
        "drops-similar",
        "Figure 4: the drop rates are almost the same, slightly lower for CoDel and sfqCoDel.",
        "at each bandwidth all within 2 points; CoDel's and sfqCoDel's not more than 0.1 points "
        "above DropTail's.",
        _bandwidth_drops,
    ),
    Check(
        "ftp-utilisation",
        "Figure 5: over 1 to 1000 FTP flows the utilisation is nearly the same for the three AQMs; "
        "DropTail's is severely degraded.",
        "the three within 5 points; DropTail's more than 10 points below the lowest of them.",
        _flows_utilisation,
    ),
    Check(
        "ftp-queue",
        "Figure 6: the mean queue grows with the FTP flows under DropTail and stays almost "
        "constant under the AQMs.",
        "DropTail's more than doubles and never falls by more than 10 %; an AQM's largest is at "
        "most twice its smallest.",
        _flows_queue,
    ),
    Check(
        "ftp-drops",
        "Figure 7: the drop rate is low with few flows, and jumps as the load approaches 5 flows.",
        "at most 1 % with 1 and 3 flows; with 10 at least one point more than with 3.",
        _flows_drops,
    ),
    Check(
        "rtt-utilisation",
        "Figure 8: the utilisation is good for RTT < 100 ms and degrades toward 1 s.",
        "at least 80 % below 100 ms; from 100 over 300 ms to 1 s it falls.",
        _rtt_utilisation,
    ),
    Check(
        "rtt-queue",
        "Figure 9: the queue falls with the RTT; sfqCoDel's is lowest.",
        "no step up by more than 10 %; sfqCoDel's at most 5 % above the lowest.",
        _rtt_queue,
    ),
    Check(
        "rtt-drops",
        "Figure 10: the AQMs drop more than DropTail, sfqCoDel less than CoDel and CoDel-DT.",
        "at each RTT with more than 0.01 % of drops.",
        _rtt_drops,
    ),
    Check(
        "conclusion",
        "The conclusion: in almost all scenarios sfqCoDel is better than the others in "
        "utilisation, mean queue and drop rate.",
        "at nine of ten points in all three at once (half: in part), where as good means within "
        "a point of utilisation, 10 % of the queue, and 0.1 points of drops.",
        _conclusion,
    ),
)
