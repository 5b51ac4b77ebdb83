"""The command line: `aqmlab COMMAND`.

Each command has a file, which is loaded when that command is run. Files of commands import
libraries for tables and charts inside their functions: `--help` of each works and is fast without.
"""

from __future__ import annotations

import resource
import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from aqmlab import _core, plain
from aqmlab.cli.common import EXAMPLES, FAILURE, INPUT_ERROR, INTERRUPTED, fail, reported
from aqmlab.cli.misuse import Command, Misuse, told
from aqmlab.errors import nearest

COMMANDS = {
    "run": "Run a scenario once and show what its queues did.",
    "study": "Run a study, or resume an interrupted one.",
    "search": "Search the keys of a scenario: tune parameters, or find what hurts most.",
    "merge": (
        "Merge the parts of a study into one folder, with the same bytes as a run on one machine."
    ),
    "cluster": (
        "Show the workers of a dask cluster, and whether each has the same aqmlab as this machine."
    ),
    "compare": (
        "Compare results of runs, studies and emulations side by side, in tables and one figure."
    ),
    "export": "Write results in the format of another program.",
    "bundle": "Write results as one file, which `aqmlab rerun` verifies and repeats elsewhere.",
    "rerun": "Verify results, repeat their runs, and compare all tables byte for byte.",
    "reproduce": "Reproduce a published study and compare it with its paper, number by number.",
    "characterize": (
        "Characterise a queue discipline by RFC 7928: every scenario of sections 4 to 10."
    ),
    "try": "Compare queues on your access line by what each user would notice.",
    "evaluate": "Evaluate a congestion control by the criteria of RFC 9743.",
    "check": (
        "Answer the questions of a pack: does each rule hold, with intervals over the replications?"
    ),
    "shell": "Run a command behind a path of links with the simulator's queues, in real time.",
    "parity": "Run a scenario with simulated senders and with the kernel's own, and compare.",
    "mahimahi": (
        "Run a command as mm-delay, mm-link, mm-loss and mm-onoff do: the same arguments, "
        "trace files and logs, and $MAHIMAHI_BASE for the other end."
    ),
    "attach": (
        "Put a path in front of the network namespace of a running process, such as a "
        "container's, or of an interface."
    ),
    "set": (
        "Change the links of a running emulator: `aqmlab shell --name NAME` in another terminal."
    ),
    "top": "Show the links of running emulators: rate, sojourn time, drops, marks, backlog.",
    "new": "Write a scenario, study, pack, queue, control, metric or crate to start from.",
    "completion": "Print a script that completes commands, options, names, keys and values.",
    "lab": "Open the live lab: two queues side by side under the same traffic.",
    "list": (
        "List disciplines, presets, congestion controls, transports, workloads, metrics, "
        "studies, access lines."
    ),
    "explain": "Explain a queue discipline, parameter or metric: default, range, meaning, source.",
    "conformance": (
        "Replay recorded runs of reference implementations (Linux, ns-2, RFC pseudo-code)."
    ),
}
"""The commands in the order of help, each with the first paragraph of its help."""
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
        return Command(cmd_name, help=COMMANDS[cmd_name]) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant, with its options and its function; refuses other names."""
        if not args[0].startswith("-") and args[0] not in COMMANDS:
            guess = nearest(args[0], COMMANDS)
            hint = f"; did you mean `{guess}`?" if guess else ""
            raise Misuse(f"no command `{args[0]}`{hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        return name, loaded(name) if name in COMMANDS else command, rest


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
    words = sys.argv[1:]
    try:
        if words[:1] == [COMPLETE]:
            import_module("aqmlab.cli.complete").show(words[1:])
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
