"""Documents are values: every rendering has their content."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pytest
import vl_convert
from helpers import Aqmlab, run_program
from rich.console import Console

import aqmlab as package
from aqmlab import stats
from aqmlab.metrics.samples import Quartiles
from aqmlab.report.document import (
    Code,
    Column,
    Compared,
    Document,
    Estimate,
    Figure,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
    charts,
    panels,
)
from aqmlab.report.document.terminal import table as table_of
from aqmlab.report.document.vega import light, table
from aqmlab.stats import Interval
from aqmlab_studies.kuhn2014 import figures as paper

TABLE = Table(
    (Column("queue", label=True), Column("delay", unit="ms"), Column("beside ns-3")),
    (
        (
            "a & b",
            Estimate(5.314, 5.12, 5.508),
            Compared(Estimate(1.0, 0.9, 1.2), 1.1, Verdict("not decided", "near")),
        ),
        ("<b>pie", 14.25, None),
    ),
    title="Delays",
    caption="How to *read* it.",
)


def test_a_table_has_all_digits_where_programs_read_it() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert rows[0]["queue"] == "a & b" and rows[0]["delay (ms)"] == "5.314"
    assert (rows[0]["delay_low"], rows[0]["delay_high"]) == ("5.12", "5.508")
    assert rows[0]["beside ns-3_verdict"] == "not decided"
    assert rows[1]["delay (ms)"] == "14.25" and rows[1]["delay_low"] == ""
    form = json.loads(json.dumps(TABLE.to_json()))
    assert form["rows"][0][1] == {"value": 5.314, "low": 5.12, "high": 5.508}
    assert form["columns"][1] == {"name": "delay", "unit": "ms"}


def test_latex_has_value_and_half_the_interval() -> None:
    text = TABLE.to_latex()
    assert r"\begin{tabular}{lrr}" in text and r"\toprule" in text and r"\bottomrule" in text
    assert r"a \& b & $5.31 \pm 0.19$ & $1.00^{+0.20}_{-0.10}$ (1.1) \\" in text
    assert "<b>pie & 14.25 & -- \\\\" in text


def test_digits_follow_the_interval() -> None:
    assert Estimate(12.3456, 12.0, 12.7).told() == ("12.35", "12.00–12.70")
    assert Estimate(1234.56, 1100.0, 1400.0).told() == ("1235", "1100–1400")
    assert Estimate(0.5).told() == ("0.5", "")
    # But no more than a reader wants, however narrow the interval.
    assert Estimate(4.40928581, 4.40928560, 4.40928584).told() == ("4.409", "4.409–4.409")
    assert Estimate(11.231, 11.221, 11.242).told() == ("11.23", "11.22–11.24")
    assert Estimate(0.0, 0.0, 0.0).told() == ("0", "0–0")


def test_no_difference_is_no_negative_zero() -> None:
    title = Compared(Estimate(0.99999), 1.0, Verdict("close", "near")).title
    assert title == "close: +0.0 %"
    title = Compared(Estimate(-3.0), -2.0, Verdict("apart", "near"), 1).title
    assert title == "apart: -1.0", "it is less, and not 50 % more"


def test_an_estimate_of_some_runs_says_so() -> None:
    values = np.array([4.0, 6.0, 5.0, 5.5, 4.5])
    told = Estimate.of(stats.estimate(values), 6).times(10).told()
    assert told == ("50", "20–80, in 5 of 6 runs")
    assert Estimate.of(stats.estimate(values[:2]), 10).told() == ("5", "in 2 of 10 runs")
    assert Estimate.of(stats.estimate(values), 5).runs == ""


def test_markdown_and_the_terminal() -> None:
    page = Document("My page", (Text("What I *found*."), Section("Delays", (TABLE,))))
    assert Document("", (Code("@software{\n  a,\n}"),)).to_markdown().count("\n    ") == 3
    text = page.to_markdown()
    assert text.startswith("# My page\n\nWhat I *found*.\n\n## Delays")
    assert "| a & b | 5.31 (5.12–5.51) |" in text
    screen = Console(file=io.StringIO(), width=100, highlight=False, markup=False)
    page.print(screen)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "My page" in shown and "delay (ms)" in shown and "5.31 (5.12–5.51)" in shown
    assert "What I found." in shown
    narrow = Console(file=io.StringIO(), width=16, highlight=False, markup=False)
    page.print(narrow)
    assert "…" not in narrow.file.getvalue(), "digits are missing"  # type: ignore[attr-defined]


def test_headings_wrap_before_numbers_are_broken() -> None:
    long = Column("mean delay of all data packets of the group", unit="ms")
    columns = (Column("queue", label=True), *[long] * 5)
    of = Table(columns, (("codel", Estimate(17.45, 17.15, 17.41), *[17.46] * 4),))
    for width, is_whole in ((300, True), (60, True), (40, False)):
        screen = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
        screen.print(table_of(of, screen))
        shown = screen.file.getvalue()  # type: ignore[attr-defined]
        assert ("(17.15–17.41)" in shown) == is_whole, width
        assert max(map(len, shown.splitlines())) <= width


def test_a_judged_cell_has_the_colour_of_its_verdict() -> None:
    assert '<td class="near" title="not decided: -9.1 %">' in Document("A", (TABLE,)).to_html()


def test_what_a_reader_gave_is_text_on_the_page() -> None:
    bad = "<script>alert(1)</script>"
    page = Document(
        bad, (Text(bad), TABLE, Note(bad, bad), Section(bad, ()), Tiles(((bad, bad),))), soft=bad
    )
    for text in (page.to_html(), page._repr_html_()):
        assert "<script>alert" not in text and "<b>pie" not in text
        assert "&lt;script&gt;alert(1)" in text
    assert "script-src 'none'" in unescape(page.to_html())


def test_a_number_keeps_its_unit() -> None:
    text = Document("A", (Text("It takes 136 ms, or 12 % of 3 s."),)).to_html()
    assert "136\u00a0ms" in text and "12\u00a0% of 3\u00a0s" in text


def test_notebooks_show_results_figures_and_tables() -> None:
    scenario = Path(__file__).parents[2] / "examples" / "scenario.toml"
    result = package.run(scenario, set={"duration": "2s"})
    text = result._repr_html_()
    assert text.count("<svg") == 2 and "<script" not in text and "Links" in text
    assert result.report().figures[1]._repr_html_().startswith("<svg")
    assert "<table" in TABLE._repr_html_()
    assert "links 2" in repr(result) and "sojourn" in repr(result)


x = np.linspace(1.0, 50.0, 400)
SHARES = np.arange(1, 401) / 400
COLOURS = {"a": "#111111", "b": "#222222"}
CURVES = {"a": (x, SHARES), "b": (2 * x, SHARES)}
CELLS = {("a", "p"): 1.0, ("b", "p"): 2.0, ("a", "q"): 3.0, ("b", "q"): 4.0}
CANDLE = paper.Candle.of([1, 2, 3, 4, 5], Interval(2.5, 3.5))
CHARTS: dict[str, Any] = {
    "cdf": charts.cdf(CURVES, COLOURS, "delay (ms)", dashed=["a"], marks={"a": (x[:3], x[:3])}),
    "bars": charts.bars(
        {k: Quartiles(v, v + 1, v + 2) for k, v in CELLS.items()}, COLOURS, "y (s)", "x"
    ),
    "candles": paper.candlesticks(dict.fromkeys(CELLS, CANDLE), COLOURS, "y (s)", "x"),
    "scatter": paper.scatter(
        dict.fromkeys(CELLS, (x[:9], SHARES[:9])),
        COLOURS,
        {"p": "circle", "q": "square"},
        "x",
        "y",
        "z",
    ),
    "lines": charts.lines(CELLS, COLOURS, "y (s)", "x", dashed=["a"], emphasised="b"),
    "series": charts.series(CURVES, COLOURS, "t (s)", "y (ms)", log=True),
    "panels": charts.panels(
        [("y", CURVES, COLOURS), ("z", CURVES, COLOURS)], "t (s)", x_domain=(0, 9), shaded=["a"]
    ),
    "tradeoff": panels.tradeoff({"one": CURVES}, COLOURS, "x (ms)", "y"),
    "curves": panels.curves(
        {"one": panels.Panel(CURVES, "x", "y", dots=True, log_x=True)}, COLOURS
    ),
    "ranges": panels.ranges(
        {"one": {k: x[:9] * v for k, v in CELLS.items()}}, COLOURS, {"one": "ms"}
    ),
    "estimates": panels.estimates(
        {"one": panels.Means("ms", {"a": Estimate(2.0, 1.0, 4.0), "b": Estimate(3.0)}, (1, 5))},
        COLOURS,
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_vega_lite(name: str) -> None:
    schema = altair.Chart
    for kind, key in ((altair.LayerChart, "layer"), (altair.ConcatChart, "concat"),
                      (altair.VConcatChart, "vconcat")):  # fmt: skip
        schema = kind if key in CHARTS[name] else schema
    schema.from_dict(CHARTS[name], validate=True)
    assert Figure(name, "A", "B", "C", CHARTS[name]).svg().startswith("<svg")
    assert light(CHARTS[name], "A", "B")["title"]["text"] == "A"


def test_a_pdf_has_the_same_bytes_whenever_it_is_written(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.pdf" for number in range(8)]
    Figure("cdf", "Title", "Message", "", CHARTS["cdf"]).save(*paths)
    (pdf,) = {path.read_bytes() for path in paths}
    start = int(pdf.split()[-2])
    assert pdf[start:].startswith(b"xref\n")
    places = re.findall(rb"(\d{10}) 00000 n", pdf[start:])
    assert len(places) >= 16, "two fonts of five objects each"
    for number, place in enumerate(map(int, places), 1):
        assert pdf[place:].startswith(b"%d 0 obj\n" % number)
    assert set(map(int, re.findall(rb"(\d+) 0 R", pdf))) == set(range(1, len(places) + 1))


def test_the_legend_has_the_dashes_of_the_lines() -> None:
    for name, lines in {"lines": 1, "cdf": 1}.items():
        svg = vl_convert.vegalite_to_svg(json.dumps(CHARTS[name]))
        assert svg.count('stroke-dasharray="5,3"') == lines + 1, name


def test_values_that_are_all_zero_lie_at_the_end_of_an_axis() -> None:
    for value, scale in ((0.0, [0, 1]), (2.0, None)):
        curve = {"a": (x[:9], value * x[:9])}
        spec = charts.panels([("ms", curve, COLOURS)], "t (s)", x_domain=(0, 9))
        assert spec["vconcat"][0]["encoding"]["y"]["scale"].get("domain") == scale
        spec = charts.cdf({"a": (value * x[:9], SHARES[:9])}, COLOURS, "delay (ms)")
        assert spec["encoding"]["x"]["scale"].get("domain") == scale


def test_a_title_of_a_panel_is_as_wide_as_the_panel() -> None:
    """Also in DejaVu Sans, whose letters are up to 7 pixels wide there."""
    title = "time in the queue, 95th percentile"
    chart = panels.ranges({title: {("a", "p"): x[:9]}}, COLOURS, {title: "ms"})
    (panel,) = chart["concat"]
    assert panel["title"]["text"] == ["time in the queue, 95th", "percentile"]
    assert table(chart).splitlines()[1].startswith(f'"{title}",')


def test_thinned_lines_keep_the_intervals_of_their_points() -> None:
    many = np.arange(1, 1001.0)
    panel = panels.Panel({"a": (many, many)}, "x", "y", spans={"a": (many - 1, many + 1)})
    text = table(panels.curves({"one": panel}, {"a": "#000"}))
    rows = np.array([row.split(",")[3:] for row in text.splitlines()[1:]], dtype=float)
    assert 100 < len(rows) < 1000
    x, y, low, high = rows.T
    assert (x == y).all() and (low == y - 1).all() and (high == y + 1).all(), text[:200]


def test_long_labels_lie_on_the_other_axis_and_wide_values_on_a_logarithm() -> None:
    long = {("a", f"a place with a long name {n}"): x[:9] for n in range(4)}
    (panel,) = panels.ranges({"one": long}, COLOURS, {"one": "ms"})["concat"]
    assert panel["encoding"]["y"]["field"] == "place" and "yOffset" in panel["encoding"]
    wide = {("a", "p"): x[:9], ("b", "p"): 100 * x[:9]}
    (panel,) = panels.ranges({"one": wide}, COLOURS, {"one": "ms"})["concat"]
    assert panel["layer"][-1]["encoding"]["y"]["scale"]["type"] == "log"
    ticks = panel["layer"][-1]["encoding"]["y"]["axis"]["values"]
    assert len(ticks) > 3 and all(f"{each:e}"[0] in "125" for each in ticks)
    (panel,) = panels.ranges({"one": {("a", "p"): x[:9]}}, COLOURS, {"one": "ms"})["concat"]
    assert panel["layer"][0]["mark"]["type"] == "bar"
    assert "-40" not in json.dumps(CHARTS)


def test_the_report_of_a_study_is_cheap_and_small(
    aqmlab: Aqmlab, aqmlab_process: Aqmlab, tmp_path: Path
) -> None:
    """The processor's time of a report beside that of the same command without one."""
    call = str(Path(__file__).parents[2] / "examples" / "call.toml")
    short = ("study", call, "--set", "duration=5s", "--out", "out")
    report = tmp_path / "out" / "report.html"
    aqmlab.ok(*short)  # the library of the charts is kept from now on
    report.unlink()
    spent = []
    for more in (("--no-report",), ()):
        assert not report.exists()
        before = os.times().children_user
        aqmlab_process.ok(*short, *more)
        spent.append(os.times().children_user - before)
    # Charts that are drawn, not described, would take several times as long.
    assert spent[1] < 3 * spent[0]
    assert report.stat().st_size < 500_000
    assert not report.with_name("figures").exists()


