"""`aqmlab compare`: results in several folders side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Figures,
    Json,
    Out,
    With,
    command_line,
    console,
    load_own,
    print_json,
    reported,
)

EXAMPLE = EXAMPLES.format(
    "aqmlab compare results/before results/after\n\n"
    "aqmlab compare CoDel=results/lte-codel FQ-CoDel=results/lte-fq --out results/lte"
)


@reported
def compare(
    folders: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]FOLDER...", help="Results of run, study or shell --out."),
    ],
    out: Out = None,
    with_: With = None,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Compare results of runs, studies and emulations side by side, in tables and one figure.

    They must have the same axes and as many replications. The report goes to results/compare
    or --out; the results stay where they are.
    """
    from aqmlab.cli.study import show, to_json
    from aqmlab.compare import compare as side_by_side

    load_own(with_)
    result = side_by_side(_named(folders))
    if json:
        form = to_json(result, 0.0)
        print_json({key: form[key] for key in ("points", "findings", "notes")})
        return
    screen = console()
    show(result, screen)
    place = out or Path("results") / "compare"
    report = result.write_report(place, command=command_line(), figures=figures)
    screen.print(f"Report: {report}", soft_wrap=True)


def _named(folders: list[str]) -> dict[str, Path]:
    """Names and folders; the name of a folder is its last part, or all of it if that is taken."""
    from aqmlab.errors import input_error

    pairs = [each.rpartition("=") for each in folders]
    last = [Path(folder).name for _, _, folder in pairs]
    named: dict[str, Path] = {}
    for (name, _, folder), short in zip(pairs, last, strict=True):
        label = name or (short if last.count(short) == 1 and short else folder)
        if label in named:
            raise input_error("two results have the same name", key="FOLDER", given=label)
        named[label] = Path(folder)
    return named
