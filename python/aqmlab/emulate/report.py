"""The page of an emulation: what its links did, and how exact the emulator was."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import aqmlab
from aqmlab.cli.common import command_line, seconds
from aqmlab.report import charts, save
from aqmlab.report.colours import by_label
from aqmlab.report.page import document, figure_html, made_html, notes_html
from aqmlab.report.run_page import links_html, parameters, sojourn_figure
from aqmlab.reproduce.model import Figure
from aqmlab.statistics import Floats

if TYPE_CHECKING:
    from aqmlab.results import RunResult

TITLE = "An emulation"
QUANTITIES = (
    ("throughput_bps", "throughput (Mbit/s)", 1e-6),
    ("sojourn_max_s", "longest in queue (ms)", 1e3),
    ("backlog_packets", "backlog (packets)", 1.0),
)


def write(folder: Path, result: RunResult) -> Path:
    """Writes `report.html` and `figures/`; returns the path of the page.

    Raises `StorageError` if a file cannot be written.
    """
    figures = list(_figures(result))
    body = "\n".join(_body(result, figures, folder))
    return save(folder, document(TITLE, body, figures), figures)


def _body(result: RunResult, figures: list[Figure], folder: Path) -> Iterator[str]:
    facts = result.runs.row(0, named=True)
    scores = dict(result.scores.select("quantity", "value").iter_rows())
    late = result.times.filter(quantity="lateness").row(0, named=True)
    tiles = [
        (f"{scores['packets_out']:,.0f}", f"packets in {facts['end_s']:.1f} s"),
        (seconds(late["p50_s"]), "late, median"),
        (seconds(late["p99_s"]), "late, 99th percentile"),
        (seconds(late["max_s"]), "late, at most"),
        (seconds(scores["processor_s"]), "of processor time"),
    ]
    cells = (
        f"<div class='tile'><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in tiles
    )
    yield f"""<header><h1>{TITLE}</h1>
<p class="lead">Real packets through the links below, in real time. How late each was written is
what the emulator adds to what the links do.</p>
<div class="tiles">{"".join(cells)}</div></header>"""
    yield notes_html([f"{note['subject']}: {note['text']}" for note in result.notes.to_dicts()])
    yield "<h2>Links</h2>"
    yield links_html(result)
    yield from map(figure_html, figures)
    yield "<h2>How this was made</h2>"
    yield made_html(command_line(), folder)
    yield f"<dl>{''.join(_facts(result, scores))}</dl>"


def _facts(result: RunResult, scores: dict[str, float]) -> Iterator[str]:
    facts = [("Program", f"aqmlab {aqmlab.__version__}"), ("Seed", str(result.scenario["seed"]))]
    for key, count in scores.items():
        if key.startswith("unfit_") and count:
            what = key.removeprefix("unfit_").replace("_", " ")
            facts.append(("Not carried", f"{count:,.0f} packets: {what}"))
    for name, text in facts:
        yield f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
    yield from parameters(result.scenario)


def _figures(result: RunResult) -> Iterator[Figure]:
    names = result.links["link"].to_list()
    colours = by_label(names)
    parts = []
    for quantity, title, unit in QUANTITIES:
        curves = {name: _series(result, name, quantity, unit) for name in names}
        curves = {name: curve for name, curve in curves.items() if len(curve[0]) > 1}
        if curves:
            parts.append((title, curves, {name: colours[name] for name in curves}))
    if parts:
        end = float(result.runs["end_s"][0])
        most = result.links.row(int(result.links["sojourn_max_s"].arg_max() or 0), named=True)
        yield Figure(
            "course",
            "What passed, and what waited",
            f"The longest wait is {seconds(most['sojourn_max_s'] or 0.0)}, at {most['link']}.",
            "Values over each interval, and the backlog at its end.",
            charts.panels(parts, "time (s)", x_domain=(0.0, end)),
        )
    yield from sojourn_figure(result)


def _series(result: RunResult, link: str, quantity: str, unit: float) -> tuple[Floats, Floats]:
    rows = result.series.filter((pl.col("subject") == link) & (pl.col("quantity") == quantity))
    rows = rows.select("time_s", "value").drop_nulls().drop_nans()
    times: Floats = rows["time_s"].to_numpy().astype(np.float64)
    values: Floats = rows["value"].to_numpy().astype(np.float64) * unit
    return times, values
