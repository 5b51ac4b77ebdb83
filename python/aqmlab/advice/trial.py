"""The study behind `aqmlab try`, and what its users notice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from aqmlab import infer, measure
from aqmlab.advice import loads, tc
from aqmlab.errors import InputError, input_error, unknown
from aqmlab.results import StudyResult
from aqmlab.scenarios.access import KINDS, Line
from aqmlab.scenarios.quantities import quantity

AXIS = "queue"
WAYS = ("down", "up")
SECONDS = 30.0
WARMUP = 5.0
REPLICATIONS = 10
WORK = 12e6
"""Packets that all runs together may carry, so that an answer comes in seconds."""
SHORTEST = 10.0


@dataclass(frozen=True)
class Noticed:
    """Something that a user notices."""

    group: str
    title: str
    metric: str
    """The metric of `aqmlab.measure`."""
    unit: str
    factor: float = 1.0
    """From the metric's unit to that of the table."""
    is_low_better: bool = True

    @property
    def name(self) -> str:
        """Its full name: `web.page_load_mean`."""
        return f"{self.group}.{self.metric}"

    @property
    def short(self) -> str:
        """The name without the statistic: `web.page_load`."""
        return self.name.removesuffix("_mean").removesuffix("_p95")

    @property
    def heading(self) -> str:
        """What stands above its column."""
        return f"{self.group}: {self.title}"


NOTICED = (
    Noticed("web", "page load", "page_load_mean", "s"),
    Noticed("call", "MOS", "mos", "", is_low_better=False),
    Noticed("video", "stalls", "stalls", ""),
    Noticed("video", "bitrate", "bitrate", "Mbit/s", 1e-6, is_low_better=False),
    Noticed("game", "delay p95", "delay_p95", "ms", 1e3),
    Noticed("ping", "round trip p95", "rtt_p95", "ms", 1e3),
    Noticed("download", "goodput", "goodput", "Mbit/s", 1e-6, is_low_better=False),
    Noticed("upload", "goodput", "goodput", "Mbit/s", 1e-6, is_low_better=False),
)
"""In the order in which people complain."""


def noticed_with(load: str) -> tuple[Noticed, ...]:
    """What there is to notice with a load; `InputError` for an unknown one."""
    if load not in loads.KINDS:
        raise unknown("load", load, loads.KINDS, key="--load")
    return tuple(each for each in NOTICED if each.group in loads.KINDS[load].flows)


def check_queues(queues: Sequence[str]) -> None:
    """Raises `InputError` for a queue that does not exist or has a wrong setting."""
    for words in queues:
        try:
            tc.line(words)
        except InputError as error:
            given = words if error.given is None else error.given
            raise input_error(error.problem, key="QUEUE", given=given, hint=error.hint) from None


def study_of(line: Line, load: str, queues: Sequence[str]) -> dict[str, Any]:
    """The study as a mapping, as a study file would have it: each queue at both ends of the line.

    Raises `InputError` for what is not known.
    """
    noticed_with(load)
    if len(set(queues)) < len(queues):
        raise input_error("a queue is named twice", key="QUEUE", given=" ".join(queues))
    links = line.links()
    both = quantity(line.down, "rate", "--down") + quantity(line.up, "rate", "--up")
    runs = len(queues) * REPLICATIONS
    seconds = min(SECONDS, max(SHORTEST, math.floor(WORK * 12_000 / both / runs)))
    return {
        "name": "try",
        "title": f"{loads.KINDS[load].summary}",
        "replications": REPLICATIONS,
        "scenario": {
            "duration": f"{seconds:g}s",
            "bottleneck": "down",
            "links": links,
            "transport": {"profile": "linux-6.12"},
            "flows": {name: dict(flow) for name, flow in loads.KINDS[load].flows.items()},
            "record": {"warmup": f"{WARMUP * seconds / SECONDS:g}s"},
        },
        "axes": [
            {
                "name": AXIS,
                "values": [
                    {"label": name, "set": {f"links.{way}.queue": name for way in WAYS}}
                    for name in queues
                ],
            }
        ],
    }


class Trial:
    """What the users of a line notice, by queue."""

    def __init__(self, result: StudyResult, line: Line) -> None:
        self.result = result
        self.line = line
        self.queues: list[str] = list(dict(result.info.axes)[AXIS])
        groups = list(result.scenarios[0]["flows"])
        self.noticed = tuple(each for each in NOTICED if each.group in groups)
        self._values = {each.name: self._of(each) for each in self.noticed}

    @property
    def about(self) -> str:
        """Line and load in words."""
        line = self.line
        return (
            f"{line.down} down, {line.up} up, {line.rtt} there and back ({line.access}: "
            f"{KINDS[line.access].summary}); {self.result.info.title}"
        )

    def values(self, what: Noticed, queue: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """One value a replication, in the unit of `what`."""
        return self._values[what.name][queue]

    def estimate(self, what: Noticed, queue: str) -> infer.Estimate:
        """The mean over the replications, with its interval where it has one."""
        return infer.estimate(self.values(what, queue), bounds=infer.POSITIVE)

    def _of(self, what: Noticed) -> Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]:
        rows = measure.values(self.result, what.metric).filter(pl.col("subject") == what.group)
        point = (pl.col("run") // self.result.info.replications).alias("point")
        rows = rows.with_columns(point).sort("run")
        return {
            queue: rows.filter(pl.col("point") == place)["value"].to_numpy() * what.factor
            for place, queue in enumerate(self.queues)
        }
