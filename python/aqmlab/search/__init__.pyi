from .confirm import Confirmed
from .engine import SearchResult, attack, tune
from .keys import Key
from .trials import Measure, Trial

__all__ = ["Confirmed", "Key", "Measure", "SearchResult", "Trial", "attack", "tune"]
