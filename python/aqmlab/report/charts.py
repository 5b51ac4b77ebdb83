"""The charts of reports, as Vega-Lite specifications without colours of text or paper.

Every chart has axis titles with units, the same colour for the same thing in all
charts of a report, and tooltips with the numbers. `light()` adds what a picture
on white paper needs; the HTML report adds its own, light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import altair as alt
import numpy as np

from aqmlab.statistics import Floats, Interval, Quartiles

WIDTH = 760
HEIGHT = 340
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CDF_POINTS = 240
"""A line of a distribution is drawn with at most about this many points."""

Colours = Mapping[str, str]


def cdf(
    curves: Mapping[str, tuple[Floats, Floats]],
    colours: Colours,
    x_title: str,
    *,
    dashed: Sequence[str] = (),
    marks: Mapping[str, tuple[Floats, Floats]] | None = None,
) -> dict[str, Any]:
    """Cumulative distributions: name to (ascending values, share not above each).

    `dashed` are the names drawn with dashes; `marks` are drawn as points, of the
    colour of the curve of the same name (another source's values of the same thing).
    """
    names = list(curves)
    rows = [
        {"name": name, "x": round(float(x), 3), "share": round(float(y), 4)}
        for name, (values, shares) in curves.items()
        for x, y in _thinned(values, shares)
    ]
    pick = alt.selection_point(fields=["name"], bind="legend", name="pick")
    x = alt.X("x:Q").title(x_title).scale(domainMin=0).axis(tickCount=12)
    y = alt.Y("share:Q").title("share of packets").axis(format="%").scale(domain=[0, 1])
    colour = _colour(names, colours, symbol="stroke")
    if len(names) == 1:
        colour = colour.legend(None)
    lines = (
        alt.Chart(alt.InlineData(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=colour,
            strokeDash=alt.condition(
                alt.FieldOneOfPredicate("name", list(dashed)), alt.value([5, 3]), alt.value([1, 0])
            ),
            opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("name:N", title="queue"),
                alt.Tooltip("x:Q", title=x_title),
                alt.Tooltip("share:Q", format=".1%", title="share of packets"),
            ],
        )
        .add_params(pick)
    )
    if not marks:
        return _spec(lines)
    points = [
        {"name": name, "x": round(float(a), 3), "share": float(b)}
        for name, (values, shares) in marks.items()
        for a, b in zip(values, shares, strict=True)
    ]
    dots = (
        alt.Chart(alt.InlineData(points))
        .mark_point(size=34, filled=False, strokeWidth=1.6)
        .encode(
            x=x,
            y=y,
            color=colour,
            opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12)),
        )
    )
    return _spec(alt.layer(lines, dots))


def bars(
    cells: Mapping[tuple[str, str], Quartiles],
    colours: Colours,
    y_title: str,
    x_title: str,
    *,
    digits: int = 0,
    zero: bool = True,
) -> dict[str, Any]:
    """Medians as bars and quartiles as whiskers; keys are (bar's name, group on the x axis).

    Without `zero`, medians are points (a bar that does not begin at zero misleads).
    """
    names = list(dict.fromkeys(name for name, _ in cells))
    groups = list(dict.fromkeys(group for _, group in cells))
    rows = [
        {
            "name": name,
            "group": group,
            "low": round(each.low, 5),
            "median": round(each.median, 5),
            "high": round(each.high, 5),
        }
        for (name, group), each in cells.items()
    ]
    pick = alt.selection_point(fields=["name"], bind="legend", name="pick")
    faded = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
    number = f".{digits}f"
    x = alt.X("group:N").title(x_title).sort(groups).axis(labelAngle=0, ticks=False)
    offset = alt.XOffset("name:N").sort(names).scale(paddingInner=0.12)
    y_scale = alt.Scale(zero=zero)
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=x.scale(paddingInner=0.16),
        xOffset=offset,
        opacity=faded,
        tooltip=[
            alt.Tooltip("name:N", title="queue"),
            alt.Tooltip("group:N", title=x_title),
            alt.Tooltip("median:Q", format=number, title="median"),
            alt.Tooltip("low:Q", format=number, title="lower quartile"),
            alt.Tooltip("high:Q", format=number, title="upper quartile"),
        ],
    )
    median = alt.Y("median:Q").title(y_title).scale(y_scale)
    if zero:
        body = base.mark_bar().encode(y=median, color=_colour(names, colours))
        whisker = base.mark_rule(strokeWidth=1.4, color="#777")
    else:
        body = base.mark_point(filled=True, size=50, opacity=1).encode(
            y=median, color=_colour(names, colours)
        )
        whisker = base.mark_rule(strokeWidth=1.6).encode(color=_colour(names, colours))
    whisker = whisker.encode(y=alt.Y("low:Q").scale(y_scale).title(y_title), y2="high:Q")
    layers = [body, whisker] if zero else [whisker, body]
    return _spec(alt.layer(*layers).add_params(pick))


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
    def of(quantiles: Sequence[float], median: Interval) -> Candle:
        """From its five quantiles, ascending, and the interval of the median."""
        least, low, middle, high, largest = quantiles
        return Candle(least, low, middle, high, largest, median.low, median.high)


def candles(
    cells: Mapping[tuple[str, str], Candle], colours: Colours, y_title: str, x_title: str
) -> dict[str, Any]:
    """Candlesticks; keys are (candle's name, group on the x axis)."""
    names = list(dict.fromkeys(name for name, _ in cells))
    groups = list(dict.fromkeys(group for _, group in cells))
    rows = [
        {"name": name, "group": group, **{key: round(v, 5) for key, v in asdict(each).items()}}
        for (name, group), each in cells.items()
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("group:N").title(x_title).sort(groups).axis(labelAngle=0, ticks=False),
        xOffset=alt.XOffset("name:N").sort(names).scale(padding=0.4),
        color=_colour(names, colours),
        tooltip=[
            alt.Tooltip("name:N", title="queue"),
            alt.Tooltip("group:N", title=x_title),
            *(
                alt.Tooltip(f"{key}:Q", format=".4~g", title=title)
                for key, title in (
                    ("least", "least"),
                    ("low", "2.5 %"),
                    ("median", "median"),
                    ("high", "97.5 %"),
                    ("largest", "largest"),
                )
            ),
        ],
    )
    y = alt.Y("least:Q").title(y_title).scale(zero=True)
    line = base.mark_rule(strokeWidth=1.4).encode(y=y, y2="largest:Q")
    box = base.mark_bar(size=16, opacity=0.45).encode(y=alt.Y("low:Q").title(y_title), y2="high:Q")
    sure = base.mark_bar(size=16).encode(y=alt.Y("median_low:Q").title(y_title), y2="median_high:Q")
    tick = base.mark_tick(size=24, thickness=2.5).encode(y=alt.Y("median:Q").title(y_title))
    return _spec(alt.layer(line, box, sure, tick))


def scatter(
    points: Mapping[tuple[str, str], tuple[Floats, Floats]],
    colours: Colours,
    shapes: Mapping[str, str],
    x_title: str,
    y_title: str,
    shape_title: str,
) -> dict[str, Any]:
    """Points on a logarithmic x axis; keys are (what the colour says, what the shape says)."""
    names = list(dict.fromkeys(name for name, _ in points))
    kinds = list(dict.fromkeys(kind for _, kind in points))
    rows = [
        {"name": name, "kind": kind, "x": float(f"{x:.4g}"), "y": round(float(y), 4)}
        for (name, kind), (xs, ys) in points.items()
        for x, y in zip(xs, ys, strict=True)
    ]
    pick = alt.selection_point(fields=["name"], bind="legend", name="pick")
    shape = alt.Scale(domain=kinds, range=[shapes[kind] for kind in kinds])
    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_point(size=26, strokeWidth=1.1)
        .encode(
            x=alt.X("x:Q").title(x_title).scale(type="log").axis(tickCount=6, format="~g"),
            y=alt.Y("y:Q").title(y_title).scale(zero=True),
            color=_colour(names, colours, symbol="stroke"),
            shape=alt.Shape("kind:N").scale(shape).sort(kinds).title(shape_title),
            opacity=alt.when(pick).then(alt.value(0.55)).otherwise(alt.value(0.04)),
        )
        .add_params(pick)
    )
    return _spec(chart)


def lines(
    points: Mapping[tuple[str, str], float],
    colours: Colours,
    y_title: str,
    x_title: str,
    *,
    dashed: Sequence[str] = (),
    emphasised: str | None = None,
) -> dict[str, Any]:
    """Lines with points over an ordered x axis; keys are (line's name, place on the axis).

    The one called `emphasised` is drawn as diamonds alone: what the others aim at.
    """
    names = list(dict.fromkeys(name for name, _ in points))
    places = list(dict.fromkeys(place for _, place in points))
    rows = [
        {"name": name, "place": place, "value": round(value, 3)}
        for (name, place), value in points.items()
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("place:N").title(x_title).sort(places).axis(labelAngle=0),
        y=alt.Y("value:Q").title(y_title).scale(zero=True),
        color=_colour(names, colours),
        tooltip=[
            alt.Tooltip("name:N", title="setting"),
            alt.Tooltip("place:N", title=x_title),
            alt.Tooltip("value:Q", format=".0f", title=y_title),
        ],
    )
    is_emphasised = alt.FieldOneOfPredicate("name", [emphasised or ""])
    others = base.transform_filter(
        alt.FieldOneOfPredicate("name", [each for each in names if each != emphasised])
    )
    line = others.mark_line(strokeWidth=2).encode(
        strokeDash=alt.condition(
            alt.FieldOneOfPredicate("name", list(dashed)), alt.value([5, 3]), alt.value([1, 0])
        ),
    )
    dots = others.mark_point(filled=True, size=45, opacity=1)
    diamonds = base.transform_filter(is_emphasised).mark_point(
        shape="diamond", size=260, strokeWidth=2.5, opacity=1
    )
    return _spec(alt.layer(line, dots, diamonds))


def series(
    curves: Mapping[str, tuple[Floats, Floats]],
    colours: Colours,
    x_title: str,
    y_title: str,
    *,
    log: bool = False,
) -> dict[str, Any]:
    """Something over time: name to (times, values); the values logarithmically with `log`."""
    rows = [
        {"name": name, "x": round(float(x), 4), "y": round(float(y), 3)}
        for name, (times, values) in curves.items()
        for x, y in zip(times, values, strict=True)
    ]
    pick = alt.selection_point(fields=["name"], bind="legend", name="pick")
    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("x:Q").title(x_title).scale(nice=False),
            y=alt.Y("y:Q").title(y_title).scale(type="log" if log else "linear"),
            color=_colour(list(curves), colours, symbol="stroke"),
            opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12)),
        )
        .add_params(pick)
    )
    return _spec(chart)


