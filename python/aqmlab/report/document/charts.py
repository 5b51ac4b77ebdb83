"""Charts as Vega-Lite specifications, without colours of text or paper.

Every chart has axis titles with units, the same colour for the same thing in all
charts of a report, and tooltips with the numbers. `vega.light()` adds what a picture
on white paper needs; the HTML report adds its own, light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aqmlab.metrics.samples import Floats, Quartiles
from aqmlab.report.document.vega import (
    PICK,
    WIDTH,
    Colours,
    Spec,
    among,
    colour,
    dashes,
    data,
    layer,
    name,
    number,
    picked,
    rows_of,
    spec,
    tip,
)

CDF_POINTS = 240
"""A line of a distribution is drawn with at most about this many points."""


FLAT: Spec = {"domain": [0, 1]}
"""Scale of an axis whose values are all 0: on one of its own 0 would be in the middle, and the only
label."""


def cdf(
    curves: Mapping[str, tuple[Floats, Floats]],
    colours: Colours,
    x_title: str,
    *,
    dashed: Sequence[str] = (),
    marks: Mapping[str, tuple[Floats, Floats]] | None = None,
    legend: str | None = None,
) -> Spec:
    """Cumulative distributions: name to (ascending values, share not above each).

    `dashed` are the names drawn with dashes; `marks` are drawn as points, of the
    colour of the curve of the same name (another source's values of the same thing).
    """
    names = list(curves)
    thinned = {each: _thinned(*curve) for each, curve in curves.items()}
    rows = rows_of(thinned, x=".3f", share=".4f")
    key = colour(names, colours, "stroke", dashed, title=legend, columns=6)
    if len(names) == 1:
        key["legend"] = None
    scale: Spec = {"domainMin": 0} if marks or any(row["x"] for row in rows) else FLAT
    common = {
        "x": number("x", x_title, scale=scale, axis={"tickCount": 12}),
        "y": number("share", "share of packets", axis={"format": "%"}, scale={"domain": [0, 1]}),
        "color": key,
        "opacity": picked(),
    }
    tooltip = [tip("name", legend or "queue"), tip("x", x_title, ".4~g")]
    shares = tip("share", "share of packets", ".1%")
    own = {"strokeDash": dashes(dashed), "tooltip": [*tooltip, shares]}
    line = layer("line", common | own, rows=rows, interpolate="step-after", strokeWidth=2)
    line["params"] = [PICK]
    if not marks:
        return spec(line)
    points = rows_of(marks, x=".3f", share="")
    style: Spec = {"size": 34, "filled": False, "strokeWidth": 1.6}
    return spec({"layer": [line, layer("point", common, rows=points, **style)]})


def bars(
    cells: Mapping[tuple[str, str], Quartiles],
    colours: Colours,
    y_title: str,
    x_title: str,
    *,
    digits: int = 0,
    zero: bool = True,
) -> Spec:
    """Medians as bars and quartiles as whiskers; keys are (bar's name, group on the x axis).

    Without `zero`, medians are points (a bar that does not begin at zero misleads).
    """
    names, groups = labels(cells)
    rows = [
        {
            "name": each,
            "group": group,
            "low": round(of.low, 5),
            "median": round(of.median, 5),
            "high": round(of.high, 5),
        }
        for (each, group), of in cells.items()
    ]
    form = f".{digits}f"
    median = number("median", y_title, scale={"zero": zero})
    spread = {"y": number("low", y_title, scale={"zero": zero}), "y2": {"field": "high"}}
    key = {"color": colour(names, colours)}
    if zero:
        whisker = layer("rule", spread, strokeWidth=1.4, color="#777")
        layers = [layer("bar", {"y": median, **key}), whisker]
    else:
        point = layer("point", {"y": median, **key}, filled=True, size=50, opacity=1)
        layers = [layer("rule", spread | key, strokeWidth=1.6), point]
    layers[0]["params"] = [PICK]
    return spec(
        {
            "data": data(rows),
            "encoding": {
                "x": place("group", groups, x_title) | {"scale": {"paddingInner": 0.16}},
                "xOffset": name("name", names, scale={"paddingInner": 0.12}),
                "opacity": picked(),
                "tooltip": [
                    tip("name", "queue"),
                    tip("group", x_title),
                    tip("median", "median", form),
                    tip("low", "lower quartile", form),
                    tip("high", "upper quartile", form),
                ],
            },
            "layer": layers,
        }
    )


def lines(
    points: Mapping[tuple[str, str], float],
    colours: Colours,
    y_title: str,
    x_title: str,
    *,
    dashed: Sequence[str] = (),
    emphasised: str | None = None,
) -> Spec:
    """Lines with points over an ordered x axis; keys are (line's name, place on the axis).

    The one called `emphasised` is drawn as diamonds alone: what the others aim at.
    """
    names, places = labels(points)
    rows = [
        {"name": each, "place": place, "value": round(value, 3)}
        for (each, place), value in points.items()
    ]
    others = among("name", [each for each in names if each != emphasised])
    chosen = among("name", [emphasised or ""])
    diamond: Spec = {"shape": "diamond", "size": 260, "strokeWidth": 2.5, "opacity": 1}
    return spec(
        {
            "data": data(rows),
            "encoding": {
                "x": name("place", places, title=x_title, axis={"labelAngle": 0}),
                "y": number("value", y_title, scale={"zero": True}),
                "color": colour(names, colours, dashed=dashed),
                "tooltip": [
                    tip("name", "setting"),
                    tip("place", x_title),
                    tip("value", y_title, ".0f"),
                ],
            },
            "layer": [
                layer("line", {"strokeDash": dashes(dashed)}, kept=others, strokeWidth=2),
                layer("point", kept=others, filled=True, size=45, opacity=1),
                layer("point", kept=chosen, **diamond),
            ],
        }
    )


def series(
    curves: Mapping[str, tuple[Floats, Floats]],
    colours: Colours,
    x_title: str,
    y_title: str,
    *,
    log: bool = False,
) -> Spec:
    """Something over time: name to (times, values); the values logarithmically with `log`."""
    rows = rows_of(curves, x=".4f", y=".3f")
    encoding = {
        "x": number("x", x_title, scale={"nice": False}),
        "y": number("y", y_title, scale={"type": "log" if log else "linear"}),
        "color": colour(list(curves), colours, "stroke"),
        "opacity": picked(),
    }
    return spec(layer("line", encoding, rows=rows, strokeWidth=1.8) | {"params": [PICK]})


def panels(
    parts: Sequence[tuple[str, Mapping[str, tuple[Floats, Floats]], Colours]],
    x_title: str,
    *,
    x_domain: tuple[float, float],
    height: int = 130,
    shaded: Sequence[str] = (),
    rules: Sequence[float] = (),
    named: str = "",
) -> Spec:
    """Curves over the same time, one panel below the other: (y title, name to (times,
    values), colours) each. A panel with one curve, except that of the title `named`, or with the
    colours of the one above it, needs no legend. What is `shaded` is an area; at `rules`, times,
    there are dashed lines."""
    drawn = []
    for place, (y_title, curves, colours) in enumerate(parts):
        names = list(curves)
        rows = rows_of(curves, x=".4f", y=".4g")
        key = colour(names, colours, "stroke")
        alone = len(names) == 1 and y_title != named
        if alone or (place and colours == parts[place - 1][2]):
            key["legend"] = None
        else:
            key["legend"] |= {"orient": "top", "offset": 4, "padding": 0, "columns": 6}
        title = x_title if place == len(parts) - 1 else None
        scale = {"zero": True} if any(row["y"] for row in rows) else FLAT
        line = layer("line", strokeWidth=1.8)
        panel: Spec = {
            "data": data(rows),
            "width": WIDTH - 120,
            "height": height,
            "encoding": {
                "x": number("x", title, scale={"nice": False, "domain": list(x_domain)}),
                "y": number("y", y_title, scale=scale),
                "color": key,
            },
        }
        if shaded:
            thin = [each for each in names if each not in shaded]
            area: Spec = {"interpolate": "step-before", "opacity": 0.5}
            filled = layer("area", kept=among("name", list(shaded)), **area)
            panel["layer"] = [filled, line | {"transform": [{"filter": among("name", thin)}]}]
        elif rules:
            style: Spec = {"strokeDash": [4, 3], "strokeWidth": 1.2, "color": "#777"}
            times = [{"x": round(float(time), 4)} for time in rules]
            panel["layer"] = [line, layer("rule", {"y": None, "color": None}, rows=times, **style)]
        else:
            panel |= line
        drawn.append(panel)
    return spec({"vconcat": drawn, "spacing": 12, "resolve": {"scale": {"color": "independent"}}})


def place(field: str, names: Sequence[str], title: str) -> Spec:
    """An axis with names, which are never slanted."""
    return name(field, names, title=title, axis={"labelAngle": 0, "ticks": False})


def labels(cells: Mapping[tuple[str, str], Any]) -> tuple[list[str], list[str]]:
    """The first and second parts of the keys, each once."""
    return (
        list(dict.fromkeys(first for first, _ in cells)),
        list(dict.fromkeys(second for _, second in cells)),
    )


def _thinned(values: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Points of a distribution from 0 on: all, or those where it moves enough to be seen."""
    if len(values) > CDF_POINTS:
        steps = np.floor(shares * CDF_POINTS)
        keep = np.diff(steps, prepend=-1) > 0
        keep[-1] = True
        values, shares = values[keep], shares[keep]
    return np.append(0.0, values), np.append(0.0, shares)
