from .confirm import CheckedConstraint, Confirmed
from .engine import SearchResult, attack, tune
from .keys import Key
from .shrink import Attack
from .trials import Measure, Trial

__all__ = [
    "Attack",
    "CheckedConstraint",
    "Confirmed",
    "Key",
    "Measure",
    "SearchResult",
    "Trial",
    "attack",
    "tune",
]
