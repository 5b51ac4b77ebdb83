"""The page of an emulation: what its links did, and how exact the emulator was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import aqmlab
from aqmlab.document import (
    Document,
    Facts,
    Figure,
    Section,
    Text,
    Tiles,
    charts,
    notes,
    save,
)
from aqmlab.document.colours import by_label
from aqmlab.document.numbers import seconds
from aqmlab.report.made import made
from aqmlab.report.notes import of_run
from aqmlab.report.run_page import finding, links, parameters, sojourn_figure
from aqmlab.results import RunResult
from aqmlab.samples import Floats

TITLE = "An emulation"
QUANTITIES = (
    ("throughput_bps", "throughput (Mbit/s)", 1e-6),
    ("sojourn_max_s", "longest in queue (ms)", 1e3),
    ("backlog_packets", "backlog (packets)", 1.0),
)


def write(folder: Path, result: RunResult, command: str = "", *, figures: bool = True) -> Path:
    """Writes `report.html`, and with `figures` the pictures into `figures/`; returns the path of
    the page. `command` is what made the results.

    Raises `StorageError` if a file cannot be written.
    """
    return save(document(result, command, folder), folder, figures=figures)


def document(result: RunResult, command: str = "", folder: Path | None = None) -> Document:
    """The page of an emulation; `folder` is where its tables are, if they are kept."""
    facts = result.runs.row(0, named=True)
    scores = dict(result.scores.select("quantity", "value").iter_rows())
    late = result.times.filter(quantity="lateness").row(0, named=True)
    tiles = Tiles(
        (
            (f"{scores['packets_out']:,.0f}", f"packets in {facts['end_s']:.1f} s"),
            (seconds(late["p50_s"]), "late, median"),
            (seconds(late["p99_s"]), "late, 99th percentile"),
            (seconds(late["max_s"]), "late, at most"),
            (seconds(scores["processor_s"]), "of processor time"),
        )
    )
    told = Text(
        "Real packets through the links below, in real time. How late each was written is what "
        "the emulator adds to what the links do.",
        "lead",
    )
    noted = of_run(result)
    how = (*made(command, folder), Facts(tuple(_facts(result, scores))))
    blocks = (
        *notes(noted),
        Section("Links", (links(result),)),
        *_figures(result),
        Section("How this was made", how),
    )
    return Document(TITLE, blocks, head=(told, Text(finding(result)), tiles))


def _facts(result: RunResult, scores: dict[str, float]) -> Iterator[tuple[str, str]]:
    yield "Program", f"aqmlab {aqmlab.__version__}"
    yield "Seed", str(result.scenario["seed"])
    for key, number in scores.items():
        if key.startswith("unfit_") and number:
            what = key.removeprefix("unfit_").replace("_", " ")
            yield "Not carried", f"{number:,.0f} packets: {what}"
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
