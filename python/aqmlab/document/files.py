"""Documents as files: one page that needs nothing else, and every figure as a picture."""

from __future__ import annotations

from pathlib import Path

from aqmlab.document.figure import save_all
from aqmlab.document.model import Document
from aqmlab.errors import StorageError

REPORT = "report.html"
FIGURES = "figures"


def save(document: Document, folder: Path, *, figures: bool = True) -> Path:
    """Writes the document as `report.html` into `folder`, and with `figures` its figures as
    SVG, PNG and PDF into `figures/` there; returns the path of the page.

    Raises `StorageError` if a file cannot be written.
    """
    path = folder / REPORT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if figures:
            save_all(document.figures, folder / FIGURES)
        path.write_text(document.to_html(), encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the report is not complete") from error
    return path
