"""The page of an emulation: what its links did, and how exact the emulator was."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import aqmlab
from aqmlab.cli.common import rate, reasons, seconds
from aqmlab.errors import StorageError
from aqmlab.report import REPORT, charts
from aqmlab.report.page import document
from aqmlab.reproduce.model import Figure
from aqmlab.statistics import Floats

if TYPE_CHECKING:
    from aqmlab.results import RunResult

PALETTE = ("#2f6db3", "#c8553d", "#3a8f5c", "#8a5fb0", "#b8860b", "#4f9da6")
QUANTITIES = (
    ("throughput_bps", "throughput (Mbit/s)", 1e-6),
    ("backlog_packets", "backlog (packets)", 1.0),
)
COLUMNS = ("link", "sent", "dropped", "marked", "lost", "mean", "p50", "p95", "p99", "max")


def write(folder: Path, result: RunResult) -> Path:
    """Writes `report.html`; returns its path. Raises `StorageError` if that fails."""
    path = folder / REPORT
    figures = list(_figures(result))
    body = "\n".join(_body(result, figures))
    try:
        path.write_text(document("An emulation", body, figures), encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the tables are complete") from error
    return path


def _body(result: RunResult, figures: list[Figure]) -> Iterator[str]:
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
    yield f"""<header><h1>An emulation</h1>
<p class="lead">Real packets through the links below, in real time. How late each was written is
what the emulator adds to what the links do.</p>
<div class="tiles">{"".join(cells)}</div></header>"""
    for note in result.notes.to_dicts():
        yield f"<div class='note'><p>{escape(note['subject'])}: {escape(note['text'])}</p></div>"
    yield "<h2>Links</h2>"
    yield _links(result)
    yield "<h2>Figures</h2>"
    for figure in figures:
        yield (
            f"<figure><h3>{escape(figure.title)}</h3><p class='message'>{escape(figure.message)}"
            f"</p><div class='chart' id='{figure.id}' role='img' "
            f"aria-label='{escape(figure.message)}'></div>"
            f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        )
    yield "<h2>How this was made</h2>"
    yield f"<pre>{escape(shlex.join(['aqmlab', *sys.argv[1:]]))}</pre>"
    yield f"<dl>{''.join(_facts(result, scores))}</dl>"


def _links(result: RunResult) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows, remarks = [], []
    for row in result.links.to_dicts():
        counts = [f"{row[key]:,}" for key in ("delivered", "dropped", "marked", "lost")]
        keys = [f"sojourn_{key}_s" for key in COLUMNS[5:]]
        times = [seconds(row[key] if row["delivered"] else None) for key in keys]
        cells = "".join(f"<td>{each}</td>" for each in counts + times)
        rows.append(f"<tr><th scope='row'>{escape(row['link'])}</th>{cells}</tr>")
        for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
            if row[word]:
                share = row[word] / row["arrived"]
                why = f"{share:.2%} of the packets were {word} ({reasons(row, prefix)})"
                remarks.append(f"<li>{escape(row['link'])}: {escape(why)}</li>")
    return (
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class='method'>mean to max: time in the queue (sojourn time)</p>"
        f"<ul>{''.join(remarks)}</ul>"
    )


def _facts(result: RunResult, scores: dict[str, float]) -> Iterator[str]:
    scenario: dict[str, Any] = result.scenario
    facts = [("Program", f"aqmlab {aqmlab.__version__}"), ("Seed", str(scenario["seed"]))]
    for name, link in scenario["links"].items():
        facts.append((f"Link {name}", _link(link)))
    for key, count in scores.items():
        if key.startswith("unfit_") and count:
            what = key.removeprefix("unfit_").replace("_", " ")
            facts.append(("Not carried", f"{count:,.0f} packets: {what}"))
    for name, text in facts:
        yield f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"


def _link(link: dict[str, Any]) -> str:
    queue = ", ".join(f"{key} {value}" for key, value in link["queue"].items())
    return f"rate {link['rate']}, delay {link['delay']}, queue: {queue}"


def _figures(result: RunResult) -> Iterator[Figure]:
    names = result.links["link"].to_list()
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}
    parts = []
    for quantity, title, unit in QUANTITIES:
        curves = {name: _series(result, name, quantity, unit) for name in names}
        curves = {name: curve for name, curve in curves.items() if len(curve[0]) > 1}
        if curves:
            parts.append((title, curves, colours))
    if parts:
        end = float(result.runs["end_s"][0])
        most = result.links.row(int(result.links["backlog_max_packets"].arg_max() or 0), named=True)
        yield Figure(
            "time",
            "What passed, and what waited",
            f"Most packets waited at {most['link']}: {most['backlog_max_packets']:,}.",
            "Throughput over each interval, and the backlog at its end.",
            charts.panels(parts, "time (s)", x_domain=(0.0, end)),
        )
    waited = result.sojourn
    if waited["count"].sum():
        name = str(waited["link"][0])
        shares = waited["count"].cum_sum() / waited["count"].sum()
        values = (waited["sojourn_s"] * 1e3).to_numpy()
        row = result.links.filter(link=name).row(0, named=True)
        yield Figure(
            "sojourn",
            f"Time in the queue of {name}",
            f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less, one in a "
            f"hundred {seconds(row['sojourn_p99_s'])} or more; {_throughput(row, result)}.",
            "The share of the packets that waited no longer.",
            charts.cdf({name: (values, shares.to_numpy())}, colours, "time in the queue (ms)"),
        )


def _throughput(row: dict[str, Any], result: RunResult) -> str:
    return f"{rate(row['delivered_bytes'] * 8 / float(result.runs['end_s'][0]))} on average"


def _series(result: RunResult, link: str, quantity: str, unit: float) -> tuple[Floats, Floats]:
    rows = result.series.filter((pl.col("subject") == link) & (pl.col("quantity") == quantity))
    times: Floats = rows["time_s"].to_numpy().astype(np.float64)
    values: Floats = rows["value"].to_numpy().astype(np.float64) * unit
    return times, values