def panels(
    parts: Sequence[tuple[str, Mapping[str, tuple[Floats, Floats]], Colours]],
    x_title: str,
    *,
    x_domain: tuple[float, float],
    height: int = 130,
    shaded: Sequence[str] = (),
) -> dict[str, Any]:
    """Curves over the same time, one panel below the other: (y title, name to (times,
    values), colours) each. A panel with one curve, or with the colours of the one above it, needs
    no legend. What is `shaded` is an area."""
    drawn = []
    for place, (y_title, curves, colours) in enumerate(parts):
        names = list(curves)
        rows = [
            {"name": name, "x": round(float(x), 4), "y": float(f"{y:.4g}")}
            for name, (times, values) in curves.items()
            for x, y in zip(times, values, strict=True)
        ]
        thin = [name for name in names if name not in shaded]
        colour = _colour(names, colours, symbol="stroke")
        if len(names) == 1 or (place and colours == parts[place - 1][2]):
            colour = colour.legend(None)
        else:
            colour = colour.legend(
                orient="top", offset=4, padding=0, title=None, symbolStrokeWidth=4
            )
        title = x_title if place == len(parts) - 1 else None
        x = alt.X("x:Q").title(title).scale(nice=False, domain=list(x_domain))
        base = alt.Chart(alt.InlineData(rows)).encode(
            x=x, y=alt.Y("y:Q").title(y_title).scale(zero=True), color=colour
        )
        lines = base.transform_filter(alt.FieldOneOfPredicate("name", thin)) if shaded else base
        chart = lines.mark_line(strokeWidth=1.8)
        if shaded:
            filled = base.transform_filter(alt.FieldOneOfPredicate("name", list(shaded)))
            chart = alt.layer(filled.mark_area(interpolate="step-before", opacity=0.5), chart)
        drawn.append(chart.properties(width=WIDTH - 120, height=height))
    return _spec(alt.vconcat(*drawn, spacing=12).resolve_scale(color="independent"))


