"""One run as a picture: the queue over time, with different queue disciplines.

python -m tools.jarvinen2014_picture docs/images/load-transient.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.published import Published
from aqmlab.study import Study
from aqmlab_studies.jarvinen2014.figures import COLOURS

QUEUES = ("DropTail", "PIEupdate", "CoDel", "SFQ CoDel")
SETTINGS = {"record.level": "series", "record.interval": "20ms"}
BITS_PER_MS = 2000
"""2 Mbit/s."""
SECONDS = 4.0
"""Shown part of the run."""


def picture(replication: int = 3) -> Figure:
    """The queue of one replication with 4+4 flows: the same arrivals, different queues."""
    only = {"queue": list(QUEUES), "flows": ["4+4"], "rest": ["11 ms"]}
    file = Published.load("jarvinen2014").folder / "study.toml"
    result = Study(file, set=SETTINGS, replications=replication + 1, only=only).run()
    rows = result.series.filter(
        pl.col("replication") == replication,
        pl.col("subject") == "down",
        pl.col("quantity") == "backlog_bytes",
        pl.col("time_s") <= SECONDS,
    ).with_columns((pl.col("value") * 8 / BITS_PER_MS).alias("delay_ms"))
    curves, longest = {}, []
    for queue in QUEUES:
        own = rows.filter(pl.col("queue") == queue)
        curves[queue] = (own["time_s"].to_numpy(), own["delay_ms"].to_numpy())
        longest.append(f"{own['delay_ms'].to_numpy().max():.0f} ms with {queue}")
    return Figure(
        "load-transient",
        "Eight web downloads meet in one slow link: how long is the queue?",
        f"At most {', '.join(longest)}. Two groups of four TCP flows in slow start, 2 Mbit/s, "
        "100 packets of buffer; the same flows with each queue discipline.",
        "",
        charts.series(curves, COLOURS, "time (s)", "queue (ms to empty it)"),
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} FILE.svg")
    picture().save(Path(sys.argv[1]))
