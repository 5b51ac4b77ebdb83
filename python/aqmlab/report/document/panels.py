"""Small multiples as Vega-Lite specifications: a panel a case, the same colour for the same
name in all, one grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aqmlab.metrics.samples import Floats, quartiles
from aqmlab.metrics.tradeoff import ellipse
from aqmlab.report.document.model import Estimate
from aqmlab.report.document.vega import Colours, Spec, colour, data, name, number, spec, tip

WIDTH, HEIGHT = 184, 170
COLUMNS = 3
LETTER = 8
"""About the width of a letter of a label; labels that do not fit side by side go to the y axis."""
PALETTE = ("#2f6fbb", "#8a9099", "#d5762b", "#3c9a5f", "#a35bb5", "#b99a2b", "#3aa6a6", "#c8506e")
"""The discipline under test, drop-tail, then the others."""
SERIES_POINTS = 240
APART = 25
"""Positive values whose largest is more than this many times the smallest go on a logarithmic
axis: on a linear one the small ones could not be told apart."""
ROW = 16
"""Height of a row for each name, in a panel with places on the y axis."""

EXTENT = {"minExtent": 38}
"""Room for the labels of a y axis, equal in all panels, so that plots are aligned."""

Points = Mapping[str, tuple[Floats, Floats]]
"""Discipline to x and y, one point a run (or of a curve)."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each discipline; the first is the one under test, the second drop-tail."""
    return {each: PALETTE[i % len(PALETTE)] for i, each in enumerate(names)}


def tradeoff(panels: Mapping[str, Points], palette: Colours, x_title: str, y_title: str) -> Spec:
    """Delay and goodput of each run, the mean as a circle, and the 1-sigma ellipse
    (RFC 7928, section 2.7)."""

    def draw(points: Points) -> Spec:
        dots, rings, outlines = [], [], []
        for each, (x, y) in points.items():
            if not x.size:
                continue
            shape = ellipse(x, y)
            dots += [
                {"name": each, "x": _short(a), "y": _short(b)} for a, b in zip(x, y, strict=True)
            ]
            rings.append({"name": each, "x": _short(shape.centre[0]), "y": _short(shape.centre[1])})
            outlines += [
                {"name": each, "x": _short(a), "y": _short(b), "order": i}
                for i, (a, b) in enumerate(zip(*shape.outline(), strict=True))
            ]
        tooltip = [tip("name", "queue"), tip("x", x_title, ".3~g"), tip("y", y_title, ".3~g")]
        ring = {"type": "point", "size": 70, "strokeWidth": 2.2, "filled": False, "opacity": 1}
        return {
            "encoding": {
                "x": _axis("x", x_title, zero=True),
                "y": _axis("y", y_title, zero=False),
                "color": _colour(palette),
            },
            "layer": [
                {
                    "data": data(dots),
                    "mark": {"type": "circle", "size": 14, "opacity": 0.45},
                    "encoding": {"tooltip": tooltip},
                },
                {
                    "data": data(outlines),
                    "mark": {"type": "line", "strokeWidth": 1.4},
                    "encoding": {"order": number("order")},
                },
                {"data": data(rings), "mark": ring, "encoding": {"tooltip": tooltip}},
            ],
        }

    return _joined({each: draw(points) for each, points in panels.items()}, COLUMNS, WIDTH)


