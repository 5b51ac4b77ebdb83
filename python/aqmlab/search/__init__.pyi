from .confirm import Confirmed
from .engine import SearchResult, attack, tune
from .keys import Key
from .shrink import Finding
from .trials import Measure, Trial

__all__ = ["Confirmed", "Finding", "Key", "Measure", "SearchResult", "Trial", "attack", "tune"]
