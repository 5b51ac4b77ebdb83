"""What the commands share: options, errors, numbers in words."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from aqmlab import signals
from aqmlab.errors import (
    CustomError,
    DamageWarning,
    FolderError,
    InputError,
    StorageError,
    StuckError,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from aqmlab.reproduce.model import Figure
    from aqmlab.study import Progress

P = ParamSpec("P")
R = TypeVar("R")

EXAMPLES = "**Examples**\n\n{}"
INPUT_ERROR, FAILURE, BUG, INTERRUPTED = 2, 1, 70, 130

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Sets a key of the scenario; `queue` is the bottleneck's. May be repeated.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of all random streams.", metavar="N")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Where the results go.")]
Pcap = Annotated[
    Path | None,
    typer.Option("--pcap", metavar="FILE", help="All packets before and after each link."),
]
PcapRing = Annotated[
    str | None,
    typer.Option("--pcap-ring", metavar="SIZE", help="Keep the last of them: 100mb."),
]
Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="LINK=FILE",
        help="What a link does, in mahimahi's format: up=up.log. May be repeated.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", help="Cores to use; all if not given."),
]
Replications = Annotated[
    int | None,
    typer.Option("--replications", min=1, metavar="N", help="Instead of the study's own number."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="AXIS=LABEL",
        help="Only this value of an axis. May be repeated for more values.",
    ),
]


def reported(command: Callable[P, R]) -> Callable[P, R]:
    """Ends a command with one message on stderr instead of a traceback.

    Exit status: 2 for what is wrong in the input, 1 if results cannot be
    written or a run makes no progress, 130 after Ctrl-C (143 after SIGTERM, 129 after SIGHUP),
    70 for a bug in aqmlab.
    What is told as a `DamageWarning` is a line on stderr, too.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        warnings.showwarning = show_warning
        try:
            return command(*args, **kwargs)
        except (InputError, FolderError) as error:
            fail(str(error), INPUT_ERROR)
        except CustomError as error:
            if os.environ.get("AQMLAB_TRACEBACK") and error.__cause__:
                traceback.print_exception(error.__cause__)
            fail(str(error), INPUT_ERROR)
        except StuckError as error:
            if kwargs.get("json"):
                print_json({"error": str(error), "failed": error.failed})
            fail(str(error), FAILURE)
        except StorageError as error:
            fail(str(error), FAILURE)
        except BrokenPipeError:
            raise SystemExit(FAILURE) from None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            fail(f"{place}{error.strerror or error}", FAILURE)
        except KeyboardInterrupt as error:
            text = f"interrupted: {error}" if str(error) else "interrupted"
            fail(text, signals.status(error), word="")
        except Exception as error:
            bug(error)

    return wrapped


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Prints what is said about results in one line, and of other warnings where they are."""
    place = "" if issubclass(category, DamageWarning) else f"{filename}:{lineno}: "
    print(f"warning: {place}{message}", file=sys.stderr)


def fail(message: str, status: int, *, word: str = "error: ") -> NoReturn:
    """Prints `message` on stderr and ends the program."""
    print(f"{word}{message}", file=sys.stderr)
    raise SystemExit(status)


def bug(error: Exception) -> NoReturn:
    """For what should never happen."""
    if os.environ.get("AQMLAB_TRACEBACK"):
        traceback.print_exception(error)
    hint = "this is a bug in aqmlab; AQMLAB_TRACEBACK=1 shows where"
    fail(f"{type(error).__name__}: {error} ({hint})", BUG)


def print_json(value: Any) -> None:
    """Prints `value` as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def console(columns: int = 110) -> Console:
    """Where tables go: as wide as the terminal, and wide enough for all columns elsewhere.

    Brackets in names, values and paths are just that, not styles.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else columns
    return Console(width=width, highlight=False, markup=False)


WIDE = 100
"""From so many columns on, those of a table stand further apart."""


def grid(title: str | None, screen: Console) -> Table:
    """An empty table whose usual contents fit into a terminal of 80 columns."""
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, 1 if screen.width >= WIDE else 0),
    )


@contextmanager
def progress_bar(what: str, *, shown: bool, unit: str = "runs") -> Iterator[Progress | None]:
    """A bar on stderr with what is done, rate and time left; none if that is no terminal."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def update(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.0f} {unit}/s" if speed else ""
            bar.update(task, completed=done, total=total, rate=rate)

        yield update


def command_line() -> str:
    """The command that is being run, as it can be typed again."""
    return shlex.join(["aqmlab", *sys.argv[1:]])


def default_folder(name: str, only: Sequence[str] = (), **changes: int | None) -> Path:
    """`results/NAME`, with what was chosen on the command line as a suffix."""
    words = [re.sub(r"[^\w.+]+", "_", word).strip("_.") for word in [name, *only]]
    words += [f"{key}{value}" for key, value in changes.items() if value is not None]
    return Path("results") / "-".join(words)


def show_note(text: str, screen: Console) -> None:
    """Prints what a reader of results has to know."""
    from rich.text import Text

    screen.print(Text.assemble(("Note", "bold yellow"), f" {text}"))


def seconds(value: float | None) -> str:
    """A time for people: `12.3 ms`, `1.20 s`."""
    if value is None:
        return "–"
    if 5e-7 <= abs(value) < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if abs(value) >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if abs(value) < 0.1 else f"{value * 1e3:.0f} ms"


def rate(value: float | None) -> str:
    """A rate for people: `1.94 Mbit/s`."""
    if value is None:
        return "–"
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:.0f} bit/s"


def reasons(row: Mapping[str, Any], kind: str) -> str:
    """The counts of a row of `links` that are not zero, by reason: `12 codel, 3 overlimit`."""
    found = {key.removeprefix(kind): row[key] for key in row if key.startswith(kind)}
    return ", ".join(f"{count:,} {name}" for name, count in found.items() if count)


def check_chart(path: Path, option: str) -> None:
    """Raises `InputError` if no chart can be written as `path`."""
    from aqmlab.errors import input_error
    from aqmlab.report import FORMATS

    if path.suffix[1:] not in FORMATS:
        allowed = f"expected a file that ends in .{', .'.join(FORMATS)}"
        raise input_error(allowed, key=option, given=str(path))


def save_chart(figure: Figure, path: Path) -> None:
    """Writes a chart and says where it is. Raises `StorageError` if it cannot be written."""
    from aqmlab.report import save_figure

    try:
        save_figure(figure, path)
    except OSError as error:
        raise StorageError(error, path, "the chart was not written") from error
    console().print(f"The chart is in {path}.", soft_wrap=True)
