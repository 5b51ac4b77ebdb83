"""A custom metric: the share of packets that wait for more than 20 ms.

aqmlab study examples/call.toml --with examples/my_metric.py
aqmlab run examples/scenario.toml --with examples/my_metric.py
aqmlab list metrics --with examples/my_metric.py
"""

import polars as pl

import aqmlab

LONG = 0.02


@aqmlab.metric("waiting_share", of="link", unit="share", direction=-1, title="waits above 20 ms")
def waiting_share(runs: aqmlab.Runs) -> pl.DataFrame:
    """Returns the share of packets that waited for more than 20 ms in the queue."""
    long = pl.col("count").filter(pl.col("sojourn_s") > LONG).sum()
    return (
        runs.table("sojourn")
        .group_by("run", "link", maintain_order=True)
        .agg(value=long / pl.col("count").sum())
        .rename({"link": "subject"})
    )
