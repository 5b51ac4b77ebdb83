from .measure import Measurements
from .model import Cause, Cell, Claim, Contradiction, Table, Warning
from .published import names
from .reproduction import Reproduction, reproduce

__all__ = [
    "Cause",
    "Cell",
    "Claim",
    "Contradiction",
    "Measurements",
    "Reproduction",
    "Table",
    "Warning",
    "names",
    "reproduce",
]
