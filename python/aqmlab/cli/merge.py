"""`aqmlab merge`: the parts of a study that several machines have run become one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Figures,
    Json,
    NoReport,
    Out,
    command_line,
    console,
    print_json,
    reported,
)

EXAMPLE = EXAMPLES.format(
    "aqmlab study examples/study.toml --shard 1/2 --out part1\n\n"
    "aqmlab study examples/study.toml --shard 2/2 --out part2\n\n"
    "aqmlab merge part1 part2 --out results/sweep"
)


@reported
def merge(
    parts: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders of `study --shard`.")
    ],
    out: Out = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Merge the parts of a study into one folder, with the same bytes as a run on one machine.

    The results go to results/NAME or --out; the parts stay as they are.
    """
    from aqmlab.report.study_console import show, to_json
    from aqmlab.study.manifest import read_manifest
    from aqmlab.study.merge import merge as put_together

    began = time.monotonic()
    place = out
    if place is None:
        place = Path("results") / str(read_manifest(parts[0])["name"])
    result = put_together(parts, place)
    if json:
        print_json(to_json(result, time.monotonic() - began))
        return
    screen = console()
    show(result, screen)
    runs = result.info.points * result.info.replications
    screen.print(f"{runs:,} runs of {len(parts)} parts. Results: {place}", soft_wrap=True)
    if not no_report:
        report = result.write_report(place, command=command_line(), figures=figures)
        screen.print(f"Report: {report}", soft_wrap=True)
