"""The report of one run: what passed, what waited, and what each group of flows got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import aqmlab
from aqmlab.cli.common import rate, reasons, seconds
from aqmlab.report import charts, save
from aqmlab.report.colours import by_label
from aqmlab.report.page import document, figure_html, made_html, notes_html
from aqmlab.reproduce.model import Figure
from aqmlab.setup_diagram import caption, diagram
from aqmlab.statistics import Floats

if TYPE_CHECKING:
    from aqmlab.results import RunResult

COLUMNS = ("link", "sent", "dropped", "marked", "lost", "busy", "mean", "p50", "p95", "p99", "max")
SHOWN_FLOWS = 50
MOST_SAMPLES = 600
"""A curve over time has at most about so many points; each is the mean of the samples there."""
MOST_GROUPS = 8


def write(result: RunResult, folder: Path, title: str, command: str = "") -> Path:
    """Writes `report.html` and `figures/` into `folder`; returns the path of the report.

    `command` is what made the results. Raises `StorageError` if a file cannot be written.
    """
    made = list(figures(result))
    body = "\n".join(_body(result, made, title, command, folder))
    return save(folder, document(title, body, made), made)


def finding(result: RunResult) -> str:
    """What the bottleneck did, in one or two sentences."""
    row = result.links.filter(link=result.bottleneck).row(0, named=True)
    if not row["delivered"]:
        return f"No packet passed {row['link']}."
    signals = "No packet was dropped or marked"
    for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
        if row[word]:
            share = row[word] / row["arrived"]
            signals = f"{share:.2%} of the packets were {word} ({reasons(row, prefix)})"
            break
    queue = result.scenario["links"][row["link"]]["queue"]["discipline"]
    return (
        f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less in the queue of "
        f"{row['link']} ({queue}), one in twenty {seconds(row['sojourn_p95_s'])} or more, while "
        f"the link was {row['utilisation'] or 0:.1%} busy. {signals}."
    )


def figures(result: RunResult) -> Iterator[Figure]:
    """The course of the bottleneck, where samples were recorded, and its distribution."""
    end = float(result.runs["end_s"][0])
    name = result.bottleneck
    yield Figure(
        "setup",
        "Set-up",
        f"{name} is the bottleneck.",
        caption(result.scenario),
        diagram(result.scenario),
    )
    parts = list(_panels(result, name))
    if parts:
        row = result.links.filter(link=name).row(0, named=True)
        yield Figure(
            "course",
            f"The queue of {name} over time",
            f"The longest wait is {seconds(row['sojourn_max_s'])}, and at most "
            f"{row['backlog_max_packets']:,} packets are in the queue.",
            f"Values over {result.scenario['record']['interval']} each.{_left_out(result)}",
            charts.panels(parts, "time (s)", x_domain=(0.0, end)),
        )
    yield from sojourn_figure(result)


def _left_out(result: RunResult) -> str:
    groups = result.flows["group"].n_unique()
    return f" Of {groups} groups the first {MOST_GROUPS} are drawn." if groups > MOST_GROUPS else ""


def sojourn_figure(result: RunResult) -> Iterator[Figure]:
    """The distribution of the time in the bottleneck's queue, if any packet passed."""
    waited = result.sojourn
    if not waited["count"].sum():
        return
    name = str(waited["link"][0])
    shares = waited["count"].cum_sum() / waited["count"].sum()
    values = (waited["sojourn_s"] * 1e3).to_numpy()
    row = result.links.filter(link=name).row(0, named=True)
    average = rate(row["delivered_bytes"] * 8 / float(result.runs["end_s"][0]))
    yield Figure(
        "sojourn",
        f"Time in the queue of {name}",
        f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less, one in a hundred "
        f"{seconds(row['sojourn_p99_s'])} or more; {average} on average.",
        "The share of the packets that waited no longer.",
        charts.cdf({name: (values, shares.to_numpy())}, by_label([name]), "time in the queue (ms)"),
    )


def _panels(result: RunResult, link: str) -> Iterator[Any]:
    """Delay, throughput of the groups, backlog and windows."""
    samples = result.series
    own = samples.filter(subject=link)
    delays = {
        word: _curve(own, f"sojourn_{key}_s", 1e3)
        for word, key in (("longest", "max"), ("mean", "mean"))
    }
    if not delays["mean"][0].size:
        return
    yield "time in queue (ms)", delays, {"longest": "#56b4e9", "mean": "#0072b2"}
    groups = list(dict.fromkeys(result.flows["group"]))[:MOST_GROUPS]
    colours = by_label(groups)
    goodput = {name: _of_group(samples, name, "goodput_bps", 1e-6) for name in groups}
    goodput = {name: curve for name, curve in goodput.items() if curve[0].size}
    if goodput:
        yield "goodput (Mbit/s)", goodput, colours
    throughput = {link: _curve(own, "throughput_bps", 1e-6)}
    if not goodput:
        yield "throughput (Mbit/s)", throughput, by_label([link])
    yield "queue (packets)", {link: _curve(own, "backlog_packets", 1.0)}, {link: "#009e73"}


def _curve(samples: pl.DataFrame, quantity: str, factor: float) -> tuple[Floats, Floats]:
    rows = samples.filter(quantity=quantity).select("time_s", "value").drop_nulls().drop_nans()
    return _thinned(rows["time_s"].to_numpy(), factor * rows["value"].to_numpy())


