"""Metrics that only RFC 7928 asks for, and the readings of every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aqmlab.campaign import Reading
from aqmlab.campaign.readings import ALL, CLASS, along_paths
from aqmlab.metrics import Metric, find, windows
from aqmlab.metrics.formulas import is_endless
from aqmlab.metrics.pools import BOTH, Pools
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.packs.rfc7928.dumbbell import HEADER, class_of
from aqmlab.scenario.quantity import canonical

if TYPE_CHECKING:
    from aqmlab.campaign import Filled
    from aqmlab.metrics import Runs

VOIP_PACKET = 200
"""Size of a packet of 20 ms of G.711 with its headers, in bytes."""
CATEGORIES = (("cat1", "cat2"), ("small", "large"))
"""Classes that are categories I and II of RFC 7928, sections 6.3 and 4.4."""
LOAD = ("mild", "medium", "heavy")
CAPACITY = ("high", "low")
"""Phases of sections 8.2.5 and 8.2.6."""
OF_LINKS = (
    "sojourn_mean", "sojourn_p95", "sojourn_p99", "sojourn_max", "queue_length", "utilisation",
    "throughput", "drop_share", "mark_share", "queued_drop_share", "loss_events",
    "loss_interval_mean", "loss_synchronisation", "swing",
)  # fmt: skip
"""Metrics of links (RFC 7928, section 4.2)."""
OF_CLASSES = (
    "goodput", "goodput_ratio", "jain", "loss_share", "delay_mean", "delay_p99", "waiting",
    "delay_variation", "delay_variation_p95", "startup_mean", "startup_p95", "completion_mean",
    "completion_p95", "page_load_mean", "page_load_p95", "frame_mean", "frame_p95", "stall_mean",
    "mos", "bitrate", "stalls", "missed", "late",
)  # fmt: skip
"""Metrics of classes of flows (RFC 7928, section 2)."""
OF_PHASES = ("phase_delay", "phase_delay_max", "phase_goodput")


class Phase(NamedTuple):
    """Part of each period of a case that changes over time, in seconds after the warm-up."""

    name: str
    begin: float
    end: float
    period: float


def phases(scenario: Mapping[str, Any]) -> list[Phase]:
    """The phases of a resolved scenario: of a rate with repeated steps, or of flows that pause."""
    rate = scenario["links"]["down"]["rate"]
    loads = [each["workload"] for each in scenario["flows"].values()]
    sessions = [each for each in loads if each["kind"] == "sessions"]
    names: tuple[str, ...]
    if isinstance(rate, Mapping) and "steps" in rate:
        lasts, names = canonical(rate["steps"].split(", ")[1].split()[0]), CAPACITY
    elif sessions:
        on, off = (canonical(sessions[0][key]) for key in ("on", "off"))
        lasts, names = (on + off) / len(LOAD), LOAD
    else:
        return []
    period = lasts * len(names)
    return [Phase(name, i * lasts, (i + 1) * lasts, period) for i, name in enumerate(names)]


def least_delay(scenario: Mapping[str, Any], group: str) -> float:
    """Propagation and transmission of a full packet over a group's path, in seconds."""
    flow = scenario["flows"][group]
    size = float(flow["transport"]["mss"].removesuffix("b")) + HEADER
    if flow["workload"]["kind"] == "voip":
        size = VOIP_PACKET
    elif "packet" in flow["workload"]:
        size = float(flow["workload"]["packet"].removesuffix("b"))
    total = 0.0
    for name in flow["path"]:
        link = scenario["links"][name]
        total += canonical(link["delay"]) + 8 * size / _largest(link["rate"])
    return total


def _largest(rate: str | Mapping[str, str]) -> float:
    if isinstance(rate, str):
        return canonical(rate)
    if "steps" in rate:
        return max(canonical(each.split()[1]) for each in rate["steps"].split(", "))
    return canonical(rate.get("mean") or rate.get("phy") or "1gbit")


