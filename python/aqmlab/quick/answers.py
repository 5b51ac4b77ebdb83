"""Answers to the questions that need no simulation, before anything else is imported.

`--help`, `--version`, `list` and `explain` are answered from the texts in `aqmlab.told`. Whatever
is not plain (another option, a wrong name, packages that bring metrics or studies) is left to the
command line proper, which says the same, later.
"""

from __future__ import annotations

import os
import sys

from aqmlab import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

JSON = "--json"
HELP = ("--help", "-h")
MOST = 1 << 20
"""The most characters of a scenario that is run at once."""
GROUPS = ("[aqmlab.metrics]", "[aqmlab.studies]")
"""Sections of `entry_points.txt` by which packages add to what there is."""


def answer(words: Sequence[str]) -> bool:
    """Prints what was asked for; False if that is not for here. Errors of a run are raised."""
    if not words:
        return False
    if words[0] == "--complete":
        from aqmlab.quick.completion import complete

        plain.flush("".join(f"{each}\n" for each in complete(words[1:])))
        return True
    if set(HELP) & set(words):
        text = _help(words)
    else:
        text = _run(words[1:]) if words[0] == "run" else _told(words)
    if text is None:
        return False
    plain.flush(f"{text}\n")
    return True


def _help(words: Sequence[str]) -> str | None:
    """The help of the program, or of the command that is named first."""
    command = "" if words[0] in HELP else words[0]
    if len(words) != (2 if command else 1):
        return None
    file = os.path.join(os.path.dirname(os.path.dirname(__file__)), "told", "help.txt")
    with open(file, encoding="utf-8") as opened:
        for page in opened.read().split("\f"):
            name, _, text = page.partition("\n")
            if name == command:
                if not plain.has_colours():
                    text = plain.unstyled(text)
                return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))
    return None


def _told(words: Sequence[str]) -> str | None:
    """What `list` or `explain` say; None if an option, or nothing of that name."""
    asked, *names = [word for word in words if word != JSON]
    as_json = JSON in words
    if words == ["--version"]:
        from aqmlab._core import __version__

        return f"aqmlab {__version__}"
    if asked not in ("list", "explain") or len(names) > 1 or has_packages():
        return None
    if any(name.startswith("-") or ":" in name for name in names):
        return None
    if asked == "list":
        from aqmlab.told.catalogue import LISTS

        lists: dict[str, Any] = LISTS
        if names:
            lists = {key: rows for key, rows in lists.items() if key == names[0]}
        if as_json:
            return _json(lists) if lists else None
        return plain.listing(lists) if lists else None
    from aqmlab.told.reference import ENTRIES

    found: Any = ENTRIES
    if names:
        found = plain.matching(names[0], found)
    if as_json:
        return _json(found) if found else None
    return "\n".join(map(plain.explained, found)) if found else None


def _json(value: Any) -> str:
    """As the commands print it."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def _run(words: Sequence[str]) -> str | None:
    """What `run FILE` shows (also with `--set`, `--seed`); None for all else and bad input."""
    file, settings = _settings(words)
    try:
        if file is None or not os.path.isfile(file) or has_packages():
            return None
        with open(file, encoding="utf-8") as opened:
            text = opened.read(MOST)
    except (OSError, ValueError):
        return None
    if any(word in text for word in ("[scenario]", "[[axes]]", ".py:")) or len(text) == MOST:
        return None
    from aqmlab import signals

    signals.install()
    try:
        from aqmlab import _core
        from aqmlab.quick import light

        overrides = {key: _core.parse_value(value) for key, value in settings.items()}
        folder = os.path.dirname(file) or "."
        scenario = _core.Scenario(text, file=file, overrides=overrides, folders=[folder])
    except Exception:
        return None  # the command proper says what is wrong
    told = light.text(light.run(scenario), scenario.table)
    signals.uninstall()
    return f"{told}\n{plain.styled(light.NOT_SAVED, plain.DIM)}"


def _settings(words: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """The file and the settings of a command line; no file if there is something else."""
    file, settings, left = None, dict[str, str](), list(words)
    while left:
        word = left.pop(0)
        key, equals, value = (left.pop(0) if left and word == "--set" else "").partition("=")
        if (
            word == "--set"
            and equals
            and key.replace(".", "").strip()
            and ".py:" not in value
            and " " not in value
            and not value.strip().startswith(("{", "["))
        ):
            settings[key.strip()] = value.strip()
        elif word == "--seed" and left and left[0].isdecimal():
            settings["seed"] = left.pop(0)
        elif file is None and not word.startswith("-"):
            file = word
        else:
            return None, {}
    return file, settings


def has_packages() -> bool:
    """Whether an installed package may add metrics or studies."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    text = file.read()
            except OSError:
                continue
            if any(group.encode() in text for group in GROUPS):
                return True
    return False
