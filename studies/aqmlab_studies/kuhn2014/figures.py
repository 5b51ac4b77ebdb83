"""Figures 2 to 6 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from aqmlab.metrics.samples import Floats, Histograms, quantile
from aqmlab.report.document import Figure
from aqmlab.reproduce.measure import Measurements
from aqmlab.stats import interval
from aqmlab_studies.kuhn2014 import charts
from aqmlab_studies.kuhn2014.measure import (
    BUFFERS,
    CONTROLS,
    MAIN_BUFFER,
    QUEUES,
    transfer_times,
)
from aqmlab_studies.kuhn2014.seconds import Seconds, seconds

COLOURS = {"DropTail": "#8c8c8c", "RED": "#c8453f", "CoDel": "#2f6fbb"}
SHAPES = {"10": "circle", "45": "square", "125": "triangle-up", "unlimited": "cross"}
SHOWN = 120
"""At most so many seconds of a run are drawn."""
SCATTER = (
    "Each point: the transfer in one second of one run, with another shape for each buffer at "
    f"node 2; at most {SHOWN} seconds of a run are drawn, evenly apart. Delays on a logarithmic "
    "axis; seconds in which no packet left the queue are left out."
)
SHARES = (0.0, 0.025, 0.5, 0.975, 1.0)
"""Quantiles of a candle: its ends, its box and the median."""
CANDLES = (
    "Thin line: least to largest; box: the middle 95 %; bar across: the median, with its 95 % "
    "interval, where there is one, as the dark box. "
)


def figures(measured: Measurements) -> list[Figure]:
    """Figures whose points were run."""
    study = measured.part("study")
    made = [
        _scatter(study, "CUBIC", "figure-2", "drop ratio", lambda each: each.drops),
        _scatter(study, "Vegas", "figure-3", "throughput (Mbit/s)", _throughput),
        _scatter(study, "CUBIC", "figure-4", "throughput (Mbit/s)", _throughput),
        _packets(study),
        _transfers(study),
    ]
    return [figure for figure in made if figure]


def _throughput(each: Seconds) -> Floats:
    return each.throughput * 1e-6


def _scatter(
    study: Measurements, control: str, ident: str, y_title: str, value: Callable[[Seconds], Floats]
) -> Figure | None:
    places = [(queue, buffer) for queue in QUEUES for buffer in BUFFERS]
    found = [(q, b) for q, b in places if study.has(queue=q, buffer=b, control=control)]
    if not found:
        return None
    points = {}
    ranges: dict[str, list[float]] = {}
    for queue, buffer in found:
        each = seconds(study, queue=queue, buffer=buffer, control=control)[0]
        keep = np.flatnonzero(each.delay > 0)
        shown = keep[:: 1 + keep.size // SHOWN]
        points[queue, buffer] = (each.delay[shown], value(each)[shown])
        ranges.setdefault(queue, []).extend(each.delay[keep])
    told = ", ".join(
        f"{_ms(quantile(np.array(delays), 0.025))} to {_ms(quantile(np.array(delays), 0.975))} "
        f"with {queue}"
        for queue, delays in ranges.items()
    )
    what = y_title.partition(" (")[0]
    return Figure(
        ident,
        f"Figure {ident[-1]}: TCP {control}, {what} and queuing delay",
        f"95 % of the seconds lie between queuing delays of {told}.",
        SCATTER,
        charts.scatter(points, COLOURS, SHAPES, "queuing delay (s)", y_title, "buffer (packets)"),
    )


def _present(study: Measurements) -> Iterator[tuple[str, str]]:
    for control in CONTROLS:
        for queue in QUEUES:
            if study.has(buffer=MAIN_BUFFER, control=control, queue=queue):
                yield control, queue


def _packets(study: Measurements) -> Figure | None:
    return _candles(
        study,
        "Figure 5: packet transmission times",
        lambda **labels: _delays(study, **labels),
        lambda each: f"half of the packets take no more than {each}",
        _ms,
        "Over the transfer's packets of all replications.",
        "packet transmission time (s)",
    )


def _transfers(study: Measurements) -> Figure | None:
    return _candles(
        study,
        "Figure 6: time needed to transmit 10 MB",
        lambda **labels: transfer_times(study, **labels),
        lambda each: f"the median transfer takes {each}",
        lambda median: f"{median:.0f} s",
        f"Over {study.replications} replications.",
        "time to transmit 10 MB (s)",
    )


def _candles(
    study: Measurements,
    title: str,
    times: Callable[..., Histograms | Floats],
    message: Callable[[str], str],
    form: Callable[[float], str],
    over: str,
    y_title: str,
) -> Figure | None:
    candles = {}
    for control, queue in _present(study):
        found = times(buffer=MAIN_BUFFER, control=control, queue=queue)
        ends = (
            found.quantiles(SHARES)
            if isinstance(found, Histograms)
            else [quantile(found, share) for share in SHARES]
        )
        candles[queue, control] = charts.Candle.of(ends, interval(found, "median"))
    if not candles:
        return None
    told = ", ".join(
        f"{form(each.median)} with {queue}"
        for (queue, cc), each in candles.items()
        if cc == "CUBIC"
    )
    return Figure(
        title.partition(":")[0].lower().replace(" ", "-"),
        title,
        f"With CUBIC {message(told)}." if told else "",
        CANDLES + over,
        charts.candles(candles, COLOURS, y_title, "congestion control"),
    )


def _delays(study: Measurements, **labels: str) -> Histograms:
    """The packet transmission times of the transfer, one histogram a replication."""
    rows = study.rows("delays", **labels).filter(group="transfer", direction="forward")
    return Histograms.from_columns(
        rows["run"].to_numpy().astype(np.int64),
        rows["delay_s"].to_numpy(),
        rows["count"].to_numpy().astype(np.int64),
        study.replications,
    )


def _ms(delay: float) -> str:
    return f"{delay * 1e3:.0f} ms" if delay < 1 else f"{delay:.3g} s"
