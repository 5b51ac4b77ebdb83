"""Figures 2 to 6 of the paper: candlesticks, and points of two kinds on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from aqmlab.metrics.samples import Floats, Histograms, quantile
from aqmlab.report.document import Figure
from aqmlab.report.document.charts import labels, place
from aqmlab.report.document.vega import (
    PICK,
    Colours,
    Spec,
    colour,
    data,
    name,
    number,
    picked,
    spec,
    tip,
)
from aqmlab.reproduce.measure import Measurements
from aqmlab.stats import Interval, interval
from aqmlab_studies.kuhn2014.measure import (
    BUFFERS,
    CONTROLS,
    MAIN_BUFFER,
    QUEUES,
    Seconds,
    seconds,
    transfer_times,
)

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


@dataclass(frozen=True)
class Candle:
    """A distribution as a candlestick: its ends, a box, the median and its interval."""

    least: float
    low: float
    median: float
    high: float
    largest: float
    median_low: float
    median_high: float

    @staticmethod
    def of(quantiles: Sequence[float], median: Interval | None) -> Candle:
        """From its five quantiles, ascending, and the interval of the median if it has one."""
        least, low, middle, high, largest = quantiles
        ends = (median.low, median.high) if median else (middle, middle)
        return Candle(least, low, middle, high, largest, *ends)


def candlesticks(
    cells: Mapping[tuple[str, str], Candle], colours: Colours, y_title: str, x_title: str
) -> Spec:
    """Candlesticks; keys are (candle's name, group on the x axis)."""
    names, groups = labels(cells)
    rows = [
        {"name": each, "group": group, **{key: round(v, 5) for key, v in asdict(of).items()}}
        for (each, group), of in cells.items()
    ]
    keys = ("least", "low", "median", "high", "largest")
    titles = ("least", "2.5 %", "median", "97.5 %", "largest")

    def layer(mark: Spec, low: str, high: str = "") -> Spec:
        y = number(low, y_title, scale={"zero": True})
        return {"mark": mark, "encoding": {"y": y} | ({"y2": {"field": high}} if high else {})}

    return spec(
        {
            "data": data(rows),
            "encoding": {
                "x": place("group", groups, x_title),
                "xOffset": name("name", names, scale={"padding": 0.4}),
                "color": colour(names, colours),
                "tooltip": [
                    tip("name", "queue"),
                    tip("group", x_title),
                    *(tip(key, title, ".4~g") for key, title in zip(keys, titles, strict=True)),
                ],
            },
            "layer": [
                layer({"type": "rule", "strokeWidth": 1.4}, "least", "largest"),
                layer({"type": "bar", "size": 16, "opacity": 0.45}, "low", "high"),
                layer({"type": "bar", "size": 16}, "median_low", "median_high"),
                layer({"type": "tick", "size": 24, "thickness": 2.5}, "median"),
            ],
        }
    )


def scatter(
    points: Mapping[tuple[str, str], tuple[Floats, Floats]],
    colours: Colours,
    shapes: Mapping[str, str],
    x_title: str,
    y_title: str,
    shape_title: str,
) -> Spec:
    """Points on a logarithmic x axis; keys are (what the colour says, what the shape says)."""
    names, kinds = labels(points)
    rows = [
        {"name": each, "kind": kind, "x": float(f"{x:.4g}"), "y": round(float(y), 4)}
        for (each, kind), (xs, ys) in points.items()
        for x, y in zip(xs, ys, strict=True)
    ]
    shape = {"domain": kinds, "range": [shapes[kind] for kind in kinds]}
    log = {"scale": {"type": "log"}, "axis": {"tickCount": 6, "format": "~g"}}
    return spec(
        {
            "data": data(rows),
            "mark": {"type": "point", "size": 26, "strokeWidth": 1.1},
            "encoding": {
                "x": number("x", x_title, **log),
                "y": number("y", y_title, scale={"zero": True}),
                "color": colour(names, colours, "stroke"),
                "shape": name("kind", kinds, scale=shape, title=shape_title),
                "opacity": picked(0.55, 0.04),
            },
            "params": [PICK],
        }
    )


def figures(measured: Measurements) -> list[Figure]:
    """Figures whose points were run."""
    study = measured.part("study")
    made = [
        _scatter(study, "CUBIC", "figure-2", "drop ratio", lambda each: each.drops),
        *(
            _scatter(
                study, control, ident, "throughput (Mbit/s)", lambda each: each.throughput * 1e-6
            )
            for control, ident in (("Vegas", "figure-3"), ("CUBIC", "figure-4"))
        ),
        _candles(
            study,
            "Figure 5: packet transmission times",
            lambda **labels: _delays(study, **labels),
            lambda each: f"half of the packets take no more than {each}",
            _ms,
            "Over the transfer's packets of all replications.",
            "packet transmission time (s)",
        ),
        _candles(
            study,
            "Figure 6: time needed to transmit 10 MB",
            lambda **labels: transfer_times(study, **labels),
            lambda each: f"the median transfer takes {each}",
            lambda median: f"{median:.0f} s",
            f"Over {study.replications} replications.",
            "time to transmit 10 MB (s)",
        ),
    ]
    return [figure for figure in made if figure]


def _scatter(
    study: Measurements, control: str, ident: str, y_title: str, value: Callable[[Seconds], Floats]
) -> Figure | None:
    places = product(QUEUES, BUFFERS)
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
        scatter(points, COLOURS, SHAPES, "queuing delay (s)", y_title, "buffer (packets)"),
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
    for control, queue in product(CONTROLS, QUEUES):
        if not study.has(buffer=MAIN_BUFFER, control=control, queue=queue):
            continue
        found = times(buffer=MAIN_BUFFER, control=control, queue=queue)
        ends = (
            found.quantiles(SHARES)
            if isinstance(found, Histograms)
            else [quantile(found, share) for share in SHARES]
        )
        candles[queue, control] = Candle.of(ends, interval(found, "median"))
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
        candlesticks(candles, COLOURS, y_title, "congestion control"),
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
