"""Small multiples as Vega-Lite specifications: a panel a case, the same colour for the same
name in all, one grid."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aqmlab.metrics.samples import Floats, quartiles
from aqmlab.numbers import is_none
from aqmlab.report.document.colours import nth
from aqmlab.report.document.model import Estimate
from aqmlab.report.document.vega import (
    Colours,
    Spec,
    colour,
    data,
    layer,
    name,
    number,
    rows_of,
    spec,
    tip,
)

WIDTH, HEIGHT = 184, 170
WIDE = 640
"""Width of the panels of a row together."""
COLUMNS = 3
LETTER = 8
"""About the width of a letter of a label; labels that do not fit side by side go to the y axis."""
TITLE_LETTER = 7
"""Width of a letter of a panel's title in a wide font, DejaVu Sans: longer titles are wrapped. The
picture's size is for Helvetica, which other systems replace."""
PALETTE = ("#2f6fbb", "#8a9099", "#d5762b", "#3c9a5f", "#a35bb5", "#b99a2b", "#3aa6a6", "#c8506e")
"""The discipline under test, drop-tail, then the others."""
SERIES_POINTS = 240
APART = 25
"""Positive values whose largest is more than this many times the smallest go on a logarithmic
axis: on a linear one the small ones could not be told apart."""
LEAST_SPAN = 0.9
"""The y axis of a trade-off begins at this share of its end or below: small differences look
small."""
WRAPPED = r"replace(datum.label, regexp('(.{1,32})(\\s+|$)', 'g'), '$1\n')"
LONG_LABELS = {"labelLimit": 220, "labelExpr": rf"split(trim({WRAPPED}), '\n')"}
"""Labels of places on the y axis: lines of at most 32 letters."""
SHORT = ".5g"
"""Format of the numbers that are drawn."""
ROW = 16
"""Height of a row for each name, in a panel with places on the y axis."""

DOT: Spec = {"filled": True, "size": 42, "opacity": 1}
"""Style of the point of a mean or median."""
CONTOUR_POINTS = 61
"""Points of the contour of a trade-off, whose last is the first."""
RING: Spec = {"size": 70, "strokeWidth": 2.2, "filled": False, "opacity": 1}
"""Style of the mean of a trade-off."""
SPACED = {"labelOverlap": True, "labelSeparation": 6}
EXTENT = {"minExtent": 38}
"""Room for the labels of a y axis, equal in all panels, so that plots are aligned."""

Points = Mapping[str, tuple[Floats, Floats]]
"""Discipline to x and y, one point a run (or of a curve)."""
Spans = Mapping[str, tuple[Floats, Floats]]
"""Discipline to the lower and upper ends of the intervals of its points, NaN without one."""
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
"""Shapes of points, which distinguish lines without colours."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each discipline; the first is the one under test, the second drop-tail."""
    return {each: nth(PALETTE, i) for i, each in enumerate(names)}


def tradeoff(
    panels: Mapping[str, Points],
    palette: Colours,
    x_title: str,
    y_title: str,
    *,
    width: int = WIDTH,
    legend: str | None = None,
) -> Spec:
    """Delay and goodput of each run, the mean as a circle, and the 1-sigma ellipse
    (RFC 7928, section 2.7)."""

    def draw(points: Points) -> Spec:
        shapes = {each: ellipse(x, y) for each, (x, y) in points.items() if x.size}
        outlines = {each: line for each, (_, line) in shapes.items()}
        dots, rings = (
            rows_of(each, x=SHORT, y=SHORT)
            for each in (points, {each: centre for each, (centre, _) in shapes.items()})
        )
        numbered = {each: (*line, range(CONTOUR_POINTS)) for each, line in outlines.items()}
        lines = rows_of(numbered, x=SHORT, y=SHORT, order="")
        tooltip = [
            tip("name", legend or "name"),
            tip("x", x_title, ".3~g"),
            tip("y", y_title, ".3~g"),
        ]
        reached = [b for each, (_, y) in outlines.items() for b in (*points[each][1], *y)]
        highest, lowest = max(reached, default=1.0), min(reached, default=0.0)
        y_axis = _axis("y", y_title, zero=False)
        y_axis["scale"]["domain"] = [
            _short(min(lowest, LEAST_SPAN * highest)),
            _short(1.02 * highest),
        ]
        return {
            "encoding": {
                "x": _axis("x", x_title, zero=True),
                "y": y_axis,
                "color": _colour(palette, title=legend),
            },
            "layer": [
                layer("circle", {"tooltip": tooltip}, rows=dots, size=14, opacity=0.45),
                layer("line", {"order": number("order")}, rows=lines, strokeWidth=1.4),
                layer("point", {"tooltip": tooltip}, rows=rings, **RING),
            ],
        }

    return _joined({each: draw(points) for each, points in panels.items()}, COLUMNS, width)