@dataclass(frozen=True)
class Panel:
    """A panel with lines."""

    points: Points
    x_title: str
    y_title: str
    dots: bool = False
    """Whether the points are drawn as well."""
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
    panels: Mapping[str, Panel], palette: Colours, *, columns: int = COLUMNS, width: int = WIDTH
) -> Spec:
    """Lines, a panel each."""

    def draw(panel: Panel) -> Spec:
        rows = [
            {"name": each, "x": _short(a), "y": _short(b), "order": i}
            for each, (x, y) in panel.points.items()
            for i, (a, b) in enumerate(zip(*_thinned(x, y), strict=True))
        ]
        x_axis = _axis("x", panel.x_title, zero=not panel.log_x and panel.zero)
        if panel.log_x:
            x_axis |= {"scale": {"type": "log", "nice": False}}
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
        line = {"mark": {"type": "line", "strokeWidth": 1.7}}
        dots = [{"mark": {"type": "circle", "size": 30, "opacity": 1}}] if panel.dots else []
        return {
            "data": data(rows),
            "encoding": {
                "x": x_axis,
                "y": y_axis,
                "color": _colour(palette, "stroke"),
                "order": number("order"),
                "tooltip": [
                    tip("name", "queue"),
                    tip("x", panel.x_title, ".3~g"),
                    tip("y", panel.y_title, ".3~g"),
                ],
            },
            "layer": [line, *dots],
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
        reach.setdefault(group[each], []).extend(of[1:] for of in found if of)

    def draw(each: str, cells: Mapping[tuple[str, str], Floats | Estimate]) -> Spec:
        title, spans = y_titles[each], reach[group[each]]
        is_mean = any(isinstance(own, Estimate) for own in cells.values())
        words = MEAN_WORDS if is_mean else QUARTILE_WORDS
        axis = {"labelAngle": 0, "ticks": False} | ({"labelLimit": 150} if lying else {})
        log, scale = _is_wide(spans), _scale(spans, is_shared=bool(alike))
        ticks = {"tickCount": 4} | ({} if lying else EXTENT)
        value = number("value", title, scale=scale, axis=ticks)
        spread = number("low", title, scale=scale)
        bar = {"mark": {"type": "bar", "opacity": 0.28}, "encoding": {along: value}}
        dot = {"type": "point", "filled": True, "size": 42, "opacity": 1}
        own = list(dict.fromkeys(place for _, place in cells))
        panel: Spec = {
            "data": data(_range_rows(cells)),
            "encoding": {
                across: name("place", own, title=None if lying else x_title, axis=axis),
                step: name("name", list(palette)),
                "color": _colour(palette),
                "tooltip": [
                    tip("name", "queue"),
                    tip("place", x_title or "at"),
                    *(tip(key, word or title, ".3~g") for key, word in words.items()),
                ],
            },
            "layer": [
                # A bar starts at zero, which a logarithmic axis lacks.
                *([] if log else [bar]),
                {
                    "mark": {"type": "rule", "strokeWidth": 1.6},
                    "encoding": {along: spread, f"{along}2": {"field": "high"}},
                },
                {"mark": dot, "encoding": {along: value}},
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


def estimates(
    panels: Mapping[str, Means], palette: Colours, *, columns: int = COLUMNS, width: int = WIDTH
) -> Spec:
    """Means as points and their intervals as lines, one name below the other; a panel each."""

    def draw(panel: Means) -> Spec:
        rows, spans = [], []
        for each, of in panel.points.items():
            if np.isfinite(of.value):
                low, high = (of.value if end is None else end for end in (of.low, of.high))
                spans.append((low, high))
                rows.append({"name": each, "value": of.value, "low": low, "high": high})
        scale = _scale(spans, is_shared=False)
        if panel.domain is not None:
            scale = {"domain": list(panel.domain), "zero": False}
        dot = {"type": "point", "filled": True, "size": 60, "opacity": 1}
        numbers = (("value", "mean"), ("low", "from"), ("high", "to"))
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
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {
                        "x": number("low", panel.title, scale=scale, axis={"tickCount": 4}),
                        "x2": {"field": "high"},
                    },
                },
                {"mark": dot, "encoding": {"x": number("value", panel.title, scale=scale)}},
            ],
        }

    return _joined({each: draw(panel) for each, panel in panels.items()}, columns, width)


QUARTILE_WORDS = {"value": "", "low": "lower quartile", "high": "upper quartile"}
MEAN_WORDS = {"value": "", "low": "interval from", "high": "interval to"}
"""What the numbers of a point are; the first has the title of the axis."""


def _span(cell: Floats | Estimate) -> tuple[float, float, float] | None:
    """A value and the ends of its range: median and quartiles, or a mean and its interval."""
    if isinstance(cell, Estimate):
        low, high = (cell.value if end is None else end for end in (cell.low, cell.high))
        return cell.value, low, high
    if not cell.size:
        return None
    of = quartiles(cell)
    return of.median, of.low, of.high


def _range_rows(
    cells: Mapping[tuple[str, str], Floats | Estimate],
) -> list[dict[str, object]]:
    found = {key: _span(cell) for key, cell in cells.items()}
    return [
        {"name": discipline, "place": place}
        | {key: _short(value) for key, value in zip(("value", "low", "high"), of, strict=True)}
        for (discipline, place), of in found.items()
        if of
    ]


def _scale(spans: Sequence[tuple[float, float]], *, is_shared: bool) -> Spec:
    log = _is_wide(spans)
    scale: Spec = {"type": "log", "nice": False, "padding": 10} if log else {"zero": True}
    if is_shared and spans:
        low, high = min(low for low, _ in spans), max(high for _, high in spans)
        scale["domain"] = [_short(low if log else min(low, 0.0)), _short(high)]
        scale["nice"] = not log
    return scale


def _is_wide(spans: Sequence[tuple[float, float]]) -> bool:
    highs = [high for _, high in spans]
    return all(low > 0 for low, _ in spans) and bool(highs) and max(highs) > APART * min(highs)


def _joined(charts: Mapping[str, Spec], columns: int, width: int) -> Spec:
    """The panels on one grid, all of one width, their plots aligned."""
    own = [
        {"height": HEIGHT, "width": width, "title": _title(each)} | chart
        for each, chart in charts.items()
    ]
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


def _title(text: str) -> Spec:
    words = {"anchor": "start", "frame": "group", "fontSize": 13, "fontWeight": "normal"}
    return {"text": text, **words, "offset": 6}


def _axis(field: str, title: str, *, zero: bool) -> Spec:
    axis = {"tickCount": 5} | (EXTENT if field == "y" else {})
    return number(field, title, scale={"zero": zero}, axis=axis)


def _colour(palette: Colours, symbol: str = "circle") -> Spec:
    return colour(list(palette), palette, symbol, symbolSize=90, columns=6)


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most about `SERIES_POINTS` points, the first and last among them."""
    if x.size <= SERIES_POINTS:
        return x, y
    keep = np.unique(np.linspace(0, x.size - 1, SERIES_POINTS).round().astype(int))
    return x[keep], y[keep]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
