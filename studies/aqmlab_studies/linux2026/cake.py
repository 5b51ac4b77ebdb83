"""Connections through the kernel's CAKE: comparisons, tables, a statement for each case.

The recordings count the time in queue until a packet's transmission begins, a transmission before
it leaves. Where CAKE shapes, a packet leaves at once: one transmission is taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aqmlab.campaign import Asked, Rule, at_most
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.verdicts import AGREES, DIFFERS, Criterion
from aqmlab_studies.linux2026.recorded import (
    ACKS,
    COUNTS,
    DROPS,
    FLOWS,
    delays,
    drops,
    goodput,
    of_runs,
    recorded,
)
from aqmlab_studies.shared import mean_table

PACKET = 12.0
"""Bits of a packet, in thousands."""
UNITS = {"goodput": "Mbit/s", "delay": "ms", "drops": "packets"}
FITS = Criterion(
    text="the recorded mean is in the range of the simulated runs, or a delay within a packet's "
    "transmission or 10 % of their mean, a goodput within 5 % of the rate, drops within 15 %"
)


@dataclass(frozen=True)
class Reading:
    """A quantity of a case: one value a recorded and a simulated run."""

    kind: str
    key: str
    theirs: Floats
    ours: Floats
    tolerance: float

    @property
    def off(self) -> float:
        """Distance of the recorded mean from that of the simulated runs, as a multiple of what is
        allowed: the tolerance, or the way to the end of their range."""
        theirs, ours = float(self.theirs.mean()), float(self.ours.mean())
        end = float(self.ours.max()) if theirs > ours else float(self.ours.min())
        return abs(theirs - ours) / max(self.tolerance, abs(end - ours))

    @property
    def fits(self) -> bool:
        """Whether the recorded mean is where the simulated runs are."""
        return self.off <= 1


def rate_of(case: str) -> float:
    """Rate of the bottleneck, Mbit/s."""
    found = re.search(r"_(\d+)mbit", case)
    return float(found[1]) if found else 20.0


def is_shaped(case: str) -> bool:
    """True if CAKE shapes the bottleneck. Otherwise a packet waits for tokens below the queue."""
    return not re.match(r"cake-(besteffort_(bbr|cubic|reno)_|(no-)?ack-filter)", case)


def readings(measured: Measurements, case: str) -> list[Reading]:
    """All quantities of a recorded case."""
    kept = recorded(case)
    rate = rate_of(case)
    packet = PACKET / rate
    found = [
        Reading(
            "goodput", flow, of_runs(kept, flow), goodput(measured, flow, queue=case), rate / 20
        )
        for flow in FLOWS[: len(kept[0]["goodput"])]
    ]
    for key in ("p50", "p95", "mean"):
        ours = delays(measured, key, packet if is_shaped(case) else 0.0, queue=case)
        tolerance = max(packet, 0.1 * float(ours.mean()))
        found.append(Reading("delay", key, of_runs(kept, key), ours, tolerance))
    for key, link in ((DROPS, "down"), (ACKS, "up")):
        if COUNTS[key] in kept[0]:
            ours = drops(measured, link, queue=case)
            tolerance = max(1.0, 0.15 * float(ours.mean()))
            found.append(Reading("drops", key, of_runs(kept, key), ours, tolerance))
    return found


def compared(measured: Measurements) -> Iterator[tuple[str, list[Reading]]]:
    """The recorded cases that were run, with their quantities."""
    for case in measured.axes["queue"]:
        if recorded(case):
            yield case, readings(measured, case)


def tables(measured: Measurements) -> Iterator[CellTable]:
    """A table for each unit: our mean beside the recorded one."""
    found = [(case, each) for case, all_ in compared(measured.part("cake")) for each in all_]
    for kind, unit in UNITS.items():
        cells = [
            Cell.mean(
                case,
                each.key,
                float(each.theirs.mean()),
                each.ours,
                FITS,
                verdict=AGREES if each.fits else DIFFERS,
            )
            for case, each in found
            if each.kind == kind
        ]
        yield mean_table(f"cake-{kind}", f"CAKE: {kind}", unit, cells, "Linux 6.12")


def claims(measured: Measurements) -> list[Asked]:
    """Rules that all quantities of each case fit."""
    part = measured.part("cake")
    return [Asked(_rule(case), part) for case in part.axes["queue"] if recorded(case)]


def _rule(case: str) -> Rule[Measurements, list[Reading]]:
    return Rule(
        case,
        f"{case}: goodputs, delays and drops are as recorded.",
        "all are in the range of the simulated runs, or within the tolerance of the table",
        lambda measured: readings(measured, case),
        lambda found: [at_most(each.off, 1, each.key) for each in found],
        _told,
        own=True,
    )


def _told(found: list[Reading]) -> str:
    outside = [
        f"{each.key} {each.theirs.mean():.4g} ({each.ours.min():.4g} to {each.ours.max():.4g} "
        f"{UNITS[each.kind]})"
        for each in found
        if not each.fits
    ]
    more = f"; outside: {'; '.join(outside)}" if outside else ""
    return f"{len(found) - len(outside)} of {len(found)}{more}"
