from .confirm import Confirmed, Kept
from .engine import SearchResult, attack, tune
from .keys import Key
from .shrink import Attack
from .trials import Measure, Trial

__all__ = [
    "Attack",
    "Confirmed",
    "Kept",
    "Key",
    "Measure",
    "SearchResult",
    "Trial",
    "attack",
    "tune",
]
