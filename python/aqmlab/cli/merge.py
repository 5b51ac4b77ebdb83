"""`aqmlab merge`: the parts of a study that several machines have run become one."""

from __future__ import annotations

import time
from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import print_json, show_study
from aqmlab.cli.options import argument

EXAMPLE = (
    "aqmlab study examples/study.toml --shard 1/2 --out part1\n\n"
    "aqmlab study examples/study.toml --shard 2/2 --out part2\n\n"
    "aqmlab merge part1 part2 --out results/sweep"
)


def merge(
    parts: list[Path] = argument("FOLDER...", "Folders of `study --shard`."),
    out: Path | None = options.OUT,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Merge the parts of a study into one folder, with the same bytes as a run on one machine.

    The results go to results/NAME or --out; the parts stay as they are.
    """
    from aqmlab.report.study_page import to_json
    from aqmlab.study.manifest import found_manifest
    from aqmlab.study.merge import merge as put_together

    began = time.monotonic()
    place = out
    if place is None:
        place = Path("results") / str(found_manifest(parts[0])["name"])
    result = put_together(parts, place)
    if json:
        print_json(to_json(result, time.monotonic() - began))
        return
    runs = result.info.points * result.info.replications
    done = f"{runs:,} runs of {len(parts)} parts. Results: {place}"
    show_study(result, place, done, figures=figures, no_report=no_report)