def test_the_library_neither_prints_nor_exits() -> None:
    """Outside of the command line, and of files that are programs of their own."""
    root = Path(package.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        top = file.relative_to(root).parts[0]
        if top in ("cli", "plain.py", "__main__.py"):
            continue
        tree = ast.parse(file.read_text())
        body = [each for each in tree.body if not _is_program(each)]
        for node in (inner for each in body for inner in ast.walk(each)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.exit"):
                found.append(f"{file.name}:{node.lineno}")
            if isinstance(node, ast.Name) and node.id == "SystemExit":
                found.append(f"{file.name}:{node.lineno}")
    assert found == []


def _is_program(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def test_functions_that_are_modules_too() -> None:
    program = (
        "import aqmlab, aqmlab.compare, aqmlab.reproduce, aqmlab.study\n"
        "for name in ('compare', 'characterize', 'emulate', 'reproduce', 'study'):\n"
        "    assert callable(getattr(aqmlab, name)), name\n"
        "for call in (lambda: aqmlab.study({'x': 1}), lambda: aqmlab.compare({}),\n"
        "             lambda: aqmlab.reproduce('none')):\n"
        "    try:\n        call()\n"
        "    except aqmlab.AqmlabError as error:\n        print(type(error).__name__)\n"
    )
    done = run_program([sys.executable, "-c", program])
    assert done.stdout.split() == ["InputError"] * 3, done.stderr


def test_every_exception_is_an_aqmlab_error() -> None:
    names = [name for name in package.__all__ if name.endswith("Error")]
    assert len(names) == 10
    assert all(issubclass(getattr(package, name), package.AqmlabError) for name in names)
    assert issubclass(package.InputError, ValueError)
    assert issubclass(package.StorageError, OSError)
    with pytest.raises(package.AqmlabError, match="unknown queue discipline"):
        package.run(Path(__file__).parents[2] / "examples" / "scenario.toml", set={"queue": "x"})


def test_the_numbers_of_a_chart_with_lines_across_all_channels() -> None:
    """A layer of lines at moments has no y: `"y": None` takes that of the others away."""
    values = {"values": "t,v\n1,2\n", "format": {"type": "csv"}}
    x = {"field": "t", "type": "quantitative", "title": "time (s)"}
    points = {"mark": "line", "encoding": {"x": x, "y": {"field": "v", "title": "rate"}}}
    lines = {"mark": "rule", "encoding": {"x": x, "y": None}}
    assert table({"data": values, "layer": [points, lines]}) == "time (s),rate\n1,2\n"