@dataclass(frozen=True)
class Panel:
    """A panel with lines."""

    points: Points
    x_title: str
    y_title: str
    dots: bool = False
    """Whether the points are drawn as well."""
    spans: Spans = field(default_factory=dict)
    ticks: Sequence[float] = ()
    """Labelled values of the x axis, if only these are labelled."""
    log_x: bool = False
    zero: bool = True
    """Whether the axes begin at zero."""
    share: bool = False
    """True if y is a share, at most 1."""
    tail: bool = False
    """True if y is the share above x, from 1 down to 0.001."""
    most: float | None = None
    """Where the y axis ends, if panels are to be compared."""


def curves(
    panels: Mapping[str, Panel],
    palette: Colours,
    *,
    columns: int = COLUMNS,
    width: int = WIDTH,
    legend: str | None = None,
) -> Spec:
    """Lines, a panel each; with points, intervals and shapes where a panel has them."""
    shape = {
        "domain": list(palette),
        "range": [SHAPES[i % len(SHAPES)] for i in range(len(palette))],
    }

    def draw(panel: Panel) -> Spec:
        rows = []
        for each, (x, y) in panel.points.items():
            drawn = _thinned(x, y, *panel.spans.get(each, ()))
            for i, (a, b, *ends) in enumerate(zip(*drawn, strict=True)):
                low, high = (
                    None if np.isnan(end) else _short(end) for end in ends or (np.nan, np.nan)
                )
                row = {"name": each, "x": _short(a), "y": _short(b), "order": i}
                rows.append(row | ({"low": low, "high": high} if panel.spans else {}))
        x_axis = _axis("x", panel.x_title, zero=not panel.log_x and panel.zero)
        if panel.log_x:
            x_axis |= {"scale": {"type": "log", "nice": False, "padding": 8}}
        if panel.ticks:
            x_axis["axis"] = {"values": list(panel.ticks), "labelOverlap": "greedy"}
        y_axis = _axis("y", panel.y_title, zero=panel.zero)
        if panel.most is not None and panel.zero:
            y_axis |= {"scale": {"domain": [0, panel.most], "nice": True}}
        if panel.share:
            y_axis |= {
                "axis": {"format": "%", "tickCount": 4, **EXTENT},
                "scale": {"domain": [0, 1]},
            }
        if panel.tail:
            y_axis |= {
                "axis": {"format": ".1~%", "values": [1, 0.1, 0.01, 0.001], **EXTENT},
                "scale": {"type": "log", "domain": [0.001, 1]},
            }
        layers = [layer("line", strokeWidth=1.7)]
        if panel.spans:
            tips = [tip("low", "interval from", ".3~g"), tip("high", "to", ".3~g")]
            ends_of = {"y": number("low", panel.y_title), "y2": {"field": "high"}, "tooltip": tips}
            layers.append(layer("rule", ends_of, kept="isValid(datum.low)", strokeWidth=1.4))
        key = _colour(palette, "stroke", legend)
        if panel.dots:
            if key["legend"]:
                key["legend"]["symbolStrokeWidth"] = 0
                del key["legend"]["symbolType"]
            own = name("name", list(palette), scale=shape, legend=key["legend"])
            layers.append(layer("point", {"shape": own}, **DOT))
        return {
            "data": data(rows),
            "encoding": {
                "x": x_axis,
                "y": y_axis,
                "color": key,
                "order": number("order"),
                "tooltip": [
                    tip("name", legend or "name"),
                    tip("x", panel.x_title, ".3~g"),
                    tip("y", panel.y_title, ".3~g"),
                ],
            },
            "layer": layers,
        }

    return _joined({each: draw(panel) for each, panel in panels.items()}, columns, width)


