"""The statements of the abstract and the conclusion, and those of section V that set one queue's
level beside another's, or beside its own.

Every rule of the former was written before the result of this study was looked at (README.md); four
were made stricter since: equal queues fail each of them. Those of section V were added after the
others, when the medians of the page were known: their limits are not blind.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from aqmlab.campaign import above, at_least, at_most, below, within
from aqmlab_studies.jarvinen2014.cells import (
    ALL,
    CODEL,
    HARSH,
    HRED,
    PIES,
    SFQ,
    SINGLE,
    STEP,
    CellRule,
    Cells,
    cells,
    growth,
    in_most,
    lower,
    middle,
    of,
    p95,
    range_of,
    rows,
    same_order,
    several,
    spike,
    statement,
    worst,
)
from aqmlab_studies.jarvinen2014.figures import FLOWS

MANY = FLOWS[2:]
"""More than a few simultaneous flows: 4+4 and 6+6."""


HEADLINE: tuple[CellRule, ...] = (
    statement(
        "codel-does-not-scale",
        "Abstract, conclusion: CoDel's auto-tuning does not scale well with the load. The high-end "
        "delay more than doubles.",
        "the 95th percentile of the delay with 6+6 flows is more than twice that with 1+1",
        cells(p95, (CODEL,)),
        lambda found: above(growth(found, CODEL), 2.0, "growth"),
        rows(CoDel=(90, 100, 110, 120)),
    ),
    statement(
        "hred-better-than-codel",
        "Abstract: HRED has lower high-end delays than CoDel when more than a few flows share the "
        "bottleneck.",
        "with 4+4 and with 6+6 flows its 95th percentile is lower by more than a packet (6 ms)",
        cells(p95, (HRED, CODEL), MANY),
        lambda found: lower(found, HRED, (CODEL,), MANY),
        {(HRED, "4+4"): 0.17, (HRED, "6+6"): 0.13, (CODEL, "4+4"): 0.17, (CODEL, "6+6"): 0.24},
    ),
    statement(
        "hred-better-than-pie",
        "Abstract: HRED has lower high-end delays than PIE when more than a few flows share the "
        "bottleneck.",
        "with 4+4 and with 6+6 flows its 95th percentile is lower than that of both variants of "
        "PIE by more than a packet (6 ms)",
        cells(p95, (HRED, *PIES), MANY),
        lambda found: lower(found, HRED, PIES, MANY),
        {
            (HRED, "4+4"): 0.13, (HRED, "6+6"): 0.27, ("PIEupdate", "4+4"): 0.29,
            ("PIEupdate", "6+6"): 0.33, ("PIEthresh", "4+4"): 0.24, ("PIEthresh", "6+6"): 0.27,
        },
    ),
    statement(
        "pie-worst",
        "Conclusion: PIE performs worst with every number of flows.",
        "at every load the 95th percentile of both variants of PIE is above that of every other "
        "single queue by more than a packet (6 ms)",
        cells(p95, SINGLE),
        lambda found: [
            each
            for queue in SINGLE if queue not in PIES
            for each in lower(found, queue, PIES, FLOWS)
        ],
        rows(
            CoDel=(90, 126, 170, 280), PIEupdate=(234, 252, 294, 332),
            PIEthresh=(198, 216, 246, 270), HRED=(120, 126, 132, 132),
            **{"HRED (aggressive)": (96, 96, 108, 109)},
        ),
    ),
    statement(
        "pie-scales-better",
        "Conclusion: PIE scales better than CoDel when the number of flows increases.",
        "the factor by which the 95th percentile grows from 1+1 to 6+6 flows is with both variants "
        "of PIE at least 10 % smaller than with CoDel",
        cells(p95, (CODEL, *PIES)),
        lambda found: [
            at_most(growth(found, pie) / growth(found, CODEL), 0.9, pie) for pie in PIES
        ],
        rows(
            CoDel=(90, 126, 170, 180), PIEupdate=(234, 252, 294, 332),
            PIEthresh=(90, 126, 170, 246),
        ),
    ),
    statement(
        "hred-best-single",
        "Conclusion: of the single queues HRED is the best, except with 1+1 flows.",
        "with 2+2, 4+4 and 6+6 flows neither CoDel nor PIE has a 95th percentile that is lower by "
        "more than a packet, and the mean of HRED's three is lower by more than a packet",
        cells(p95, (HRED, CODEL, *PIES), FLOWS[1:]),
        lambda found: [
            *(
                at_least(found[queue, load] - found[HRED, load], -STEP, f"{queue}, {load}")
                for queue in (CODEL, *PIES)
                for load in FLOWS[1:]
            ),
            *(
                above(
                    fmean(of(found, queue, FLOWS[1:])) - fmean(of(found, HRED, FLOWS[1:])),
                    STEP,
                    f"{queue}, mean",
                )
                for queue in (CODEL, *PIES)
            ),
        ],
        {(queue, load): 0.15 for queue in (HRED, CODEL, *PIES) for load in FLOWS[1:]},
    ),
    statement(
        "codel-equal-with-one",
        "Conclusion: with 1+1 flows CoDel is equal to HRED or slightly better.",
        "its 95th percentile is not above HRED's by more than a packet, nor below two thirds of it",
        cells(p95, (CODEL, HRED), FLOWS[:1]),
        lambda found: [
            at_least(found[CODEL, "1+1"] / found[HRED, "1+1"], 2 / 3, "ratio"),
            at_most(found[CODEL, "1+1"] - found[HRED, "1+1"], STEP, "difference"),
        ],
        {(CODEL, "1+1"): 0.05, (HRED, "1+1"): 0.12},
    ),
    statement(
        "hred-unaffected",
        "Conclusion: with HRED the high-end delay is not affected by the number of flows almost "
        "at all.",
        "the largest of the four 95th percentiles is at most 15 % above the smallest",
        cells(p95, (HRED,)),
        lambda found: at_most(range_of(found, HRED), 1.15, "largest over smallest"),
        rows(HRED=(100, 105, 110, 120)),
    ),
)  # fmt: skip


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


LEVELS: tuple[CellRule, ...] = (
    statement(
        "codel-maximum-grows",
        "Section V: with CoDel the maximum delay, too, increases significantly with the number of "
        "flows.",
        "the median of the largest delay of a run is at 6+6 flows at least 1.5 times that at 1+1",
        cells(middle, (CODEL,)),
        lambda found: at_least(growth(found, CODEL), 1.5, "growth"),
        rows(CoDel=(120, 120, 130, 140)),
    ),
    statement(
        "hred-keeps-level",
        "Section V: HRED retains its performance level significantly better than CoDel when the "
        "number of flows increases.",
        "from 1+1 to 6+6 flows its 95th percentile grows by less than half of the share by which "
        "CoDel's grows",
        cells(p95, (HRED, CODEL)),
        lambda found: below(
            growth(found, HRED) - 1 - 0.5 * (growth(found, CODEL) - 1), 0, "HRED less half of CoDel"
        ),
        rows(HRED=(100, 110, 120, 150), CoDel=(90, 110, 130, 150)),
    ),
    statement(
        "hred-more-stable-than-pie",
        "Section V: HRED is even more stable than PIE with increasing load.",
        "the largest of its four 95th percentiles is a multiple of the smallest that is at least "
        "10 % smaller than with both variants of PIE",
        cells(p95, (HRED, *PIES)),
        lambda found: [
            at_most(range_of(found, HRED) / range_of(found, pie), 0.9, pie) for pie in PIES
        ],
        rows(
            HRED=(120, 126, 132, 160),
            PIEupdate=(234, 240, 246, 252),
            PIEthresh=(198, 216, 246, 270),
        ),
    ),
    statement(
        "aggressive-equal-with-one",
        "Section V: with 1+1 flows the high-end delays of aggressive HRED and CoDel are roughly "
        "equal.",
        "the 95th percentiles are within 10 %",
        cells(p95, (HARSH, CODEL), FLOWS[:1]),
        lambda found: within(found[HARSH, "1+1"] / found[CODEL, "1+1"], 1, 0.10, "ratio"),
        {(HARSH, "1+1"): 0.120, (CODEL, "1+1"): 0.090},
    ),
    statement(
        "sfq-median-with-one",
        "Section V: with 1+1 flows the median of SFQ CoDel's maximum delay is roughly equal to "
        "CoDel's.",
        "the medians of the largest delay of a run are within 10 %",
        cells(middle, (SFQ, CODEL), FLOWS[:1]),
        lambda found: within(found[SFQ, "1+1"] / found[CODEL, "1+1"], 1, 0.10, "ratio"),
        {(SFQ, "1+1"): 0.090, (CODEL, "1+1"): 0.120},
    ),
    in_most(
        "worst-as-percentiles",
        "Table III: the worst-case delays follow mostly the same pattern as the other high-end "
        "delays.",
        "of the pairs of queues at one load whose 95th percentiles are more than a packet apart, "
        "three quarters have their largest delays of 100 replications in the same order",
        several({"{}, p95": cells(p95, ALL), "{}, worst": cells(worst, ALL)}),
        lambda found: same_order(
            found, ALL, ("{}, p95", "{}, worst"), lambda p95, _: abs(p95) > 1.001 * STEP
        ),
        0.75,
        _named(
            p95={queue: (60 + 20 * ALL.index(queue),) * 4 for queue in ALL},
            worst={queue: (400 - 20 * ALL.index(queue),) * 4 for queue in ALL},
        ),
    ),
    in_most(
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
        _same_trend,
        0.8,
        _named(
            middle=dict.fromkeys(SINGLE, (100, 120, 140, 160)),
            above60=dict.fromkeys(SINGLE, (400, 300, 200, 100)),
            above100=dict.fromkeys(SINGLE, (100, 110, 120, 130)),
        ),
        "in {} of {} cases",
    ),
)
