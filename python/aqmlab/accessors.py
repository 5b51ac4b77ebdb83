"""What the methods of results need from the layers above them, each loaded at its first use.

Results are loaded without these layers: a table of metrics needs no charts. Results use this module
as the attribute `accessors` of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aqmlab.metrics import values as values
    from aqmlab.report import document as document
    from aqmlab.report import overview as overview
    from aqmlab.report import plot as plot
    from aqmlab.report import run_page as run_page
    from aqmlab.report import study_page as study_page
    from aqmlab.study import folder as folder

PLACES = {"folder": "study", "values": "metrics"}
"""Package of a module, if it is not `report`."""


def __getattr__(name: str) -> Any:
    """The module of this name."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"aqmlab.{PLACES.get(name, 'report')}.{name}")
