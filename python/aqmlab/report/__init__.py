"""Reports: one HTML file that needs nothing else, and every figure as SVG, PNG and PDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.errors import StorageError
from aqmlab.report import charts, page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aqmlab.reproduce import Reproduction
    from aqmlab.reproduce.model import Figure

__all__ = ["save", "save_figure", "write"]

REPORT = "report.html"
FIGURES = "figures"
FORMATS = ("svg", "png", "pdf")
PNG_SCALE = 2.0


def write(reproduction: Reproduction, folder: Path) -> Path:
    """Writes `report.html` and `figures/` into `folder`; returns the path of the report.

    Raises `StorageError` if a file cannot be written.
    """
    return save(folder, page.html(reproduction), reproduction.figures)


def save(folder: Path, text: str, figures: Iterable[Figure]) -> Path:
    """Writes the page `text` as `report.html` into `folder`, and its figures as SVG, PNG and PDF
    into `figures/` there; returns the path of the page.

    Raises `StorageError` if a file cannot be written.
    """
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        for figure in figures:
            for ending in FORMATS:
                save_figure(figure, folder / FIGURES / f"{figure.id}.{ending}")
        path = folder / REPORT
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the tables are complete, the report is not") from error
    return path


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure to `path`, as SVG, PNG or PDF by the ending."""
    import vl_convert

    spec = charts.light(figure.spec, figure.title, figure.message)
    if path.suffix == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    elif path.suffix == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
    elif path.suffix == ".pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(spec))
    else:
        raise ValueError(f"a figure is written as {', '.join(FORMATS)}, not {path.suffix}")
