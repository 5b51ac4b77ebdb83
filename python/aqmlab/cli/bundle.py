"""`aqmlab bundle`: results as one file."""

from __future__ import annotations

import shlex
from pathlib import Path

from aqmlab.cli.common import naming
from aqmlab.cli.options import argument

EXAMPLE = "aqmlab bundle results/mine\n\naqmlab bundle results/kuhn2014 kuhn2014.aqmlab.zip"


def bundle(
    folder: Path = argument("FOLDER", "A folder with results."),
    file: Path | None = argument("FILE", "The bundle; default: NAME.aqmlab.zip.", default=None),
) -> None:
    """Write results as one file, which `aqmlab rerun` verifies and repeats elsewhere.

    The file is a ZIP archive with the tables, the scenario of every point, the study file, custom
    queues, controls and metrics, input files, versions, the command and the report.
    """
    from aqmlab.share.bundle import bundle as write

    with naming(file="FILE"):
        found = write(folder, file)
    size = f"{found.stat().st_size / 1e6:,.1f} MB"
    print(f"Bundle: {found} ({size}). Verify and repeat it: aqmlab rerun {shlex.quote(str(found))}")
