"""Charts of the paper: candlesticks, and points of two kinds on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from aqmlab.metrics.samples import Floats
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
from aqmlab.stats import Interval


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


def candles(
    cells: Mapping[tuple[str, str], Candle], colours: Colours, y_title: str, x_title: str
) -> Spec:
    """Candlesticks; keys are (candle's name, group on the x axis)."""
    names, groups = labels(cells)
    rows = [
        {"name": each, "group": group, **{key: round(v, 5) for key, v in asdict(of).items()}}
        for (each, group), of in cells.items()
    ]
    told = {
        "least": "least",
        "low": "2.5 %",
        "median": "median",
        "high": "97.5 %",
        "largest": "largest",
    }

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
                    *(tip(key, title, ".4~g") for key, title in told.items()),
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
