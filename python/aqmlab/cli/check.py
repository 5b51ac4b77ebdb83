"""`aqmlab check`: the questions of a pack, answered; for people and for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    FAILURE,
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

EXAMPLE = EXAMPLES.format(
    "aqmlab new pack mine\n\naqmlab check mine.toml\n\n"
    "aqmlab check mine.toml --with candidate=my_queue.py:MyQueue --json\n\n"
    "aqmlab check mine.toml --strict --replications 40"
)


@reported
def check(
    pack: Annotated[
        str, typer.Argument(metavar="PACK", help="A pack: a TOML file, or a name of a package's.")
    ],
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME=VALUE",
            help="Add a contender: what fills the pack's slot. May be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also fail if a rule is not decided.")
    ] = False,
    replications: Replications = None,
    seed: Seed = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Answer the questions of a pack: does each rule hold, with intervals over the replications?

    Exit status 1 if a rule does not hold, 2 for wrong input. Results and a report go to
    results/NAME or --out.
    """
    from aqmlab.campaign import FAILS, UNDECIDED, Plan
    from aqmlab.campaign.packfile import load
    from aqmlab.scenario.settings import parse_settings

    found = load(pack)
    plan = Plan(found, {**found.contenders, **parse_settings(with_ or ())})
    folder = out or default_folder(Path(pack).stem, with_ or (), r=replications, s=seed)
    bar = progress_bar(found.name, shown=not json)
    with executor_at(cluster) as executor, bar as progress:
        campaign = plan.run(
            replications, seed, out=folder, threads=threads, executor=executor, progress=progress
        )
    campaign.write_answers(folder)
    if json:
        print_json(campaign.to_json())
    else:
        screen = console()
        campaign.print(screen)
        if not no_report:
            report = campaign.write_report(folder, figures=figures)
            screen.print(f"Report: {report}", soft_wrap=True)
    counts = campaign.counts()
    if counts[FAILS] or (strict and counts[UNDECIDED]):
        raise SystemExit(FAILURE)
