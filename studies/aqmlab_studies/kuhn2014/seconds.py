"""Data of figures 2 to 4: the transfer second by second.

The runs of a point are repeated with every packet recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.shared import each_run, packets_of

FLOW = "transfer.0"


@dataclass(frozen=True)
class Seconds:
    """One value a second of the transfer."""

    delay: Floats
    """Mean queuing delay of its packets at node 2, seconds; NaN if none left the queue."""
    drops: Floats
    """Share of its packets that were dropped of those whose lot was decided."""
    throughput: Floats
    """Arrival rate at node 5, headers included, bit/s."""


@each_run
def seconds(measured: Measurements, number: int, **labels: str) -> Seconds:
    """Seconds of a run of the point with these labels."""
    packets = packets_of(measured, number, **labels).filter(flow=FLOW, is_ack=False)
    packets = packets.with_columns(second=pl.col("end_s").floor().cast(pl.Int64))
    centre = packets.filter(link="centre")
    count = int(packets["second"].to_numpy().max())  # whole ones: the last is left out
    delivered = centre.filter(verdict="delivered")
    sent = _sums(delivered, pl.len(), count)
    waited = _sums(delivered, (pl.col("end_s") - pl.col("arrival_s")).sum(), count)
    decided = _sums(centre, pl.len(), count)
    arrived = _sums(packets.filter(link="far_transfer"), 8 * pl.col("size_bytes").sum(), count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Seconds(waited / sent, (decided - sent) / decided, arrived)


def _sums(packets: pl.DataFrame, what: pl.Expr, count: int) -> Floats:
    sums = np.zeros(count)
    found = packets.group_by("second").agg(what.alias("value")).filter(pl.col("second") < count)
    sums[found["second"].to_numpy()] = found["value"].to_numpy()
    return sums
