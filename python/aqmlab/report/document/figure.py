"""Pictures as values: a specification, the words around it, and files of it."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aqmlab import libraries, storage
from aqmlab.errors import input_error, stored
from aqmlab.report.document.pdf import ordered
from aqmlab.report.document.vega import light, table

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("svg", "png", "pdf")
PNG_SCALE = 2.0


class Form:
    """A block or item of a document."""

    form: ClassVar[str]
    """Name of the class in small letters."""
    kept: ClassVar[tuple[str, ...]] = ("text",)
    """Fields in its JSON."""

    def __init_subclass__(cls) -> None:
        """Sets the form."""
        cls.form = cls.__name__.lower()

    def to_json(self) -> dict[str, Any]:
        """The form and the fields as a mapping."""
        return {"form": self.form} | {name: _plain(getattr(self, name)) for name in self.kept}


def _plain(value: Any) -> Any:
    if isinstance(value, Form):
        return value.to_json()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Figure(Form):
    """A picture: a Vega-Lite specification and the words around it."""

    kept = ("id", "title", "message", "caption", "spec")
    id: str
    """File name without ending."""
    title: str
    message: str
    """What the picture shows, in one sentence."""
    caption: str
    """Explanation of bars, whiskers and lines (Markdown)."""
    spec: dict[str, Any] = field(repr=False)

    def svg(self) -> str:
        """The picture on white paper, title and message inside."""
        spec = light(self.spec, self.title, self.message)
        return str(libraries.vl_convert.vegalite_to_svg(spec))

    def to_csv(self) -> str:
        """The numbers behind the picture as CSV; empty for a diagram."""
        return table(self.spec)

    def save(self, path: str | Path, *more: str | Path) -> None:
        """Writes the picture to each file, in the format of its suffix: .svg, .png, .pdf.

        It is drawn once. Raises `InputError` for another ending, `StorageError` if a file cannot
        be written.
        """
        paths = [Path(each) for each in (path, *more)]
        for each in paths:
            if each.suffix[1:] not in FORMATS:
                problem = f"expected a file with one of these endings: {', '.join(FORMATS)}"
                raise input_error(problem, key="save", given=str(each))
        drawn, convert = self.svg(), libraries.vl_convert
        for each in paths:
            if each.suffix == ".svg":
                picture = drawn.encode()
            elif each.suffix == ".png":
                picture = convert.svg_to_png(drawn, scale=PNG_SCALE)
            else:
                picture = ordered(convert.svg_to_pdf(drawn))
            with stored(each, "the figure was not written"):
                storage.replace(each, storage.content(picture))

    def _repr_html_(self) -> str:
        return self.svg()


def draw_all(figures: Sequence[Figure], folder: Path) -> None:
    """Writes all figures in all formats into `folder`, which is made if it is not there.

    A process of its own (`aqmlab.cli.draw`) draws them: V8 ends its process where memory is limited
    (`ulimit -v`), instead of raising an exception. Raises `OSError` if a file cannot be written or
    nothing could be drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    order = json.dumps([[each.id, each.title, each.message, each.spec] for each in figures])
    command = [sys.executable, "-P", "-m", "aqmlab.cli.draw", str(folder)]
    done = subprocess.run(command, input=order, capture_output=True, text=True, check=False)
    if done.returncode < 0 or (done.returncode and not done.stdout):
        cause = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr[-300:]
        hint = "; is the memory of processes limited (ulimit -v)?" if done.returncode < 0 else ""
        raise OSError(errno.ENOMEM, f"the process that draws failed with {cause}{hint}")
    if done.returncode:
        number, problem, file = json.loads(done.stdout)
        raise OSError(number, problem, file)
