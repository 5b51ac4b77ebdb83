"""Criteria as questions, and the readings that several of them share, with unit and grain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aqmlab.campaign import Filled, Question, Reading
from aqmlab.campaign.pack import cases_of
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.scene import ControlSetup, Path, Table

Cases = Callable[[ControlSetup], Mapping[str, Table]]
Read = Callable[[Filled], Sequence[Reading]]
EXAMPLE = ControlSetup("reno", "reno")


def criterion(
    ident: str,
    section: str,
    title: str,
    group: str,
    level: str,
    text: str,
    cases: Cases,
    read: Read,
) -> Question:
    """A criterion of a section: `cases` returns the scenarios of a control by name, `read` their
    readings."""
    made = cases_of(cases, EXAMPLE)
    source = f"RFC 9743, section {section}"
    return Question(ident, title, text, made, read=read, source=source, group=group, level=level)


def reading(
    case: str, measure: str, unit: str, direction: int, values: Floats, grain: float
) -> Reading:
    """A reading; differences below `grain` do not count."""
    return Reading(case, measure, "", unit, direction, values, grain)


def loss(case: str, at: CaseResults, group: str = "own") -> Reading:
    """The share of a group's segments that queues drop."""
    return reading(case, "loss", "%", LESS, 100 * at.loss(group), 0.5)


def delay(case: str, at: CaseResults) -> Reading:
    """The 95th percentile of the time in the bottleneck's queue."""
    return reading(case, "queuing delay, p95", "ms", LESS, 1e3 * at.waiting, 5.0)


def used(case: str, at: CaseResults, group: str, capacity: float) -> Reading:
    """The goodput of a group as a share of a capacity in bit/s."""
    share = 100 * at.goodput(group) / capacity
    return reading(case, "goodput, share of the capacity", "%", MORE, share, 5.0)


def fairness(case: str, at: CaseResults, group: str = "own") -> Reading:
    """Jain's index of a group's goodputs."""
    return reading(case, "Jain's index", "", MORE, at.metric("jain", group), 0.05)


def percent(case: str, measure: str, direction: int, share: Floats, grain: float = 5.0) -> Reading:
    """A share as a percentage."""
    return reading(case, measure, "%", direction, 100 * share, grain)


def milliseconds(case: str, measure: str, seconds: Floats, grain: float = 5.0) -> Reading:
    """A time that is better if it is less."""
    return reading(case, measure, "ms", LESS, 1e3 * seconds, grain)


def path_readings(path: Path, case: str, at: CaseResults, group: str = "own") -> list[Reading]:
    """Goodput, delay, loss and fairness of a path."""
    return [
        used(case, at, group, path.rate),
        delay(case, at),
        loss(case, at, group),
        fairness(case, at, group),
    ]
