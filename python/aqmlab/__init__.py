"""aqmlab: a laboratory for active queue management.

    import aqmlab

    result = aqmlab.run("scenario.toml", set={"queue.target": "2ms"})
    print(result.links.select("link", "sojourn_p95_s", "utilisation"))

    result = aqmlab.study("study.toml", out="results/mine", threads=2)
    print(result.links)
    result.write_report()

`run`, `study`, `merge`, `compare`, `reproduce`, `characterize` and `emulate` are what the commands
of the same names are; whatever goes wrong on purpose is an `AqmlabError`.

Importing aqmlab is cheap: the engine, tables and charts are loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aqmlab._core import Scenario, __version__, reference
    from aqmlab.characterize import characterize
    from aqmlab.compare import compare
    from aqmlab.control import CongestionControl
    from aqmlab.emulate import emulate
    from aqmlab.errors import (
        AqmlabError,
        ClusterError,
        ControlError,
        CustomError,
        EmulationError,
        FolderError,
        InputError,
        QueueError,
        StorageError,
        StuckError,
    )
    from aqmlab.measure import Runs, metric
    from aqmlab.plan.shards import Shard
    from aqmlab.queue import Queue
    from aqmlab.report.own import chart
    from aqmlab.reproduce import reproduce
    from aqmlab.results import RunResult, StudyResult
    from aqmlab.study import Study, study
    from aqmlab.study.merge import merge
    from aqmlab.study.single import run
    from aqmlab.study.stepping import Run

__all__ = [
    "AqmlabError",
    "ClusterError",
    "CongestionControl",
    "ControlError",
    "CustomError",
    "EmulationError",
    "FolderError",
    "InputError",
    "Queue",
    "QueueError",
    "Run",
    "RunResult",
    "Runs",
    "Scenario",
    "Shard",
    "StorageError",
    "StuckError",
    "Study",
    "StudyResult",
    "__version__",
    "characterize",
    "chart",
    "compare",
    "emulate",
    "merge",
    "metric",
    "reference",
    "reproduce",
    "run",
    "study",
]

_LAZY = {
    "AqmlabError": "errors",
    "ClusterError": "errors",
    "ControlError": "errors",
    "CustomError": "errors",
    "EmulationError": "errors",
    "FolderError": "errors",
    "InputError": "errors",
    "QueueError": "errors",
    "StorageError": "errors",
    "StuckError": "errors",
    "__version__": "_core",
    "CongestionControl": "control",
    "Queue": "queue",
    "Run": "study.stepping",
    "RunResult": "results",
    "Runs": "measure",
    "Scenario": "_core",
    "reference": "_core",
    "Study": "study",
    "chart": "report.own",
    "Shard": "plan.shards",
    "StudyResult": "results",
    "merge": "study.merge",
    "metric": "measure",
    "run": "study.single",
}
_MODULES = (
    "characterize", "compare", "document", "emulate", "measure", "reproduce", "scenarios",
    "study",
)  # fmt: skip
"""Of these, those that are functions as well can be called (`aqmlab._face`)."""


def __getattr__(name: str) -> Any:
    """Loads what needs tables or charts when it is asked for."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"aqmlab.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'aqmlab' has no attribute {name!r}")
    if _LAZY[name] == "_core":
        import_module("aqmlab.errors")  # which makes the engine's exceptions `AqmlabError`s
    value = getattr(import_module(f"aqmlab.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
