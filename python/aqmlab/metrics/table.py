"""The table `metrics`: what is computed from the tables of the engine, a row a run, subject and
metric. `aqmlab.metrics.catalogue` says what each metric is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from aqmlab.metrics.rfc7928 import power, rtt_fairness, synchronisation
from aqmlab.results import Tables
from aqmlab.statistics import Floats, jain_index

COLUMNS = {"run": pl.UInt32, "subject": pl.String, "metric": pl.String, "value": pl.Float64}
LINK_COLUMNS = (
    "link", "delivered_bytes", "capacity_bytes", "dropped", "arrived", "marked", "loss_event_flows"
)  # fmt: skip
GROUP_COLUMNS = ("group", "delivered_bytes", "sent_bytes")
ALL = "all"
"""The subject of what is said of all flows together."""
ALIKE = ("bulk", "cbr", "pareto-onoff")
"""Workloads whose applications are one flow each: their goodputs may be compared."""


def metrics(
    tables: Tables, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    """The metrics of all runs; run `r` is of scenario `r // replications`."""
    links = _by_run(tables.load("links").select("run", *LINK_COLUMNS))
    groups = _by_run(tables.load("groups").select("run", *GROUP_COLUMNS))
    alike = {name for scenario in scenarios for name in _alike(scenario["flows"])}
    flows = _by_run(_flows(tables.load("flows"), sorted(alike)))
    delays = _by_run(tables.load("times").filter(pl.col("quantity").cast(pl.String) == "delay"))
    rows = []
    for run, end in tables.load("runs").select("run", "end_s").iter_rows():
        of_run = (found.get(run, []) for found in (links, groups, flows, delays))
        own = _Run(scenarios[run // replications], end, *of_run)
        rows += [(run, *row) for row in own.rows() if row[2] is not None and isfinite(row[2])]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


Facts = Mapping[str, Any]
Row = tuple[str, str, float | None]


def _alike(flows: Facts) -> list[str]:
    """The groups whose flows may be compared."""
    return [name for name, group in flows.items() if group["workload"]["kind"] in ALIKE]


def _flows(flows: pl.DataFrame, alike: Sequence[str]) -> pl.DataFrame:
    """A row a run and group: what its flows sent and lost, and the goodputs of those groups
    that are `alike` (the others may have very many flows)."""
    is_alike = pl.col("group").cast(pl.String).is_in(alike)
    return flows.group_by("run", "group", maintain_order=True).agg(
        pl.col("goodput_bps").filter(is_alike).drop_nulls().drop_nans(),
        pl.col("dropped", "sent_since_warmup").sum(),
    )


def _by_run(frame: pl.DataFrame) -> dict[int, list[Facts]]:
    """The rows of each run: thousands of small frames would take longer."""
    found: dict[int, list[Facts]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault(row["run"], []).append(row)
    return found


class _Run:
    def __init__(
        self,
        scenario: Facts,
        end: float,
        links: Sequence[Facts],
        groups: Sequence[Facts],
        flows: Sequence[Facts],
        delays: Sequence[Facts],
    ) -> None:
        self.flows: Facts = scenario["flows"]
        self.end, self.links, self.groups = end, links, groups
        self.flows_of = {row["group"]: row for row in flows}
        self.delays = {row["group"]: row for row in delays}

    def rows(self) -> Iterator[Row]:
        """Subject, metric and value; links first."""
        for link in self.links:
            for metric, value in self._link(link):
                yield link["link"], metric, value
        yield from self._groups()

    def _link(self, link: Facts) -> Iterator[tuple[str, float | None]]:
        yield "throughput", _over(link["delivered_bytes"] * 8, self.end)
        yield "possible_share", _over(link["delivered_bytes"], link["capacity_bytes"])
        yield "drop_share", _over(link["dropped"], link["arrived"])
        yield "mark_share", _over(link["marked"], link["arrived"])
        if link["loss_event_flows"] is not None and (flows := self._bulk_flows(link["link"])):
            yield "loss_synchronisation", synchronisation(link["loss_event_flows"], flows)

    def _bulk_flows(self, link: str) -> int | None:
        """How many flows have data on a link, if all of them are endless bulk flows."""
        flows = 0
        for name, group in self.flows.items():
            is_one_way = group["workload"]["kind"] in ALIKE
            if link in group["path"] or (not is_one_way and link in group["return_path"]):
                if not self._is_endless(name):
                    return None
                flows += int(group["count"])
        return flows

    def _groups(self) -> Iterator[Row]:
        total = sum(group["delivered_bytes"] for group in self.groups)
        alike = {name: self._goodputs(name) for name in _alike(self.flows)}
        endless = [values for name, values in alike.items() if self._is_endless(name)]
        for group in self.groups:
            name = group["group"]
            goodput = _over(group["delivered_bytes"] * 8, self.end)
            yield name, "goodput", goodput
            if group["sent_bytes"] is not None:
                yield name, "throughput", _over(group["sent_bytes"] * 8, self.end)
            yield name, "goodput_share", _over(group["delivered_bytes"], total)
            yield name, "loss_share", self._losses(name)
            if (delay := self.delays.get(name)) is not None and delay["count"]:
                yield name, "delay_variation", delay["p999_s"] - delay["min_s"]
                yield name, "delay_variation_p95", delay["p95_s"] - delay["min_s"]
                yield name, "power", power(goodput or 0.0, delay["mean_s"])
            own = alike.get(name)
            if own is None:
                continue
            if own.size > 1:
                yield name, "jain", jain_index(own)
            if endless and own is not endless[0] and self._is_endless(name):
                yield name, "rtt_fairness", rtt_fairness(own.mean(), endless[0].mean())
        if len(endless) > 1:
            yield ALL, "jain", jain_index(np.concatenate(endless))

    def _is_endless(self, name: str) -> bool:
        group = self.flows[name]
        return bool(group["workload"]["kind"] == "bulk" and group["size"] == "none")

    def _goodputs(self, name: str) -> Floats:
        return np.array(self.flows_of[name]["goodput_bps"] if name in self.flows_of else [])

    def _losses(self, name: str) -> float | None:
        """Of what the flows that are in the table sent."""
        flows = self.flows_of.get(name)
        return _over(flows["dropped"], flows["sent_since_warmup"]) if flows else None


def _over(value: float, whole: float) -> float | None:
    return value / whole if whole else None
