"""`aqmlab evaluate`: a congestion control by RFC 9743, beside Reno and CUBIC."""

from __future__ import annotations

from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import default_folder, finish, means, naming
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error
from aqmlab.scenario.quic import quic_endpoint
from aqmlab.scenario.settings import parse_settings

EXAMPLE = (
    "aqmlab evaluate bbr --quick\n\n"
    "aqmlab evaluate prague --only special\n\n"
    "aqmlab evaluate cbr --param rate=9mbit --only collapse --only fairness\n\n"
    "aqmlab evaluate my_control.py:MyControl --set ecn=classic --json\n\n"
    "aqmlab evaluate noq:cubic --quick"
)


def evaluate(
    control: str = argument(
        "CONTROL", "A congestion control of `aqmlab list`, FILE:CLASS, or STACK:CONTROLLER of QUIC."
    ),
    only: list[str] | None = option(
        "NAME", "Run only this criterion, or group of criteria. May be repeated."
    ),
    param: list[str] | None = option(
        "KEY=VALUE", "Set a parameter of CONTROL, such as beta=0.8. May be repeated."
    ),
    set_: list[str] | None = option(
        "KEY=VALUE", "Set a key of its transport, such as ecn=classic. May be repeated.", "--set"
    ),
    replications: int | None = options.REPLICATIONS,
    seed: int | None = options.SEED,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    json: bool = options.JSON,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    quick: bool = flag("--quick", "Run five replications instead of twenty."),
) -> None:
    """Evaluate a congestion control by the criteria of RFC 9743.

    Runs each criterion beside Reno and CUBIC, prints one line each with the evidence,
    and writes report.html, answers.json, readings.csv and all results to
    results/evaluate-NAME or --out.
    """
    from aqmlab.packs.rfc9743 import QUICK_REPLICATIONS, REPLICATIONS, SEED, name_of
    from aqmlab.packs.rfc9743 import evaluate as run

    params = parse_settings(param or [], "--param", "a parameter such as beta=0.8")
    transport = parse_settings(set_ or [])
    name = name_of(control)
    if params and quic_endpoint(control):
        problem = f"`{control}` has keys of the endpoint `quic`, and no parameters"
        raise input_error(problem, key="--param", hint="use --set")
    words = [name, *(f"{k}={v}" for k, v in (params | transport).items()), *(only or [])]
    extra = ["quick"] if quick else []
    folder = out or default_folder("evaluate", [*words, *extra], r=replications, s=seed)
    named = naming(only="--only", control="CONTROL", transport="--set")
    with means(f"evaluate {name}", cluster, shown=not json) as running, named:
        result = run(
            {"algorithm": control, **params} if params else control,
            name=name,
            transport=transport,
            only=only or (),
            replications=replications or (QUICK_REPLICATIONS if quick else REPLICATIONS),
            seed=SEED if seed is None else seed,
            out=folder,
            threads=threads,
            **running,
        )
    finish(result, folder, json=json, figures=figures, no_report=no_report, columns=150)
