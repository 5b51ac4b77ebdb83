"""The study's quantities at one point, the transfer second by second (figures 2 to 4), and parts
that the rules of all sections share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from aqmlab.campaign import Comparison, Rule, at_most
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Replicates
from aqmlab.stats import UNBOUNDED
from aqmlab_studies.shared import each_run, packets_of

QUEUES = ("DropTail", "RED", "CoDel")
AQMS = ("RED", "CoDel")
CONTROLS = ("CUBIC", "NewReno", "Vegas", "Compound")
BUFFERS = ("10", "45", "125", "unlimited")
MAIN_BUFFER = "125"
"""Buffer of figures 5 and 6, in packets."""
ROOMY = BUFFERS[1:]
"""The buffers in which an AQM has room to act."""
DROPTAIL = {"queue": "DropTail"}
CUBIC = {"control": "CUBIC"}

Quantity = Callable[..., Replicates]
Times = Callable[..., Floats]
"""Takes the measurements and the labels of a point: one value for each run, seconds."""
Mean = Callable[..., float]
"""The same for the mean over the replications."""
AnyRule = Rule[Measurements, Any]


def _of_transfer(quantity: str) -> Times:
    return lambda measured, **labels: measured.times("transfer", quantity, "mean_s", **labels)


packet_times = _of_transfer("delay")
"""The mean one-way transmission time of the transfer's packets."""
transfer_times = _of_transfer("completion")
"""From the SYN to the last byte of the 10 MB."""


def _mean(times: Times) -> Mean:
    return lambda measured, **labels: float(times(measured, **labels).mean())


packet_mean, transfer_mean = _mean(packet_times), _mean(transfer_times)


def ratio(mean: Mean, against: Mapping[str, str] = DROPTAIL) -> Mean:
    """A mean as a multiple of that at the point with the labels `against`."""
    return lambda measured, **labels: (
        mean(measured, **labels) / mean(measured, **{**labels, **against})
    )


def reduced(against: Mapping[str, str] = DROPTAIL) -> Mean:
    """By which share packets are faster than at the point with the labels `against`."""
    return lambda measured, **labels: 1 - ratio(packet_mean, against)(measured, **labels)


def increased(against: Mapping[str, str] = DROPTAIL) -> Mean:
    """By which share the transfer takes longer than at the point with the labels `against`."""
    return lambda measured, **labels: ratio(transfer_mean, against)(measured, **labels) - 1


def within(times: Times) -> Quantity:
    """The times of the replications, whose mean is shown."""
    return lambda measured, **labels: Replicates(times(measured, **labels))


def change(times: Times, sign: float = 1.0, against: Mapping[str, str] = DROPTAIL) -> Quantity:
    """The ratio of the mean to that at the point with the labels `against`, less one. Replications
    are pairs with the same arrivals, so they spread as ours - ratio * base (Fieller, to first
    order)."""

    def value(measured: Measurements, **labels: str) -> Replicates:
        ours, base = times(measured, **labels), times(measured, **{**labels, **against})
        multiple = ours.mean() / base.mean()
        # The differences have the mean 0.
        values = multiple - 1 + (ours - multiple * base) / base.mean()
        return Replicates(sign * values, UNBOUNDED)

    return value


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
    packets = packets_of(measured, number, **labels).filter(flow="transfer.0", is_ack=False)
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


def ms(delay: float) -> str:
    """Seconds as `115 ms`."""
    return f"{1e3 * delay:.0f} ms"


times, mbit = "{:.2f}".format, "{:.3f}".format
"""A ratio as `1.23`, and a rate in Mbit/s as `0.123`."""


def named(number: Callable[[float], str], unit: str = "") -> Callable[[dict[str, float]], str]:
    """Formats numbers with their names: `1.2 (RED), 1.3 (CoDel)`."""

    def told(found: dict[str, float]) -> str:
        return ", ".join(f"{number(value)} ({name})" for name, value in found.items()) + unit

    return told


def range_within(multiple: float) -> Callable[[dict[str, float]], Comparison]:
    """The largest number is at most this multiple of the smallest."""
    return lambda found: at_most(
        max(found.values()) / min(found.values()), multiple, "largest over smallest"
    )
