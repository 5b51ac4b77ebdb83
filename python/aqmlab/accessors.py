"""What the methods of results need from the layers above them, each loaded at its first use.

Results are loaded without these layers: a table of metrics needs no charts. Results use this module
as the attribute `accessors` of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aqmlab.metrics.grid import to_xarray as to_xarray
    from aqmlab.metrics.values import table as metrics
    from aqmlab.report.document import save as save
    from aqmlab.report.plot import RunPlot, StudyPlot
    from aqmlab.report.run_page import document as run_report
    from aqmlab.report.study_page import document as study_report
    from aqmlab.report.tradeoff import runs as tradeoff
    from aqmlab.study.folder import open_results as open_results

__all__ = [
    "RunPlot",
    "StudyPlot",
    "metrics",
    "open_results",
    "run_report",
    "save",
    "study_report",
    "to_xarray",
    "tradeoff",
]
PLACES = {
    "RunPlot": ("report.plot", "RunPlot"),
    "StudyPlot": ("report.plot", "StudyPlot"),
    "metrics": ("metrics.values", "table"),
    "open_results": ("study.folder", "open_results"),
    "run_report": ("report.run_page", "document"),
    "save": ("report.document", "save"),
    "study_report": ("report.study_page", "document"),
    "to_xarray": ("metrics.grid", "to_xarray"),
    "tradeoff": ("report.tradeoff", "runs"),
}


def __getattr__(name: str) -> Any:
    """The function or class of this name."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = PLACES[name]
    return getattr(import_module(f"aqmlab.{module}"), own)
