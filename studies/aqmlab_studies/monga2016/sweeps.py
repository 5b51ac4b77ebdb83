"""The three sweeps, and the measures along them at the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from aqmlab.campaign import Replicated
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.stats import POSITIVE, Bounds

QUEUES = ("DropTail", "CoDel", "sfqCoDel", "CoDel-DT")
AQMS = QUEUES[1:]
SFQ = "sfqCoDel"


@dataclass(frozen=True)
class Sweep:
    """Places on the axis `where`, in order, with the number that varies."""

    id: str
    title: str
    """Title of its axis."""
    unit: str
    """What the numbers are, in a sentence."""
    places: dict[str, float]
    """Label to the number."""


BASE = "10 Mbit/s"
"""10 Mbit/s, 5 FTP flows, 32 ms: a point of every sweep."""
BANDWIDTH = Sweep(
    "bandwidth",
    "bottleneck bandwidth (Mbit/s)",
    "Mbit/s",
    {f"{rate} Mbit/s": rate for rate in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)},
)
FLOWS = Sweep(
    "flows",
    "FTP flows forwards",
    "FTP flows",
    {BASE if n == 5 else f"{n} FTP": n for n in (1, 3, 5, 10, 30, 100, 300, 1000)},
)
RTT = Sweep(
    "rtt",
    "round-trip time (ms)",
    "ms of round-trip time",
    {BASE if n == 32 else f"RTT {n} ms": n for n in (1, 3, 10, 32, 100, 300, 1000)},
)
SWEEPS = (BANDWIDTH, FLOWS, RTT)


@dataclass(frozen=True)
class Metric:
    """Something measured at the bottleneck in each run."""

    id: str
    title: str
    unit: str
    digits: int

    @property
    def bounds(self) -> Bounds:
        """Least and largest possible value."""
        return (0.0, 100.0) if self.unit == "%" else POSITIVE

    def text(self, values: Sequence[float]) -> str:
        """`97.5, 98.5, 59.9`."""
        return ", ".join(f"{value:.{self.digits}f}" for value in values)


UTILISATION = Metric("utilisation", "utilisation", "%", 1)
QUEUE = Metric("queue", "mean queue", "packets", 1)
FILL = Metric("fill", "mean queue as a share of the buffer", "%", 1)
DROPS = Metric("drops", "drop rate", "%", 2)


class Points(Replicated):
    """One part of the study: its measurements by queue and place.

    `labels` are those of the other axes; `axis` is the one that the places are on.
    """

    def __init__(self, measured: Measurements, *, axis: str = "where", **labels: str) -> None:
        self.measured = measured
        self.axis = axis
        self.labels = labels
        self.replications, self.looks = measured.replications, measured.looks

    def drawn(self, number: int) -> Points:
        """The same for one draw of the replications."""
        return Points(self.measured.draws[number], axis=self.axis, **self.labels)

    def has(self, queue: str, place: str) -> bool:
        """True if it was run."""
        return self.measured.has(**self._at(queue, place))

    def runs(self, metric: Metric, queue: str, place: str) -> Floats:
        """One value for each replication, in the metric's unit."""
        at = self._at(queue, place)
        count = self.measured.count
        if metric is UTILISATION:
            return 100.0 * count("utilisation", **at)
        if metric is QUEUE:
            return count("backlog_mean_packets", **at)
        if metric is FILL:
            limit = self._limits[self.measured.point(**at)]
            return 100.0 * count("backlog_mean_packets", **at) / limit
        return 100.0 * count("dropped", **at) / count("arrived", **at)

    def mean(self, metric: Metric, queue: str, place: str) -> float:
        """The mean over the replications."""
        return float(np.mean(self.runs(metric, queue, place)))

    def along(self, metric: Metric, queue: str, places: Sequence[str]) -> list[float]:
        """The means at some places."""
        return [self.mean(metric, queue, place) for place in places]

    def places(self, sweep: Sweep) -> list[str]:
        """The places of a sweep at which all four queues were run."""
        return [p for p in sweep.places if all(self.has(queue, p) for queue in QUEUES)]

    def share_of_drops(self, reason: str, queue: str, place: str) -> float:
        """Share of all drops with this reason; 0 without drops."""
        at = self._at(queue, place)
        dropped = self.measured.count("dropped", **at).sum()
        return float(self.measured.count(f"drop_{reason}", **at).sum() / max(dropped, 1.0))

    def goodput(self, queue: str, place: str) -> float:
        """Goodput of all forward flows, in Mbit/s, the mean over the runs."""
        rows = self._flows(queue, place).filter(pl.col("group").is_in(["ftp", "stream", "voice"]))
        return float(rows["goodput_bps"].sum()) / self.measured.replications / 1e6

    def sent_for_each_received(self, queue: str, place: str, group: str) -> float:
        """Datagrams of a group that were sent for each that arrived."""
        rows = self._flows(queue, place).filter(pl.col("group") == group)
        return float(rows["segments_sent"].sum()) / float(rows["datagrams_received"].sum())

    def _flows(self, queue: str, place: str) -> pl.DataFrame:
        return self.measured.rows("flows", **self._at(queue, place))

    def _at(self, queue: str, place: str) -> dict[str, str]:
        return {**self.labels, "queue": queue, self.axis: place}

    @cached_property
    def _limits(self) -> list[float]:
        """The buffer of the bottleneck at each point, in packets."""
        scenarios = self.measured.result.scenarios
        return [
            float(each["links"][self.measured.link]["queue"]["limit"].rstrip("p"))
            for each in scenarios
        ]


def unlimited(measured: Measurements) -> Points | None:
    """The sweeps without a limit of the window, if they were run."""
    if "window" not in measured.parts:
        return None
    return Points(measured.part("window"), window="unlimited")