def ranges(
    panels: Mapping[str, Mapping[tuple[str, str], Floats | Estimate]],
    palette: Colours,
    y_titles: Mapping[str, str],
    *,
    columns: int = COLUMNS,
    width: int = WIDTH,
    x_title: str | None = None,
    alike: Mapping[str, str] | None = None,
    legend: str | None = None,
) -> Spec:
    """Medians over the runs as points, from the lower to the upper quartile as lines, or means
    with their intervals; a panel each, keys are (discipline, place). Panels that are `alike`
    (panel to measure) have one scale.

    Places stand on the x axis, or on the y axis in all panels where they are too long for that.
    Where the largest median is many times the smallest, the values are on a logarithmic axis.
    """
    places = list(dict.fromkeys(place for cells in panels.values() for _, place in cells))
    lying = LETTER * sum(map(len, places)) >= width
    across, along, step = ("y", "x", "yOffset") if lying else ("x", "y", "xOffset")

    group = {each: (alike or {}).get(each, each) for each in panels}
    reach: dict[str, list[tuple[float, float]]] = {}
    for each, cells in panels.items():
        found = (_span(own) for own in cells.values())
        reach.setdefault(group[each], []).extend((of["low"], of["high"]) for of in found if of)

    def draw(each: str, cells: Mapping[tuple[str, str], Floats | Estimate]) -> Spec:
        title, spans = y_titles[each], reach[group[each]]
        is_mean = any(isinstance(own, Estimate) for own in cells.values())
        words = MEAN_WORDS if is_mean else QUARTILE_WORDS
        axis = {"labelAngle": 0, "ticks": False} | (LONG_LABELS if lying else {})
        log, scale = _is_wide(spans), _scale(spans, is_shared=bool(alike))
        ticks = (_ticks(spans) if log else {"tickCount": 4}) | ({} if lying else EXTENT)
        value = number("value", title, scale=scale, axis=ticks)
        spread = number("low", title, scale=scale)
        own = list(dict.fromkeys(place for _, place in cells))
        if own == [""]:  # one place, without a name
            axis["labels"] = False
        panel: Spec = {
            "data": data(_range_rows(cells)),
            "encoding": {
                across: name("place", own, title=None if lying else x_title, axis=axis),
                step: name("name", list(palette)),
                "color": _colour(palette, title=legend),
                "tooltip": [
                    tip("name", legend or "name"),
                    tip("place", x_title or "at"),
                    *(tip(key, word or title, ".3~g") for key, word in words.items()),
                ],
            },
            "layer": [
                # A bar starts at zero, which a logarithmic axis lacks.
                *([] if log else [layer("bar", {along: value}, opacity=0.28)]),
                layer("rule", {along: spread, f"{along}2": {"field": "high"}}, strokeWidth=1.6),
                layer("point", {along: value}, **DOT),
            ],
        }
        if lying:
            panel["height"] = max(60, ROW * len(own) * max(2, len(palette)))
        return panel

    return _joined({each: draw(each, cells) for each, cells in panels.items()}, columns, width)


@dataclass(frozen=True)
class Means:
    """A panel with a mean and its interval for each name."""

    title: str
    """Title of the axis, with its unit."""
    points: Mapping[str, Estimate]
    domain: tuple[float, float] | None = None
    """Ends of the axis; `None`: from zero."""