def light(
    spec: Mapping[str, Any], title: str, message: str, *, width: int = WIDTH
) -> dict[str, Any]:
    """The chart for white paper, with its title and message inside."""
    text, grid = "#333", "#e3e3e3"
    config = {
        "background": "white",
        "font": "Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": text, "titleColor": text, "gridColor": grid, "domainColor": "#999",
            "tickColor": "#999", "titleFontWeight": "normal", "labelFontSize": 12,
            "titleFontSize": 13,
        },
        "legend": {
            "labelColor": text, "labelFontSize": 12, "labelLimit": 300, "orient": "bottom",
            "columns": 3, "direction": "horizontal", "symbolOpacity": 1,
        },
        "title": {
            "anchor": "start", "fontSize": 16, "subtitleFontSize": 12.5, "subtitleColor": "#555",
            "subtitlePadding": 5, "offset": 12, "color": "#111",
        },
    }  # fmt: skip
    heading = {"text": title, "subtitle": _wrapped(message, 108)}
    size = {} if "vconcat" in spec else {"width": width, "height": HEIGHT}
    return {
        **spec,
        **size,
        "title": heading,
        "config": config,
        "padding": 14,
    }


def _colour(names: Sequence[str], colours: Colours, *, symbol: str = "square") -> alt.Color:
    scale = alt.Scale(domain=list(names), range=[colours[name] for name in names])
    legend = alt.Legend(
        title=None, symbolType=symbol, symbolStrokeWidth=4 if symbol == "stroke" else 0
    )
    return alt.Color("name:N").scale(scale).legend(legend).sort(list(names))


def _thinned(values: Floats, shares: Floats) -> list[tuple[float, float]]:
    """Points of a distribution: all, or those where it moves enough to be seen."""
    points = [(0.0, 0.0)]
    if len(values) > CDF_POINTS:
        steps = np.floor(shares * CDF_POINTS)
        keep = np.diff(steps, prepend=-1) > 0
        keep[-1] = True
        values, shares = values[keep], shares[keep]
    points += [(float(x), float(y)) for x, y in zip(values, shares, strict=True)]
    return points


def _spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    spec.pop("width", None)
    spec.pop("height", None)
    return spec


def _wrapped(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)
