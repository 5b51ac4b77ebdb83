"""Recordings (`recorded.json`), and the same quantities of our runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aqmlab.campaign import Rule, at_least
from aqmlab.metrics.samples import Floats, weighted_quantile
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.shared import packed

FILE = Path(__file__).parent / "recorded.json"
SHARES = (5, 25, 50, 75, 95, 99)
"""The percentiles of the time in queue that are compared."""
BEGINS = 5
"""From this second on everything is measured but drops and the course."""
FLOWS = ("first", "second", "third", "fourth", "fifth")
"""Names of the flows; all cases but some of CAKE have the first two."""
PAIR = FLOWS[:2]
DROPS, ACKS = "drops", "ACKs dropped"
COUNTS = {DROPS: "drops", ACKS: "back"}
"""Numbers of dropped packets, and their keys in the recordings."""
SHARE = 0.9
"""Share of the cells of a case, and of the seconds of its course, that have to be inside."""
CONTROLS = {"BBR": "bbr", "CUBIC": "cubic", "Reno": "reno"}
QUEUES = {"pfifo": "pfifo", "CoDel": "codel", "FQ-CoDel": "fq_codel", "PIE": "pie"}
PATHS = {"10 Mbit/s": "10mbit_80ms", "100 Mbit/s": "100mbit_10ms"}


def case_of(control: str, queue: str) -> str:
    """The name of a case in the recordings, from the labels of the axes."""
    name, path = queue.split(", ")
    return f"{CONTROLS[control]}_{QUEUES[name]}_{PATHS[path]}"


def transmission(queue: str) -> float:
    """Transmission time of a packet, ms."""
    return 12_000 / (1e3 * float(queue.split(", ")[1].split()[0]))


@cache
def _recorded() -> dict[str, list[dict[str, Any]]]:
    cases: dict[str, list[dict[str, Any]]] = packed(__file__, FILE.name)
    return cases


def recorded(case: str) -> list[dict[str, Any]]:
    """The recorded runs of a case by its name; none if it was not recorded."""
    return _recorded().get(case, [])


def runs(control: str, queue: str) -> list[dict[str, Any]]:
    """The recorded runs of a case."""
    return _recorded()[case_of(control, queue)]


def is_late(run: dict[str, Any]) -> bool:
    """True if nothing left the queue in the first second: all began a second later."""
    return bool(run["seconds"][0][0] == 0)


def of_runs(kept: list[dict[str, Any]], key: str) -> Floats:
    """A quantity in recorded runs; of drops, which are counted from the beginning, in those that
    began in time."""
    if key in COUNTS:
        found = [run[COUNTS[key]] for run in kept if not is_late(run)]
    elif key in FLOWS:
        found = [run["goodput"][FLOWS.index(key)] for run in kept]
    else:
        at = -1 if key == "mean" else SHARES.index(int(key[1:]))
        found = [run["delays"][at] for run in kept]
    return np.array(found, dtype=np.float64)


def goodput(measured: Measurements, flow: str, **labels: str) -> Floats:
    """Mean goodput of a flow in each of our runs, Mbit/s."""

    def means(root: Measurements, point: int) -> Floats:
        kept: Floats = seconds(root, flow, **root.labels(point))[:, BEGINS:].mean(axis=1)
        return kept

    found: Floats = measured.each(("goodput", flow), means, **labels)
    return found


def delays(measured: Measurements, key: str, less: float, **labels: str) -> Floats:
    """The mean or a percentile of the times in queue of each run, ms, each smaller by `less`."""

    def of_runs(root: Measurements, point: int) -> Floats:
        histograms = root.histograms(**root.labels(point))
        values = np.maximum(1e3 * histograms.values - less, 0.0)
        if key == "mean":
            return np.array([(values * row).sum() / row.sum() for row in histograms.counts])
        share = int(key[1:]) / 100
        return np.array([weighted_quantile(values, row, share) for row in histograms.counts])

    found: Floats = measured.each(("delays", key, less), of_runs, **labels)
    return found


@dataclass(frozen=True)
class Quantity:
    """Something that is compared, one value a run."""

    key: str
    name: str
    unit: str

    def recorded(self, control: str, queue: str) -> Floats:
        """Values in the recorded runs."""
        return of_runs(runs(control, queue), self.key)

    def simulated(self, measured: Measurements, **labels: str) -> Floats:
        """Values in our runs."""
        if self.key in FLOWS:
            return goodput(measured, self.key, **labels)
        if self.key == DROPS:
            return drops(measured, **labels)
        if self.key == "mean":
            return 1e3 * measured.count("sojourn_mean_s", **labels)
        return delays(measured, self.key, 0.0, **labels)

    def step(self, queue: str) -> float:
        """Resolution: a packet's transmission, or one drop."""
        return 0.0 if self.key in FLOWS else 1.0 if self.key == DROPS else transmission(queue)


QUANTITIES = (
    Quantity("first", "Goodput of the first flow", "Mbit/s"),
    Quantity("second", "Goodput of the second flow", "Mbit/s"),
    *(Quantity(f"p{share}", f"Percentile {share} of the time in queue", "ms") for share in SHARES),
    Quantity("mean", "Mean time in queue", "ms"),
    Quantity("drops", "Drops in all", "packets"),
)


def drops(measured: Measurements, link: str = "", **labels: str) -> Floats:
    """Packets dropped at a link (the study's) since the start of each run, the warm-up with it."""
    last: Floats = measured.curves("dropped", link, **labels)[1][:, -1]
    return last


def seconds(measured: Measurements, flow: str, **labels: str) -> Floats:
    """Goodput of a flow in each second, Mbit/s; shape (replications, seconds)."""
    times, rows = measured.curves("goodput_bps", f"{flow}.0", **labels)
    found: Floats = 1e-6 * rows[:, times > 0]  # a sample is about the second before it
    return found


def recorded_seconds(control: str, queue: str, flow: str) -> Floats:
    """The same as recorded, of the runs that began in time."""
    kept = [run["seconds"] for run in runs(control, queue) if not is_late(run)]
    return np.array([each[FLOWS.index(flow)] for each in kept], dtype=np.float64)


def in_most(
    ident: str, text: str, rule: str, count: Callable[[Measurements], Counted]
) -> Rule[Measurements, Counted]:
    """Nine in ten are inside."""
    return Rule(
        ident,
        text,
        rule,
        count,
        lambda found: at_least(found[0] / found[1], SHARE, "share"),
        lambda found: f"{found[0]} of {found[1]}",
        own=True,
    )


def is_inside(recorded: float | Floats, simulated: Floats, step: float) -> NDArray[np.bool_]:
    """Returns whether recorded means are where the simulated runs (first dimension) are: in range,
    or within 5 % of their mean, or within the step."""
    mean = simulated.mean(axis=0)
    in_range = (simulated.min(axis=0) <= recorded) & (recorded <= simulated.max(axis=0))
    near = np.abs(recorded - mean) <= np.maximum(0.05 * np.abs(mean), step)
    return np.asarray(in_range | near)


Counted = tuple[int, int]
"""Number inside, and of all."""


def shares_of_seconds(measured: Measurements, **labels: str) -> Counted:
    """Numbers of the seconds of the course of both flows."""
    inside = total = 0
    for flow in PAIR:
        ours, theirs = seconds(measured, flow, **labels), recorded_seconds(flow=flow, **labels)
        both = min(ours.shape[1], theirs.shape[1])
        found = is_inside(theirs[:, :both].mean(axis=0), ours[:, :both], 0.0)
        inside += int(found.sum())
        total += both
    return inside, total