def estimates(panels: Mapping[str, Means], palette: Colours) -> Spec:
    """Means as points and their intervals as lines, one name below the other; a panel each."""

    def draw(panel: Means) -> Spec:
        spans = {each: _span(of) for each, of in panel.points.items() if np.isfinite(of.value)}
        rows = [{"name": each} | (of or {}) for each, of in spans.items()]
        scale = _scale([(of["low"], of["high"]) for of in spans.values() if of], is_shared=False)
        if panel.domain is not None:
            scale = {"domain": list(panel.domain), "zero": False}
        numbers = (("value", "mean"), ("low", "from"), ("high", "to"))
        ends = number("low", panel.title, scale=scale, axis={"tickCount": 4})
        mean = {"x": number("value", panel.title, scale=scale)}
        return {
            "data": data(rows),
            "height": ROW * 1.5 * len(palette),
            "encoding": {
                "y": name("name", list(palette), title=None, axis={"ticks": False}),
                "color": _colour(palette) | {"legend": None},
                "tooltip": [
                    tip("name", "queue"),
                    *(tip(key, title, ".3~g") for key, title in numbers),
                ],
            },
            "layer": [
                layer("rule", {"x": ends, "x2": {"field": "high"}}, strokeWidth=2),
                layer("point", mean, **DOT | {"size": 60}),
            ],
        }

    return _joined({each: draw(panel) for each, panel in panels.items()}, COLUMNS, WIDTH)


QUARTILE_WORDS = {"value": "", "low": "lower quartile", "high": "upper quartile"}
MEAN_WORDS = {"value": "", "low": "interval from", "high": "interval to"}
"""What the numbers of a point are; the first has the title of the axis."""


def _span(cell: Floats | Estimate) -> dict[str, float] | None:
    """A `value` and the ends of its range: median and quartiles, or a mean and its interval."""
    if isinstance(cell, Estimate):
        if is_none(cell.value):
            return None
        low, high = (cell.value if end is None else end for end in (cell.low, cell.high))
        return {"value": cell.value, "low": low, "high": high}
    if not cell.size:
        return None
    of = quartiles(cell)
    return {"value": of.median, "low": of.low, "high": of.high}


def _range_rows(
    cells: Mapping[tuple[str, str], Floats | Estimate],
) -> list[dict[str, object]]:
    return [
        {"name": discipline, "place": place} | {key: _short(value) for key, value in of.items()}
        for (discipline, place), cell in cells.items()
        if (of := _span(cell))
    ]


def _scale(spans: Sequence[tuple[float, float]], *, is_shared: bool) -> Spec:
    log = _is_wide(spans)
    scale: Spec = {"type": "log", "nice": False, "padding": 10} if log else {"zero": True}
    if is_shared and spans:
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        scale["domain"] = [_short(low if log else min(low, 0.0)), _short(high)]
        scale["nice"] = not log
    return scale


def _ticks(spans: Sequence[tuple[float, float]]) -> Spec:
    """Ticks of a logarithmic axis at 1, 2 and 5 times the powers of ten between these ends."""
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))))
    steps = (_short(step * 10.0**power) for power in powers for step in (1, 2, 5))
    return {"values": [each for each in steps if low <= each <= high], "labelOverlap": "greedy"}


def _is_wide(spans: Sequence[tuple[float, float]]) -> bool:
    highs = [high for _, high in spans]
    return all(low > 0 for low, _ in spans) and bool(highs) and max(highs) > APART * min(highs)


