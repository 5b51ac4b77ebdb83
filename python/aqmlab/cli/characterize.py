"""`aqmlab characterize`: a discipline by RFC 7928, beside drop-tail and others."""

from __future__ import annotations

from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import default_folder, finish, means, naming
from aqmlab.cli.options import argument, flag, option
from aqmlab.scenario.quantity import quantity
from aqmlab.scenario.settings import parse_settings

EXAMPLE = (
    "aqmlab characterize codel\n\n"
    "aqmlab characterize fq_codel --against codel,pie\n\n"
    "aqmlab characterize pie --set target=5ms --section 8.2 --section 6.2\n\n"
    "aqmlab characterize fq_codel --control quinn:bbr\n\n"
    "aqmlab characterize my_queue.py:MyQueue --rate 100mbit --rtt 20ms --json"
)


def characterize(
    discipline: str = argument("DISCIPLINE", "A queue of `aqmlab list`, or FILE:CLASS."),
    against: list[str] | None = option(
        "NAMES", "Disciplines to compare with, separated by commas; drop-tail is always included."
    ),
    section: list[str] | None = option("N", "Run only this section of RFC 7928. May be repeated."),
    set_: list[str] | None = option(
        "KEY=VALUE", "Set a parameter of DISCIPLINE, such as target=10ms. May be repeated.", "--set"
    ),
    rate: str = option("RATE", "Rate of the bottleneck.", default="10mbit"),
    rtt: str = option("TIME", "Round-trip time without queuing.", default="100ms"),
    buffer: float = option(
        "X", "Buffer in bandwidth-delay products.", min=0.05, max=1000, default=1.0
    ),
    control: str = option(
        "CONTROL",
        "Congestion control of bulk flows, FILE:CLASS, or STACK:CONTROLLER of QUIC.",
        default="reno",
    ),
    replications: int | None = options.REPLICATIONS,
    seed: int | None = options.SEED,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
    quick: bool = flag(
        "--quick",
        "Run a quarter of the time, with five replications: many sections stay undecided.",
    ),
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
    words = [name, *own, *changed, *(["quick"] if quick else [])]
    folder = out or default_folder("characterize", words, r=replications, s=seed)
    named = naming(only="--section", against="--against", rtt="--rtt", control="--control",
                   discipline="DISCIPLINE")  # fmt: skip
    with means(f"characterize {name}", cluster, shown=not json) as running, named:
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
            **running,
        )
    finish(result, folder, json=json, figures=figures, no_report=no_report, columns=150)
