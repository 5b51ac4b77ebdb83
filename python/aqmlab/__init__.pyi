from . import accessors, metrics, scenario, search, stats
from ._core import __version__, reference
from .compare import compare
from .control import CongestionControl
from .emulator import emulate
from .errors import (
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
from .metrics import Runs, metric
from .packs.access_line import try_line
from .packs.rfc7928 import characterize
from .packs.rfc9743 import evaluate
from .queue import Queue
from .report import document
from .report.own import chart
from .reproduce import reproduce
from .results import RunResult, StudyResult
from .scenario import Scenario
from .share.bundle import bundle
from .share.rerun import rerun
from .study import Study, study
from .study.merge import merge
from .study.shards import Shard
from .study.single import run
from .study.stepping import Run

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
    "accessors",
    "bundle",
    "characterize",
    "chart",
    "compare",
    "document",
    "emulate",
    "evaluate",
    "merge",
    "metric",
    "metrics",
    "reference",
    "reproduce",
    "rerun",
    "run",
    "scenario",
    "search",
    "stats",
    "study",
    "try_line",
]
