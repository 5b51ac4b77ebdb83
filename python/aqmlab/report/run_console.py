"""A run in the terminal: what `aqmlab run` prints.

Needs no library: the tables are lists of dictionaries, with the columns of docs/results.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aqmlab import plain
from aqmlab.numbers import percent, rate, seconds, sender, signalled

Rows = Sequence[Mapping[str, Any]]

SHOWN_FLOWS = 20
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


def _links(tables: Mapping[str, Rows]) -> Iterator[str]:
    heads = ("link", "sent", "dropped", "marked", "busy", "mean", "p50", "p95", "p99", "max")
    rows = []
    for row in tables["links"]:
        delays = [row[f"sojourn_{key}_s"] for key in ("mean", "p50", "p95", "p99", "max")]
        rows.append(
            [
                row["link"],
                f"{row['delivered']:,}",
                f"{row['dropped']:,}",
                f"{row['marked']:,}",
                percent(row["utilisation"]),
                *(seconds(delay if row["delivered"] else None) for delay in delays),
                f"{row['backlog_max_packets']:,} p",
            ]
        )
    yield from plain.table("Links", (*heads, "queued"), rows)
    yield "mean to max: sojourn time (time in the queue); queued: maximum backlog in packets"
    for row in tables["links"]:
        yield from (f"{row['link']}: {told}" for told in signalled(row))
    for row in tables["excursions"]:
        size, count, longest = row["threshold_bytes"], row["count"], row["longest_s"]
        told = f"{row['link']}: the backlog was above {size:,} B {count:,} times"
        yield f"{told}, at most for {seconds(longest)}" if count else told
    yield ""


def shows_metrics(scenario: Mapping[str, Any]) -> bool:
    """Whether the text has metrics of groups of flows: there is more than one flow."""
    return sum(int(group["count"]) for group in scenario["flows"].values()) > 1


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
    groups = [name for name in scenario["flows"] if "goodput" in of.get(name, {})]
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
    for name, own in of.items():
        if "loss_synchronisation" in own:
            share = own["loss_synchronisation"]
            yield f"{name}: on average {share:.0%} of the flows lose packets in a loss event"
        if "rtt_fairness" in own:
            ratio = own["rtt_fairness"]
            yield f"{name}: a flow has {ratio:.3g} times the goodput of one of the first group"
    yield ""


def directions_of(tables: Mapping[str, Rows], group: str) -> list[str]:
    """Directions with arrivals or losses of a group: of two the one with the larger
    delay first, else forward."""
    ends = ("arrived", "dropped", "lost")
    found = [
        row["direction"]
        for row in tables["traffic"]
        if row["group"] == group
        and (row["direction"] == "forward" or sum(row[end] for end in ends) > 0)
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
    rows = []
    for row in flows[:SHOWN_FLOWS]:
        finish = row["finish_s"]
        rows.append(
            [
                f"{row['group']}.{row['index']}",
                "endless" if row["size_bytes"] is None else f"{row['size_bytes']:,} B",
                seconds(row["start_s"]),
                seconds(None if finish is None else finish - row["start_s"]),
                rate(row["goodput_bps"]),
                f"{row['retransmissions']:,} of {row['segments_sent']:,}",
                f"{row['timeouts']:,}",
            ]
        )
    yield from plain.table("Flows", heads, rows)
    if len(flows) > SHOWN_FLOWS:
        yield f"... and {len(flows) - SHOWN_FLOWS} more flows (all with --out or --json)"
    senders = _senders(tables["groups"], scenario)
    if senders:
        yield f"TCP: {senders}"
    yield ""


def _senders(groups: Rows, scenario: Mapping[str, Any]) -> str:
    """The groups of each congestion control and state machine that ran."""
    of: dict[str, list[str]] = {}
    for row in groups:
        if row.get("tcp_stack"):
            text = sender(scenario["flows"][row["group"]]["transport"], row["tcp_stack"])
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
        keys = ("mean", "p50", "p95", "p99", "max")
        rows = [
            [
                row["group"],
                named(row),
                f"{row['count']:,}",
                *(seconds(row[f"{key}_s"]) for key in keys),
            ]
            for row in shown
        ]
        yield from plain.table("Times", ("group", "of", "number", *keys), rows, labels=2)
    scores: dict[str, list[str]] = {}
    for row in tables["scores"]:
        is_rate = row["quantity"] in RATES
        value = rate(row["value"]) if is_rate else f"{row['value']:.4g}"
        scores.setdefault(row["group"], []).append(f"{named(row)} {value}")
    for group, values in scores.items():
        yield f"{group}: {', '.join(values)}"
    if shown or scores:
        yield ""
