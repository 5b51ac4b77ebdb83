"""The table `metrics`: what is computed from the tables of the engine, a row a run, subject and
metric. `aqmlab.measure.catalogue` says what each metric is."""

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
    points = [_Point(scenario["flows"]) for scenario in scenarios]
    alike = sorted({name for point in points for name in point.alike})
    flows = _by_run(_flows(tables.load("flows"), alike))
    delays = _by_run(tables.load("times").filter(pl.col("quantity").cast(pl.String) == "delay"))
    rows = []
    for run, end in tables.load("runs").select("run", "end_s").iter_rows():
        of_run = (found.get(run, []) for found in (links, groups, flows, delays))
        own = _Run(points[run // replications], end, *of_run)
        rows += [(run, *row) for row in own.rows() if row[2] is not None and isfinite(row[2])]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


Facts = Mapping[str, Any]
Row = tuple[str, str, float | None]


class _Point:
    """What the scenario of all replications says of its groups of flows."""

    def __init__(self, flows: Facts) -> None:
        self.alike = [name for name, group in flows.items() if _is_alike(group)]
        """The groups whose flows may be compared."""
        self.endless = {name for name, group in flows.items() if _is_endless(group)}
        links = {link for group in flows.values() for link in _links_of_data(group)}
        self.bulk_flows = {link: _bulk_flows(flows, link) for link in links}
        """How many flows have data on a link, if all of them are endless bulk flows."""


def _is_alike(group: Facts) -> bool:
    return group["workload"]["kind"] in ALIKE


def _is_endless(group: Facts) -> bool:
    return bool(group["workload"]["kind"] == "bulk" and group["size"] == "none")


def _links_of_data(group: Facts) -> set[str]:
    return {*group["path"], *(() if _is_alike(group) else group["return_path"])}


def _bulk_flows(flows: Facts, link: str) -> int | None:
    on_it = [group for group in flows.values() if link in _links_of_data(group)]
    return sum(int(group["count"]) for group in on_it) if all(map(_is_endless, on_it)) else None


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
        point: _Point,
        end: float,
        links: Sequence[Facts],
        groups: Sequence[Facts],
        flows: Sequence[Facts],
        delays: Sequence[Facts],
    ) -> None:
        self.point = point
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
        if link["loss_event_flows"] is not None and (
            flows := self.point.bulk_flows.get(link["link"])
        ):
            yield "loss_synchronisation", synchronisation(link["loss_event_flows"], flows)

    def _groups(self) -> Iterator[Row]:
        total = sum(group["delivered_bytes"] for group in self.groups)
        alike = {name: self._goodputs(name) for name in self.point.alike}
        endless = [values for name, values in alike.items() if name in self.point.endless]
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
            if endless and own is not endless[0] and name in self.point.endless:
                yield name, "rtt_fairness", rtt_fairness(own.mean(), endless[0].mean())
        if len(endless) > 1:
            yield ALL, "jain", jain_index(np.concatenate(endless))

    def _goodputs(self, name: str) -> Floats:
        return np.array(self.flows_of[name]["goodput_bps"] if name in self.flows_of else [])

    def _losses(self, name: str) -> float | None:
        """Of what the flows that are in the table sent."""
        flows = self.flows_of.get(name)
        return _over(flows["dropped"], flows["sent_since_warmup"]) if flows else None


def _over(value: float, whole: float) -> float | None:
    return value / whole if whole else None
