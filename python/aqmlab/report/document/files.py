"""Documents as files: one page that needs nothing else, and every figure as a picture."""

from __future__ import annotations

from pathlib import Path

from aqmlab.errors import stored
from aqmlab.report.document.figure import draw_all
from aqmlab.report.document.html import page
from aqmlab.report.document.model import Document
from aqmlab.storage import content, replace

REPORT = "report.html"
FIGURES = "figures"
DATA = "data"


def write_text(path: Path, text: str, kept: str) -> None:
    """Writes a text file, and its folder if it is missing.

    Raises `StorageError`, which says what is `kept`, if it cannot be written.
    """
    with stored(path, kept, resumes=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content(text.encode()))


def save(document: Document, folder: Path, *, figures: bool = True) -> Path:
    """Writes the document as `report.html` into `folder`, the numbers behind its figures as CSV
    into `data/`, and with `figures` its figures as SVG, PNG and PDF into `figures/` there; returns
    the path of the page.

    Raises `StorageError` if a file cannot be written.
    """
    path = folder / REPORT
    data = {each.id: text for each in document.figures if (text := each.to_csv())}
    for name, text in data.items():
        write_text(folder / DATA / f"{name}.csv", text, "the report was not written")
    write_text(path, page(document, data), "the report was not written")
    if figures:
        with stored(folder / FIGURES, f"{path} was written, its figures were not"):
            draw_all(document.figures, folder / FIGURES)
    return path
