"""Recorded series for tables, statements and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab_studies.nichols2012.curves import (
    FALLS,
    POSSIBLE,
    RATES,
    RISES,
    STEP,
    average,
    inside,
    together,
)
from aqmlab_studies.shared import packed

__all__ = ["FALLS", "POSSIBLE", "RATES", "RISES", "STEP", "average", "inside"]

BUFFER = 830 * 1500 * 8
"""Bits in a full buffer."""
TAIL, CODEL = "tail drop", "CoDel"
LOADS = ("bulk and web", "bulk and small pages", "bulk")
SENDERS = ("CUBIC", "Reno")


@cache
def recorded() -> dict[str, Any]:
    """mahimahi's runs: `steps` and `lte`, a list of points each."""
    found: dict[str, Any] = packed(__file__, "mahimahi.json")
    return found


def point_labels(point: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a recorded run."""
    return {axis: str(point[axis]) for axis in ("load", "sender", "queue") if axis in point}


def settings(measured: Measurements) -> Iterator[dict[str, str]]:
    """Load and sender of the points at which both queues were run."""
    axes = {"load": LOADS} | ({"sender": SENDERS} if "sender" in measured.axes else {})
    for each in product(*axes.values()):
        labels = dict(zip(axes, each, strict=True))
        if all(measured.has(queue=queue, **labels) for queue in (TAIL, CODEL)):
            yield labels


def told(labels: dict[str, str]) -> str:
    """`CUBIC, bulk and web`."""
    return ", ".join(labels[axis] for axis in ("sender", "load") if axis in labels)


def shares(measured: Measurements, **labels: str) -> Floats:
    """The share of the possible bytes in each run; headers that the link adds count."""
    link = measured.result.scenarios[0]["links"][measured.link]
    header = float(str(link.get("overhead", 0)).removesuffix("b"))
    sent = measured.count("delivered_bytes", **labels)
    sent = sent + header * measured.count("delivered", **labels)
    share: Floats = sent / measured.count("capacity_bytes", **labels)
    return share


def both(measured: Measurements, quantity: str, **labels: str) -> tuple[Floats, dict[str, Floats]]:
    """Times and means over the replications of a quantity with tail drop and with CoDel."""
    return together(measured, quantity, (TAIL, CODEL), **labels)


@per_run
def carried(measured: Measurements, start: float, end: float, **labels: str) -> Floats:
    """Bytes that left the queue from `start` to `end` in each run."""
    times, rows = measured.curves("delivered_bytes", **labels)
    ends = [np.interp((start, end), times[~np.isnan(row)], row[~np.isnan(row)]) for row in rows]
    return np.diff(ends, axis=1)[:, 0]


def of_step(measured: Measurements, step: int, after: float = 0.0, **labels: str) -> Floats:
    """The share of what a step offers that is used, in each run, from `after` seconds on."""
    start, end = step * STEP + after, (step + 1) * STEP
    return carried(measured, start, end, **labels) * 8 / (RATES[step] * 1e6 * (end - start))
