"""Typed scenarios, with a class for everything that the engine declares::

    from aqmlab.scenario import CoDel, Flow, Link, Rate, Scenario, Voip

    scenario = Scenario(
        duration="30s",
        links={"down": Link(rate=Rate("20mbit"), delay="15ms", queue=CoDel(target="2ms")),
               "up": Link(rate="5mbit", delay="15ms")},
        flows={"call": Flow(path="down", return_path="up", workload=Voip())},
    )
    aqmlab.run(scenario)
    scenario.write("call.toml")

Every queue discipline, congestion control, workload, and kind of link has a class (`classes()`):
`FqCoDel`, `Cubic`, `ParetoOnoff`, `GilbertElliott`. Parameters are keyword arguments, which type
checkers and editors know; `help(CoDel)` has their defaults, ranges, meanings and sources. Values
are checked by `Scenario.check()`, or when the scenario is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqmlab.scenario.parts import (
    Control,
    DelayProcess,
    Endpoint,
    LossModel,
    Part,
    QueueDiscipline,
    RateProcess,
    Workload,
    classes,
)
from aqmlab.scenario.quantity import Duration, Quantity, Rate, Size
from aqmlab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from aqmlab.scenario.generated import *  # noqa: F403

__all__ = [
    "Control",
    "DelayProcess",
    "Duration",
    "Endpoint",
    "LossModel",
    "Part",
    "Quantity",
    "QueueDiscipline",
    "Rate",
    "RateProcess",
    "Scenario",
    "Size",
    "Workload",
    "classes",
]


def __getattr__(name: str) -> Any:
    """The class of this name."""
    if name.startswith("__") or name not in classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *classes()])
