"""The command line: `aqmlab COMMAND`. One file a command."""

from __future__ import annotations

import resource
import sys
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from aqmlab import plain
from aqmlab.cli import (
    attach,
    bench,
    characterize,
    cluster,
    compare,
    completion,
    conformance,
    evaluate,
    explain,
    export,
    lab,
    listing,
    mahimahi,
    merge,
    new,
    parity,
    reproduce,
    run,
    set_,
    shell,
    study,
    top,
    try_,
)
from aqmlab.cli.common import EXAMPLES, FAILURE, INPUT_ERROR, INTERRUPTED, fail
from aqmlab.cli.misuse import Command, Program, told

app = typer.Typer(
    name="aqmlab",
    cls=Program,
    help="A laboratory for active queue management: how does a queue affect delay and throughput?",
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


REST = {"context_settings": {"allow_interspersed_args": False}}
"""For commands that run another program: arguments after its name are passed through."""
COMMANDS: tuple[tuple[str, Any, str, dict[str, Any]], ...] = (
    ("run", run.run, run.EXAMPLE, {}),
    ("study", study.study, study.EXAMPLE, {}),
    ("merge", merge.merge, merge.EXAMPLE, {}),
    ("cluster", cluster.cluster, cluster.EXAMPLE, {}),
    ("compare", compare.compare, compare.EXAMPLE, {}),
    ("export", export.export, export.EXAMPLE, {}),
    ("reproduce", reproduce.reproduce, reproduce.EXAMPLE, {}),
    ("characterize", characterize.characterize, characterize.EXAMPLE, {}),
    ("try", try_.try_, try_.EXAMPLE, {}),
    ("evaluate", evaluate.evaluate, evaluate.EXAMPLE, {}),
    ("shell", shell.shell, shell.EXAMPLE, REST),
    ("parity", parity.parity, parity.EXAMPLE, {}),
    ("mahimahi", mahimahi.mahimahi, mahimahi.EXAMPLE, REST),
    ("attach", attach.attach, attach.EXAMPLE, {}),
    ("set", set_.set_, set_.EXAMPLE, {}),
    ("top", top.top, top.EXAMPLE, {}),
    ("new", new.new, new.EXAMPLE, {}),
    ("completion", completion.completion, completion.EXAMPLE, {}),
    ("lab", lab.lab, lab.EXAMPLE, {}),
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
    check_open_files()
    try:
        status = app(standalone_mode=False)
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
