"""A run in the terminal: what `aqmlab run` prints.

Needs no library: the tables are lists of dictionaries, with the columns of docs/results.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab import plain
from aqmlab.numbers import percent, rate, seconds, sender, signalled, whole
from aqmlab.results.scenarios import groups_of

if TYPE_CHECKING:
    from aqmlab._core import Results

Rows = Sequence[Mapping[str, Any]]

Cells = dict[str, tuple[Any, Callable[[Any], str]]]
"""A row of a table by heading: each value, and how it is written."""
TIMES = ("mean", "p50", "p95", "p99", "max")
SHOWN_FLOWS = 20
BUSY = 0.5
"""Utilisation above which a link of an emulation is reported; links that dropped, marked or lost
packets always are."""
# Scores in bit/s.
RATES = {"bitrate", "download", "upload"}


def text(tables: Mapping[str, Rows], scenario: Mapping[str, Any]) -> str:
    """The tables of a run for a terminal, and its notes in words."""
    facts = tables["runs"][0]
    lines = [
        f"{facts['end_s']:.6g} s simulated, {facts['delivered_packets']:,} packets through the "
        f"bottleneck ({scenario['bottleneck']}), {facts['events']:,} events, seed {facts['seed']}.",
        "",
        *_links(tables),
        *_groups(tables, scenario),
        *_flows(tables, scenario),
        *_applications(tables),
    ]
    lines += [
        f"{plain.styled('Note', '1;33')} {row['subject']}: {row['text']}" for row in tables["notes"]
    ]
    return "\n".join(line.rstrip() for line in lines)


def link_cells(row: Mapping[str, Any]) -> Cells:
    """The cells of a link."""
    counts = {"sent": row["delivered"]} | {key: row[key] for key in ("dropped", "marked", "lost")}
    waits = {key: row[f"sojourn_{key}_s"] if row["delivered"] else None for key in TIMES}
    return {
        "link": (row["link"], str),
        **{key: (value, whole) for key, value in counts.items()},
        "busy": (row["utilisation"], percent),
        **{key: (value, seconds) for key, value in waits.items()},
        "queued": (f"{row['backlog_max_packets']:,} p", str),
    }


def flow_cells(row: Mapping[str, Any], group: Mapping[str, Any]) -> Cells:
    """The cells of a flow of this group of the scenario."""
    size = row["size_bytes"]
    # Other applications close their connections: no size is set, but they have an end.
    is_endless = group["workload"]["kind"] == "bulk" and row.get("completion_s") is None
    without = "endless" if is_endless else "–"
    return {
        "flow": (f"{row['group']}.{row['index']}", str),
        "size": (without if size is None else f"{size:,} B", str),
        "start": (row["start_s"], seconds),
        "time taken": (row.get("completion_s"), seconds),
        "goodput": (row["goodput_bps"], rate),
        "retransmitted": (f"{row['retransmissions']:,} of {row['segments_sent']:,}", str),
        # Only TCP, and endpoints that count them, have timeouts.
        "timeouts": (row["timeouts"] if row["timeouts"] or row.get("tcp_stack") else None, whole),
    }


def time_cells(row: Mapping[str, Any]) -> Cells:
    """The cells of a quantity of `times`, without its name."""
    return {"number": (row["count"], whole)} | {key: (row[f"{key}_s"], seconds) for key in TIMES}


def _written(rows: Iterable[Cells], heads: Sequence[str]) -> list[list[str]]:
    """Rows as texts, with the columns of these headings."""
    return [[show(value) for value, show in map(row.__getitem__, heads)] for row in rows]


def _links(tables: Mapping[str, Rows]) -> Iterator[str]:
    heads = ("link", "sent", "dropped", "marked", "busy", *TIMES, "queued")
    rows = [link_cells(row) for row in tables["links"]]
    yield from plain.table("Links", heads, _written(rows, heads))
    yield "mean to max: sojourn time (time in the queue); queued: maximum backlog"
    for row in tables["links"]:
        yield from (f"{row['link']}: {told}" for told in signalled(row))
    for row in tables["excursions"]:
        size, count, longest = row["threshold_bytes"], row["count"], row["longest_s"]
        told = f"{row['link']}: the backlog was above {size:,} B {count:,} times"
        yield f"{told}, at most for {seconds(longest)}" if count else told
    yield ""


def busy_links(results: Results) -> Iterator[str]:
    """A line for each link of an emulation that was busy or gave a signal, in either direction, and
    the notes of the links; those of the whole emulation are among its remarks."""
    for row in results.table("links").to_dicts():
        signals = list(signalled(row))
        used = row["utilisation"] or 0.0
        if used > BUSY or signals:
            waits = [row[f"sojourn_{key}_s"] for key in ("p50", "p95", "max")]
            p50, p95, most = map(seconds, waits)
            delay = f"in the queue {p50} (median), {p95} (p95), {most} (max)"
            yield "; ".join([f"{row['link']}: {percent(used)} busy, {delay}", *signals])
    for note in results.table("notes").to_dicts():
        if note["subject"] != "run":
            yield f"{note['subject']}: {note['text']}"


def shows_metrics(scenario: Mapping[str, Any]) -> bool:
    """Whether the text has metrics of groups of flows: there is more than one flow."""
    return sum(int(group["count"]) for group in groups_of(scenario).values()) > 1


def _groups(tables: Mapping[str, Rows], scenario: Mapping[str, Any]) -> Iterator[str]:
    """Metrics of groups of flows by direction."""
    if not shows_metrics(scenario):
        return
    of: dict[str, dict[str, float]] = {}
    directed: dict[tuple[str, str], dict[str, float]] = {}
    for row in tables["metrics"]:
        if row["value"] is not None:
            of.setdefault(row["subject"], {})[row["metric"]] = row["value"]
            key = (row["subject"], row["direction"])
            directed.setdefault(key, {})[row["metric"]] = row["value"]
    groups = [name for name in groups_of(scenario) if "goodput" in of.get(name, {})]
    if not groups:
        return
    heads = ("group", "goodput", "share", "Jain", "lost", "delay variation", "power")
    rows = []
    for name in groups:
        directions = directions_of(tables, name)
        for place, direction in enumerate(directions):
            own = directed.get((name, direction), {})
            jain = of[name].get("jain") if place == 0 else None
            rows.append(
                [
                    name if len(directions) == 1 else f"{name} ({direction})",
                    rate(own.get("goodput")),
                    percent(own.get("goodput_share")),
                    f"{jain:.3f}" if jain is not None else "–",
                    f"{own['loss_share']:.2%}" if "loss_share" in own else "–",
                    seconds(own.get("delay_variation")),
                    f"{own['power'] / 1e6:.3g} Mbit/s²" if "power" in own else "–",
                ]
            )
    yield from plain.table("Groups", heads, rows)
    if any(row[-1] != "–" for row in rows):
        yield "power: goodput over mean one-way delay"
    for name, own in of.items():
        if "loss_synchronisation" in own:
            share = own["loss_synchronisation"]
            yield f"{name}: on average {share:.0%} of the flows lose packets in a loss event"
        if "rtt_fairness" in own:
            ratio = own["rtt_fairness"]
            yield f"{name}: a flow has {ratio:.3g} times the goodput of one of the first group"
    yield ""


def directions_of(tables: Mapping[str, Rows], group: str) -> list[str]:
    """Directions with arrivals or losses of a group (with real packets, that of any flow): of two
    the one with the larger delay first, else forward."""
    ends = ("arrived", "dropped", "lost")
    found = [
        row["direction"]
        for row in tables["traffic"]
        if row["group"] == group
        and (row["direction"] == "forward" or any(row[end] != 0 for end in ends))
    ]
    delays = [
        row["direction"]
        for row in tables["times"]
        if (row["group"], row["quantity"]) == (group, "delay")
    ]
    return sorted(found, key=lambda each: delays.index(each) if each in delays else len(delays))


def named(row: Mapping[str, Any]) -> str:
    """A quantity of a row of `times` or `scores`, with its direction."""
    direction = row["direction"]
    return f"{row['quantity']} ({direction})" if direction else str(row["quantity"])


def _flows(tables: Mapping[str, Rows], scenario: Mapping[str, Any]) -> Iterator[str]:
    flows = tables["flows"]
    heads = ("flow", "size", "start", "time taken", "goodput", "retransmitted", "timeouts")
    every = groups_of(scenario)
    rows = [flow_cells(row, every[row["group"]]) for row in flows[:SHOWN_FLOWS]]
    yield from plain.table("Flows", heads, _written(rows, heads))
    if len(flows) > SHOWN_FLOWS:
        yield f"... and {len(flows) - SHOWN_FLOWS} more flows (all with --out or --json)"
    senders = _senders(tables["groups"], scenario)
    if senders:
        yield f"TCP: {senders}"
    yield ""


def _senders(groups: Rows, scenario: Mapping[str, Any]) -> str:
    """The groups of each congestion control and state machine that ran."""
    of: dict[str, list[str]] = {}
    every = groups_of(scenario)
    for row in groups:
        if row.get("tcp_stack"):
            group = row["group"]
            text = sender(scenario, every[group], group, row["tcp_stack"])
            of.setdefault(text, []).append(row["group"])
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in of.items())


def _applications(tables: Mapping[str, Rows]) -> Iterator[str]:
    """Times and scores of groups that are more than flows."""
    of_flows = {row["group"] for row in tables["flows"]}
    plainly = {"startup", "completion"}
    times = tables["times"]
    told = {row["group"] for row in times if row["quantity"] not in plainly}
    shown = [row for row in times if row["group"] in told or row["group"] not in of_flows]
    if shown:
        heads = ("number", *TIMES)
        written = _written(map(time_cells, shown), heads)
        rows = [[row["group"], named(row), *own] for row, own in zip(shown, written, strict=True)]
        yield from plain.table("Times", ("group", "of", *heads), rows, labels=2)
    scores: dict[str, list[str]] = {}
    for row in tables["scores"]:
        is_rate = row["quantity"] in RATES
        value = rate(row["value"]) if is_rate else f"{row['value']:.4g}"
        scores.setdefault(row["group"], []).append(f"{named(row)} {value}")
    for group, values in scores.items():
        yield f"{group}: {', '.join(values)}"
    if shown or scores:
        yield ""
