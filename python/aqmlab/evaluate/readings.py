"""The measures that several criteria read, each in one place with its unit and grain."""

from __future__ import annotations

from aqmlab.evaluate.criterion import At, Reading
from aqmlab.evaluate.scene import Path
from aqmlab.metrics.samples import Floats


def loss(case: str, at: At, group: str = "own") -> Reading:
    """The share of a group's segments that queues drop."""
    return Reading(case, "loss", "%", True, 100 * at.loss(group), 0.5)


def delay(case: str, at: At) -> Reading:
    """The 95th percentile of the time in the bottleneck's queue."""
    return Reading(case, "queuing delay, p95", "ms", True, 1e3 * at.waiting, 5.0)


def used(case: str, at: At, group: str, capacity: float) -> Reading:
    """The goodput of a group as a share of a capacity in bit/s."""
    share = 100 * at.goodput(group) / capacity
    return Reading(case, "goodput, share of the capacity", "%", False, share, 5.0)


def fairness(case: str, at: At, group: str = "own") -> Reading:
    """Jain's index of a group's goodputs."""
    return Reading(case, "Jain's index", "", False, at.metric("jain", group), 0.05)


def percent(case: str, measure: str, less: bool, share: Floats, grain: float = 5.0) -> Reading:
    """A share as a percentage."""
    return Reading(case, measure, "%", less, 100 * share, grain)


def milliseconds(case: str, measure: str, seconds: Floats, grain: float = 5.0) -> Reading:
    """A time that is better if it is less."""
    return Reading(case, measure, "ms", True, 1e3 * seconds, grain)


def path_readings(path: Path, case: str, at: At, group: str = "own") -> list[Reading]:
    """What every path tells: goodput, delay, loss and fairness."""
    return [
        used(case, at, group, path.rate),
        delay(case, at),
        loss(case, at, group),
        fairness(case, at, group),
    ]
