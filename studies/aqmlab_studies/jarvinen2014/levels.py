"""Statements of section V that set one queue's level beside another's, or beside its own.

They were added after the others, when the medians of the page were known: their limits are not
blind.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from aqmlab.campaign import Rule, at_least, at_most, below, within
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.jarvinen2014.cells import (
    ALL,
    CODEL,
    HARSH,
    HRED,
    PIES,
    SFQ,
    SINGLE,
    STEP,
    Cells,
    Value,
    cells,
    growth,
    middle,
    of,
    p95,
    range_of,
    rows,
    several,
    share_of,
    spike,
    told_ms,
    worst,
)
from aqmlab_studies.jarvinen2014.figures import FLOWS


def _same_order(found: Cells) -> tuple[int, int]:
    """Pairs of queues at one load whose 95th percentiles are more than a packet apart: those
    with the same order of the largest delays, and all."""
    kept = pairs = 0
    for load in FLOWS:
        for one, other in combinations(ALL, 2):
            apart, worst_apart = (
                found[f"{one}, {name}", load] - found[f"{other}, {name}", load]
                for name in ("p95", "worst")
            )
            if abs(apart) > 1.001 * STEP:
                pairs += 1
                kept += apart * worst_apart > 0
    return kept, pairs


def _same_trend(found: Cells) -> tuple[int, int]:
    """Steps from one load to the next in which spikes and largest delays move the same way, and
    all steps."""
    moves = [
        (b - a) * (d - c)
        for queue in SINGLE
        for name in ("above60", "above100")
        for (a, b), (c, d) in zip(
            pairwise(of(found, f"{queue}, {name}")),
            pairwise(of(found, f"{queue}, middle")),
            strict=True,
        )
    ]
    return sum(move > 0 for move in moves), len(moves)


def _named(**numbers: dict[str, Sequence[float]]) -> Cells:
    """Cells in seconds from milliseconds, by the name of the number and the queue."""
    return {
        (f"{queue}, {name}", load): each / 1e3
        for name, queues in numbers.items()
        for queue, row in queues.items()
        for load, each in zip(FLOWS, row, strict=True)
    }


def _equal_with_one(
    name: str,
    statement: str,
    numbers: str,
    value: Value,
    queues: tuple[str, str],
    wrong: tuple[float, float],
) -> Rule[Measurements, Cells]:
    """Two queues are roughly equal with 1+1 flows."""
    load = FLOWS[0]
    one, other = queues
    return Rule(
        name,
        statement,
        f"{numbers} are within 10 %",
        cells(value, queues, [load]),
        lambda found: within(found[one, load] / found[other, load], 1, 0.10, "ratio"),
        told_ms,
        {(one, load): wrong[0], (other, load): wrong[1]},
    )


LEVELS: tuple[Rule[Measurements, Cells], ...] = (
    Rule(
        "codel-maximum-grows",
        "Section V: with CoDel the maximum delay, too, increases significantly with the number of "
        "flows.",
        "the median of the largest delay of a run is at 6+6 flows at least 1.5 times that at 1+1",
        cells(middle, (CODEL,)),
        lambda found: at_least(growth(found, CODEL), 1.5, "growth"),
        told_ms,
        rows(CoDel=(120, 120, 130, 140)),
    ),
    Rule(
        "hred-keeps-level",
        "Section V: HRED retains its performance level significantly better than CoDel when the "
        "number of flows increases.",
        "from 1+1 to 6+6 flows its 95th percentile grows by less than half of the share by which "
        "CoDel's grows",
        cells(p95, (HRED, CODEL)),
        lambda found: below(
            growth(found, HRED) - 1 - 0.5 * (growth(found, CODEL) - 1), 0, "HRED less half of CoDel"
        ),
        told_ms,
        rows(HRED=(100, 110, 120, 150), CoDel=(90, 110, 130, 150)),
    ),
    Rule(
        "hred-more-stable-than-pie",
        "Section V: HRED is even more stable than PIE with increasing load.",
        "the largest of its four 95th percentiles is a multiple of the smallest that is at least "
        "10 % smaller than with both variants of PIE",
        cells(p95, (HRED, *PIES)),
        lambda found: [
            at_most(range_of(found, HRED) / range_of(found, pie), 0.9, pie) for pie in PIES
        ],
        told_ms,
        rows(
            HRED=(120, 126, 132, 160),
            PIEupdate=(234, 240, 246, 252),
            PIEthresh=(198, 216, 246, 270),
        ),
    ),
    _equal_with_one(
        "aggressive-equal-with-one",
        "Section V: with 1+1 flows the high-end delays of aggressive HRED and CoDel are roughly "
        "equal.",
        "the 95th percentiles",
        p95,
        (HARSH, CODEL),
        (0.120, 0.090),
    ),
    _equal_with_one(
        "sfq-median-with-one",
        "Section V: with 1+1 flows the median of SFQ CoDel's maximum delay is roughly equal to "
        "CoDel's.",
        "the medians of the largest delay of a run",
        middle,
        (SFQ, CODEL),
        (0.090, 0.120),
    ),
    Rule(
        "worst-as-percentiles",
        "Table III: the worst-case delays follow mostly the same pattern as the other high-end "
        "delays.",
        "of the pairs of queues at one load whose 95th percentiles are more than a packet apart, "
        "three quarters have their largest delays of 100 replications in the same order",
        several({"{}, p95": cells(p95, ALL), "{}, worst": cells(worst, ALL)}),
        lambda found: at_least(share_of(_same_order(found)), 0.75, "share"),
        lambda found: f"{_same_order(found)[0]} of {_same_order(found)[1]} pairs",
        _named(
            p95={queue: (60 + 20 * ALL.index(queue),) * 4 for queue in ALL},
            worst={queue: (400 - 20 * ALL.index(queue),) * 4 for queue in ALL},
        ),
    ),
    Rule(
        "spikes-as-maxima",
        "Figures 4, 5: the trends of the spikes' durations are similar to those of the maximum "
        "delay (figure 3).",
        "from one load to the next the medians of the longest spike above 60 and above 100 ms "
        "move the same way as the median of the largest delay in eight of ten cases",
        several(
            {
                "{}, middle": cells(middle, SINGLE),
                "{}, above60": cells(spike(60), SINGLE),
                "{}, above100": cells(spike(100), SINGLE),
            }
        ),
        lambda found: at_least(share_of(_same_trend(found)), 0.8, "share"),
        lambda found: f"in {_same_trend(found)[0]} of {_same_trend(found)[1]} cases",
        _named(
            middle=dict.fromkeys(SINGLE, (100, 120, 140, 160)),
            above60=dict.fromkeys(SINGLE, (400, 300, 200, 100)),
            above100=dict.fromkeys(SINGLE, (100, 110, 120, 130)),
        ),
    ),
)
