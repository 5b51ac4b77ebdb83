"""Share of initial windows in the queue at a run's largest delay.

The runs of a point are repeated with packets recorded.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import aqmlab
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run

WINDOW = 3
"""Packets of an initial window."""


def share(measured: Measurements, **labels: str) -> float:
    """The mean share over the replications."""
    return float(shares(measured, **labels).mean())


@per_run
def shares(measured: Measurements, **labels: str) -> Floats:
    """The share in each run."""
    scenario = measured.result.scenarios[measured.point(**labels)]
    seed = measured.result.info.seed
    runs = (
        aqmlab.run(scenario, seed=seed, record="packets", replication=number)
        for number in range(measured.replications)
    )
    return np.array([_of_run(run.packets, measured.link) for run in runs])


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