def _of_group(
    samples: pl.DataFrame, group: str, quantity: str, factor: float
) -> tuple[Floats, Floats]:
    """The sum over the flows of a group."""
    mine = pl.col("subject").str.starts_with(f"{group}.") & (pl.col("quantity") == quantity)
    rows = samples.filter(mine).group_by("time_s").agg(pl.col("value").sum()).sort("time_s")
    return _thinned(rows["time_s"].to_numpy(), factor * rows["value"].to_numpy())


def _thinned(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    count = -(-times.size // MOST_SAMPLES)
    if count <= 1:
        return times, values
    edges = np.arange(0, times.size, count)
    lengths = np.diff(np.append(edges, times.size))
    return times[edges], np.add.reduceat(values, edges) / lengths


def _body(
    result: RunResult, made: Sequence[Figure], title: str, command: str, folder: Path
) -> Iterator[str]:
    facts = result.runs.row(0, named=True)
    yield f"""<header><h1>{escape(title)}</h1>
<p class="soft">{facts["end_s"]:.6g} s simulated, {facts["events"]:,} events, seed
{facts["seed"]} · aqmlab {escape(aqmlab.__version__)}</p>
<p class="lead">{escape(finding(result))}</p></header>"""
    yield notes_html([f"{note['subject']}: {note['text']}" for note in result.notes.to_dicts()])
    yield from map(figure_html, made)
    yield "<h2 id='links'>Links</h2>"
    yield links_html(result)
    yield from _flows(result)
    yield from _applications(result)
    yield "<h2 id='how'>How this was made</h2>"
    yield made_html(command, folder)
    yield f"<dl>{''.join(parameters(result.scenario))}</dl>"


def links_html(result: RunResult) -> str:
    """The table of the links, and why packets were dropped and marked."""
    rows, remarks = [], []
    for row in result.links.to_dicts():
        counts = [f"{row[key]:,}" for key in ("delivered", "dropped", "marked", "lost")]
        busy = "–" if row["utilisation"] is None else f"{row['utilisation']:.1%}"
        keys = [f"sojourn_{key}_s" for key in COLUMNS[6:]]
        times = [seconds(row[key] if row["delivered"] else None) for key in keys]
        rows.append((row["link"], *counts, busy, *times))
        for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
            if row[word]:
                share = row[word] / row["arrived"]
                why = f"{share:.2%} of the packets were {word} ({reasons(row, prefix)})"
                remarks.append(f"<li>{escape(row['link'])}: {escape(why)}</li>")
    return (
        f"{table_html(COLUMNS, rows)}<p class='method'>mean to max: time in the queue (sojourn "
        f"time)</p><ul>{''.join(remarks)}</ul>"
    )


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column are names, the others numbers."""
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = []
    for name, *cells in rows:
        values = "".join(f"<td>{escape(each)}</td>" for each in cells)
        lines.append(f"<tr><th scope='row'>{escape(name)}</th>{values}</tr>")
    return (
        f"<div class='scroll'><table><thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _flows(result: RunResult) -> Iterator[str]:
    flows = result.flows.to_dicts()
    if not flows:
        return
    rows = []
    for row in flows[:SHOWN_FLOWS]:
        finish, size = row["finish_s"], row["size_bytes"]
        rows.append(
            (
                f"{row['group']}.{row['index']}",
                "endless" if size is None else f"{size:,} B",
                seconds(row["start_s"]),
                seconds(None if finish is None else finish - row["start_s"]),
                rate(row["goodput_bps"]),
                f"{row['retransmissions']:,} of {row['segments_sent']:,}",
                f"{row['timeouts']:,}",
            )
        )
    yield "<h2 id='flows'>Flows</h2>"
    head = ("flow", "size", "start", "time taken", "goodput", "retransmitted", "timeouts")
    yield table_html(head, rows)
    if len(flows) > SHOWN_FLOWS:
        yield f"<p class='soft'>... and {len(flows) - SHOWN_FLOWS:,} more in flows.parquet.</p>"


def _applications(result: RunResult) -> Iterator[str]:
    times = result.times.filter(pl.col("count") > 0).to_dicts()
    if times:
        keys = ("mean", "p50", "p95", "p99", "max")
        rows = [
            (
                f"{row['group']}: {row['quantity'].replace('_', ' ')}",
                f"{row['count']:,}",
                *(seconds(row[f"{key}_s"]) for key in keys),
            )
            for row in times
        ]
        yield "<h2 id='times'>Times</h2>"
        yield table_html(("", "number", *keys), rows)
    scores = result.scores.to_dicts()
    if scores:
        yield "<h2 id='scores'>Scores</h2>"
        yield table_html(("", "value"), [(_score(row), f"{row['value']:.4g}") for row in scores])


def _score(row: Mapping[str, Any]) -> str:
    return f"{row['group']}: {row['quantity'].replace('_', ' ')}"


def parameters(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Rate, delay and queue of every link, in words."""
    for name, link in scenario["links"].items():
        text = f"rate {_plain(link['rate'])}, delay {_plain(link['delay'])}"
        text += f", queue: {_plain(link['queue'])}"
        yield f"<dt>Link {escape(name)}</dt><dd>{escape(text)}</dd>"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    return str(value)
