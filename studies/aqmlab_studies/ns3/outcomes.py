"""ns-3's results (`outcomes.json`), the bands around them, and the same measures of our runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from aqmlab.campaign import Replicated
from aqmlab.metrics.samples import Floats, Histograms, jain_indices, weighted_quantile
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab.reproduce.verdicts import Criterion
from aqmlab_studies.shared import packed

JOBS = ("b CUBIC", "b Reno", "c CoDel", "c FQ-CoDel", "d")
BUILDS = ("ns-3.48", "ns-3.48, TCP of 2026-07-23")
PAYLOAD = 1446
"""Bytes of a segment: 1500 on the wire without the headers of PPP, IP and TCP with timestamps."""
PACKET = 1500


class Band(NamedTuple):
    """Where a right answer may lie."""

    low: float
    high: float


@dataclass(frozen=True)
class Quantity:
    """Something that is compared."""

    key: str
    name: str
    unit: str

    def band(self, job: str) -> Band:
        """Where a right answer may lie."""
        values = [outcome(build, job)[self.key] for build in BUILDS]
        low, high = min(values), max(values)
        if self.key == "utilisation":
            return Band(low - 0.02, high + 0.02)
        return Band(low - 0.02, 1.0) if self.key == "jain" else Band(0.75 * low, 1.25 * high)

    @property
    def criterion(self) -> Criterion:
        """Meaning of `agrees`."""
        if self.key == "jain":
            return Criterion(text="no more than 0.02 below the lower of ns-3's two builds")
        by = "0.02" if self.key == "utilisation" else "25 %"
        return Criterion(
            text=f"from {by} below the lower to {by} above the higher of ns-3's builds"
        )


QUANTITIES = (
    Quantity("utilisation", "Utilisation of the bottleneck", "1"),
    Quantity("p50", "Median time in queue of delivered packets", "ms"),
    Quantity("p95", "95th percentile of the time in queue of delivered packets", "ms"),
    Quantity("loss", "Share of packets dropped", "%"),
    Quantity("jain", "Jain's index of the goodputs", "1"),
)


@cache
def _outcomes() -> dict[tuple[str, str], dict[str, Any]]:
    runs = packed(__file__, "outcomes.json")["runs"]
    return {(run["build"], run["job"]): run for run in runs}


def outcome(build: str, job: str) -> dict[str, Any]:
    """Results of a build of ns-3 in a job. Raises `KeyError` for an unknown one."""
    return _outcomes()[build, job]


def superfluous(build: str, job: str) -> float:
    """The share of delivered packets in a build of ns-3 that brought nothing new."""
    run = outcome(build, job)
    seconds = 8 if job == "d" else 50
    return float(1 - run["goodput"] * 1e6 * seconds / (run["delivered"] * PAYLOAD * 8))


class Window(Replicated):
    """Our runs of a job between the time where the measurement begins and the end."""

    def __init__(self, whole: Measurements, before: Measurements, job: str) -> None:
        self.job = job
        self.replications, self.looks = whole.replications, whole.looks
        self._parts = (whole, before)

    def drawn(self, number: int) -> Window:
        """The same for one draw of the replications."""
        whole, before = (part.draws[number] for part in self._parts)
        return Window(whole, before, self.job)

    def values(self, key: str) -> Floats:
        """A quantity, or `superfluous` or `timeouts`, in each replication; times in ms."""
        if key in ("p50", "p95"):
            whole, before = (part.histograms(job=self.job) for part in self._parts)
            counts = whole.counts - _aligned(before, whole.values)
            share = int(key[1:]) / 100
            return np.array([1e3 * weighted_quantile(whole.values, each, share) for each in counts])
        if key == "jain":
            return jain_indices(self._flows("acked"))
        if key == "timeouts":
            return np.asarray(self._flows("timeouts").sum(axis=1))
        if key == "superfluous":
            useful = self._flows("acked").sum(axis=1) / PAYLOAD * PACKET
            return np.asarray(1 - useful / self._links("delivered_bytes"))
        if key == "loss":
            dropped = self._links("dropped")
            return 100 * np.asarray(dropped / (dropped + self._links("delivered")))
        if key == "utilisation":
            return self._links("delivered_bytes") / self._links("capacity_bytes")
        raise KeyError(key)

    def _links(self, column: str) -> Floats:
        whole, before = (part.count(column, job=self.job) for part in self._parts)
        return np.subtract(whole, before)

    def _flows(self, what: str) -> Floats:
        """A column of the flows, or the bytes acknowledged: shape (replications, flows)."""
        whole, before = (_by_flow(part, what, job=self.job) for part in self._parts)
        return np.subtract(whole, before)


def _aligned(histograms: Histograms, values: Floats) -> Any:
    """The counts of histograms at these values, which hold all of theirs."""
    counts = np.zeros((histograms.replications, values.size), dtype=np.int64)
    counts[:, np.searchsorted(values, histograms.values)] = histograms.counts
    return counts


ACKED = pl.col("goodput_bps") * (pl.col("end_s") - pl.col("start_s")) / 8


@per_run
def _by_flow(part: Measurements, what: str, **labels: str) -> Floats:
    rows = part.rows("flows", **labels)
    ends = part.rows("runs", **labels).select("run", "end_s")
    rows = rows.join(ends, on="run").sort("run", "index")
    values = rows.select(value=ACKED if what == "acked" else pl.col(what))["value"]
    return values.cast(pl.Float64).to_numpy().reshape(part.replications, -1)


def window(measured: Measurements, job: str) -> Window:
    """The window of a job. Raises `NotRun` if it was not run."""
    before, whole = measured.part("beginning"), measured.part("study")
    whole.point(job=job)
    return Window(whole, before, job)
