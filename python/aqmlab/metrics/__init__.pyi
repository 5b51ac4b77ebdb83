from .catalogue import COMPUTED
from .registry import Metric, entries, find, metric, own, registered
from .runs import Runs
from .shown import Shown, everything, headlines, pick, scale
from .values import values

__all__ = [
    "COMPUTED",
    "Metric",
    "Runs",
    "Shown",
    "entries",
    "everything",
    "find",
    "headlines",
    "metric",
    "own",
    "pick",
    "registered",
    "scale",
    "values",
]
