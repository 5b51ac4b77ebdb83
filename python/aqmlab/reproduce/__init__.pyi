from .measure import Measurements
from .model import Cause, Cell, Contradiction, Table, Warning
from .published import names
from .reproduction import Reproduction, reproduce

__all__ = [
    "Cause",
    "Cell",
    "Contradiction",
    "Measurements",
    "Reproduction",
    "Table",
    "Warning",
    "names",
    "reproduce",
]
