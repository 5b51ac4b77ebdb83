"""How much of the queue at a run's largest delay belongs to initial windows.

Packets are recorded, in the first replications of a point.
"""

from __future__ import annotations

import polars as pl

import aqmlab
from aqmlab.reproduce.measure import Measurements

REPLICATIONS = 10
WINDOW = 3
"""Packets of an initial window."""


def share(measured: Measurements, **labels: str) -> float:
    """The mean share over the replications; kept with `measured`."""
    kept: dict[int, float] = measured.__dict__.setdefault("_initial_windows", {})
    point = measured.point(**labels)
    if point not in kept:
        scenario = measured.result.scenarios[point]
        seed = measured.result.info.seed
        count = min(REPLICATIONS, measured.replications)
        shares = [
            _of_run(
                aqmlab.run(scenario, seed=seed, record="packets", replication=number).packets,
                measured.link,
            )
            for number in range(count)
        ]
        kept[point] = sum(shares) / count
    return kept[point]


def _of_run(packets: pl.DataFrame, link: str) -> float:
    """The share of one run: of the data packets that waited when the packet with the largest
    delay arrived, those of the first three of their flows."""
    data = packets.filter(
        (pl.col("link") == link) & ~pl.col("is_ack") & (pl.col("size_bytes") > 100)
    ).sort("arrival_s")
    data = data.with_columns(initial=pl.int_range(pl.len()).over("flow") < WINDOW)
    sent = data.filter(verdict="delivered")
    slowest = sent.row(int((sent["end_s"] - sent["arrival_s"]).arg_max() or 0), named=True)
    waiting = sent.filter(
        (pl.col("arrival_s") <= slowest["arrival_s"]) & (pl.col("end_s") > slowest["arrival_s"])
    )
    return float(waiting["initial"].mean() or 0.0)  # type: ignore[arg-type]