def _waiting(runs: Runs, _: str) -> pl.DataFrame:
    metric, statistic = find("delay_mean")
    rows = metric.values(runs, statistic)
    least = [
        (point, name, least_delay(scenario, name))
        for point, scenario in enumerate(runs.scenarios)
        for name in scenario["flows"]
    ]
    frame = pl.DataFrame(least, schema=["point", "subject", "least"], orient="row")
    point = (pl.col("run") // runs.replications).cast(pl.Int64)
    rows = rows.with_columns(point=point).join(frame, on=["point", "subject"], how="left")
    return rows.select("run", "subject", value=pl.col("value") - pl.col("least"))


def _goodput_ratio(runs: Runs, _: str) -> pl.DataFrame:
    rows = find("goodput")[0].values(runs)
    parts = []
    for first, second in CATEGORIES:
        one, two = (rows.filter(subject=name) for name in (first, second))
        both = two.join(one, on="run", suffix="_first")
        ratio = pl.col("value") / pl.col("value_first")
        parts.append(both.select("run", "subject", value=ratio))
    return pl.concat(parts)


def _ack_loss(runs: Runs, _: str) -> pl.DataFrame:
    """Where packets without data are acknowledgements only: bulk flows in both directions."""
    both = [
        point
        for point, scenario in enumerate(runs.scenarios)
        if {flow["path"][0] for flow in scenario["flows"].values()} == {"down", "up"}
        and all(map(is_endless, scenario["flows"].values()))
    ]
    rows = find("ack_loss_share")[0].values(Pools(runs, lambda _: ALL, BOTH).runs)
    return rows.filter((pl.col("run") // runs.replications).is_in(both))


@lru_cache(maxsize=1)
def _series(runs: Runs) -> pl.DataFrame:
    """All samples that phases and swings need."""
    return windows.samples(runs, "sojourn_mean_s", "sojourn_max_s", "throughput_bps", "goodput_bps")


def _swing(runs: Runs, _: str) -> pl.DataFrame:
    rows = _series(runs).filter(quantity="sojourn_mean_s")
    value = pl.col("value").std() / pl.col("value").mean()
    found = rows.group_by("run", "subject", maintain_order=True).agg(value=value)
    return found.drop_nulls().drop_nans()


@lru_cache(maxsize=1)
def _in_phases(runs: Runs) -> pl.DataFrame:
    """`run`, `subject` (the phase), and the metrics of phases."""
    found = []
    for point, scenario in enumerate(runs.scenarios):
        asked = phases(scenario)
        if not asked:
            continue
        own = _series(runs).filter(pl.col("run") // runs.replications == point)
        flows = along_paths(own.filter(quantity="goodput_bps"), runs.table("flows"))
        total = flows.group_by("run", "since").agg(pl.col("value").sum())
        link = own.filter(pl.col("quantity") != "goodput_bps", subject="down")
        for phase in asked:
            when = phase.begin, phase.end, phase.period
            delay = windows.of_links(link.filter(windows.between(link, *when)))
            goodput = total.filter(windows.between(total, *when)).group_by("run")
            rows = delay.join(goodput.agg(goodput=pl.col("value").mean()), on="run")
            found.append(rows.with_columns(subject=pl.lit(phase.name)))
    return pl.concat(found) if found else pl.DataFrame(schema=dict.fromkeys(PHASE_COLUMNS, float))


PHASE_COLUMNS = ("run", "subject", "sojourn_mean", "sojourn_max", "goodput")


def _of_phase(column: str) -> Callable[[Runs, str], pl.DataFrame]:
    return lambda runs, _: _in_phases(runs).select("run", "subject", value=column)


def _metric(
    name: str, of: str, unit: str, direction: int, meaning: str,
    compute: Callable[[Runs, str], pl.DataFrame],
) -> Metric:  # fmt: skip
    return Metric(name, of, unit, meaning, "", "RFC 7928", direction, compute=compute)


METRICS = (
    _metric("waiting", CLASS, "s", LESS, "Mean one-way delay without propagation and transmission.",
            _waiting),
    _metric("swing", "link", "ratio", LESS, "Standard deviation of the sampled mean sojourn times "
            "over their mean.", _swing),
    _metric("goodput_ratio", CLASS, "ratio", NEITHER, "Goodput of category II over that of "
            "category I (section 6.3).", _goodput_ratio),
    _metric("ack_loss", "all", "share", LESS, "Share of all acknowledgements that are lost.",
            _ack_loss),
    _metric("phase_delay", "phase", "s", LESS, "Mean sojourn time in a phase.",
            _of_phase("sojourn_mean")),
    _metric("phase_delay_max", "phase", "s", LESS, "Largest sojourn time in a phase.",
            _of_phase("sojourn_max")),
    _metric("phase_goodput", "phase", "bit/s", MORE, "Goodput of all flows in a phase.",
            _of_phase("goodput")),
)  # fmt: skip


def read(filled: Filled) -> Sequence[Reading]:
    """All metrics of the links under test, classes of flows and phases, of every case."""
    scenarios = filled.campaign.plan.scenarios
    every = (
        filled.reading(case, name, subject)
        for case in filled
        for name, subject in _asked(scenarios[filled[case].point][1])
    )
    return [each for each in every if np.isfinite(each.values).any()]


def _asked(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Metric and subject of each reading of a scenario."""
    tested = [
        name
        for name, link in table["links"].items()
        if link.get("queue", {"limit": "unlimited"}).get("limit") != "unlimited"
    ]
    yield from ((name, link) for link in tested for name in OF_LINKS)
    classes = dict.fromkeys(class_of(group) for group in table["flows"])
    yield from ((name, each) for each in classes for name in OF_CLASSES)
    yield from (("goodput", ALL), ("ack_loss", ALL))
    yield from ((name, phase) for phase in (*LOAD, *CAPACITY) for name in OF_PHASES)
