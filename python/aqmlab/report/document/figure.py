"""Pictures as values: a specification, the words around it, and files of it."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aqmlab import libraries, storage
from aqmlab.errors import input_error, stored
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
    """Writes all figures in all formats into `folder`, which is made if it is not there. Raises the
    errors of `draw_apart`."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_apart(*((each, [folder / f"{each.id}.{end}" for end in FORMATS]) for each in figures))


def draw_apart(*orders: tuple[Figure, Sequence[Path]]) -> None:
    """Writes each figure to its files, in a process of its own (`aqmlab.cli.draw`).

    V8 ends its process where memory is limited (`ulimit -v`), instead of raising an exception.
    Raises `OSError` if a file cannot be written or nothing could be drawn.
    """
    order = json.dumps(
        [[each.id, each.title, each.message, each.spec, *map(str, paths)] for each, paths in orders]
    )
    command = [sys.executable, "-P", "-m", "aqmlab.cli.draw"]
    done = subprocess.run(command, input=order, capture_output=True, text=True, check=False)
    if done.returncode < 0 or (done.returncode and not done.stdout):
        cause = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr[-300:]
        hint = "; is the memory of processes limited (ulimit -v)?" if done.returncode < 0 else ""
        raise OSError(errno.ENOMEM, f"the process that draws failed with {cause}{hint}")
    if done.returncode:
        number, problem, file = json.loads(done.stdout)
        raise OSError(number, problem, file)


OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?\nendobj\n\n)(?=\d+ 0 obj\n|xref\n)", re.DOTALL)
REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
NAMED = re.compile(rb"(?: +/[a-z]+\d+ \d+ 0 R\n){2,}")
"""Resources of a page, such as `/fo0 1 0 R`."""
STREAM = b"\nstream\n"


def ordered(pdf: bytes) -> bytes:
    """The same bytes for the same picture: svg2pdf writes the fonts of a PDF in random order.

    Sorts the named resources, and numbers and writes the objects in the order of references.

    A PDF of another form (compressed references) is returned as it is.
    """
    if b"\ntrailer\n" not in pdf:
        return pdf
    parts = OBJECT.split(pdf)
    bodies = {
        number: NAMED.sub(lambda found: b"".join(sorted(found[0].splitlines(True))), body)
        for number, body in zip(parts[1::3], parts[2::3], strict=True)
    }
    numbers: dict[bytes, int] = {}

    def visit(text: bytes) -> None:
        for number in REFERENCE.findall(text):
            if number not in numbers:
                numbers[number] = len(numbers) + 1
                visit(bodies[number].partition(STREAM)[0])

    def renumbered(text: bytes) -> bytes:
        return REFERENCE.sub(lambda found: b"%d 0 R" % numbers[found[1]], text)

    trailer = parts[-1][parts[-1].index(b"trailer") : parts[-1].index(b"startxref")]
    visit(trailer)
    written, places = parts[0], []
    for old, number in numbers.items():
        places.append(len(written))
        head, *stream = bodies[old].partition(STREAM)
        written += b"%d 0 obj\n" % number + renumbered(head) + b"".join(stream)
    entries = (b"%010d 00000 n\r\n" % place for place in places)
    table = b"xref\n0 %d\n0000000000 65535 f\r\n" % (len(places) + 1) + b"".join(entries)
    end = b"startxref\n%d\n%%%%EOF" % len(written)
    return written + table + renumbered(trailer) + end
