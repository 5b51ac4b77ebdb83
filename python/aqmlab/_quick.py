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

HELP = ("--help", "-h")
GROUPS = ("[aqmlab.metrics]", "[aqmlab.studies]")
"""Sections of `entry_points.txt` by which packages add to what there is."""


def answer(words: Sequence[str]) -> bool:
    """Prints what was asked for; False if that is not for here."""
    if not words:
        return False
    text = _help(words) if set(HELP) & set(words) else _told(words)
    if text is None:
        return False
    plain.flush(f"{text}\n")
    return True


def _help(words: Sequence[str]) -> str | None:
    """The help of the program, or of the command that is named first."""
    command = "" if words[0] in HELP else words[0]
    if len(words) != (2 if command else 1):
        return None
    file = os.path.join(os.path.dirname(__file__), "told", "help.txt")
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
    asked, *names = words
    if words == ["--version"]:
        from aqmlab._core import __version__

        return f"aqmlab {__version__}"
    if asked not in ("list", "explain") or len(names) > 1 or _has_packages():
        return None
    if any(name.startswith("-") or ":" in name for name in names):
        return None
    if asked == "list":
        from aqmlab.told.catalogue import LISTS

        lists: dict[str, Any] = LISTS
        if names:
            lists = {key: rows for key, rows in lists.items() if key == names[0]}
        return plain.listing(lists) if lists else None
    from aqmlab.told.reference import ENTRIES

    found: Any = ENTRIES
    if names:
        found = plain.matching(names[0], found)
    return "\n".join(map(plain.explained, found)) if found else None


def _has_packages() -> bool:
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
