"""The command line: `aqmlab COMMAND`.

Each command has a file, which is loaded when that command is run. Files of commands import
libraries for tables and charts inside their functions: `--help` of each works and is fast without.
"""

from __future__ import annotations

import resource
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from aqmlab import _core, libraries, plain
from aqmlab.cli.common import EXAMPLES, FAILURE, INPUT_ERROR, INTERRUPTED, fail, reported
from aqmlab.cli.misuse import Command, Misuse, told
from aqmlab.errors import nearest

COMMANDS = (
    "run", "study", "search", "merge", "cluster", "compare", "export", "bundle", "rerun",
    "reproduce", "characterize", "try", "evaluate", "check", "shell", "parity", "mahimahi",
    "attach", "set", "top", "new", "completion", "lab", "list", "explain", "conformance",
)  # fmt: skip
"""The commands in the order of help."""
FILES = {"try": "try_", "set": "set_", "list": "listing"}
"""File of a command and function in it, where they are not called like the command."""
RUN_PROGRAMS = ("shell", "mahimahi")
"""Commands that run another program, whose arguments are passed through."""


class Commands(TyperGroup):
    """The commands; the file of one is loaded when it is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command as the list shows it: name and summary."""
        return Command(cmd_name, help=summary(cmd_name)) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant, with its options and its function; refuses other names."""
        name = args[0]
        if name in COMMANDS:
            return name, loaded(name), args[1:]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        guess = nearest(name, COMMANDS)
        raise Misuse(f"no command `{name}`" + (f"; did you mean `{guess}`?" if guess else ""), ctx)


def summary(name: str) -> str:
    """The first paragraph of a command's help, from its file, which is not loaded."""
    file = FILES.get(name, name)
    text = Path(__file__).with_name(f"{file}.py").read_text(encoding="utf-8")
    docstring = text.partition(f"\ndef {file}(")[2].split('"""')[1]
    return " ".join(docstring.partition("\n\n")[0].split())


def loaded(name: str) -> Any:
    """The command of this name, from its file."""
    file = FILES.get(name, name)
    module = import_module(f"aqmlab.cli.{file}")
    alone = typer.Typer(**SETTINGS)
    settings = {"allow_interspersed_args": name not in RUN_PROGRAMS}
    command = reported(getattr(module, file))
    epilog = EXAMPLES.format(module.EXAMPLE)
    alone.command(name, cls=Command, epilog=epilog, context_settings=settings)(command)
    return typer.main.get_command(alone)


SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "markdown",
}
app = typer.Typer(
    name="aqmlab",
    cls=Commands,
    help="A laboratory for active queue management: how does a queue affect delay and throughput?",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES.format(
        "aqmlab run examples/scenario.toml --set queue=codel\n\n"
        "aqmlab reproduce jarvinen2014\n\n"
        "aqmlab explain codel.target"
    ),
    **SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"aqmlab {_core.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of the program itself; its help is given to `Typer` above."""


COMPLETE = "--complete"
"""Asks for completions of the words that follow: what scripts of `aqmlab completion` run."""


def main() -> None:
    """The console script `aqmlab`."""
    check_open_files()
    if libraries.obstacle():
        for name in ("numpy", "polars", "scipy"):
            sys.modules[name] = None  # type: ignore[assignment]
    words = sys.argv[1:]
    try:
        if words[:1] == [COMPLETE]:
            import_module("aqmlab.cli.completion").show(words[1:])
            return
        status = app(words or ["--help"], standalone_mode=False)
        if not words:
            sys.exit(INPUT_ERROR)
        if status == INTERRUPTED:  # before the command proper had begun
            fail("interrupted", INTERRUPTED, word="")
        sys.exit(status)
    except TyperException as error:
        fail(told(error), INPUT_ERROR)
    except typer.Abort:
        fail("interrupted", INTERRUPTED, word="")
    finally:
        plain.flush()


OPEN_FILES = 32
"""Open files that a process needs: tables, a folder, a lock, the system's own."""


def check_open_files() -> None:
    """Ends the program where it could open too few files: libraries would panic."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        problem = f"{OPEN_FILES} open files are needed, and {soft} allowed"
        fail(f"{problem}; raise the limit (ulimit -n {OPEN_FILES})", FAILURE)
