"""The study behind `aqmlab try`, and what its users notice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from aqmlab import metrics, stats
from aqmlab.advice import loads, setup
from aqmlab.advice.setup import BASELINE, PATHS, PORT, PORTS
from aqmlab.errors import input_error, unknown
from aqmlab.results import StudyResult
from aqmlab.scenario.access import Line

AXIS = "queue"
SECONDS = 30.0
WARMUP = 5.0
REPLICATIONS = (10, 30)
"""Minimum, and what there are at most where a replication costs little."""
WORK = 12e6
"""Packets of all runs together, limited so that an answer takes seconds."""
SHORTEST = 10.0


@dataclass(frozen=True)
class Noticed:
    """Something that a user notices."""

    group: str
    title: str
    metric: str
    """The metric of `aqmlab.metrics`."""
    unit: str
    factor: float = 1.0
    """From the metric's unit to that of the table."""
    least: float = 0.0
    """Minimum difference that a user notices, in the unit."""
    is_cost: bool = False
    """True for goodput and throughput, which shapers reduce and queues share out: they do not
    decide whether a queue is recommended."""

    @property
    def direction(self) -> int:
        """Of the metric: 1 if more is better, -1 if less is."""
        return metrics.find(self.metric)[0].direction

    @property
    def name(self) -> str:
        """Full name: `web.page_load_mean`."""
        return f"{self.group}.{self.metric}"

    @property
    def short(self) -> str:
        """The name without the statistic: `web.page_load`."""
        return self.name.removesuffix("_mean").removesuffix("_p95")

    @property
    def heading(self) -> str:
        """Label of its row and panel."""
        return f"{self.group}: {self.title}"

    @property
    def words(self) -> str:
        """Name in a sentence: `web page load`."""
        return f"{self.group} {self.title}"


MBIT: Mapping[str, Any] = {"unit": "Mbit/s", "factor": 1e-6}
COST: Mapping[str, Any] = {**MBIT, "is_cost": True}
NOTICED = (
    Noticed("web", "page load", "page_load_mean", "s"),
    Noticed("call", "MOS", "mos", ""),
    Noticed("video", "stalls", "stalls", "", least=0.1),
    Noticed("video", "bitrate", "bitrate", **MBIT),
    Noticed("game", "delay p95", "delay_p95", "ms", 1e3),
    Noticed("ping", "round trip p95", "rtt_p95", "ms", 1e3),
    Noticed("download", "goodput", "goodput", **COST),
    Noticed("upload", "goodput", "goodput", **COST),
    Noticed("down", "throughput of the line", "throughput", **COST),
    Noticed("up", "throughput of the line", "throughput", **COST),
)
"""In the order in which people complain. The group is a group of flows or a link."""


def noticed_with(load: str) -> tuple[Noticed, ...]:
    """Quantities that users of a load notice; `InputError` for an unknown load."""
    if load not in loads.KINDS:
        raise unknown("load", load, loads.KINDS, key="--load")
    return _noticed(loads.KINDS[load].flows)


def _noticed(flows: Mapping[str, Any]) -> tuple[Noticed, ...]:
    return tuple(each for each in NOTICED if each.group in flows or each.group in PATHS)


def study_of(
    line: Line, load: str, queues: Sequence[str], share: float | None = None
) -> dict[str, Any]:
    """The study as a mapping, as a study file would have it: the line as it is, and each queue
    behind shapers that send `share` of the line's rate.

    Raises `InputError` for what is not known.
    """
    noticed_with(load)
    if len(set(queues)) < len(queues):
        raise input_error("a queue is named twice", key="QUEUE", given=" ".join(queues))
    as_it_is = {f"links.{port}.queue": PORT["queue"] for port in PORTS.values()}
    cases = {BASELINE: as_it_is} | {
        words: as_it_is | setup.settings(words, line, share) for words in queues
    }
    seconds, replications = _effort(line, len(cases))
    return {
        "name": "try",
        "title": f"{loads.KINDS[load].summary}",
        "replications": replications,
        "scenario": {
            "duration": f"{seconds:g}s",
            "bottleneck": "down",
            "links": setup.links(line),
            "transport": {"profile": "linux-6.12"},
            "flows": {name: _routed(flow) for name, flow in loads.KINDS[load].flows.items()},
            "record": {"warmup": f"{WARMUP * seconds / SECONDS:g}s"},
        },
        "axes": [
            {
                "name": AXIS,
                "values": [{"label": name, "set": given} for name, given in cases.items()],
            }
        ],
    }


def _effort(line: Line, cases: int) -> tuple[float, int]:
    """Seconds of a run, and replications: what `WORK` allows."""
    fewest, most = REPLICATIONS
    both = line.rate("down") + line.rate("up")
    allowed = WORK * 12_000 / both / cases
    seconds = min(SECONDS, max(SHORTEST, math.floor(allowed / fewest)))
    return seconds, min(most, max(fewest, math.floor(allowed / seconds)))


def _routed(flow: Mapping[str, Any]) -> dict[str, Any]:
    """The group of flows, with the links of its directions."""
    return {**flow, **{key: PATHS[flow[key]] for key in ("path", "return_path")}}


class Trial:
    """What the users of a line notice, by queue; the first is the line as it is."""

    def __init__(self, result: StudyResult, line: Line) -> None:
        self.result = result
        self.line = line
        self.queues: list[str] = list(dict(result.info.axes)[AXIS])
        self.noticed = _noticed(result.scenarios[0]["flows"])
        self._values = {each.name: self._of(each) for each in self.noticed}

    @property
    def about(self) -> str:
        """Line and load in words."""
        line = self.line
        return (
            f"{line.down} down, {line.up} up, {line.rtt} there and back ({line.access}: "
            f"{line.kind.summary}); {self.result.info.title}"
        )

    def links(self, queue: str) -> Mapping[str, Mapping[str, Any]]:
        """The simulated links of a queue, every default filled in."""
        links: Mapping[str, Mapping[str, Any]] = self.result.scenarios[self.queues.index(queue)][
            "links"
        ]
        return links

    def values(self, what: Noticed, queue: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """One value a replication, in the unit of `what`."""
        return self._values[what.name][queue]

    def estimate(self, what: Noticed, queue: str) -> stats.Estimate:
        """The mean over the replications, with its interval where it has one."""
        return stats.estimate(self.values(what, queue), bounds=stats.POSITIVE)

    def _of(self, what: Noticed) -> Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]:
        rows = metrics.values(self.result, what.metric).filter(pl.col("subject") == what.group)
        point = (pl.col("run") // self.result.info.replications).alias("point")
        rows = rows.with_columns(point).sort("run")
        return {
            queue: rows.filter(pl.col("point") == place)["value"].to_numpy() * what.factor
            for place, queue in enumerate(self.queues)
        }
