"""Pieces of Vega-Lite specifications as plain mappings: fields, scales, data.

Plain mappings cost nothing to make; a test checks every chart against the published schema.
"""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aqmlab.plain import cell

Spec = dict[str, Any]
Colours = Mapping[str, str]

WIDTH, HEIGHT = 760, 340
"""Size of a chart with one panel, on paper."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FADED = 0.12
SOLID, DASHED = [1, 0], [5, 3]
PICK: Spec = {
    "name": "pick",
    "select": {"type": "point", "fields": ["name"]},
    "bind": "legend",
}
"""A click on an entry of the legend singles out what has that name."""


def data(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """The rows as inline data: all have the keys of the first, each of one type.

    Written as CSV, in which keys are said once: half the size of objects.
    """
    if not rows:
        return {"values": []}
    # Texts are not parsed: the type "string" turns an empty one into null, which has no colour.
    numbers = {key: "number" for key, each in rows[0].items() if not isinstance(each, str)}
    values = csv_text(rows[0], rows, is_sheet=False)
    return {"values": values, "format": {"type": "csv", "parse": numbers}}


def rows_of(curves: Mapping[str, Iterable[Any]], **forms: str) -> list[dict[str, Any]]:
    """A row a point of each curve (name to columns): `name`, and its columns by `forms`, rounded as
    that format of numbers does; an empty one leaves them as they are."""
    return [
        {"name": each}
        | {
            key: float(f"{v:{form}}") if form else v
            for (key, form), v in zip(forms.items(), point, strict=True)
        }
        for each, columns in curves.items()
        for point in zip(*columns, strict=True)
    ]


def csv_text(
    names: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
    heads: Mapping[str, str] | None = None,
    *,
    is_sheet: bool = True,
) -> str:
    """Rows as CSV with the columns `names`, some with other headings (`heads`). In a sheet, texts
    that a spreadsheet would run as a formula get an apostrophe."""
    text, names = io.StringIO(), list(names)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([(heads or {}).get(name, name) for name in names])
    cells = ([row.get(name) for name in names] for row in rows)
    writer.writerows([map(cell, row) for row in cells] if is_sheet else cells)
    return text.getvalue()


def table(chart: Mapping[str, Any]) -> str:
    """The numbers behind a chart as CSV. Columns have the titles of their axes; where panels have
    other titles, the columns `panel` and `axis` name them. Empty for a diagram."""
    parts = list(_parts(chart, "", {}))
    titles = {
        (field, title)
        for _, own, rows in parts
        for field, title in own.items()
        if rows and field in rows[0]
    }
    fields, words = ([each[i] for each in titles] for i in (0, 1))
    renamed = {f: w for f, w in titles if fields.count(f) == words.count(w) == 1}
    rows = []
    for panel, own, part in parts:
        axis = {own[each]: None for row in part[:1] for each in row if each in own}
        left = ", ".join(each for each in axis if each not in renamed.values())
        first = {key: word for key, word in (("panel", panel), ("axis", left)) if word}
        rows += [first | {renamed.get(key, key): row[key] for key in row} for row in part]
    names = list(dict.fromkeys(name for row in rows for name in row if name != "order"))
    return csv_text(names, rows) if rows else ""


def _parts(
    chart: Mapping[str, Any], panel: str, titles: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str], list[dict[str, str]]]]:
    """Panel, titles of fields, and rows of each data set in a chart."""
    heading = chart.get("title")
    if isinstance(heading, Mapping):
        panel = heading["text"] if isinstance(heading["text"], str) else " ".join(heading["text"])
    layers = [title for each in chart.get("layer", ()) for title in _titles(each)]
    own = {**titles, **dict(layers), **dict(_titles(chart))}
    given = chart.get("data", {})
    if given.get("format", {}).get("type") == "csv":
        yield panel, own, list(csv.DictReader(io.StringIO(given["values"])))
    for each in (each for key in ("concat", "vconcat", "layer") for each in chart.get(key, ())):
        yield from _parts(each, panel, own)


def _titles(chart: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields on the axes of a chart, with their titles."""
    for channel in ("x", "y"):
        axis = chart.get("encoding", {}).get(channel) or {}  # null takes no channel of a layer
        if "field" in axis and axis.get("title"):
            yield axis["field"], axis["title"]


