"""aqmlab: a laboratory for active queue management.

    import aqmlab

    result = aqmlab.run("scenario.toml", set={"queue.target": "2ms"})
    print(result.links.select("link", "sojourn_p95_s", "utilisation"))

    study = aqmlab.Study("study.toml")
    print(study.run("results/mine", threads=2).links)

Importing aqmlab is cheap: tables and charts are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqmlab._core import (
    ControlError,
    CustomError,
    InputError,
    QueueError,
    Scenario,
    __version__,
    reference,
)

if TYPE_CHECKING:
    from aqmlab.compare import compare
    from aqmlab.control import CongestionControl
    from aqmlab.errors import FolderError, StorageError, StuckError
    from aqmlab.queue import Queue
    from aqmlab.results import RunResult, StudyResult
    from aqmlab.single import run
    from aqmlab.study import Study

__all__ = [
    "CongestionControl",
    "ControlError",
    "CustomError",
    "FolderError",
    "InputError",
    "Queue",
    "QueueError",
    "RunResult",
    "Scenario",
    "StorageError",
    "StuckError",
    "Study",
    "StudyResult",
    "__version__",
    "compare",
    "reference",
    "run",
]

_LAZY = {
    "compare": "compare",
    "CongestionControl": "control",
    "FolderError": "errors",
    "Queue": "queue",
    "RunResult": "results",
    "StorageError": "errors",
    "StuckError": "errors",
    "Study": "study",
    "StudyResult": "results",
    "run": "single",
}


def __getattr__(name: str) -> Any:
    """Loads what needs tables or charts when it is asked for."""
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module 'aqmlab' has no attribute {name!r}")
    value = getattr(import_module(f"aqmlab.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
