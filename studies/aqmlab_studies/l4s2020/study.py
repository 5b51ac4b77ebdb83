"""The published tables beside ours, the corners beside the rules, and causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from aqmlab.campaign import Asked, Rule, at_least, at_most
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab_studies.l4s2020.causes import causes
from aqmlab_studies.l4s2020.law import by_the_rules, states
from aqmlab_studies.l4s2020.measured import FLOWS, goodput, published
from aqmlab_studies.shared import mean_table

__all__ = ["causes", "claims", "tables"]

STEP = 1.0
"""A fiftieth of the link, Mbit/s: what one run cannot tell apart."""
LAW = 0.3
"""The rules leave out so much: a share of the ratio."""
NEAR_LAW = Criterion(text=f"within {LAW:.0%} of what the rules give")

Pairs = list[tuple[tuple[float, float], tuple[float, float]]]
"""Published and measured goodput of both flows, of several cells."""
Ratios = list[tuple[float, float]]
"""Measured ratios and those of the rules."""


NEAR = Criterion(STEP)


def _scenario_1(measured: Measurements) -> Iterator[CellTable]:
    whole = measured.part("study")
    for queue in whole.axes["queue"]:
        cells = [
            Cell.mean(
                pair,
                f"{flow} flow",
                published("study")[queue][pair][at],
                goodput(whole, flow, queue=queue, pair=pair),
                NEAR,
            )
            for pair in whole.axes["pair"]
            for at, flow in enumerate(FLOWS)
        ]
        name = f"Scenario 1, {queue}: goodput of two flows"
        yield mean_table(queue.lower(), name, "Mbit/s", cells)


def _scenario_6(measured: Measurements) -> CellTable:
    classic = measured.part("classic")
    cells = [
        Cell.mean(
            queue,
            f"{'Prague' if at == 0 else 'the other'}, {beside}",
            published("classic")[queue][beside][at],
            goodput(classic, flow, queue=queue, beside=beside),
            NEAR,
        )
        for queue in classic.axes["queue"]
        for beside in classic.axes["beside"]
        for at, flow in enumerate(FLOWS)
    ]
    name = "Scenario 6, queues of RFC 3168: goodput of Prague and of the flow beside it"
    return mean_table("classic", name, "Mbit/s", cells)


def _corners(measured: Measurements) -> CellTable:
    corners = measured.part("corners")
    cells, notes = [], {}
    for rate in corners.axes["rate"]:
        told = []
        for rtt in corners.axes["rtt"]:
            found = states(corners, rate, rtt)
            ratios = np.array([each.ratio for each in found])
            law = float(np.mean([by_the_rules(each) for each in found]))
            band = (1 - LAW) * law, (1 + LAW) * law
            cells.append(Cell.mean(rate, rtt, law, ratios, NEAR_LAW, verdict=band))
            window = np.mean([each.windows[0] for each in found])
            steady = np.mean([each.steadiness for each in found])
            told.append(f"{rtt} {window:.0f}, {steady:.2f}")
        notes[rate] = "Prague's window in segments, variation of p': " + "; ".join(told)
    return mean_table(
        "corners",
        "Goodput of Prague over CUBIC's through DualPI2, by rate and round-trip time",
        "1",
        cells,
        "by the rules",
        notes,
    )


tables = (_scenario_1, _scenario_6, _corners)


def claims(measured: Measurements) -> list[Asked]:
    """What the publication's tables show, and what the rules explain."""
    return measured.asked(study=SCENARIO_1, classic=SCENARIO_6, corners=CORNERS)


def _pairs(whole: Measurements, queue: str, controls: Sequence[str], same: bool) -> Pairs | None:
    """The cells of a queue with these controls, in either order; `same` round-trip times or any."""
    if not whole.has(queue=queue):
        return None
    found: Pairs = []
    for pair in whole.axes["pair"]:
        first, second = (each.split(" ", 1) for each in pair.split(", "))
        if sorted((first[0], second[0])) != sorted(controls) or same > (first[1] == second[1]):
            continue
        theirs = published("study")[queue][pair]
        ours = [float(goodput(whole, flow, queue=queue, pair=pair).mean()) for flow in FLOWS]
        found.append(((theirs[0], theirs[1]), (ours[0], ours[1])))
    return found or None