def number(field: str, title: str | None = None, **more: Any) -> Spec:
    """A field with numbers; without a title the axis has none."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def name(field: str, order: Sequence[str], **more: Any) -> Spec:
    """A field with names, in this order."""
    return {"field": field, "type": "nominal", "sort": list(order), **more}


def tip(field: str, title: str, form: str | None = None) -> Spec:
    """A line of a tooltip: a name, or a number with its format."""
    if form is None:
        return {"field": field, "type": "nominal", "title": title}
    return {"field": field, "type": "quantitative", "title": title, "format": form}


def colour(
    names: Sequence[str],
    colours: Colours,
    symbol: str = "square",
    dashed: Sequence[str] = (),
    **legend: Any,
) -> Spec:
    """The colour of each name, with a legend whose symbols are of this kind, or lines where some
    names have dashed ones."""
    width = 4 if symbol == "stroke" else 0
    if dashed:
        symbol, width = "stroke", 2
        test = f"indexof({json.dumps(list(dashed))}, datum.label) < 0"
        legend["symbolDash"] = {"expr": f"{test} ? {SOLID} : {DASHED}"}
    scale = {"domain": list(names), "range": [colours[each] for each in names]}
    key: Spec = {"title": None, "titleFontWeight": "normal", "titleOrient": "left"}
    key |= {"symbolType": symbol, "symbolStrokeWidth": width, **legend}
    return name("name", names, scale=scale, legend=key)


def picked(full: float = 1.0, faded: float = FADED) -> Spec:
    """Opacity: full for the selection in the legend, or for all."""
    return {"condition": [{"param": "pick", "value": full}], "value": faded}


def among(field: str, values: Sequence[str]) -> Spec:
    """Whether a field has one of these values."""
    return {"field": field, "oneOf": list(values)}


def dashes(names: Sequence[str]) -> Spec:
    """Dashed lines for these names."""
    return {"condition": {"test": among("name", names), "value": DASHED}, "value": SOLID}


def layer(
    kind: str,
    encoding: Spec | None = None,
    *,
    rows: Sequence[Mapping[str, Any]] | None = None,
    kept: object = None,
    **style: Any,
) -> Spec:
    """Marks of a kind with their style: of own rows or those of the chart, of those `kept`."""
    own: Spec = {} if rows is None else {"data": data(rows)}
    own |= {} if kept is None else {"transform": [{"filter": kept}]}
    own["mark"] = {"type": kind, **style}
    return own if encoding is None else own | {"encoding": encoding}


def spec(chart: Mapping[str, Any]) -> Spec:
    """A whole specification."""
    return {"$schema": SCHEMA, **chart}


def light(chart: Mapping[str, Any], title: str, message: str) -> dict[str, Any]:
    """The chart for white paper, with its title and message inside."""
    text, grid = "#333", "#e3e3e3"
    # The picture is laid out for Helvetica; the paddings leave room for a wider substitute.
    config = {
        "background": "white",
        "font": "Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": text, "titleColor": text, "gridColor": grid, "domainColor": "#999",
            "tickColor": "#999", "titleFontWeight": "normal", "labelFontSize": 12,
            "titleFontSize": 13, "titlePadding": 10,
        },
        "legend": {
            "labelColor": text, "labelFontSize": 12, "labelLimit": 300, "orient": "bottom",
            "columns": 3, "direction": "horizontal", "symbolOpacity": 1,
            "titleColor": text, "titlePadding": 16, "columnPadding": 28,
        },
        "title": {
            "anchor": "start", "fontSize": 16, "subtitleFontSize": 12.5, "subtitleColor": "#555",
            "subtitlePadding": 5, "offset": 12, "color": "#111",
        },
    }  # fmt: skip
    heading = {"text": title, "subtitle": textwrap.wrap(message, 108)}
    whole = {"vconcat", "concat"} & chart.keys()
    size = {} if whole else {"width": WIDTH, "height": HEIGHT}
    return {**size, **chart, "title": heading, "config": config, "padding": 14}
