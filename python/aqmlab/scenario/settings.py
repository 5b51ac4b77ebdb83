"""Settings given as text: `key=value` pairs, and TOML files read into mappings."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from aqmlab._core import parse_value
from aqmlab.errors import input_error, nearest, unknown
from aqmlab.files import read_bytes

T = TypeVar("T")
PART = r"[\w \t\"'-]*+"
MANY_PARTS = re.compile(rf"^[ \t]*+\[*+{PART}(?:\.{PART}){{64,}}+[]=]", re.MULTILINE)
"""A dotted key, or the name of a table, of more than 64 parts."""
MOST_TEXT = 64 << 20
"""The most bytes of a scenario or study."""
FORMS = {
    "pack": ("check", {"slot", "contenders", "cases", "questions", "expect"}),
    "published study": ("reproduce", {"citation", "tables"}),
    "topology": ("shell --topology", {"hosts"}),
    "study": ("study", {"scenario", "axes"}),
    "scenario": ("run", {"links", "flows"}),
}
"""Kinds of TOML files: the command that takes each, keys that distinguish it from those below."""
EXAMPLE = "a setting such as queue.target=2ms"
TO_BEGIN_WITH = "`aqmlab new scenario NAME`, `new study` and `new pack` write one to start from"


def parse_settings(
    pairs: Iterable[str], option: str = "--set", example: str = EXAMPLE
) -> dict[str, Any]:
    """Turns `["queue.target=2ms", ...]` into dotted keys and values, in their order.

    A value is what it is in TOML (`2`, `true`, `["down"]`), else plain text (`2ms`, or a queue in
    words: `fq_codel target 5ms`).
    Raises `InputError` for a pair without `=` or with an empty part in its key, and for a table or
    list that is not TOML.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not all(part.strip() for part in key.split(".")):
            raise input_error(f"expected {example}", key=option, given=pair)
        settings.pop(key, None)
        settings[key] = _value(value.strip(), key)
    return settings


def _value(text: str, key: str) -> Any:
    """A value of `--set`; `InputError` for a table or list that is not TOML."""
    value = parse_value(text)
    if not isinstance(value, str) or (text[:1], text[-1:]) not in (("{", "}"), ("[", "]")):
        return value
    try:
        # The engine's integers have 64 bits: it reports the number that is too large, and its key.
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problem = f"this is not TOML: {error}".partition(" (at ")[0]
        raise input_error(problem, key=key, given=text) from None


def parse_selection(pairs: Iterable[str]) -> dict[str, list[str]]:
    """Turns `["queue=CoDel", "queue=PIE"]` into axes with the labels wanted of them."""
    selection: dict[str, list[str]] = {}
    for pair in pairs:
        axis, equals, label = pair.partition("=")
        if not equals:
            problem = "expected an axis and a label such as queue=CoDel"
            raise input_error(problem, key="--only", given=pair)
        selection.setdefault(axis.strip(), []).append(label.strip())
    return selection


def words_of(text: str, key: str, file: str | None = None) -> list[str]:
    """The words of a command line. Raises `InputError` for an open quotation."""
    try:
        return shlex.split(text)
    except ValueError as error:
        problem = f"this is no command line: {str(error).lower()}"
        raise input_error(problem, file=file, key=key, given=text) from None


def path_of(source: object) -> Path:
    """The path of a file with a scenario or study. Raises `InputError` for another object."""
    if not isinstance(source, str | os.PathLike):
        problem = "expected a path, a mapping or a Scenario"
        raise input_error(problem, key="source", given=repr(source))
    return Path(source)


def mapping_of(given: object, key: str) -> dict[Any, Any]:
    """A copy of the mapping for this argument; empty for None. Raises `InputError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problem = 'expected a mapping such as {"queue": "codel"}'
        raise input_error(problem, key=key, given=repr(given))
    return dict(given)


def each_of(given: str | Iterable[T]) -> list[str | T]:
    """The names in a sequence, or the one name that stands for a sequence of it."""
    return [given] if isinstance(given, str) else list(given)


def read_text(path: Path) -> str:
    """The text of the file at `path`, without a byte order mark.

    Raises `InputError` if it is missing, is not a file, may not be read or is not UTF-8 text.
    """
    try:
        return read_bytes(path, MOST_TEXT).decode("utf-8-sig")
    except FileNotFoundError:
        near = _neighbour(path)
        hint = f"did you mean `{near}`?" if near else TO_BEGIN_WITH
        raise input_error("there is no such file", file=str(path), hint=hint) from None
    except UnicodeDecodeError:
        raise input_error("this is not a TOML file: not UTF-8 text", file=str(path)) from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise input_error(problem, file=str(path)) from None
    except ValueError:  # a null character
        raise input_error("this is no name of a file", file=ascii(str(path))) from None


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """The tables of a TOML text; `InputError` with line and column if it is not TOML."""
    if MANY_PARTS.search(text):  # tomllib takes minutes for one of 100,000
        raise input_error("expected keys of at most 64 parts", file=file)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise input_error(f"this is not TOML: {error}", file=file) from None
    except RecursionError:
        raise input_error("lists or tables are nested too deeply", file=file) from None


def whole(value: Any, low: int, key: str, file: str | None = None, below: float = 1 << 64) -> int:
    """A whole number of at least `low`. Raises `InputError` for anything else."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not low <= value < below:
        most = f" to {below - 1}" if is_whole and value >= below else ""
        problem = f"expected a whole number from {low}{most}"
        raise input_error(problem, file=file, key=key, given=value)
    return int(value)


def check_form(table: Mapping[str, Any], form: str, file: str) -> None:
    """Refuses the file of another command, and names the command."""
    for name, (command, keys) in FORMS.items():
        if keys & table.keys():
            if name != form:
                hint = f"run it by `aqmlab {command} {file}`"
                raise input_error(f"this is a {name}, not a {form}", file=file, hint=hint)
            return


def check_keys(table: Mapping[str, Any], known: Iterable[str], file: str, where: str = "") -> None:
    """Refuses keys of `table` that are none of `known`, naming the nearest."""
    names = list(known)
    for key in table:
        if key not in names:
            raise unknown("key", str(key), names, file=file, key=where)


def _neighbour(path: Path) -> str | None:
    """A TOML file in the same folder with nearly the same name."""
    try:
        stems = [each.stem for each in path.parent.glob("*.toml")]
    except OSError:
        return None
    guess = nearest(path.stem, stems)
    return str(path.parent / f"{guess}.toml") if guess else None