def _factors(found: Pairs) -> list[float]:
    """The factors between the published ratios of two flows and ours."""
    factors = [(p[0] / p[1]) / (o[0] / o[1]) for p, o in found]
    return [max(each, 1 / each) for each in factors]


def _told(found: Pairs) -> str:
    return f"at most a factor of {max(_factors(found)):.2f} over {len(found)} pairs"


def _ratio_rule(
    ident: str, text: str, queue: str, controls: Sequence[str], factor: float, same: bool = False
) -> Rule[Measurements, Pairs]:
    return Rule(
        ident,
        text,
        f"the ratio of the two goodputs within a factor of {factor:g} of the published one",
        lambda whole: _pairs(whole, queue, controls, same),
        lambda found: [at_most(each, factor) for each in _factors(found)],
        _told,
        [((30.0, 10.0), (10.0, 30.0))],
    )


BOTH = ("Prague", "CUBIC")
SCENARIO_1: tuple[Rule[Measurements, Pairs], ...] = (
    _ratio_rule(
        "coupling",
        "DualPI2 divides the link between Prague and CUBIC as published, at any two round-trip "
        "times from 10 to 160 ms.",
        "DualPI2",
        BOTH,
        1.35,
    ),
    _ratio_rule(
        "dualpi2-cubic",
        "Two of CUBIC share DualPI2 as published.",
        "DualPI2",
        ("CUBIC", "CUBIC"),
        1.35,
    ),
    _ratio_rule(
        "dualpi2-prague",
        "Two Pragues without a virtual round-trip time share it as published.",
        "DualPI2",
        ("Prague", "Prague"),
        2.0,
    ),
    _ratio_rule(
        "fifo-cubic", "Two of CUBIC share a FIFO as published.", "FIFO", ("CUBIC", "CUBIC"), 1.35
    ),
    _ratio_rule(
        "fifo-prague",
        "CUBIC leaves Prague in a FIFO as much as published.",
        "FIFO",
        BOTH,
        2.0,
    ),
    _ratio_rule("fq-codel", "FQ-CoDel gives both flows the same.", "FQ-CoDel", BOTH, 1.1),
)


def _over_classic(classic: Measurements) -> list[float] | None:
    """Prague's goodput over the other's, of every cell."""
    return [
        float(
            goodput(classic, "first", queue=queue, beside=beside).mean()
            / goodput(classic, "second", queue=queue, beside=beside).mean()
        )
        for queue in classic.axes["queue"]
        for beside in classic.axes["beside"]
    ]


SCENARIO_6: tuple[Rule[Measurements, list[float]], ...] = (
    Rule(
        "classic",
        "In a single queue of RFC 3168 Prague takes nearly all of the link.",
        "at least ten times the goodput of the flow beside it in every cell (published: 20 to 60)",
        _over_classic,
        lambda found: [at_least(each, 10) for each in found],
        lambda found: f"{min(found):.1f} to {max(found):.1f} times, {len(found)} cells",
        [40.0, 1.0],
    ),
)


def _warm(corners: Measurements) -> Ratios | None:
    """The cells in which marks are rare, windows large and p' steady: there the rules hold."""
    found: Ratios = []
    for rate in corners.axes["rate"]:
        for rtt in corners.axes["rtt"]:
            runs = states(corners, rate, rtt)
            if all(each.windows[0] >= 15 and each.steadiness < 2 for each in runs):
                mean = float(np.mean([each.ratio for each in runs]))
                found.append((mean, float(np.mean([by_the_rules(each) for each in runs]))))
    return found or None


CORNERS: tuple[Rule[Measurements, Ratios], ...] = (
    Rule(
        "rules",
        "Where Prague's window has at least 15 segments and p' is steady, the rules of the drafts "
        "give the ratio of Prague beside CUBIC.",
        f"within {100 * LAW:.0f} % in three of four cells",
        _warm,
        lambda found: at_least(
            sum(abs(ours - law) <= LAW * law for ours, law in found) / len(found), 0.75, "share"
        ),
        lambda found: (
            f"{sum(abs(ours - law) <= LAW * law for ours, law in found)} of {len(found)} cells"
        ),
        [(1.0, 3.0), (2.0, 2.0)],
        own=True,
    ),
)
