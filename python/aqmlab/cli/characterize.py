"""`aqmlab characterize`: a discipline by RFC 7928, beside drop-tail and others."""

from __future__ import annotations

from typing import Annotated

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
    command_line,
    console,
    default_folder,
    executor_at,
    options,
    print_json,
    progress_bar,
    reported,
)
from aqmlab.scenario.quantities import quantity
from aqmlab.scenario.settings import parse_settings

EXAMPLE = EXAMPLES.format(
    "aqmlab characterize codel\n\n"
    "aqmlab characterize fq_codel --against codel,pie\n\n"
    "aqmlab characterize pie --set target=5ms --section 8.2 --section 6.2\n\n"
    "aqmlab characterize fq_codel --control quinn:bbr\n\n"
    "aqmlab characterize my_queue.py:MyQueue --rate 100mbit --rtt 20ms --json"
)


@reported
def characterize(
    discipline: Annotated[
        str,
        typer.Argument(help="A queue of `aqmlab list`, or FILE:CLASS.", metavar="DISCIPLINE"),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="NAMES",
            help="Disciplines to compare with, separated by commas; drop-tail is always included.",
        ),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section", metavar="N", help="Run only this section of RFC 7928. May be repeated."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a parameter of DISCIPLINE, such as target=10ms. May be repeated.",
        ),
    ] = None,
    rate: Annotated[
        str, typer.Option("--rate", metavar="RATE", help="Rate of the bottleneck.")
    ] = "10mbit",
    rtt: Annotated[
        str, typer.Option("--rtt", metavar="TIME", help="Round-trip time without queuing.")
    ] = "100ms",
    buffer: Annotated[
        float,
        typer.Option(
            "--buffer", min=0.05, max=1000, metavar="X", help="Buffer in bandwidth-delay products."
        ),
    ] = 1.0,
    control: Annotated[
        str,
        typer.Option(
            "--control",
            metavar="CONTROL",
            help="Congestion control of bulk flows, FILE:CLASS, or STACK:CONTROLLER of QUIC.",
        ),
    ] = "reno",
    replications: Replications = None,
    seed: Seed = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a quarter of the time, with five replications: many sections stay undecided.",
        ),
    ] = False,
) -> None:
    """Characterise a queue discipline by RFC 7928: every scenario of sections 4 to 10.

    Prints a verdict of one page by fixed rules (docs/characterize.md), and
    writes report.html, answers.json, readings.csv and all results to results/characterize-NAME or
    --out.
    """
    from aqmlab.packs.rfc7928 import REPLICATIONS, SEED, Environment
    from aqmlab.packs.rfc7928 import characterize as run

    settings = parse_settings(set_ or [])
    others = [name for group in against or [] for name in group.split(",") if name.strip()]
    environment = Environment(
        quantity(rate, "rate", "--rate"), quantity(rtt, "delay", "--rtt"), buffer, control
    )
    own = [*(f"{key}={value}" for key, value in settings.items()), *others, *(section or [])]
    changed = [
        text
        for text, default in (
            (rate, "10mbit"),
            (rtt, "100ms"),
            (f"{buffer:g}bdp", "1bdp"),
            (control.rpartition("/")[2], "reno"),
        )
        if text != default
    ]
    name = discipline.rpartition(":")[2]
    extra = ["quick"] if quick else []
    words = [name, *own, *changed, *extra]
    folder = out or default_folder("characterize", words, r=replications, s=seed)
    bar = progress_bar(f"characterize {name}", shown=not json)
    named = options(only="--section", against="--against", rtt="--rtt", discipline="DISCIPLINE")
    with executor_at(cluster) as executor, bar as progress, named:
        result = run(
            discipline,
            against=[other.strip() for other in others],
            set=settings,
            only=section or (),
            environment=environment,
            replications=replications or (5 if quick else REPLICATIONS),
            seed=SEED if seed is None else seed,
            scale=0.25 if quick else 1.0,
            out=folder,
            threads=threads,
            executor=executor,
            progress=progress,
        )
    result.write_answers(folder)
    if json:
        print_json(result.to_json())
        return
    screen = console(columns=150)
    result.print(screen)
    if no_report:
        screen.print(f"\nResults: {folder}", soft_wrap=True)
        return
    report = result.write_report(folder, figures=figures, command=command_line())
    screen.print(f"\nReport: {report}", soft_wrap=True)
