"""`aqmlab search`: parameters that suit a goal, or conditions that hurt most."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

from aqmlab.cli import options
from aqmlab.cli.common import (
    command_line,
    console,
    default_folder,
    load_own,
    means,
    naming,
    print_json,
    show_report,
)
from aqmlab.cli.options import argument, option
from aqmlab.errors import input_error
from aqmlab.numbers import count
from aqmlab.scenario.settings import parse_selection, parse_settings

EXAMPLE = (
    "aqmlab search tune examples/scenario.toml --set queue=codel --key queue.target=1ms..50ms,log "
    "--goal min:sojourn_p95 --goal max:goodput@download\n\n"
    "aqmlab search attack examples/search/shrew.toml --key flows.attack.workload.fps=0.3..50,log "
    "--hurt goodput@victim --within 'throughput@attack<=1mbit'"
)


ALIKE = ("hurt", "within", "trials", "batch", "confirm", "replications", "only", "set")
OPTIONS = {"keys": "--key", "goals": "--goal", **{name: f"--{name}" for name in ALIKE}}
"""The option for each argument that an error may name."""


def search(
    kind: Literal["tune", "attack"] = argument(
        "KIND", "tune: parameters that suit goals; attack: conditions that hurt a metric."
    ),
    file: Path = argument("FILE", "A scenario or study file (TOML)."),
    key: list[str] | None = option(
        "KEY=LOW..HIGH",
        "Key to search: 1ms..50ms,log; choices codel,pie; a course of a link's rate or delay "
        "10ms..90ms,steps=9,every=1s. May be repeated.",
    ),
    goal: list[str] | None = option(
        "min:METRIC", "Goal of tune: min:sojourn_p95, max:goodput@GROUP. May be repeated."
    ),
    hurt: str | None = option("METRIC", "What attack makes worse: goodput@GROUP."),
    within: list[str] | None = option(
        "METRIC<=VALUE", "Constraint: throughput@GROUP<=1mbit. May be repeated."
    ),
    trials: int | None = option("N", "Trials: 96 for tune, 240 for attack.", min=1),
    batch: int | None = option(
        "N", "Trials proposed together: 8 for tune, 12 for attack. Results depend on it.", min=4
    ),
    confirm: int = option("N", "Fresh replications at the end.", min=2, default=20),
    replications: int | None = options.REPLICATIONS,
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
    only: list[str] | None = options.ONLY,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    with_: list[str] | None = options.WITH,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Search the keys of a scenario: tune parameters, or find what hurts most.

    Rerun an interrupted command to resume. Results, a report and scenario files go to
    results/KIND-NAME or --out.
    """
    from aqmlab.search import attack, tune

    for name, given, other in (("--goal", goal, "attack"), ("--hurt", hurt, "tune")):
        if given and kind == other:
            raise input_error(f"`search {kind}` has no such option", key=name)
    load_own(with_)
    folder = out or default_folder(kind, [file.stem, *(only or [])], s=seed)
    numbers = {"trials": trials, "batch": batch, "replications": replications}
    common: dict[str, Any] = {
        **{name: value for name, value in numbers.items() if value is not None},
        "within": within or (),
        "out": folder,
        "confirm": confirm,
        "set": parse_settings(set_ or []),
        "only": parse_selection(only or []),
        "seed": seed,
        "threads": threads,
        "command": command_line(),
    }
    began = time.monotonic()
    with naming(**OPTIONS), means(f"{kind} {file.stem}", cluster, shown=not json) as running:
        common |= running
        if kind == "tune":
            found = tune(file, key or (), goal or (), **common)
        else:
            if hurt is None:
                raise input_error("an attack needs a metric, such as goodput@GROUP", key="--hurt")
            found = attack(file, key or (), hurt, **common)
    if json:
        print_json(found.to_json())
        return
    from aqmlab.report.document.terminal import table
    from aqmlab.search.page import best

    screen = console()
    screen.print(table(best(found), screen))
    for line in found.statements:
        screen.print(line, soft_wrap=True, highlight=False)
    wall = time.monotonic() - began
    tried = count(len(found.trials) - 1, "trial")  # the first is the start
    screen.print(f"{tried} in {wall:.1f} s. Results: {folder}", soft_wrap=True)
    for path in sorted(folder.glob("finding*.toml")):
        screen.print(f"Scenario: {path}", soft_wrap=True)
    if not no_report:
        show_report(found, folder, screen, figures=figures)
