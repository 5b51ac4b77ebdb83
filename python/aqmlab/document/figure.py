"""Pictures as values: a specification, the words around it, and files of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aqmlab import libraries
from aqmlab.document.vega import light

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("svg", "png", "pdf")
PNG_SCALE = 2.0


@dataclass(frozen=True)
class Figure:
    """A picture: a Vega-Lite specification and the words around it."""

    form: ClassVar[str] = "figure"
    id: str
    """File name without ending."""
    title: str
    message: str
    """What the picture shows, in one sentence."""
    caption: str
    """Explanation of bars, whiskers and lines (Markdown)."""
    spec: dict[str, Any]

    def svg(self) -> str:
        """The picture on white paper, title and message inside."""
        spec = light(self.spec, self.title, self.message)
        return str(libraries.vl_convert.vegalite_to_svg(spec))

    def save(self, path: str | Path, *more: str | Path) -> None:
        """Writes the picture to each file, in the format of its suffix: .svg, .png, .pdf.

        It is drawn once. Raises `ValueError` for another ending, `OSError` if a file cannot be
        written.
        """
        paths = [Path(each) for each in (path, *more)]
        for each in paths:
            if each.suffix[1:] not in FORMATS:
                raise ValueError(f"a figure is written as {', '.join(FORMATS)}, not {each.suffix}")
        drawn, convert = self.svg(), libraries.vl_convert
        for each in paths:
            if each.suffix == ".svg":
                each.write_text(drawn, encoding="utf-8")
            elif each.suffix == ".png":
                each.write_bytes(convert.svg_to_png(drawn, scale=PNG_SCALE))
            else:
                each.write_bytes(convert.svg_to_pdf(drawn))

    def to_json(self) -> dict[str, Any]:
        """The figure as a mapping."""
        names = ("id", "title", "message", "caption", "spec")
        return {"form": self.form} | {name: getattr(self, name) for name in names}

    def _repr_html_(self) -> str:
        return self.svg()


def save_all(figures: Sequence[Figure], folder: Path) -> None:
    """Writes all figures in all formats into `folder`, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in figures:
        each.save(*(folder / f"{each.id}.{ending}" for ending in FORMATS))
