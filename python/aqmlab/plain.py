"""Text for a terminal or a file, without a library: wrapping, colours, characters."""

from __future__ import annotations

import codecs
import os
import re
import sys
from textwrap import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 110
"""The columns of text that goes to a file or pipe."""
WIDE = 100
"""From so many columns on, those of a table stand further apart."""
BOLD, TITLE, DIM = "1", "1;36", "2"
ASCII = str.maketrans(
    {
        **dict.fromkeys("–—─━╌╴╶╸╺═", "-"),
        **dict.fromkeys("│┃║╎", "|"),
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼╞╡╪╤╧", "+"),
        **dict.fromkeys("·•●◦", "*"),
        **dict.fromkeys("‘’′", "'"),
        **dict.fromkeys("“”″", '"'),
        "µ": "u",
        "μ": "u",
        "…": "...",
        "×": "x",
        "²": "^2",
        "³": "^3",
        "≤": "<=",
        "≥": ">=",
        "±": "+-",
        "→": "->",
        "←": "<-",
        "≈": "~",
        "−": "-",
        "\u00a0": " ",
        "\u202f": " ",
        "√": "sqrt",
        "Δ": "delta",
        "α": "alpha",
        "β": "beta",
        "γ": "gamma",
        "λ": "lambda",
        "σ": "sigma",
        "∞": "inf",
        "▲": "^",
        "▼": "v",
        "█": "#",
        "✓": "ok",
        "✗": "x",
        "⚠": "!",
    }
)
"""Substitutes for characters that the encoding of stdout lacks; `?` for all others."""


def any_streams() -> None:
    """Puts /dev/null in the place of standard streams that are closed (cron, `>&-`): a file of ours
    that is opened later must not become one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # The lowest number that is free: this one.
            os.set_inheritable(number, True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def any_encoding() -> None:
    """Makes stdout and stderr accept every text in any encoding (PYTHONIOENCODING=ascii)."""
    for stream in (sys.stdout, sys.stderr):
        if not _is_utf8(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="aqmlab")


def shown(text: str) -> str:
    """The text as stdout shows it, for tables: what stands for a character may be wider."""
    if sys.stdout is None or _is_utf8(sys.stdout):
        return text
    encoding = sys.stdout.encoding
    return text.encode(encoding, "aqmlab").decode(encoding)


def _is_utf8(stream: object) -> bool:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return bool(encoding.lower().replace("-", "") == "utf8")


def _instead(error: UnicodeError) -> tuple[str, int]:
    """Substitute for characters that the encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end].translate(ASCII)
    return "".join(each if ord(each) < 128 else "?" for each in found), error.end


codecs.register_error("aqmlab", _instead)


def is_terminal() -> bool:
    """True if stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def has_colours() -> bool:
    """True if stdout shows colours."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """The columns there are on stdout."""
    if not is_terminal():
        return WIDTH
    try:
        return max(20, os.get_terminal_size(sys.stdout.fileno()).columns)
    except OSError:
        return 80


def styled(text: str, style: str) -> str:
    """The text in a style, where stdout shows it."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and has_colours() else text


def wrapped(text: str, columns: int) -> list[str]:
    """The lines of a text of at most so many columns, but for longer words."""
    lines = []
    for paragraph in text.split("\n"):
        indent = " " * (len(paragraph) - len(paragraph.lstrip(" ")))
        lines += wrap(paragraph, columns, subsequent_indent=indent, break_long_words=False,
                      break_on_hyphens=False) or [""]  # fmt: skip
    return lines


def beside(name: str, texts: Sequence[tuple[str, str]], left: int, margin: str = "") -> str:
    """A name in bold, and beside it texts, each with its style, below one another."""
    room = width() - len(margin) - left
    lines = [styled(line, style) for text, style in texts for line in wrapped(text, room)]
    head = margin + styled(name, BOLD) + " " * max(1, left - len(name))
    return head + f"\n{margin}{' ' * left}".join(lines)


def table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int = 1
) -> list[str]:
    """The lines of a table: so many columns of labels at its left, numbers to the right."""
    gap = "  " if width() >= WIDE else " "
    heads, *rows = ([shown(cell) for cell in row] for row in (heads, *rows))
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        sides = (
            cell.ljust(room) if place < labels else cell.rjust(room)
            for place, (cell, room) in enumerate(zip(cells, wide, strict=True))
        )
        return gap.join(sides)

    rule = "─" * (sum(wide) + len(gap) * (len(wide) - 1))
    return [styled(title, BOLD), styled(line(heads), BOLD), rule, *map(line, rows)]


FORMULA = r"^[=+\-@\t\r]"
"""Texts that a spreadsheet runs as a formula."""


def cell(value: object) -> object:
    """The value of a cell of CSV: a formula that is no number gets an apostrophe in front."""
    if not (isinstance(value, str) and re.match(FORMULA, value)):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def flush(text: str = "") -> None:
    """Writes `text` and flushes stdout, without a traceback for a full disk or a closed pipe."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error: stdout: {error.strerror}", file=sys.stderr)
            sys.exit(1)
