from .batches import Batch, Gathered, by_run, check_process, gather, in_parts
from .run import BUSY, IDLE, METRICS, RunResult, resolved
from .scenarios import Scenarios
from .study import VALUE, StudyInfo, StudyResult

__all__ = [
    "BUSY",
    "IDLE",
    "METRICS",
    "VALUE",
    "Batch",
    "Gathered",
    "RunResult",
    "Scenarios",
    "StudyInfo",
    "StudyResult",
    "by_run",
    "check_process",
    "gather",
    "in_parts",
    "resolved",
]
