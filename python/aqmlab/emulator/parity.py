"""What a simulation and an emulation of one scenario have in common, side by side.

The results are a study with one axis, `by`: `simulator` and `emulator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab import _core
from aqmlab.emulator.play import EMULATOR, SIMULATOR, lateness, remarks
from aqmlab.metrics.samples import Floats, Histograms, jain_index
from aqmlab.stats import POSITIVE, SHARE, Interval, interval

if TYPE_CHECKING:
    from aqmlab.results import StudyResult
    from aqmlab.study import Study

QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Measure:
    """Something that both have: one value a replication."""

    name: str
    unit: str
    """`share`, `s`, `bps` or nothing."""
    simulator: Floats
    emulator: Floats

    @property
    def means(self) -> tuple[float, float]:
        """Values of both."""
        return float(np.mean(self.simulator)), float(np.mean(self.emulator))

    @property
    def intervals(self) -> tuple[Interval | None, Interval | None]:
        """The 95 % intervals of the means, where there are some."""
        bounds = SHARE if self.unit == "share" else POSITIVE
        one, other = (interval(each, bounds=bounds) for each in (self.simulator, self.emulator))
        return one, other

    def to_json(self) -> dict[str, Any]:
        """{"name", "unit", "simulator": [..], "emulator": [..]}, one number a replication."""
        return {
            "name": self.name,
            "unit": self.unit,
            SIMULATOR: [float(each) for each in self.simulator],
            EMULATOR: [float(each) for each in self.emulator],
        }


@dataclass(frozen=True)
class Parity:
    """Both results."""

    result: StudyResult
    lateness: float
    """The largest of the runs' 99th percentiles of the emulator's lateness, in seconds."""
    remarks: tuple[str, ...]

    @property
    def link(self) -> str:
        """The bottleneck."""
        return str(self.result.scenarios[0]["bottleneck"])

    @property
    def replications(self) -> int:
        """Number of runs of each."""
        return self.result.info.replications

    def histograms(self, by: str) -> Histograms:
        """The time that packets spent in the bottleneck's queue."""
        rows = self.result.sojourn.filter(by=by, link=self.link)
        return Histograms.from_frame(rows, self.replications)

    def series(self, by: str, quantity: str) -> tuple[Floats, Floats]:
        """Times, and the means over the replications of a quantity of the bottleneck."""
        import polars as pl

        rows = self.result.series.filter(by=by, subject=self.link, quantity=quantity)
        means = rows.group_by("time_s").agg(pl.col("value").mean(), pl.len()).sort("time_s")
        full = means.filter(pl.col("len") == self.replications)
        return full["time_s"].to_numpy(), full["value"].to_numpy()

    def goodputs(self, by: str, replication: int) -> dict[str, list[float]]:
        """Goodput in bit/s of the flows that began, by group."""
        rows = self.result.flows.filter(by=by, replication=replication)
        found: dict[str, list[float]] = {}
        for row in rows.to_dicts():
            found.setdefault(row["group"], []).append(row["goodput_bps"])
        return found

    @cached_property
    def measures(self) -> list[Measure]:
        """Compared quantities, in the order of the table."""
        return [
            *self._of_link(),
            *self._of_flows(),
            *self._of_times(),
        ]

    def _of_link(self) -> Iterator[Measure]:
        rows = self.result.links.filter(link=self.link).sort("run")

        def column(name: str, by: str) -> Floats:
            return np.asarray(rows.filter(by=by)[name].to_numpy(), dtype=float)

        def both(name: str) -> tuple[Floats, Floats]:
            return column(name, SIMULATOR), column(name, EMULATOR)

        yield Measure("utilisation", "share", *both("utilisation"))
        for share in QUANTILES:
            yield Measure(f"sojourn p{100 * share:g}", "s", *both(f"sojourn_p{100 * share:g}_s"))
        for name in ("dropped", "marked"):
            counts = zip(both(name), both("arrived"), strict=True)
            simulated, real = (count / np.maximum(arrived, 1) for count, arrived in counts)
            yield Measure(f"{name} packets", "share", simulated, real)

    def _of_flows(self) -> Iterator[Measure]:
        every = [
            [self.goodputs(by, each) for each in range(self.replications)]
            for by in (SIMULATOR, EMULATOR)
        ]
        flows = self.result.scenarios[0]["flows"]
        greedy = [group for group, flow in flows.items() if _is_greedy(flow)]
        steady = [group for group, flow in flows.items() if _kind(flow) == "cbr"]
        for group in flows:
            if group in (*greedy, *steady) and all(group in one for runs in every for one in runs):
                sums = (np.array([sum(one[group]) for one in runs]) for runs in every)
                yield Measure(f"{group}: goodput", "bps", *sums)
        rates = [
            [[rate for group in greedy for rate in one.get(group, ())] for one in runs]
            for runs in every
        ]
        if all(len(each) > 1 for runs in rates for each in runs):
            indices = (np.array([jain_index(each) for each in runs]) for runs in rates)
            yield Measure("fairness (Jain) of endless flows", "", *indices)

    def _of_times(self) -> Iterator[Measure]:
        times = self.result.times
        skipped = ("lateness", "input_lateness", "timer_lateness")
        keys = ["group", "quantity", "direction"]
        for (group, quantity, direction), rows in times.sort("run").group_by(
            keys, maintain_order=True
        ):
            if quantity in skipped or rows.height != 2 * self.replications:
                continue
            for key in ("p50", "p95"):
                values = (rows.filter(by=by)[f"{key}_s"].to_numpy() for by in (SIMULATOR, EMULATOR))
                which = f" {direction}" if direction else ""
                yield Measure(f"{group}: {quantity}{which} {key}", "s", *values)

    def to_json(self) -> dict[str, Any]:
        """{"scenario", "link", "replications", "lateness_p99_s", "remarks", "measures"}."""
        return {
            "scenario": self.result.info.name,
            "link": self.link,
            "replications": self.replications,
            "lateness_p99_s": self.lateness,
            "remarks": list(self.remarks),
            "measures": [each.to_json() for each in self.measures],
        }


def _kind(flow: Mapping[str, Any]) -> str:
    """The workload of a group of flows."""
    kind = flow["workload"]
    return str(kind["kind"] if isinstance(kind, Mapping) else kind)


def _is_greedy(flow: Mapping[str, Any]) -> bool:
    """True if its flows always have data to send."""
    return _kind(flow) == "bulk" and flow.get("size") in (None, "none")


def put_together(study: Study, done: Sequence[_core.Emulation], out: Path | None) -> Parity:
    """Simulates what `done` has of real packets, and puts both into one result."""
    from aqmlab.results import StudyResult, in_memory, resolved
    from aqmlab.results.tables import MemoryTables
    from aqmlab.study.execute import study_info
    from aqmlab.study.folder import ResultsFolder
    from aqmlab.study.runner import finished

    repeat = study.replications
    jobs = [(number, study.points[0].scenario, number) for number in range(repeat)]
    batches = [*finished(jobs, None), *(each.results for each in done)]
    texts = [point.scenario.resolved for point in study.points]
    if out is None:
        tables = MemoryTables(in_memory(batches))
        scenarios = [resolved(text) for text in texts]
        result = StudyResult(study_info(study), tables, scenarios, computed=study.total)
    else:
        with ResultsFolder(out, study_info(study), texts) as folder:
            folder.add(batches)
            folder.finish()
            result = folder.result(computed=study.total)
    return Parity(result, lateness(done), remarks(done))
