"""Options, errors and output shared by the commands."""

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
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from aqmlab import libraries, plain, signals
from aqmlab.errors import (
    ClusterError,
    ClusterWarning,
    CustomError,
    DamageWarning,
    EmulationError,
    FolderError,
    InputError,
    StorageError,
    StuckError,
    WorkWarning,
    input_error,
    renamed,
    stored,
)
from aqmlab.study import sources

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from rich.console import Console

    from aqmlab.campaign.reported import Reported
    from aqmlab.report.document import Figure
    from aqmlab.results import StudyResult
    from aqmlab.search import SearchResult
    from aqmlab.study.sweep import Progress

REPORT = ("polars", "numpy", "scipy", "tomli_w", "jinja2", "markdown_it", "vl_convert")
"""Modules of the extra `report`."""
P = ParamSpec("P")
R = TypeVar("R")

EXAMPLES = "**Examples**\n\n{}"
INPUT_ERROR, FAILURE, BUG, INTERRUPTED = 2, 1, 70, 130
OF_RECORDINGS = {"log": "--log", "logs": "--log", "ring": "--pcap-ring", "places": "--pcap-at",
                 "capture": "--pcap-at"}  # fmt: skip
"""Options of what records real packets, by argument."""


@contextmanager
def naming(**names: str) -> Iterator[None]:
    """Names options of the command (`only="--section"`) in errors about the arguments of a function
    of the package, or about a part of one (`keys.NAME`, `down (rate)`)."""
    try:
        yield
    except InputError as error:
        argument, part = re.split(r"[. ]|$", error.key, maxsplit=1)
        if error.file or argument not in names:
            raise
        raise renamed(error, f"{names[argument]} {part}".strip()) from None


def reported(command: Callable[P, R]) -> Callable[P, R]:
    """Ends a command with one message on stderr instead of a traceback.

    Exit status: 2 for what is wrong in the input, 1 if results cannot be
    written or a run makes no progress, 130 after Ctrl-C (143 after SIGTERM, 129 after SIGHUP),
    70 for a bug in aqmlab.
    A `DamageWarning`, `ClusterWarning` or `WorkWarning` is a line on stderr, too.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        warnings.showwarning = show_warning
        _check_names(kwargs)
        try:
            with sources.made_by(command_line()):
                return command(*args, **kwargs)
        except (InputError, FolderError, EmulationError) as error:
            fail(str(error), INPUT_ERROR)
        except CustomError as error:
            if os.environ.get("AQMLAB_TRACEBACK") and error.__cause__:
                traceback.print_exception(error.__cause__)
            fail(str(error), INPUT_ERROR)
        except StuckError as error:
            if kwargs.get("json"):
                print_json({"error": str(error), "failed": error.failed})
            fail(str(error), FAILURE)
        except (ClusterError, StorageError) as error:
            fail(str(error), FAILURE)
        except ModuleNotFoundError as error:
            absent(error, for_cluster="address" in kwargs or bool(kwargs.get("cluster")))
        except ImportError as error:
            unloadable(error)
        except MemoryError:
            fail("the memory does not suffice; is it limited (ulimit -v)?", FAILURE)
        except BrokenPipeError:
            raise SystemExit(FAILURE) from None
        except OSError as error:
            plain.flush()  # the error if stdout cannot be written
            place = f"{error.filename}: " if error.filename else ""
            fail(f"{place}{error.strerror or error}", FAILURE)
        except KeyboardInterrupt as error:
            text = f"interrupted: {error}" if str(error) else "interrupted"
            fail(text, signals.status(error), word="")
        except BaseException as error:
            if any(words in str(error) for words in ("spawn thread", "start new thread")):
                hint = "is the number of processes limited (ulimit -u)?"
                fail(f"a thread cannot be started; {hint}", FAILURE)
            # A panic of polars is no `Exception`.
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                bug(error)
            raise

    return wrapped


def _check_names(options: Mapping[str, object]) -> None:
    """Refuses options with bytes that are no UTF-8 (PEP 383): files have names that can be written
    in a manifest. What is passed on to a command may have any bytes."""
    for key, value in options.items():
        for each in (
            value if isinstance(value, list) and key not in ("command", "words") else [value]
        ):
            text = str(each) if isinstance(each, str | Path) else ""
            if any("\udc80" <= letter <= "\udcff" for letter in text):
                shown = os.fsencode(text).decode(errors="backslashreplace")
                fail(f"{shown}: a name in UTF-8 is expected", INPUT_ERROR)


def absent(error: ModuleNotFoundError, *, for_cluster: bool) -> NoReturn:
    """Ends the program because a package is missing, with the command that installs it."""
    if error.name not in REPORT:
        bug(error)
    if obstacle := libraries.obstacle():
        fail(obstacle, FAILURE)
    hint = f"pip install 'aqmlab[{'cluster' if for_cluster else 'report'}]'"
    fail(f"this needs the package {error.name}, which is not installed ({hint})", FAILURE)


def unloadable(error: ImportError) -> NoReturn:
    """Ends the program because a compiled library cannot be loaded, with its cause."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if not str(getattr(cause, "path", "")).endswith(".so"):
        bug(error)
    hint = "is the memory of processes limited (ulimit -v)?"
    fail(f"a library cannot be loaded: {cause} ({hint})", FAILURE)


