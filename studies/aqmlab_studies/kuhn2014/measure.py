"""The study's quantities, of one point: their means over the replications, with intervals."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.stats import POSITIVE, Interval, interval

QUEUES = ("DropTail", "RED", "CoDel")
AQMS = ("RED", "CoDel")
CONTROLS = ("CUBIC", "NewReno", "Vegas", "Compound")
BUFFERS = ("10", "45", "125", "unlimited")
MAIN_BUFFER = "125"
"""Buffer of figures 5 and 6, in packets."""

Value = tuple[float, Interval | None]
DROPTAIL = {"queue": "DropTail"}


def packet_times(measured: Measurements, **labels: str) -> Floats:
    """The mean one-way transmission time of the transfer's packets in each run, seconds."""
    return measured.times("transfer", "delay", "mean_s", **labels)


def transfer_times(measured: Measurements, **labels: str) -> Floats:
    """From the SYN to the last byte of the 10 MB in each run, seconds."""
    return measured.times("transfer", "completion", "mean_s", **labels)


def packet_time(measured: Measurements, **labels: str) -> Value:
    """The mean of `packet_times`."""
    return _mean(packet_times(measured, **labels))


def transfer_time(measured: Measurements, **labels: str) -> Value:
    """The mean of `transfer_times`."""
    return _mean(transfer_times(measured, **labels))


def reduction(
    measured: Measurements, against: Mapping[str, str] = DROPTAIL, /, **labels: str
) -> Value:
    """By which share packets are faster than at the point with the labels `against`."""
    ours = packet_times(measured, **labels)
    return _share(packet_times(measured, **labels | dict(against)), ours, -1.0)


def increase(
    measured: Measurements, against: Mapping[str, str] = DROPTAIL, /, **labels: str
) -> Value:
    """By which share the transfer takes longer than at the point with the labels `against`."""
    ours = transfer_times(measured, **labels)
    return _share(transfer_times(measured, **labels | dict(against)), ours, 1.0)


def packet_mean(measured: Measurements, **labels: str) -> float:
    """The mean of `packet_times`, without its interval."""
    return float(packet_times(measured, **labels).mean())


def transfer_mean(measured: Measurements, **labels: str) -> float:
    """The mean of `transfer_times`, without its interval."""
    return float(transfer_times(measured, **labels).mean())


def reduced(
    measured: Measurements, against: Mapping[str, str] = DROPTAIL, /, **labels: str
) -> float:
    """`reduction` without its interval."""
    return 1 - packet_mean(measured, **labels) / packet_mean(measured, **labels | dict(against))


def increased(
    measured: Measurements, against: Mapping[str, str] = DROPTAIL, /, **labels: str
) -> float:
    """`increase` without its interval."""
    return transfer_mean(measured, **labels) / transfer_mean(measured, **labels | dict(against)) - 1


def _share(base: Floats, ours: Floats, sign: float) -> Value:
    """The ratio of two means less one. Replications are pairs with the same arrivals, so
    the interval is that of ours - ratio * base (Fieller's, to first order)."""
    ratio = float(ours.mean() / base.mean())
    value = sign * (ratio - 1)
    spread = interval(sign * (ours - ratio * base) / float(base.mean()))
    # The differences have the mean 0.
    return value, spread and Interval(value + spread.low, value + spread.high)


def _mean(values: Floats) -> Value:
    return float(values.mean()), interval(values, bounds=POSITIVE)
