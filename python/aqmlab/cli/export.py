"""`aqmlab export`: results in the formats of other programs."""

from __future__ import annotations

from pathlib import Path

from aqmlab.cli.common import naming
from aqmlab.cli.options import argument, option

EXAMPLE = (
    "aqmlab export results/mine links.csv\n\n"
    "aqmlab export results/mine series.arrow --table series\n\n"
    "aqmlab export results/mine mine.flent.gz\n\n"
    "aqmlab export results/mine down.log --table down --run 3"
)


def export(
    folder: Path = argument("FOLDER", "A folder with results."),
    file: Path = argument("FILE", "Ends in .csv, .arrow, .parquet, .flent.gz or .log (mahimahi)."),
    table: str = option("NAME", "A table; default: links. Of a log: a link.", default=""),
    run: int | None = option(
        "N", "Number of the run; default: the first, and for a table all.", min=0, default=None
    ),
) -> None:
    """Write results in the format of another program.

    flent's file has the goodput of each flow and a ping, and needs recorded time series; a log
    in the format of mahimahi's mm-link needs recorded packets.
    """
    from aqmlab.report.exports import export as write
    from aqmlab.results import StudyResult

    with naming(file="FILE", table="--table", run="--run"):
        write(StudyResult.open(folder), file, table=table, run=run)
    print(f"Written: {file}")
