"""The document of one run: what passed, what waited, and what each group of flows got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from aqmlab._core import __version__
from aqmlab.metrics import own
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import count, percent, plain, rate, reasons, seconds, sender, whole
from aqmlab.report import drops_page
from aqmlab.report.document import (
    Block,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Section,
    Table,
    Text,
    charts,
    notes,
    save,
)
from aqmlab.report.document.colours import by_label
from aqmlab.report.made import made
from aqmlab.report.notes import of_run
from aqmlab.report.setup_diagram import caption, diagram
from aqmlab.results import BUSY, RunResult

SHOWN_FLOWS = 50
MOST_SAMPLES = 600
"""A curve over time has at most about so many points; each is the mean of the samples there."""
MOST_GROUPS = 8
MOST_BESIDE = 3
"""Other links that a page speaks of."""


def write(
    result: RunResult, folder: Path, title: str, command: str = "", *, figures: bool = True
) -> Path:
    """Writes `report.html` into `folder`, and with `figures` the pictures into `figures/` there;
    returns the path of the report.

    `command` is what made the results. Raises `StorageError` if a file cannot be written.
    """
    return save(document(result, title, command, folder), folder, figures=figures)


def document(
    result: RunResult, title: str = "A run", command: str = "", folder: Path | None = None
) -> Document:
    """The page of a run; `folder` is where its tables are, if they are kept."""
    facts = result.runs.row(0, named=True)
    return Document(
        title,
        tuple(_body(result, command, folder)),
        soft=f"{facts['end_s']:.6g} s simulated, {facts['events']:,} events, seed "
        f"{facts['seed']} · aqmlab {__version__}",
        head=(Text(finding(result), "lead"),),
    )


def finding(result: RunResult) -> str:
    """What the bottleneck did, in one or two sentences, and the other links that were busy."""
    row = result.links.filter(link=result.shown).row(0, named=True)
    if not row["delivered"]:
        return f"No packet passed {row['link']}."
    signals = next(iter(signalled(row)), "No packet was dropped, marked or lost")
    queue = result.scenario["links"][row["link"]]["queue"]["discipline"]
    told = (
        f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less in the queue of "
        f"{row['link']} ({queue}), one in twenty {seconds(row['sojourn_p95_s'])} or more, while "
        f"the link was {row['utilisation'] or 0:.1%} busy. {signals}."
    )
    for link in beside(result):
        other = result.links.filter(link=link).row(0, named=True)
        told += (
            f" At {link} ({other['utilisation'] or 0:.1%} busy) one in twenty waited "
            f"{seconds(other['sojourn_p95_s'])} or more."
        )
    return told


def beside(result: RunResult) -> list[str]:
    """Other busy links, such as the return path of data in both directions."""
    rows = result.links.filter(
        (pl.col("link").cast(pl.String) != result.shown) & (pl.col("utilisation") > BUSY)
    )
    return [str(link) for link in rows["link"]][:MOST_BESIDE]


def signalled(link: Mapping[str, Any]) -> Iterator[str]:
    """Numbers of packets that a link dropped and marked, by reason."""
    for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
        if link[word]:
            share = link[word] / link["arrived"]
            yield f"{share:.2%} of the packets were {word} ({reasons(link, prefix)})"
    if link["lost"]:
        yield f"{link['lost']:,} packets were lost on the link (`loss`)"


def figures(result: RunResult) -> Iterator[Figure]:
    """The course of the bottleneck, where samples were recorded, and its distribution."""
    end = float(result.runs["end_s"][0])
    name = result.shown
    yield Figure(
        "setup",
        "Set-up",
        f"{result.bottleneck} is the bottleneck.",
        caption(result.scenario),
        diagram(result.scenario),
    )
    parts = list(_panels(result, name))
    if parts:
        row = result.links.filter(link=name).row(0, named=True)
        yield Figure(
            "course",
            f"The queue of {name} over time",
            f"The longest sojourn time is {seconds(row['sojourn_max_s'])}, and at most "
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
    average = rate(result.metrics.filter(subject=name, metric="throughput")["value"].item())
    yield Figure(
        "sojourn",
        f"Time in the queue of {name}",
        f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less, one in a hundred "
        f"{seconds(row['sojourn_p99_s'])} or more; {average} on average.",
        "Cumulative share of the packets.",
        charts.cdf({name: (values, shares.to_numpy())}, by_label([name]), "time in the queue (ms)"),
    )


def _panels(result: RunResult, link: str) -> Iterator[Any]:
    """Delay, also at other busy links, throughput of the groups, and backlog."""
    samples = result.series
    own = samples.filter(subject=link)
    delays = {
        word: _curve(own, f"sojourn_{key}_s", 1e3)
        for word, key in (("longest", "max"), ("mean", "mean"))
    }
    if not delays["mean"][0].size:
        return
    yield "time in queue (ms)", delays, {"longest": "#56b4e9", "mean": "#0072b2"}
    others = {each: _curve(samples.filter(subject=each), "sojourn_mean_s", 1e3)
              for each in beside(result)}  # fmt: skip
    others = {each: curve for each, curve in others.items() if curve[0].size}
    if others:
        yield "mean time in queue (ms)", others, by_label(list(others))
    groups = list(dict.fromkeys(result.flows["group"]))[:MOST_GROUPS]
    goodput = dict(_goodput(result, samples, groups))
    if goodput:
        yield "goodput (Mbit/s)", goodput, by_label(list(goodput))
    throughput = {link: _curve(own, "throughput_bps", 1e-6)}
    if not goodput:
        yield "throughput (Mbit/s)", throughput, by_label([link])
    yield "queue (packets)", {link: _curve(own, "backlog_packets", 1.0)}, {link: "#009e73"}


def _curve(samples: pl.DataFrame, quantity: str, factor: float) -> tuple[Floats, Floats]:
    rows = samples.filter(quantity=quantity).select("time_s", "value").drop_nulls().drop_nans()
    return _thinned(rows["time_s"].to_numpy(), factor * rows["value"].to_numpy())


def _goodput(
    result: RunResult, samples: pl.DataFrame, groups: Sequence[str]
) -> Iterator[tuple[str, tuple[Floats, Floats]]]:
    """Goodput over time of each group and direction in Mbit/s: the sum over its flows."""
    named = pl.format("{}.{}", pl.col("group").cast(pl.String), pl.col("index")).alias("subject")
    flows = result.flows.select(named, pl.col("group", "direction").cast(pl.String))
    rows = samples.filter(quantity="goodput_bps").join(flows, on="subject", maintain_order="left")
    sums = rows.group_by("group", "direction", "time_s").agg(pl.col("value").sum()).sort("time_s")
    for group in groups:
        own = sums.filter(group=group)
        directions = sorted(own["direction"].unique())
        for direction in directions:
            curve = own.filter(direction=direction)
            name = group if len(directions) == 1 else f"{group} ({direction})"
            yield name, _thinned(curve["time_s"].to_numpy(), 1e-6 * curve["value"].to_numpy())


def _thinned(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    every = -(-times.size // MOST_SAMPLES)
    if every <= 1:
        return times, values
    edges = np.arange(0, times.size, every)
    lengths = np.diff(np.append(edges, times.size))
    return times[edges], np.add.reduceat(values, edges) / lengths


def _body(result: RunResult, command: str, folder: Path | None) -> Iterator[Block]:
    yield from notes(of_run(result))
    yield from figures(result)
    yield from drops_page.sections(result)
    yield Section("Links", (links(result), *_remarks(result)), id="links")
    yield from _flows(result)
    yield from _applications(result)
    yield from own_metrics(result)
    yield Section(
        "How this was made",
        (*made(command, folder), Facts(tuple(parameters(result.scenario)))),
        id="how",
    )


def links(result: RunResult) -> Table:
    """A row a link: counts, use, and the times in the queue."""
    times = ("mean", "p50", "p95", "p99", "max")
    rows = []
    for row in result.links.to_dicts():
        counts = [row[key] for key in ("delivered", "dropped", "marked", "lost")]
        waits = [row[f"sojourn_{key}_s"] if row["delivered"] else None for key in times]
        rows.append((row["link"], *counts, row["utilisation"], *waits))
    counted = [Column(name, whole) for name in ("sent", "dropped", "marked", "lost")]
    waited = [Column(name, seconds) for name in times]
    return Table(
        (Column("link", label=True), *counted, Column("busy", percent), *waited),
        tuple(rows),
        caption="mean to max: time in the queue (sojourn time)",
    )


def _remarks(result: RunResult) -> Iterator[Block]:
    told = [
        Text(f"{row['link']}: {text}") for row in result.links.to_dicts() for text in signalled(row)
    ]
    if told:
        yield Items(tuple(told))


def flows(result: RunResult, shown: int = SHOWN_FLOWS) -> Table:
    """A row a flow, of the first `shown`."""
    rows = []
    for row in result.flows.head(shown).to_dicts():
        finish, size = row["finish_s"], row["size_bytes"]
        rows.append(
            (
                f"{row['group']}.{row['index']}",
                "endless" if size is None else f"{size:,} B",
                row["start_s"],
                None if finish is None else finish - row["start_s"],
                row["goodput_bps"],
                f"{row['retransmissions']:,} of {row['segments_sent']:,}",
                row["timeouts"],
                _sender(result, row),
            )
        )
    columns = (
        Column("flow", label=True),
        Column("size"),
        Column("start", seconds),
        Column("time taken", seconds),
        Column("goodput", rate),
        Column("retransmitted"),
        Column("timeouts", whole),
        Column("TCP"),
    )
    return Table(columns, tuple(rows))


def _sender(result: RunResult, row: Mapping[str, Any]) -> str | None:
    stack = row.get("tcp_stack")
    return stack and sender(result.scenario["flows"][row["group"]]["transport"], stack)


def _flows(result: RunResult) -> Iterator[Block]:
    if not result.flows.height:
        return
    left = result.flows.height - SHOWN_FLOWS
    more = [Text(f"... and {count(left, 'flow')} more in flows.parquet.", "soft")]
    yield Section("Flows", (flows(result), *(more if left > 0 else ())), id="flows")


def _applications(result: RunResult) -> Iterator[Block]:
    times = result.times.filter(pl.col("count") > 0).to_dicts()
    if times:
        keys = ("mean", "p50", "p95", "p99", "max")
        rows = [(_name(row), row["count"], *(row[f"{key}_s"] for key in keys)) for row in times]
        columns = (
            Column("", label=True),
            Column("number", whole),
            *(Column(key, seconds) for key in keys),
        )
        yield Section("Times", (Table(columns, tuple(rows)),), id="times")
    scores = [(_name(row), row["value"]) for row in result.scores.to_dicts()]
    if scores:
        columns = (Column("", label=True), Column("value", plain))
        yield Section("Scores", (Table(columns, tuple(scores)),), id="scores")


def own_metrics(result: RunResult) -> list[Section]:
    """Custom metrics, if any."""
    rows = []
    for metric in own():
        values = result.metrics.filter(pl.col("metric") == metric.name)
        told = values.select("subject", "value").rows()
        rows += [(metric.title, *row, metric.unit) for row in told]
    if rows:
        columns = (
            Column("", label=True),
            Column("of", label=True),
            Column("value", plain),
            Column("unit", prose=True),
        )
        return [Section("Metrics of your own", (Table(columns, tuple(rows)),), id="own")]
    return []


def _name(row: Mapping[str, Any]) -> str:
    which = f" ({row['direction']})" if row["direction"] else ""
    return f"{row['group']}: {row['quantity'].replace('_', ' ')}{which}"


def parameters(scenario: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Rate, delay and queue of every link, in words."""
    for name, link in scenario["links"].items():
        text = f"rate {_plain(link['rate'])}, delay {_plain(link['delay'])}"
        yield f"Link {name}", f"{text}, queue: {_plain(link['queue'])}"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    return str(value)
