"""The command line: `aqmlab COMMAND`. One file a command, loaded when that command is given; so
commands import what they need at their top."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from aqmlab import _core, plain
from aqmlab.cli.common import EXAMPLES, FAILURE, INPUT_ERROR, INTERRUPTED, fail
from aqmlab.cli.misuse import Command, Program, told

REST = {"context_settings": {"allow_interspersed_args": False}}
"""For commands that run another program: arguments after its name are passed through."""
COMMANDS: dict[str, dict[str, Any]] = {
    "run": {},
    "study": {},
    "merge": {},
    "cluster": {},
    "compare": {},
    "export": {},
    "reproduce": {},
    "characterize": {},
    "try": {},
    "evaluate": {},
    "shell": REST,
    "parity": {},
    "mahimahi": REST,
    "attach": {},
    "set": {},
    "top": {},
    "new": {},
    "completion": {},
    "lab": {},
    "list": {},
    "explain": {},
    "conformance": {},
    "bench": {},
}
"""The commands in the order in which help shows them, with settings of their own."""
FILES = {"try": "try_", "set": "set_", "list": "listing"}
"""Where the file, and the function in it, is not called like the command."""


def program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands; their files are loaded now."""
    app = typer.Typer(
        name="aqmlab",
        cls=Program,
        help="A laboratory for active queue management: how does a queue affect delay and "
        "throughput?",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=EXAMPLES.format(
            "aqmlab run examples/scenario.toml --set queue=codel\n\n"
            "aqmlab reproduce jarvinen2014\n\n"
            "aqmlab explain codel.target"
        ),
    )
    app.callback()(_options)
    for name in commands:
        file = FILES.get(name, name)
        module = import_module(f"aqmlab.cli.{file}")
        command = app.command(name, cls=Command, epilog=module.EXAMPLE, **COMMANDS[name])
        command(getattr(module, file))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"aqmlab {_core.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself; its help is given to `Typer` above."""


def main() -> None:
    """The console script `aqmlab`."""
    check_open_files()
    named = [word for word in sys.argv[1:2] if word in COMMANDS]
    try:
        status = program(named or COMMANDS)(standalone_mode=False)
        if status == INTERRUPTED:  # before the command proper had begun
            fail("interrupted", INTERRUPTED, word="")
        sys.exit(status)
    except TyperException as error:
        if not str(error):  # `aqmlab` alone: the help was shown
            sys.exit(INPUT_ERROR)
        fail(told(error), INPUT_ERROR)
    except typer.Abort:
        fail("interrupted", INTERRUPTED, word="")
    finally:
        plain.flush()


OPEN_FILES = 32
"""How many a process must be allowed to have: tables, a folder, a lock, the system's own."""


def check_open_files() -> None:
    """Ends the program where it could open too few files: libraries would panic."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        problem = f"{OPEN_FILES} open files are needed, and {soft} allowed"
        fail(f"{problem}; raise the limit (ulimit -n {OPEN_FILES})", FAILURE)
