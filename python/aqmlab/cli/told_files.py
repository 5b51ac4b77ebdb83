"""Makes the files of `aqmlab.told`: `python -m aqmlab.cli.told_files FOLDER`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from typing import Any
from unittest import mock

import typer
from typer import rich_utils

from aqmlab.cli import COMMANDS, app
from aqmlab.cli.explain import entries
from aqmlab.cli.listing import catalogue

COLUMNS = 80
"""The width of the help."""


def files() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        "help.txt": "\f".join(_pages()),
        "catalogue.py": _python("LISTS", "What `aqmlab list --json` prints.", catalogue()),
        "options.py": _python(
            "OPTIONS", "By command, its options: whether a value follows.", _options()
        ),
        "reference.py": _python("ENTRIES", "What `aqmlab explain --json` prints.", entries()),
    }


def _pages() -> Iterator[str]:
    """The help of the program and of each command: its name, and the text below it."""
    for name in ("", *COMMANDS):
        yield f"{name}\n{_help([name, '--help'] if name else ['--help'])}"


def _help(words: list[str]) -> str:
    """What `--help` prints, in colours."""
    said = io.StringIO()
    plainly = {"COLUMNS": str(COLUMNS), "TERM": "xterm"}
    with (
        mock.patch.dict(os.environ, plainly),
        mock.patch.object(rich_utils, "FORCE_TERMINAL", True),
        mock.patch.object(rich_utils, "COLOR_SYSTEM", "standard"),
        contextlib.redirect_stdout(said),
    ):
        typer.main.get_command(app).main(words, prog_name="aqmlab", standalone_mode=False)
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines()).rstrip() + "\n"


def _options() -> dict[str, dict[str, bool]]:
    """The options of each command, and whether each takes a value."""
    commands: Any = typer.main.get_command(app)
    return {
        name: {
            option: not param.is_flag
            for param in command.params
            if param.param_type_name == "option"
            for option in param.opts
        }
        for name in COMMANDS
        for command in [commands.get_command(None, name)]
    }


def _python(name: str, about: str, value: Any) -> str:
    """A module with one value."""
    head = '"""Made by `make reference`: not to be edited."""'
    return f'{head}\n\n{name} = {pformat(value, width=160, sort_dicts=False)}\n"""{about}"""\n'


if __name__ == "__main__":
    for file, text in files().items():
        (Path(sys.argv[1]) / file).write_text(text, encoding="utf-8")
