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
from aqmlab.numbers import count, plain, rate, seconds, sender, signalled
from aqmlab.report import drops
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
)
from aqmlab.report.document.colours import by_label
from aqmlab.report.made import made
from aqmlab.report.notes import of_run
from aqmlab.report.plot import BESIDE, MOST_CURVES, drawn_together, shown_panels
from aqmlab.report.run_console import Cells, flow_cells, link_cells, time_cells
from aqmlab.report.setup_diagram import caption, diagram
from aqmlab.results import BUSY, RunResult, groups_of

SHOWN_FLOWS = 50
FEW_FLOWS = 12
"""Number of flows that a page shows at once; more are on demand."""
PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999,
               "max": 1.0}  # fmt: skip
MOST_BESIDE = 3
"""Other links that a page speaks of."""


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
    parts = list(shown_panels(result, beside(result)))
    if parts:
        row = result.links.filter(link=name).row(0, named=True)
        every = drawn_together(result.series["time_s"].n_unique())
        together = f", means of {every} (the longest: the largest of these)" if every > 1 else ""
        yield Figure(
            "course",
            f"The queue of {name} over time",
            f"The longest sojourn time is {seconds(row['sojourn_max_s'])}, and at most "
            f"{row['backlog_max_packets']:,} packets are in the queue.",
            f"Values over {result.scenario['record']['interval']} each{together}. Of more "
            f"than {MOST_CURVES} flows, curves are of the first {MOST_CURVES} groups: sums of "
            "goodput, means of windows.",
            charts.panels(parts, "time (s)", x_domain=(0.0, end), height=110, named=BESIDE),
        )
    yield from sojourn_figure(result)


def sojourn_figure(result: RunResult) -> Iterator[Figure]:
    """The distribution of the time in the queue of the link that pages show, if any packet
    passed."""
    name = result.shown
    row = result.links.filter(link=name).row(0, named=True)
    if not row["delivered"]:
        return
    values, shares = _waits(result, row)
    of_link = pl.col("direction").is_null()  # a group of flows may have the name of the link
    average = result.metrics.filter(of_link, subject=name, metric="throughput")["value"].item()
    yield Figure(
        "sojourn",
        f"Time in the queue of {name}",
        f"Half of the packets waited {seconds(row['sojourn_p50_s'])} or less, one in a hundred "
        f"{seconds(row['sojourn_p99_s'])} or more; {rate(average)} on average.",
        "Cumulative share of the packets.",
        charts.cdf({name: (values, shares)}, by_label([name]), "time in the queue (ms)"),
    )


def _waits(result: RunResult, link: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Times in the queue of a link in ms, and the share of packets up to each: the histogram of the
    bottleneck, percentiles of others."""
    rows = result.sojourn.filter(pl.col("link").cast(pl.String) == link["link"])
    if rows.height:
        shares = rows["count"].cum_sum() / rows["count"].sum()
        return 1e3 * rows["sojourn_s"].to_numpy(), shares.to_numpy()
    values = [link[f"sojourn_{key}_s"] for key in PERCENTILES]
    return 1e3 * np.array(values), np.array(list(PERCENTILES.values()))


def _body(result: RunResult, command: str, folder: Path | None) -> Iterator[Block]:
    yield from notes(of_run(result))
    yield from figures(result)
    yield from drops.sections(result)
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
    rows = [link_cells(row) for row in result.links.to_dicts()]
    for row in rows:
        del row["queued"]
    return _table(rows, "mean to max: time in the queue (sojourn time)")


def _table(rows: Sequence[Cells], caption: str = "") -> Table:
    """A table of rows with the same headings; the first is that of labels."""
    columns = (
        Column(name, show, label=not place)
        for place, (name, (_, show)) in enumerate(rows[0].items())
    )
    cells = (tuple(value for value, _ in row.values()) for row in rows)
    return Table(tuple(columns), tuple(cells), caption=caption)


def _remarks(result: RunResult) -> Iterator[Block]:
    told = [
        Text(f"{row['link']}: {text}") for row in result.links.to_dicts() for text in signalled(row)
    ]
    if told:
        yield Items(tuple(told))


def flows(result: RunResult, shown: int = SHOWN_FLOWS) -> Table:
    """A row a flow, of the first `shown`."""
    rows, every = result.flows.head(shown).to_dicts(), groups_of(result.scenario)
    return _table(
        [
            flow_cells(row, every[row["group"]]) | {"TCP": (_sender(result, row), str)}
            for row in rows
        ]
    )


def _sender(result: RunResult, row: Mapping[str, Any]) -> str | None:
    stack, group = row.get("tcp_stack"), row["group"]
    return stack and sender(result.scenario, groups_of(result.scenario)[group], group, stack)


def _flows(result: RunResult) -> Iterator[Block]:
    if not result.flows.height:
        return
    left = result.flows.height - SHOWN_FLOWS
    more = [Text(f"... and {count(left, 'flow')} more in flows.parquet.", "soft")]
    blocks: tuple[Block, ...] = (flows(result), *(more if left > 0 else ()))
    if result.flows.height > FEW_FLOWS:
        title = f"All {result.flows.height} flows"
        blocks = (flows(result, FEW_FLOWS), Section(title, blocks, folded=True))
    yield Section("Flows", blocks, id="flows")


def _applications(result: RunResult) -> Iterator[Block]:
    times = result.times.filter(pl.col("count") > 0).to_dicts()
    if times:
        table = _table([{"": (_name(row), str)} | time_cells(row) for row in times])
        yield Section("Times", (table,), id="times")
    scores: list[Cells] = [
        {"": (_name(row), str), "value": (row["value"], plain)} for row in result.scores.to_dicts()
    ]
    if scores:
        yield Section("Scores", (_table(scores),), id="scores")


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
        text = f"rate {words(link['rate'])}, delay {words(link['delay'])}"
        yield f"Link {name}", f"{text}, queue: {words(link['queue'])}"


def words(value: Any) -> str:
    """A setting in words: the keys of a table with their values."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {words(each)}" for key, each in value.items())
    return str(value)