@contextmanager
def means(what: str, cluster: str | None = None, *, shown: bool) -> Iterator[dict[str, Any]]:
    """The arguments `executor` (that of `--cluster`, if given) and `progress` (a bar on stderr) of
    what runs studies. Raises `ClusterError`."""
    connected: AbstractContextManager[Executor | None] = nullcontext()
    if cluster is not None:
        from aqmlab.study.cluster import connect

        connected = connect(cluster)
    with connected as executor, progress_bar(what, shown=shown) as progress:
        yield {"executor": executor, "progress": progress}


def load_own(files: Sequence[str] | None) -> None:
    """Runs the files with metrics and charts of the user's own."""
    if not files:
        return
    from aqmlab.report.own import load

    for file in files:
        load(file)
        sources.add_metrics(file)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    """Prints warnings about results in one line, and other warnings with their place."""
    ours = DamageWarning | ClusterWarning | WorkWarning
    place = "" if issubclass(category, ours) else f"{filename}:{lineno}: "
    print(f"warning: {place}{message}", file=sys.stderr)


def fail(message: str, status: int, *, word: str = "error: ") -> NoReturn:
    """Prints `message` on stderr and ends the program."""
    print(f"{word}{message}", file=sys.stderr)
    raise SystemExit(status)


def bug(error: BaseException) -> NoReturn:
    """Ends the program after an error that should never happen."""
    if os.environ.get("AQMLAB_TRACEBACK"):
        traceback.print_exception(error)
    hint = "this is a bug in aqmlab; AQMLAB_TRACEBACK=1 shows where"
    fail(f"{type(error).__name__}: {error} ({hint})", BUG)


def print_json(value: Any) -> None:
    """Prints `value` as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def console(columns: int = 110) -> Console:
    """Console for tables: as wide as the terminal, or wide enough for all columns."""
    from aqmlab.report.document import terminal

    return terminal.console(columns)


@contextmanager
def progress_bar(what: str, *, shown: bool, unit: str = "runs") -> Iterator[Progress | None]:
    """Progress bar on stderr with finished runs, rate and time left, if that is a terminal."""
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


def finish(
    found: Reported,
    folder: Path,
    *,
    json: bool,
    figures: bool = False,
    no_report: bool = False,
    columns: int = 110,
) -> None:
    """Writes the answers and the report of a campaign into its folder, and prints them."""
    if json or no_report:
        found.write_answers(folder)
    if json:
        print_json(found.to_json())
        return
    screen = console(columns)
    found.print(screen)
    screen.print()
    if no_report:
        screen.print(f"Results: {folder}", soft_wrap=True)
    else:
        show_report(found, folder, screen, figures=figures)


def show_study(
    result: StudyResult, folder: Path, done: str, *, figures: bool, no_report: bool = False
) -> None:
    """Prints the tables of a study and `done`, and writes its report into a folder."""
    from aqmlab.report.study_page import show

    screen = console()
    show(result, screen)
    if done:
        screen.print(done, soft_wrap=True)
    if not no_report:
        show_report(result, folder, screen, figures=figures)


def show_report(
    found: StudyResult | SearchResult | Reported, folder: Path, screen: Console, *, figures: bool
) -> None:
    """Writes a report into a folder, and prints its path."""
    report = found.write_report(folder, command=command_line(), figures=figures)
    screen.print(f"Report: {report}", soft_wrap=True)


def settings_of_real_packets(
    pairs: Sequence[str] | None, seed: int | None, out: Path | None
) -> dict[str, Any]:
    """Returns the settings of `--set` and `--seed`; saved results also have series."""
    from aqmlab.scenario.settings import parse_settings

    settings = parse_settings(pairs or ())
    if seed is not None:
        settings["seed"] = seed
    if out is not None:
        settings.setdefault("record.level", "series")
    return settings


def say(*lines: str) -> None:
    """Prints lines on stderr: stdout is that of the program behind the links. Lines that cannot be
    written (a full disk) do not change the exit status, which is that of the program."""
    with suppress(OSError):
        for line in lines:
            print(f"aqmlab: {line}", file=sys.stderr)


def command_line() -> str:
    """The current command line, quoted for the shell."""
    return shlex.join(["aqmlab", *sys.argv[1:]])


def default_folder(name: str, only: Sequence[str] = (), **changes: int | None) -> Path:
    """`results/NAME`, with the choices of the command line as a suffix."""
    words = [re.sub(r"[^\w.+]+", "_", word).strip("_.") for word in [name, *only]]
    words += [f"{key}{value}" for key, value in changes.items() if value is not None]
    return Path("results") / "-".join(words)


def check_chart(path: Path, option: str) -> None:
    """Raises `InputError` if no chart can be written as `path`."""
    from aqmlab.report.document import FORMATS

    if path.suffix[1:] not in FORMATS:
        allowed = f"expected a file that ends in .{', .'.join(FORMATS)}"
        raise input_error(allowed, key=option, given=str(path))


def save_chart(figure: Figure, path: Path) -> None:
    """Writes a chart and prints its path. Raises `StorageError` if it cannot be written."""
    from aqmlab.report.document.figure import draw_apart

    with stored(path, "the chart was not written"):
        draw_apart((figure, [path]))
    console().print(f"The chart is in {path}.", soft_wrap=True)
