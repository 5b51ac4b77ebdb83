"""Tables, figures 5, 7, 8 and 9 of the article, and causes of differences.

The tables have medians of figures 5, 8 and 9 by rate and by round-trip time, for which nothing is
printed but pictures, and the numbers that the text gives for figure 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from aqmlab.campaign import made
from aqmlab.metrics.samples import Floats, Quartiles, quantile
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.stats import MEAN_METHOD
from aqmlab.stats.intervals import UNBOUNDED
from aqmlab_studies.nichols2012.claims import claims
from aqmlab_studies.nichols2012.curves import (
    CODEL,
    LARGE,
    POSSIBLE,
    QUEUES,
    RED,
    SINGLE,
    SMALL,
    TAIL,
    Metric,
    across,
    average,
    drop_fairness,
    ftps,
    high_delay,
    median_delay,
    median_of,
    megabytes,
    over,
    utilisation,
)
from aqmlab_studies.shared import mean_table

__all__ = ["causes", "claims", "figures", "tables"]

BY_TIME = "CoDel: not above this 95 % of the time (ms)"
METRICS: tuple[tuple[str, str, str, Metric], ...] = (
    ("delay", "Median queuing delay", "ms", median_delay),
    ("utilisation", "Utilisation", "share", utilisation),
    ("fairness", "Jain's index of the FTPs' losses", "index", drop_fairness),
)


def _tables(measured: Measurements) -> Iterator[CellTable]:
    static = measured.part("study")
    method = f"{MEAN_METHOD}, of the medians"
    for axis, by in (
        ("rate", "by rate: median over all round-trip times and loads"),
        ("rtt", "by round-trip time: median over all rates and loads"),
    ):
        for ident, name, unit, metric in METRICS:
            groups = sorted(_groups(static, metric, axis), key=lambda each: QUEUES.index(each[0]))
            cells = [Cell.mean(queue, label, None, values[1]) for queue, label, values in groups]
            yield CellTable(f"{ident}-{axis}", f"{name} {by}", unit, tuple(cells), method=method)


def _groups(static: Measurements, metric: Metric, axis: str) -> Iterator[tuple[str, str, Floats]]:
    """The quartiles over the points of a queue with each label of an axis, where it has any."""
    for label in static.axes[axis]:
        for queue in (each for each in QUEUES if static.has(queue=each)):
            values = across(static, metric, **{"queue": queue, axis: label})
            if values.size:
                yield queue, label, values


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
        rows = ftps(static, queue=queue, **where)
        lost, recoveries = (
            rows[each].to_numpy().mean() for each in ("retransmissions", "fast_retransmits")
        )
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
    _, means = average(dynamic, "sojourn_mean_s", queue=CODEL, buffer=LARGE)
    times = [1e3 * quantile(means, share) for share in (0.5, 0.75, 0.95)]
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
    about = Criterion(5.0, relative=False)  # points; printed are "about 10 %" and "75 % less"
    if dynamic.has(queue=CODEL, buffer=LARGE):
        large = {"queue": CODEL, "buffer": LARGE}
        _, runs = dynamic.curves("sojourn_max_s", **large)
        given += [
            ("CoDel: median delay (ms)", 2.7, median_delay(dynamic, **large)),
            ("CoDel: 75 % of the delays (ms)", 5.0, 1e3 * dynamic.count("sojourn_p75_s", **large)),
            ("CoDel: 95 % of the delays (ms)", None, 1e3 * dynamic.count("sojourn_p95_s", **large)),
            (BY_TIME, 90.0, np.array([1e3 * quantile(run[~np.isnan(run)], 0.95) for run in runs])),
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
    cells = []
    for row, published, values in given:
        criterion = about if "%" in row and published else Criterion()
        cells.append(Cell.mean(row, "figure 7", published, values, criterion, UNBOUNDED))
    notes = {
        BY_TIME: "the largest delay of each half second, 95 % of them",
        "CoDel: less than tail drop, by the pixels (%)": "measured by Hill and Shah (2015)",
    }
    name = "Figure 7: numbers in the text"
    return mean_table("figure-7", name, "as named", cells, notes=notes)


COLOURS = {"CoDel": "#2f6fbb", "tail drop": "#d55e00", "RED": "#009e73"}
SMALLER = {"CoDel": "#93bff0", "tail drop": "#eda77a", "RED": "#7fd1b5"}


def figures(measured: Measurements) -> list[Figure]:
    """All for which the parts were run."""
    return [figure for figure in made((*BOXES, _delays, _bytes), measured) if figure]


def _box(
    ident: str, axis: str, title: str, unit: str, metric: Metric, measured: Measurements
) -> Figure | None:
    cells = {
        (queue, label): Quartiles(*map(float, values.mean(axis=1)))
        for queue, label, values in _groups(measured.part("study"), metric, axis)
    }
    if not cells:
        return None
    digits = 1 if unit else 2
    medians: dict[str, list[float]] = {}
    for (queue, _), each in cells.items():
        medians.setdefault(queue, []).append(each.median)
    words = (f"{queue} {np.median(each):.{digits}f}" for queue, each in medians.items())
    y_title = f"{title.partition(': ')[2].partition(' by ')[0]}{f' ({unit})' if unit else ''}"
    others = "RTTs" if axis == "rate" else "rates"
    return Figure(
        ident,
        title,
        f"Medians over the groups: {', '.join(words)}{f' {unit}' if unit else ''}.",
        f"Bars or points: median over all {others} and loads; whiskers: quartiles; "
        "means over the replications.",
        charts.bars(
            cells,
            COLOURS,
            y_title,
            "rate of the link" if axis == "rate" else "round-trip time",
            digits=digits,
            zero=bool(unit),
        ),
    )


BOXES = (
    partial(_box, "figure-5a", "rate", "Figure 5: median delay by rate", "ms", median_delay),
    partial(_box, "figure-5b", "rate", "Figure 5: utilisation by rate", "", utilisation),
    partial(_box, "figure-8a", "rtt", "Figure 8: median delay by RTT", "ms", median_delay),
    partial(_box, "figure-8b", "rtt", "Figure 8: 95 % of the delays", "ms", high_delay),
    partial(_box, "figure-8c", "rtt", "Figure 8: utilisation by RTT", "", utilisation),
    partial(_box, "figure-9", "rtt", "Figure 9: fairness of losses", "", drop_fairness),
)


def _delays(measured: Measurements) -> Figure | None:
    dynamic = measured.part("dynamic")
    curves = {}
    for queue in QUEUES:
        if dynamic.has(queue=queue, buffer=LARGE):
            times, values = average(dynamic, "sojourn_mean_s", queue=queue, buffer=LARGE)
            curves[queue] = (times, 1e3 * np.maximum(values, 1e-4))
    if not curves:
        return None
    words = (f"{queue} {values.max() / 1e3:.2f} s" for queue, (_, values) in curves.items())
    return Figure(
        "figure-7a",
        "Figure 7: delay while the rate goes 100, 10, 1, 50, 1, 100 Mbit/s",
        f"Largest mean of half a second: {', '.join(words)}.",
        f"Means over {dynamic.replications} replications; the scale is logarithmic (the article's "
        "is linear).",
        charts.series(curves, COLOURS, "time (s)", "queuing delay (ms)", log=True),
    )


def _bytes(measured: Measurements) -> Figure | None:
    dynamic = measured.part("dynamic")
    curves, colours, words = {}, {}, []
    for buffer, shade in ((LARGE, COLOURS), (SMALL, SMALLER)):
        for queue in QUEUES:
            if dynamic.has(queue=queue, buffer=buffer):
                name = queue if buffer == LARGE else f"{queue}, {buffer}"
                times, values = average(dynamic, "delivered_bytes", queue=queue, buffer=buffer)
                curves[name] = (times, values / 1e6)
                colours[name] = shade[queue]
                words.append(f"{name} {megabytes(dynamic, queue, buffer).mean():.0f}")
    if not curves:
        return None
    return Figure(
        "figure-7c",
        "Figure 7: bytes carried while the rate changes",
        f"Of {POSSIBLE / 1e6:.1f} MB: {', '.join(words)}.",
        f"Means over {dynamic.replications} replications.",
        charts.series(curves, colours, "time (s)", "megabytes"),
    )


tables = (_tables, _figure_7)
causes = (_few_flows, _first_losses, _percentiles)
"""Why statements or numbers are missed, as far as experiments have shown."""
