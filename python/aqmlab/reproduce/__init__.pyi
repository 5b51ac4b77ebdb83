from .measure import Measurements
from .model import Cause, Cell, Table, Warning
from .published import names
from .reproduction import Reproduction, reproduce

__all__ = [
    "Cause",
    "Cell",
    "Measurements",
    "Reproduction",
    "Table",
    "Warning",
    "names",
    "reproduce",
]
