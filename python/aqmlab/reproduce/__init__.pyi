from .measure import Measurements
from .model import Cause, Cell, CellTable, Warning
from .published import names
from .reproduction import Reproduction, reproduce

__all__ = [
    "Cause",
    "Cell",
    "CellTable",
    "Measurements",
    "Reproduction",
    "Warning",
    "names",
    "reproduce",
]