def _joined(charts: Mapping[str, Spec], columns: int, width: int) -> Spec:
    """The panels on one grid, all of one width, their plots aligned."""
    title = {"anchor": "start", "frame": "group", "fontSize": 13, "fontWeight": "normal"}
    own = []
    for each, chart in charts.items():
        lines = textwrap.wrap(each, width // TITLE_LETTER)
        text = lines if len(lines) > 1 else each
        own.append(
            {"height": HEIGHT, "width": width, "title": {"text": text, **title, "offset": 6}}
            | chart
        )
    return spec(
        {
            "concat": own,
            "columns": columns,
            "align": "all",
            "spacing": 18,
            "resolve": {
                "scale": {
                    "color": "shared",
                    "x": "independent",
                    "y": "independent",
                    "xOffset": "independent",
                    "yOffset": "independent",
                }
            },
        }
    )


def grid(
    cells: Mapping[str, Sequence[tuple[str, str, float]]],
    x: tuple[str, Sequence[str]],
    y: tuple[str, Sequence[str]],
    title: str,
    middle: float | None = None,
) -> Spec:
    """Coloured cells with their numbers; (x, y, value) each, axes as (title, labels in order). The
    colours part at `middle` if there is one."""
    values = [value for panel in cells.values() for *_, value in panel]
    scale: Spec = {"scheme": "blues"}
    if middle is not None:
        reach = max((abs(value - middle) for value in values), default=1.0)
        scale = {"scheme": "purpleorange", "domain": [middle - reach, middle + reach]}
    low, high = min(values, default=0.0), max(values, default=1.0)
    dark = f"datum.value > {low + 0.6 * (high - low):.6g}"
    if middle is not None:
        dark = f"abs(datum.value - {middle:.6g}) > {0.6 * reach:.6g}"
    key = {"title": title, "orient": "right", "gradientLength": HEIGHT, "direction": "vertical"}

    def draw(rows: Sequence[tuple[str, str, float]]) -> Spec:
        of = [{"x": a, "y": b, "value": _short(value)} for a, b, value in rows]
        white = {"condition": {"test": dark, "value": "white"}, "value": "#222"}
        return {
            "data": data(of),
            "height": 40 * len(y[1]),
            "encoding": {
                "x": name("x", x[1], title=x[0], axis={"labelAngle": 0, "ticks": False}),
                "y": name("y", y[1], title=y[0], axis={"ticks": False}),
            },
            "layer": [
                layer("rect", {"color": number("value", scale=scale, legend=key)}),
                layer(
                    "text", {"text": number("value", format=".3~g"), "color": white}, fontSize=11
                ),
            ],
        }

    width = WIDE // max(1, min(len(cells), 2))
    return _joined({each: draw(rows) for each, rows in cells.items()}, 2, width)


def heatmap(counts: Floats, x: Floats, y: Floats, x_title: str, y_title: str) -> Spec:
    """Draws the number of observations in each cell between the edges x and y, on a logarithmic
    scale."""
    rows = [
        {"x": _short(x[i]), "x2": _short(x[i + 1]), "y": _short(y[j]), "y2": _short(y[j + 1]),
         "packets": int(counts[i, j])}
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]  # fmt: skip
    scale = {"type": "log", "scheme": "blues", "domain": [0.5, float(counts.max())]}
    key = {"title": "packets", "orient": "right", "direction": "vertical"}
    return spec(
        {
            "data": data(rows),
            "mark": {"type": "rect"},
            "encoding": {
                "x": number("x", x_title, scale={"nice": False}),
                "x2": {"field": "x2"},
                "y": number("y", y_title, scale={"zero": True}),
                "y2": {"field": "y2"},
                "color": number("packets", scale=scale, legend=key),
                "tooltip": [tip("packets", "packets", ",d")],
            },
        }
    )


def _axis(field: str, title: str, *, zero: bool) -> Spec:
    axis = {"tickCount": 5} | (EXTENT if field == "y" else SPACED)
    return number(field, title, scale={"zero": zero}, axis=axis)


def _colour(palette: Colours, symbol: str = "circle", title: str | None = None) -> Spec:
    key = colour(list(palette), palette, symbol, symbolSize=90, columns=6, title=title)
    return key if len(palette) > 1 else key | {"legend": None}


def _thinned(*columns: Floats) -> tuple[Floats, ...]:
    """At most about `SERIES_POINTS` points of each column, the first and last among them."""
    size = columns[0].size
    if size <= SERIES_POINTS:
        return columns
    keep = np.unique(np.linspace(0, size - 1, SERIES_POINTS).round().astype(int))
    return tuple(column[keep] for column in columns)


def _short(value: float) -> float:
    return float(f"{value:{SHORT}}")


def ellipse(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Mean and 1-sigma contour of the most likely normal distribution of points (x, y), one a run;
    shapes (2, 1) and (2, points of the contour).

    Most likely: mean and covariance with the divisor n (RFC 7928, section 2.7, after Winstein
    2014). On the contour the Mahalanobis distance is 1; inside lies 1 - exp(-1/2) of the
    distribution.
    """
    data = np.array([x, y], dtype=float)
    centre = data.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.cov(data, bias=True))
    small, large = np.sqrt(np.maximum(values, 0.0))
    cos, sin = vectors[:, 1]
    turn = np.linspace(0, 2 * np.pi, CONTOUR_POINTS)
    along, across = large * np.cos(turn), small * np.sin(turn)
    return centre, np.add(centre, [along * cos - across * sin, along * sin + across * cos])
