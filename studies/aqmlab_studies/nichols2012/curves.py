"""Measures of the two parts for tables, statements and figures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import reduce

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats, jain_indices
from aqmlab.reproduce.measure import Measurements, per_run

CODEL, TAIL, RED = "CoDel", "tail drop", "RED"
QUEUES = (CODEL, TAIL, RED)
LARGE, SMALL = "830 packets", "10 packets"
RATES = (100, 10, 1, 50, 1, 100)
"""The steps of the part `dynamic` in Mbit/s."""
STEP = 50.0
"""Seconds of each."""
FALLS, RISES = (1, 2, 4), (3, 5)
"""The steps that begin with less, and with more."""
POSSIBLE = sum(RATES) * STEP * 1e6 / 8
"""Bytes that the link could carry: 1637.5 MB."""
SINGLE = "1 FTP"

Metric = Callable[..., Floats]
"""Measure of one point: a value for each replication."""


def of_link(column: str, scale: float = 1.0) -> Metric:
    """A column of the table `links`."""
    return lambda part, **labels: scale * part.count(column, **labels)


median_delay, high_delay = of_link("sojourn_p50_s", 1e3), of_link("sojourn_p95_s", 1e3)
"""The median and the 95th percentile of the time in queue of all packets, ms."""
utilisation = of_link("utilisation")
"""Used share of the link's capacity."""


@per_run
def drop_fairness(part: Measurements, **labels: str) -> Floats:
    """Jain's index over the FTPs of (segments sent again) / (segments sent): 1 if each flow
    loses in proportion to what it sends. NaN with a single FTP, or without losses."""
    found = np.full(part.replications, np.nan)
    for (run,), own in ftps(part, **labels).group_by("run"):
        shares = (own["retransmissions"] / own["segments_sent"]).to_numpy()
        if shares.size > 1 and shares.any():
            found[int(str(run))] = jain_indices(shares[None, :])[0]
    return found


def ftps(part: Measurements, **labels: str) -> pl.DataFrame:
    """The FTPs that sent anything."""
    is_ftp = pl.col("group").cast(pl.String).str.starts_with("ftp")
    return part.rows("flows", **labels).filter(is_ftp & (pl.col("segments_sent") > 0))


def points(part: Measurements, **fixed: str) -> Iterator[dict[str, str]]:
    """The labels of all points that have these."""
    names = list(part.axes)
    kept = [(fixed[name],) if name in fixed else part.axes[name] for name in names]
    for labels in itertools.product(*kept):
        yield dict(zip(names, labels, strict=True))


def over(part: Measurements, metric: Metric, **fixed: str) -> Floats:
    """A metric at all points that have these labels: (points, replications)."""
    return np.array([metric(part, **labels) for labels in points(part, **fixed)])


def across(part: Measurements, metric: Metric, **fixed: str) -> Floats:
    """Quartiles of a metric over all points with these labels that have it: (3, replications).

    Figures, tables and statements show the means over the replications."""
    values = over(part, metric, **fixed)
    values = values[~np.isnan(values).any(axis=1)]
    if not values.size:
        return np.empty((3, 0))
    return np.quantile(values, [0.25, 0.5, 0.75], axis=0)


def median_of(part: Measurements, metric: Metric, **fixed: str) -> float:
    """The median over the points with these labels, the mean over the replications."""
    return float(across(part, metric, **fixed)[1].mean())


def average(part: Measurements, quantity: str, **labels: str) -> tuple[Floats, Floats]:
    """Times and means over the replications of a sampled quantity; samples without it, as of a
    delay where nothing left the queue, are left out."""
    times, rows = part.curves(quantity, **labels)
    known = ~np.isnan(rows)
    some = known.any(axis=0)
    sums: Floats = np.where(known, rows, 0.0).sum(axis=0)[some]
    return times[some].round(6), sums / known.sum(axis=0)[some]


def together(
    part: Measurements, quantity: str, queues: Iterable[str], **labels: str
) -> tuple[Floats, dict[str, Floats]]:
    """The same with several queues, at the times that all have."""
    curves = {queue: average(part, quantity, queue=queue, **labels) for queue in queues}
    times = reduce(np.intersect1d, (own for own, _ in curves.values()))
    return times, {queue: values[np.isin(own, times)] for queue, (own, values) in curves.items()}


def inside(times: Floats, values: Floats, step: int) -> Floats:
    """The samples of a step: each is of the half second before it."""
    found: Floats = values[(times > step * STEP) & (times <= (step + 1) * STEP)]
    return found


def megabytes(part: Measurements, queue: str, buffer: str = LARGE) -> Floats:
    """Megabytes carried in each run."""
    return part.count("delivered_bytes", queue=queue, buffer=buffer) / 1e6
