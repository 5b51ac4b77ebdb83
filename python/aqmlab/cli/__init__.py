"""The command line: `aqmlab COMMAND`. One file a command, loaded when that command is given; so
commands import what they need at their top."""

from __future__ import annotations

import resource
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from aqmlab import _core, plain
from aqmlab.cli.common import EXAMPLES, FAILURE, INPUT_ERROR, INTERRUPTED, absent, fail
from aqmlab.cli.misuse import Command, Program, told
from aqmlab.quick import answers

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


class Commands(Program):
    """The commands, whose files are loaded when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, if there is one."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _loaded(cmd_name)
        return self.commands.get(cmd_name)


def _loaded(name: str) -> Any:
    """The command of this name; ends the program if it needs a library that is not there."""
    file = FILES.get(name, name)
    try:
        module = import_module(f"aqmlab.cli.{file}")
    except ModuleNotFoundError as error:
        absent(error, for_cluster=name == "cluster" or "--cluster" in sys.argv)
    alone = typer.Typer(**SETTINGS)
    alone.command(name, cls=Command, epilog=module.EXAMPLE, **COMMANDS[name])(getattr(module, file))
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
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself; its help is given to `Typer` above."""


def main() -> None:
    """The console script `aqmlab`."""
    check_open_files()
    if not sys.argv[1:]:
        answers.answer(["--help"])
        sys.exit(INPUT_ERROR)
    try:
        status = app(standalone_mode=False)
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
"""How many a process must be allowed to have: tables, a folder, a lock, the system's own."""


def check_open_files() -> None:
    """Ends the program where it could open too few files: libraries would panic."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        problem = f"{OPEN_FILES} open files are needed, and {soft} allowed"
        fail(f"{problem}; raise the limit (ulimit -n {OPEN_FILES})", FAILURE)
