"""Text for a terminal or a file, without a library: wrapping, colours, characters.

Imports nothing but what the interpreter has loaded already: `aqmlab list` answers at once.
"""

from __future__ import annotations

import codecs
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

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
        "⚠": "!",
    }
)
"""What stands for characters that the encoding of stdout lacks; for all others `?`."""


def any_encoding() -> None:
    """Makes stdout and stderr take every text, whatever their encoding (PYTHONIOENCODING=ascii)."""
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
    """What is written for characters that cannot be."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end].translate(ASCII)
    return "".join(each if ord(each) < 128 else "?" for each in found), error.end


codecs.register_error("aqmlab", _instead)


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def has_colours() -> bool:
    """Whether stdout shows colours."""
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


def unstyled(text: str) -> str:
    """The text without the codes of styles."""
    first, *rest = text.split("\x1b[")
    return first + "".join(each.partition("m")[2] for each in rest)


def wrapped(text: str, columns: int) -> list[str]:
    """The lines of a text of at most so many columns, but for longer words."""
    if len(text) <= columns and "\n" not in text:
        return [text]
    lines = []
    for paragraph in text.split("\n"):
        indent = " " * (len(paragraph) - len(paragraph.lstrip(" ")))
        first, *words = paragraph.lstrip(" ").split(" ")
        line = indent + first
        for word in words:
            if len(line) + 1 + len(word) > columns:
                lines.append(line)
                line = indent + word
            else:
                line = f"{line} {word}"
        lines.append(line)
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


# The catalogue


def listing(everything: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """What there is, by kind: the text of `aqmlab list`."""
    parts = []
    for title, rows in everything.items():
        parts.append(styled(title.capitalize().replace("_", " "), TITLE))
        left = max([18, *(len(row["name"]) for row in rows)]) + 1
        for row in rows:
            about = row["summary"]
            if row.get("preset_of"):
                about = f"{about} (preset of {row['preset_of']})"
            parts.append(beside(row["name"], [(about, "")], left))
        if not rows:
            parts.append("none")
        for words in OWN.get(title, ()):
            parts.append(styled(("  " if words.startswith("aqmlab") else "") + words, DIM))
        parts.append("")
    hint = "`aqmlab explain NAME` shows the parameters of each; `aqmlab reproduce NAME` runs "
    parts.append(styled(hint + "a study.", DIM))
    return "\n".join(parts)


OWN = {
    "disciplines": (
        "Your own queue is a Python class, named by its file (docs/your-own-queue.md):",
        "aqmlab run scenario.toml --set queue=my_queue.py:MyQueue",
    ),
    "congestion_controls": (
        "Your own control is a Python class too (docs/your-own-congestion-control.md):",
        "aqmlab run scenario.toml --set transport.congestion_control=my_control.py:MyControl",
    ),
}
"""What to say below a kind of which users write their own, and an example."""


def by_kind(
    reference: Sequence[Mapping[str, Any]],
    metrics: Iterable[Mapping[str, Any]],
    studies: Sequence[Mapping[str, str]],
    profiles: Sequence[Mapping[str, str]],
) -> dict[str, list[dict[str, Any]]]:
    """Lists of {"name", "summary", ...} by kind, from the entries of the reference."""

    def short(entry: Mapping[str, Any], *more: str) -> dict[str, Any]:
        return {key: entry[key] for key in ("name", "summary", *more)}

    def section(name: str) -> list[Mapping[str, Any]]:
        return [entry for entry in reference if entry["section"] == name]

    queues, workloads = section("queue"), section("workload")
    return {
        "disciplines": [short(each) for each in queues if not each["preset_of"]],
        "presets": [
            short(each, "preset_of", "settings") for each in queues + workloads if each["preset_of"]
        ],
        "congestion_controls": [short(each) for each in section("congestion_control")],
        "transports": [short(each) for each in section("transport") + section("endpoint")],
        "workloads": [short(each) for each in workloads if not each["preset_of"]],
        "metrics": [short(each, "of", "unit") for each in metrics],
        "studies": [dict(each) for each in studies],
        "profiles": [dict(each) for each in profiles],
    }


# What `explain` says


def matching(name: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that `name` speaks of, with the parameters it names; none if there are none.

    `name` is `codel`, `codel.target`, a parameter alone (`target`: of everything that has one),
    or a metric, which may have the name of a parameter: both are told.
    """
    head, dot, parameter = name.partition(".")
    measured = [each for each in entries if each["section"] == "metric"]
    others = [each for each in entries if each["section"] != "metric"]
    measured = [each for each in measured if name in (each["name"], each["section"])]
    named = [each for each in others if head in (each["name"], each["section"])]
    if named and not dot:
        return named + measured
    found = []
    for entry in named or ([] if dot else others):
        wanted = parameter if dot else name
        params = [each for each in entry["params"] if each["name"] == wanted]
        if params:
            found.append(entry | {"params": params})
    return measured + found


def explained(entry: Mapping[str, Any]) -> str:
    """An entry of the reference in words: the text of `aqmlab explain`."""
    head = wrapped(f"{entry['name']}  {entry['summary']}", width())
    head[0] = styled(entry["name"], TITLE) + head[0][len(entry["name"]) :]
    lines = head
    if entry["section"] == "metric":
        for key in ("of", "unit", "where", "source"):
            lines.append(f"  {styled(key, BOLD)}{' ' * (8 - len(key))}{entry[key]}")
        return "\n".join([*lines, ""])
    if entry["preset_of"]:
        settings = ", ".join(f"{key} = {value}" for key, value in entry["settings"].items())
        lines += wrapped(f"  {entry['preset_of']} with {settings}", width())
    if entry.get("tc"):
        lines.append(f"  Linux: tc qdisc replace dev eth0 root {entry['tc']}")
    if entry["source"]:
        lines += wrapped(f"  Source: {entry['source']}", width())
    left = max([0, *(len(param["name"]) for param in entry["params"])]) + 2
    for param in entry["params"]:
        texts = [(param["meaning"], ""), (_facts(param, entry["settings"]), DIM)]
        lines.append(beside(param["name"], [each for each in texts if each[0]], left, " "))
    return "\n".join([*lines, ""])


def _facts(param: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Default, range and source of a parameter."""
    own = settings.get(param["name"])
    usual = "required" if param["default"] is None else f"default {param['default']}"
    facts = [usual if own is None else f"default {own} here, else {param['default']}"]
    if param["choices"]:
        facts.append(f"one of {', '.join(param['choices'])}")
    elif param["range"]:
        facts.append(f"{param['range'][0]} to {param['range'][1]}")
    facts.append(f"({param['kind']}; source: {param['source']})")
    return " · ".join(facts)


def flush(text: str = "") -> None:
    """Writes `text` and what is left for stdout: a full disk or a closed pipe is no traceback."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error: stdout: {error.strerror}", file=sys.stderr)
            sys.exit(1)
