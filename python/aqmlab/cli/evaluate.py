"""`aqmlab evaluate`: a congestion control by RFC 9743, beside Reno and CUBIC."""

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
from aqmlab.errors import input_error
from aqmlab.scenario.quic import quic_endpoint
from aqmlab.scenario.settings import parse_settings

EXAMPLE = EXAMPLES.format(
    "aqmlab evaluate bbr --quick\n\n"
    "aqmlab evaluate prague --only special\n\n"
    "aqmlab evaluate cbr --param rate=9mbit --only collapse --only fairness\n\n"
    "aqmlab evaluate my_control.py:MyControl --set ecn=classic --json\n\n"
    "aqmlab evaluate noq:cubic --quick"
)


@reported
def evaluate(
    control: Annotated[
        str,
        typer.Argument(
            help="A congestion control of `aqmlab list`, FILE:CLASS, or STACK:CONTROLLER of QUIC.",
            metavar="CONTROL",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Run only this criterion, or group of criteria. May be repeated.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="KEY=VALUE",
            help="Set a parameter of CONTROL, such as beta=0.8. May be repeated.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a key of its transport, such as ecn=classic. May be repeated.",
        ),
    ] = None,
    replications: Replications = None,
    seed: Seed = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    json: Json = False,
    no_report: NoReport = False,
    figures: Figures = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run five replications instead of twenty.")
    ] = False,
) -> None:
    """Evaluate a congestion control by the criteria of RFC 9743.

    Runs every criterion that can be simulated beside Reno and CUBIC, prints one
    line each with the evidence, and writes report.html, answers.json, readings.csv and all results
    to results/evaluate-NAME or --out.
    """
    from aqmlab.packs.rfc9743 import QUICK_REPLICATIONS, REPLICATIONS, SEED, name_of
    from aqmlab.packs.rfc9743 import evaluate as run

    params, transport = parse_settings(param or []), parse_settings(set_ or [])
    name = name_of(control)
    if params and quic_endpoint(control):
        problem = f"`{control}` has keys of the endpoint `quic`, and no parameters"
        raise input_error(problem, key="--param", hint="use --set")
    words = [name, *(f"{k}={v}" for k, v in (params | transport).items()), *(only or [])]
    extra = ["quick"] if quick else []
    folder = out or default_folder("evaluate", [*words, *extra], r=replications, s=seed)
    bar = progress_bar(f"evaluate {name}", shown=not json)
    named = options(only="--only")
    with executor_at(cluster) as executor, bar as progress, named:
        result = run(
            {"algorithm": control, **params} if params else control,
            name=name,
            transport=transport,
            only=only or (),
            replications=replications or (QUICK_REPLICATIONS if quick else REPLICATIONS),
            seed=SEED if seed is None else seed,
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
