"""The charts of a characterisation, as Vega-Lite specifications without colours of text or
paper. Small multiples: a panel a case, the same colour for the same discipline in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from aqmlab.metrics.rfc7928 import ellipse
from aqmlab.statistics import Floats, quartiles

WIDTH, HEIGHT = 184, 170
COLUMNS = 3
LETTER = 8
"""About the width of a letter of a label; labels that do not fit side by side are slanted."""
PALETTE = ("#2f6fbb", "#8a9099", "#d5762b", "#3c9a5f", "#a35bb5", "#b99a2b", "#3aa6a6", "#c8506e")
"""The discipline under test, drop-tail, then the others."""
SERIES_POINTS = 240

Colours = Mapping[str, str]
Points = Mapping[str, tuple[Floats, Floats]]
"""Discipline to x and y, one point a run (or of a curve)."""


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each discipline; the first is the one under test, the second drop-tail."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def tradeoff(
    panels: Mapping[str, Points], palette: Colours, x_title: str, y_title: str
) -> dict[str, Any]:
    """Delay and goodput of each run, the median as a circle, and the 1-sigma ellipse
    (RFC 7928, section 2.7)."""

    def draw(points: Points) -> alt.LayerChart | alt.FacetChart:
        dots, rings, outlines = [], [], []
        for name, (x, y) in points.items():
            if not x.size:
                continue
            shape = ellipse(x, y)
            dots += [
                {"name": name, "x": _short(a), "y": _short(b)} for a, b in zip(x, y, strict=True)
            ]
            rings.append({"name": name, "x": _short(shape.median[0]), "y": _short(shape.median[1])})
            outlines += [
                {"name": name, "x": _short(a), "y": _short(b), "order": i}
                for i, (a, b) in enumerate(zip(*shape.outline(), strict=True))
            ]
        x_axis = _axis(alt.X, x_title, zero=True)
        y_axis = _axis(alt.Y, y_title, zero=False)
        colour = _colour(palette)
        tip = [
            alt.Tooltip("name:N", title="queue"),
            alt.Tooltip("x:Q", title=x_title, format=".3~g"),
            alt.Tooltip("y:Q", title=y_title, format=".3~g"),
        ]
        line = alt.Chart(alt.InlineData(outlines)).mark_line(strokeWidth=1.4)
        return alt.layer(
            alt.Chart(alt.InlineData(dots))
            .mark_circle(size=14, opacity=0.45)
            .encode(x=x_axis, y=y_axis, color=colour, tooltip=tip),
            line.encode(x=x_axis, y=y_axis, color=colour, order="order:Q"),
            alt.Chart(alt.InlineData(rings))
            .mark_point(size=70, strokeWidth=2.2, filled=False, opacity=1)
            .encode(x=x_axis, y=y_axis, color=colour, tooltip=tip),
        )

    charts = [
        draw(points).properties(width=WIDTH, height=HEIGHT, title=_title(name))
        for name, points in panels.items()
    ]
    return _joined(charts, COLUMNS)


@dataclass(frozen=True)
class Panel:
    """A panel with lines."""

    points: Points
    x_title: str
    y_title: str
    dots: bool = False
    """Whether the points are drawn besides."""
    log_x: bool = False
    zero: bool = True
    """Whether the axes begin at zero."""
    share: bool = False
    """Whether y is a share, to 1."""


def curves(
    panels: Mapping[str, Panel], palette: Colours, *, columns: int = COLUMNS, width: int = WIDTH
) -> dict[str, Any]:
    """Lines, a panel each."""

    def draw(panel: Panel) -> alt.LayerChart | alt.FacetChart:
        rows = [
            {"name": name, "x": _short(a), "y": _short(b), "order": i}
            for name, (x, y) in panel.points.items()
            for i, (a, b) in enumerate(zip(*_thinned(x, y), strict=True))
        ]
        x_axis = _axis(alt.X, panel.x_title, zero=not panel.log_x and panel.zero)
        if panel.log_x:
            x_axis = x_axis.scale(type="log", nice=False).axis(tickCount=5)
        y_axis = _axis(alt.Y, panel.y_title, zero=panel.zero)
        if panel.share:
            y_axis = y_axis.axis(format="%", tickCount=4).scale(domain=[0, 1])
        base = alt.Chart(alt.InlineData(rows)).encode(
            x=x_axis,
            y=y_axis,
            color=_colour(palette, symbol="stroke"),
            order="order:Q",
            tooltip=[
                alt.Tooltip("name:N", title="queue"),
                alt.Tooltip("x:Q", title=panel.x_title, format=".3~g"),
                alt.Tooltip("y:Q", title=panel.y_title, format=".3~g"),
            ],
        )
        line = base.mark_line(strokeWidth=1.7)
        dots = [base.mark_circle(size=30, opacity=1)] if panel.dots else []
        return alt.layer(line, *dots)

    charts = [
        draw(panel).properties(width=width, height=HEIGHT, title=_title(name))
        for name, panel in panels.items()
    ]
    return _joined(charts, columns)


def ranges(
    panels: Mapping[str, Mapping[tuple[str, str], Floats]],
    palette: Colours,
    y_titles: Mapping[str, str],
    *,
    columns: int = COLUMNS,
    width: int = WIDTH,
    x_title: str | None = None,
) -> dict[str, Any]:
    """Medians over the runs as points, from the lower to the upper quartile as lines; a panel
    each, keys are (discipline, place on the x axis)."""

    def draw(name: str, cells: Mapping[tuple[str, str], Floats]) -> alt.LayerChart | alt.FacetChart:
        rows = []
        for (discipline, place), values in cells.items():
            if values.size:
                of = quartiles(values)
                rows.append(
                    {"name": discipline, "place": place, "median": _short(of.median),
                     "low": _short(of.low), "high": _short(of.high)}
                )  # fmt: skip
        places = list(dict.fromkeys(place for _, place in cells))
        fit = LETTER * sum(map(len, places)) < width
        axis = alt.Axis(labelAngle=0 if fit else -40, ticks=False)
        x = alt.X("place:N").title(x_title).sort(places).axis(axis)
        offset = alt.XOffset("name:N").sort(list(palette))
        y_title = y_titles[name]
        base = alt.Chart(alt.InlineData(rows)).encode(
            x=x,
            xOffset=offset,
            color=_colour(palette),
            tooltip=[
                alt.Tooltip("name:N", title="queue"),
                alt.Tooltip("median:Q", title=y_title, format=".3~g"),
                alt.Tooltip("low:Q", title="lower quartile", format=".3~g"),
                alt.Tooltip("high:Q", title="upper quartile", format=".3~g"),
            ],
        )
        y = alt.Y("median:Q").title(y_title).scale(zero=True)
        return alt.layer(
            base.mark_bar(opacity=0.28).encode(y=y),
            base.mark_rule(strokeWidth=1.6).encode(y=alt.Y("low:Q").title(y_title), y2="high:Q"),
            base.mark_point(filled=True, size=42, opacity=1).encode(y=y),
        )

    charts = [
        draw(name, cells).properties(width=width, height=HEIGHT, title=_title(name))
        for name, cells in panels.items()
    ]
    return _joined(charts, columns)


def _joined(charts: Sequence[Any], columns: int) -> dict[str, Any]:
    whole = alt.concat(*charts, columns=columns, spacing=18).resolve_scale(
        color="shared", x="independent", y="independent", xOffset="independent"
    )
    spec: dict[str, Any] = whole.to_dict()
    spec.pop("config", None)
    return spec


def _title(text: str) -> Any:
    return alt.TitleParams(text, anchor="start", fontSize=13, fontWeight="normal", offset=6)


def _axis(kind: Any, title: str, *, zero: bool) -> Any:
    name = "x" if kind is alt.X else "y"
    return kind(f"{name}:Q").title(title).scale(zero=zero).axis(tickCount=5)


def _colour(palette: Colours, *, symbol: str = "circle") -> alt.Color:
    scale = alt.Scale(domain=list(palette), range=list(palette.values()))
    width = 4 if symbol == "stroke" else 0
    legend = alt.Legend(
        title=None, symbolType=symbol, symbolStrokeWidth=width, symbolSize=90, columns=6
    )
    return alt.Color("name:N").scale(scale).legend(legend).sort(list(palette))


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most about `SERIES_POINTS` points, the first and last among them."""
    if x.size <= SERIES_POINTS:
        return x, y
    keep = np.unique(np.linspace(0, x.size - 1, SERIES_POINTS).round().astype(int))
    return x[keep], y[keep]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
