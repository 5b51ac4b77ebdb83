"""`aqmlab reproduce`: a published study again, the published numbers beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Json,
    Out,
    Replications,
    Seed,
    Threads,
    console,
    default_folder,
    print_json,
    progress_bar,
    reported,
)

EXAMPLE = EXAMPLES.format(
    "aqmlab reproduce jarvinen2014\n\n"
    "aqmlab reproduce jarvinen2014 --replications 10 --out results/quick\n\n"
    "aqmlab reproduce jarvinen2014 --only paper\n\n"
    "aqmlab reproduce jarvinen2014 --json > jarvinen2014.json"
)


@reported
def reproduce(
    name: Annotated[str, typer.Argument(help="A study of `aqmlab list`.", metavar="NAME")],
    replications: Replications = None,
    seed: Seed = None,
    out: Out = None,
    threads: Threads = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PART",
            help="A part of the study, such as paper or queue=CoDel. May be repeated.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Re-run a published study and compare it with its paper, cell by cell.

    Prints the tables and statements of the paper with what was measured, and
    writes all results and a report (HTML; not with --json) to results/NAME or --out.
    """
    from aqmlab.cli.listing import studies
    from aqmlab.errors import unknown

    known = [study["name"] for study in studies()]
    if name not in known:
        raise unknown("study", name, known)
    from aqmlab.reproduce import reproduce as reproduce_study

    folder = out or default_folder(name, only or [], r=replications, s=seed)
    with progress_bar(name, shown=not json) as progress:
        reproduction = reproduce_study(
            name,
            only=only or (),
            replications=replications,
            seed=seed,
            out=folder,
            threads=threads,
            progress=progress,
        )
    if json:
        print_json(reproduction.to_json())
        return
    screen = console()
    reproduction.print(screen)
    report = reproduction.write_report(folder)
    screen.print(f"Report: {report}", soft_wrap=True)
