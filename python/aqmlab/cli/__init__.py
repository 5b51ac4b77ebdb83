"""The command line: `aqmlab COMMAND`. One file a command."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from aqmlab.cli import (
    bench,
    characterize,
    compare,
    conformance,
    evaluate,
    explain,
    listing,
    mahimahi,
    parity,
    reproduce,
    run,
    shell,
    study,
    top,
)
from aqmlab.cli.common import EXAMPLES, INPUT_ERROR, INTERRUPTED, fail

app = typer.Typer(
    name="aqmlab",
    help="A laboratory for active queue management: what does a queue do to delay and throughput?",
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


class Command(TyperCommand):
    """A command whose help shows no type beside options that take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a switch has an empty word where others have `N` or `FILE`."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


REST = {"context_settings": {"allow_interspersed_args": False}}
"""Of commands that end with another program's: what stands behind its name is its own."""
COMMANDS: tuple[tuple[str, Any, str, dict[str, Any]], ...] = (
    ("run", run.run, run.EXAMPLE, {}),
    ("study", study.study, study.EXAMPLE, {}),
    ("compare", compare.compare, compare.EXAMPLE, {}),
    ("reproduce", reproduce.reproduce, reproduce.EXAMPLE, {}),
    ("characterize", characterize.characterize, characterize.EXAMPLE, {}),
    ("evaluate", evaluate.evaluate, evaluate.EXAMPLE, {}),
    ("shell", shell.shell, shell.EXAMPLE, REST),
    ("parity", parity.parity, parity.EXAMPLE, {}),
    ("mahimahi", mahimahi.mahimahi, mahimahi.EXAMPLE, REST),
    ("top", top.top, top.EXAMPLE, {}),
    ("list", listing.listing, listing.EXAMPLE, {}),
    ("explain", explain.explain, explain.EXAMPLE, {}),
    ("conformance", conformance.conformance, conformance.EXAMPLE, {}),
    ("bench", bench.bench, bench.EXAMPLE, {}),
)
for _name, _function, _example, _more in COMMANDS:
    app.command(_name, cls=Command, epilog=_example, **_more)(_function)


def _version(wanted: bool) -> None:
    if wanted:
        from aqmlab import __version__

        print(f"aqmlab {__version__}")
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
    try:
        status = app(standalone_mode=False)
        if status == INTERRUPTED:  # before the command proper had begun
            fail("interrupted", INTERRUPTED, word="")
        sys.exit(status)
    except TyperException as error:
        if not str(error):  # `aqmlab` alone: the help was shown
            sys.exit(INPUT_ERROR)
        fail(misuse(error), INPUT_ERROR)
    except typer.Abort:
        fail("interrupted", INTERRUPTED, word="")
    finally:
        _flush()


PLAINLY = {
    r"Invalid value for '([^' ]+)[^']*': ": r"\1: ",
    r"Input should be a valid integer.*": "expected a whole number",
    r"Input should be a valid number.*": "expected a number",
    r"Input should be greater than or equal to ": "expected at least ",
    r"Input should be less than or equal to ": "expected at most ",
    r"No such option: (\S+) \(Possible options: (.*)\)": r"no option \1; did you mean \2?",
    r"No such option: (\S+)": r"no option \1",
    r"No such command '(.*?)'\. Did": r"no command `\1`; did",
    r"No such command '(.*)'\.": r"no command `\1`",
    r"Missing argument '(.*)'\.": r"\1 is missing",
    r"Option '(.*)' requires an argument\.": r"\1 needs a value",
    r"Got unexpected extra argument\(s\) \((.*)\)": r"too many arguments: \1",
    r"did you mean '(.*)'\?": r"did you mean `\1`?",
}
"""What the library that reads the command line says, and how we say it."""


def misuse(error: TyperException) -> str:
    """One sentence about a command line that is not right, and where help is."""
    text = str(getattr(error, "format_message", lambda: error)())
    for theirs, ours in PLAINLY.items():
        text = re.sub(theirs, ours, text)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "aqmlab"
    return f"{text} (`{command} --help` shows what there is)"


def _flush() -> None:
    """Writes what is left for stdout, so that a full disk or a closed pipe is not a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error: stdout: {error.strerror}", file=sys.stderr)
            sys.exit(1)
