"""`aqmlab reproduce`: a published study again, the published numbers beside ours."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Cluster,
    Figures,
    Json,
    NoReport,
    Out,
    Replications,
    Seed,
    Threads,
    console,
    default_folder,
    executor_at,
    print_json,
    progress_bar,
    reported,
)
from aqmlab.errors import input_error

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction

ALL = "all"
EXAMPLE = EXAMPLES.format(
    "aqmlab reproduce jarvinen2014\n\n"
    "aqmlab reproduce jarvinen2014 --replications 10 --out results/quick\n\n"
    "aqmlab reproduce jarvinen2014 --only paper\n\n"
    "aqmlab reproduce cs244_2015 --trace Verizon-LTE-short.down\n\n"
    "aqmlab reproduce cs244_2015 --only steps --emulate --step 5s\n\n"
    "aqmlab reproduce all\n\n"
    "aqmlab reproduce --new mine\n\n"
    "aqmlab reproduce examples/my_study.toml\n\n"
    "aqmlab reproduce jarvinen2014 --json > jarvinen2014.json"
)


@reported
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="A study of `aqmlab list`, the folder of one, or `all` of them.", metavar="NAME"
        ),
    ],
    replications: Replications = None,
    seed: Seed = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PART",
            help="Run only a part of the study, such as paper or queue=CoDel. May be repeated.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Delivery opportunities (mahimahi's format) for the link that takes a trace.",
        ),
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate",
            help="Also run with real packets (cs244_2015; needs root or user namespaces).",
        ),
    ] = False,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="TIME", help="With --emulate: length of the steps."),
    ] = None,
    no_report: NoReport = False,
    figures: Figures = False,
    new: Annotated[
        bool, typer.Option("--new", help="Create the folder NAME with a working study.")
    ] = False,
    json: Json = False,
) -> None:
    """Reproduce a published study and compare it with its paper, number by number.

    Prints the tables and statements of the paper with what was measured, and
    writes all results and a report (HTML; not with --json) to results/NAME or --out.
    With `all`, every study is run, and one table says how far each agrees.
    """
    from aqmlab.reproduce.catalogue import place, places
    from aqmlab.reproduce.skeleton import write

    if new:
        folder = write(name)
        console().print(f"Created {folder}; run it with `aqmlab reproduce ./{folder}`.")
        return
    known = list(places())
    if name != ALL or not known:
        place(name)  # which says how to get the studies, before tables are missed
    if name == ALL:
        if only or trace or emulate:
            key = "--only" if only else "--trace" if trace else "--emulate"
            raise input_error("this option needs a single study", key=key, given=f"{key} with all")
        _all(known, replications, seed, out, json, threads=threads, cluster=cluster)
        return
    if step is not None and not emulate:
        raise input_error("this option needs --emulate", key="--step", given=step)
    words = [*(only or []), *(["emulated", step or ""] if emulate else [])]
    called = Path(name).resolve().name.removesuffix(".toml")
    given = [each for each in words if each]
    folder = out or _folder(called, given, trace, r=replications, s=seed)
    reproduction = _one(
        name,
        folder,
        shown=not json,
        cluster=cluster,
        only=only or (),
        replications=replications,
        seed=seed,
        threads=threads,
        trace=trace,
        emulate=emulate,
        step=step,
    )
    if json:
        reproduction.write_verdicts(folder)
        print_json(reproduction.to_json())
        return
    screen = console()
    reproduction.print(screen)
    if not no_report:
        report = reproduction.write_report(folder, figures=figures)
        screen.print(f"Report: {report}", soft_wrap=True)


def _one(
    name: str, folder: Path, *, shown: bool, cluster: str | None, **options: Any
) -> Reproduction:
    from aqmlab.reproduce import reproduce

    bar = progress_bar(Path(name).name, shown=shown)
    with executor_at(cluster) as executor, bar as progress:
        return reproduce(
            name, out=folder, progress=progress, told=_tell, executor=executor, **options
        )


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _folder(name: str, only: Sequence[str], trace: Path | None, **changes: int | None) -> Path:
    given = [*only, f"trace_{trace.name}"] if trace else only
    return default_folder(name, given, **changes)


def _all(
    known: Sequence[str],
    replications: int | None,
    seed: int | None,
    out: Path | None,
    json: bool,
    **means: Any,
) -> None:
    """Every study; one table at the end."""
    from aqmlab.reproduce.summary import Summary, grid

    screen = console()
    done, forms = [], []
    for name in known:
        folder = out / name if out else _folder(name, (), None, r=replications, s=seed)
        reproduction = _one(
            name, folder, shown=not json, replications=replications, seed=seed, **means
        )
        done.append(Summary.of(reproduction))
        if json:
            forms.append(reproduction.to_json())
        else:
            report = reproduction.write_report(folder)
            screen.print(f"{name}: {report}", soft_wrap=True)
    if json:
        print_json({"summary": [each.to_json() for each in done], "studies": forms})
    else:
        screen.print()
        screen.print(grid(done))
