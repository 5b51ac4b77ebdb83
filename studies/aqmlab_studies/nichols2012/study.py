"""The tables: medians of figures 5, 8 and 9 by rate and by round-trip time, and the numbers that
the text gives for figure 7. Nothing is printed for the former but pictures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aqmlab.metrics.samples import Floats, quantile
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.stats import MEAN_METHOD
from aqmlab.stats.intervals import UNBOUNDED
from aqmlab_studies.nichols2012.claims import claims
from aqmlab_studies.nichols2012.curves import (
    CODEL,
    LARGE,
    QUEUES,
    RED,
    SINGLE,
    SMALL,
    TAIL,
    Metric,
    across,
    drop_fairness,
    losses,
    median_delay,
    median_of,
    megabytes,
    over,
    sampled,
    utilisation,
)
from aqmlab_studies.nichols2012.figures import figures

__all__ = ["causes", "claims", "figures", "tables"]

ABOUT = 5.0
"""Margin of shares that are printed as "about 10 %" and "about 75 % less", in points."""
BY_TIME = "CoDel: not above this 95 % of the time (ms)"
METRICS: tuple[tuple[str, str, str, Metric], ...] = (
    ("delay", "Median queuing delay", "ms", median_delay),
    ("utilisation", "Utilisation", "share", utilisation),
    ("fairness", "Jain's index of the FTPs' losses", "index", drop_fairness),
)


def _tables(measured: Measurements) -> Iterator[CellTable]:
    static = measured.part("study")
    for axis, by, others in (
        ("rate", "by rate", "round-trip times and loads"),
        ("rtt", "by round-trip time", "rates and loads"),
    ):
        for ident, name, unit, metric in METRICS:
            about = f"{name} {by}: median over all {others}"
            yield _medians(static, f"{ident}-{axis}", about, unit, metric, axis)


def _medians(
    static: Measurements, ident: str, name: str, unit: str, metric: Metric, axis: str
) -> CellTable:
    cells = []
    for queue in (each for each in QUEUES if static.has(queue=each)):
        for label in static.axes[axis]:
            each = across(static, metric, **{"queue": queue, axis: label})[1:2].ravel()
            if each.size:
                cells.append(Cell.mean(queue, label, None, each))
    return CellTable(ident, name, unit, tuple(cells), method=f"{MEAN_METHOD}, of the medians")


def _by_time(dynamic: Measurements) -> Floats:
    """What the largest delay of half a second does not exceed in 95 % of them, ms, each run."""
    found = []
    for replication in range(dynamic.replications):
        _, values = dynamic.series(
            "sojourn_max_s", replication=replication, queue=CODEL, buffer=LARGE
        )
        found.append(1e3 * quantile(values, 0.95))
    return np.array(found)


def _few_flows(measured: Measurements) -> Iterator[Cause]:
    static = measured.part("study")
    loads, queues = (SINGLE, "4 FTPs", "20 FTPs, web, CBR"), (CODEL, TAIL)
    used = {
        load: [float(np.mean(over(static, utilisation, queue=queue, rtt="200 ms", load=load)))
               for queue in queues]
        for load in loads
    }  # fmt: skip
    listed = "; ".join(f"{load} {codel:.3f} and {tail:.3f}" for load, (codel, tail) in used.items())
    gaps = [tail - codel for codel, tail in used.values()]
    if gaps[0] < gaps[-1] + 0.05:
        return
    yield Cause(
        "CoDel and long paths: the number of flows matters",
        "The article finds CoDel's utilisation at 200 ms very close to tail drop's, and no "
        f"different from that at 30 ms. Mean utilisations of CoDel and tail drop at 200 ms: "
        f"{listed}. CUBIC keeps 0.7 of its window at a loss; a queue of 5 ms does not bridge the "
        "gap of one flow on a path of 200 ms. The article's loads go to 50 FTPs, and it gives "
        "neither the list nor their weights.",
    )  # fmt: skip


def _first_losses(measured: Measurements) -> Iterator[Cause]:
    static = measured.part("study")
    where = {"rtt": "500 ms", "rate": "100 Mbit/s", "load": "4 FTPs"}
    if median_of(static, drop_fairness, queue=RED, rtt="500 ms") <= median_of(
        static, drop_fairness, queue=CODEL, rtt="500 ms"
    ):
        return
    words = []
    for queue in (CODEL, RED):
        lost, recoveries = losses(static, queue=queue, **where)
        words.append(f"{queue} {lost:.0f} segments in {recoveries:.1f} recoveries")
    yield Cause(
        "The fairness of losses at 500 ms",
        "There RED has the higher index. On long and fast paths the first slow start overflows the "
        "buffer, and runs of 40 to 60 s contain few other recoveries: with four FTPs at 100 "
        f"Mbit/s each retransmitted, with {'; '.join(words)}. The article's runs are five times as "
        "long.",
    )


def _percentiles(measured: Measurements) -> Iterator[Cause]:
    dynamic = measured.part("dynamic")
    packets = [1e3 * dynamic.count(f"sojourn_p{share}_s", queue=CODEL, buffer=LARGE).mean()
               for share in (50, 75, 95)]  # fmt: skip
    means = sampled(dynamic, "sojourn_mean_s", CODEL)
    times = [1e3 * quantile(means[~np.isnan(means)], share) for share in (0.5, 0.75, 0.95)]
    yield Cause(
        "Figure 7: percentiles of packets and of time",
        "The article gives a median of 2.7 ms and a 75th percentile of 5 ms, and says that the "
        "delay is below 90 ms for 95 % of the simulated time. Over packets (most of which pass at "
        f"100 Mbit/s) percentiles 50, 75 and 95 are {packets[0]:.1f}, {packets[1]:.1f} and "
        f"{packets[2]:.1f} ms here, over half seconds (their means) {times[0]:.1f}, {times[1]:.1f} "
        f"and {times[2]:.1f} ms.",
    )  # fmt: skip


def _figure_7(measured: Measurements) -> CellTable:
    """The numbers in the text."""
    dynamic = measured.part("dynamic")
    given: list[tuple[str, float | None, Floats]] = []
    about = Criterion(ABOUT, relative=False)
    if dynamic.has(queue=CODEL, buffer=LARGE):
        large = {"queue": CODEL, "buffer": LARGE}
        given += [
            ("CoDel: median delay (ms)", 2.7, median_delay(dynamic, **large)),
            ("CoDel: 75 % of the delays (ms)", 5.0, 1e3 * dynamic.count("sojourn_p75_s", **large)),
            ("CoDel: 95 % of the delays (ms)", None, 1e3 * dynamic.count("sojourn_p95_s", **large)),
            (BY_TIME, 90.0, _by_time(dynamic)),
        ]
        if dynamic.has(queue=TAIL):
            less = 100 * (1 - megabytes(dynamic, CODEL, LARGE) / megabytes(dynamic, TAIL, LARGE))
            given.append(("CoDel: less than tail drop, by the pixels (%)", 10.0, less))
        if dynamic.has(queue=TAIL, buffer=SMALL):
            share = 100 * megabytes(dynamic, TAIL, SMALL) / megabytes(dynamic, CODEL, LARGE)
            worst = 1e3 * dynamic.maxima(queue=TAIL, buffer=SMALL)
            given += [
                ("tail drop, 10 packets: of CoDel's throughput (%)", 25.0, share),
                ("tail drop, 10 packets: largest delay (ms)", 120.0, worst),
            ]
    cells = [
        Cell.mean(
            row,
            "figure 7",
            published,
            values,
            about if "%" in row and published else Criterion(),
            UNBOUNDED,
        )
        for row, published, values in given
    ]
    notes = {
        BY_TIME: "the largest delay of each half second, 95 % of them",
        "CoDel: less than tail drop, by the pixels (%)": "measured by Hill and Shah (2015)",
    }
    return CellTable(
        "figure-7", "Figure 7: numbers in the text", "as named", tuple(cells),
        method=MEAN_METHOD, notes=notes,
    )  # fmt: skip


tables = (_tables, _figure_7)
causes = (_few_flows, _first_losses, _percentiles)
"""Why statements or numbers are missed, as far as experiments have shown."""
