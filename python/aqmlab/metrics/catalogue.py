"""What is measured: every metric by name, with its unit, its definition and where it stands.

`aqmlab list metrics` and `aqmlab explain jain` show this; docs/results.md has the tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aqmlab.metrics.registry import Metric, register
from aqmlab.metrics.runs import of_column, of_metrics, of_quantity

COMPUTED = "table `metrics`"
"""Where the metrics stand that are computed from others (`aqmlab.metrics.table`)."""


_TOLD = (
    # Time
    Metric("sojourn", "link", "s", "The time a packet spends in the queue, of those that left "
           "it: mean, percentiles and maximum; at the bottleneck the whole distribution.",
           "table `links`: `sojourn_mean_s` to `sojourn_max_s`; table `sojourn`; series "
           "`sojourn_mean_s`, `sojourn_max_s`", "RFC 7567, section 4.2; RFC 7928, section 4.2"),
    Metric("delay", "group", "s", "One-way delay of a packet from its sender to its receiver: the "
           "packet transmission time. Of datagrams always, of TCP with `delays = true`.",
           "table `times`: `delay`; table `delays`; table `flows`: `delay_mean_s`, `delay_max_s`",
           "RFC 7679; RFC 7928, section 2.6"),
    Metric("delay_variation", "group", "s", "Packet delay variation: the 99.9th percentile of the "
           "one-way delay less its minimum; `delay_variation_p95` with the 95th.",
           COMPUTED, "RFC 5481, section 4.2; RFC 7928, section 2.6"),
    Metric("delay_jitter", "flow", "s", "The smoothed difference of the delays of packets one "
           "behind the other, of datagrams.", "table `flows`: `jitter_s`",
           "RFC 3550, section 6.4.1"),
    Metric("rtt", "application", "s", "Round-trip time of probes, with and without load.",
           "table `times`: `rtt`, `rtt_idle` (workloads `probe`, `rrul`)", "RFC 2681"),
    Metric("spike_duration", "link", "s", "How long the backlog stays above a threshold, and how "
           "often: `thresholds = [\"15000b\"]` of a link.",
           "table `excursions`: `count`, `longest_s`, `total_s`", "Järvinen and Kojo 2014"),
    Metric("completion", "group", "s", "Flow completion time: from the SYN to the last byte.",
           "table `times`: `completion`; each flow: table `flows`, `finish_s` less `start_s`",
           "RFC 7928, section 2.1"),
    Metric("startup", "group", "s", "Flow start-up time: from the client's request for a "
           "connection until the server may send, or with requests begins to.",
           "table `times`: `startup`", "RFC 7928, section 2.2"),
    Metric("response", "group", "s", "From a request to the last byte of its response.",
           "table `times`: `response` (workloads `requests`, `packmime`, `incast`)",
           "Järvinen and Kojo 2014"),
    Metric("page_load", "group", "s", "Page load time: from the start of a page to the last byte "
           "of its last object; `first_byte` of its document.",
           "table `times`: `page_load`, `first_byte` (workload `page`)", "RFC 7928, section 2.1"),
    Metric("query", "group", "s", "Query completion time of an incast.",
           "table `times`: `query` (workload `incast`)", "Alizadeh and others, DCTCP, 2010"),
    # Rates
    Metric("goodput", "flow, group", "bit/s", "Data that reached the receiver, each byte "
           "counted once, when it first arrives, whether in order or not (of datagrams with their "
           "headers), after the warm-up: of a flow over the time it was active, of a group and "
           "direction over all of it.",
           f"table `flows`: `goodput_bps`; {COMPUTED}; series `goodput_bps`",
           "RFC 7928, section 2.5"),
    Metric("goodput_share", "group", "1", "Share of the total goodput of all groups and "
           "directions.", COMPUTED, "this program"),
    Metric("throughput", "link, flow, group", "bit/s", "Of a link the egress: packets "
           "transmitted in full after the warm-up. Of flows what their senders sent, with headers "
           "and what was sent again.",
           f"{COMPUTED}; table `flows`: `throughput_bps`; of links over time: series "
           "`throughput_bps`", "RFC 7928, sections 2.5 and 4.2"),
    Metric("ingress", "link", "bit/s", "What came to the queue, over time.",
           "series `ingress_bps`", "Hill and Shah 2015"),
    Metric("cumulative_bytes", "link", "bytes", "Packets transmitted since the start.",
           "series `delivered_bytes`", "Hill and Shah 2015"),
    Metric("utilisation", "link", "1", "What was used of what the link offered since its first "
           "packet or the end of the warm-up, also where its rate changes.",
           "table `links`: `utilisation`", "RFC 7928, section 4.2"),
    Metric("possible_share", "link", "1", "Share of the bytes that the link could transmit from "
           "the end of the warm-up to that of the run, in packets transmitted in full; at most 1.",
           COMPUTED, "Hill and Shah 2015"),
    # Queue and losses
    Metric("queue_length", "link", "packets, bytes", "Backlog: mean over time, and largest.",
           "table `links`: `backlog_mean_packets`, `backlog_max_bytes`, ...; series "
           "`backlog_packets`, `backlog_bytes`", "RFC 7928, section 4.2"),
    Metric("drop_share", "link", "1", "Of the packets that came after the warm-up or waited at "
           "its end, those the queue dropped; by reason in the table `links`.",
           f"{COMPUTED}; table `links`: `drop_REASON`", "RFC 7928, section 2.3"),
    Metric("mark_share", "link", "1", "Of the packets that came after the warm-up or waited at "
           "its end, those that were marked (CE).",
           f"{COMPUTED}; table `links`: `mark_REASON`", "RFC 7928, section 4.5"),
    Metric("loss_share", "group", "1", "Share of lost packets (data packets and SYNs), by "
           "direction: of those that arrived, were dropped by a queue or were lost on a link after "
           "the warm-up, those that did not arrive. `loss_share_queue` and `loss_share_link` are "
           "its two causes.", COMPUTED, "RFC 7928, section 2.3"),
    Metric("loss_interval", "link", "s", "The gap between two drops, one after the other.",
           "table `links`: `loss_interval_mean_s`, `_p50_s`, `_p95_s`, `_max_s`",
           "RFC 3611; RFC 7928, section 2.3"),
    Metric("loss_events", "link", "events", "Events in which data packets are dropped; each lasts "
           "a longest round-trip time.", "table `links`: `loss_events`, `loss_event_flows`",
           "RFC 7928, section 2.4"),
    Metric("loss_synchronisation", "link", "1", "Of the flows over the link, the share that "
           "loses packets in a loss event; where all that have data there are endless bulk flows.",
           COMPUTED, "RFC 7928, section 2.4"),
    # Fairness and trade-offs
    Metric("jain", "group", "1", "Jain's index of the goodput of flows that are alike: of a group "
           "of bulk, cbr or pareto-onoff, and of `all` endless bulk flows. 1 is equal, 1/n is "
           "one for all.",
           COMPUTED, "Jain, Chiu and Hawe 1984"),
    Metric("rtt_fairness", "group", "1", "Mean goodput of its endless bulk flows, over that "
           "of the flows of the scenario's first such group (category I).", COMPUTED,
           "RFC 7928, section 6.3"),
    Metric("power", "group", "bit/s²", "Goodput over mean one-way delay.", COMPUTED,
           "Kleinrock 1979"),
    Metric("tradeoff", "runs", "s, bit/s", "Mean time in the queue and goodput, a point a run, "
           "with the ellipse of the most likely normal distribution.",
           "`aqmlab study FILE --tradeoff FILE.svg`; `StudyResult.tradeoff`; "
           "`aqmlab characterize`", "RFC 7928, section 2.7; Winstein 2014"),
    # Applications
    Metric("mos", "application", "1 to 4.5", "Mean opinion score of calls by the E-model; with "
           "`r_factor`, `lost` and `late`.", "table `scores`: `mos` (workload `voip`)",
           "ITU-T G.107"),
    Metric("stalls", "application", "number", "How often a player stood still; `stalled`: share "
           "of the time; how long each: times `stall`; until the first picture: times `join`.",
           "table `scores`: `stalls`, `stalled`; table `times` (workloads `dash`, `video`)",
           "RFC 7928, section 2.1"),
    Metric("bitrate", "application", "bit/s", "Mean rate of the segments played; `switches` "
           "between rates.", "table `scores`: `bitrate`, `switches` (workload `dash`)",
           "FESTIVE, BOLA"),
    Metric("missed", "application", "1", "Frames that were not complete when their turn came.",
           "table `scores`: `missed` (workload `video`)", "this program"),
    Metric("late", "application", "1", "Packets that came too late to be used.",
           "table `scores`: `late` (workloads `voip`, `game`)", "this program"),
    Metric("rpm", "application", "round trips/min", "Responsiveness under load.",
           "table `scores`: `rpm` (workload `rpm`)", "draft-ietf-ippm-responsiveness"),
)  # fmt: skip

LINK, TIMES = ("mean", "p50", "p95", "p99", "max"), ("p95", "mean", "p50", "p99", "max")


def _link(title: str, better: str, column: str, *statistics: str) -> dict[str, Any]:
    return {
        "title": title,
        "better": better,
        "needs": ("links",),
        "statistics": statistics,
        "compute": of_column("links", "link", column),
    }


def _time(quantity: str, title: str, rank: int = 0) -> dict[str, Any]:
    return {
        "title": title,
        "rank": rank,
        "better": "less",
        "needs": ("times",),
        "statistics": TIMES,
        "compute": of_quantity("times", quantity, "{}_s"),
    }


def _score(
    quantity: str, title: str, better: str, rank: int, shown_unit: str = ""
) -> dict[str, Any]:
    return {
        "title": title,
        "rank": rank,
        "shown_unit": shown_unit,
        "better": better,
        "needs": ("scores",),
        "compute": of_quantity("scores", quantity, "value"),
    }


def _made(name: str, title: str, better: str, *needs: str) -> dict[str, Any]:
    return {"title": title, "better": better, "needs": needs, "compute": of_metrics(name)}


_HOW: dict[str, dict[str, Any]] = {
    "sojourn": _link("time in the queue", "less", "sojourn_{}_s", "p95", "mean", "p50", "p99",
                     "max"),
    "utilisation": _link("link busy", "more", "utilisation"),
    "queue_length": _link("mean backlog", "less", "backlog_mean_packets"),
    "loss_interval": _link("gap between drops", "", "loss_interval_{}_s", "mean", "p50", "p95",
                           "max"),
    "loss_events": _link("loss events", "less", "loss_events"),
    "delay": _time("delay", "one-way delay", 8),
    "rtt": _time("rtt", "round trip of a probe", 7),
    "completion": _time("completion", "completion time", 5),
    "startup": _time("startup", "start-up time"),
    "response": _time("response", "response time", 3),
    "page_load": _time("page_load", "page load time", 1),
    "query": _time("query", "time of a query", 2),
    "delay_variation": _made("delay_variation", "delay variation", "less", "times")
    | {"statistics": ("", "p95")},
    "goodput": _made("goodput", "goodput", "more", "traffic", "runs"),
    "goodput_share": _made("goodput_share", "share of the goodput", "", "traffic"),
    "throughput": _made("throughput", "throughput", "more", "links", "traffic", "runs"),
    "possible_share": _made("possible_share", "part of what was possible", "more", "links"),
    "drop_share": _made("drop_share", "dropped", "less", "links"),
    "mark_share": _made("mark_share", "marked", "", "links"),
    "loss_share": _made("loss_share", "lost", "less", "traffic")
    | {"statistics": ("", "queue", "link")},
    "loss_synchronisation": _made("loss_synchronisation", "loss synchronisation", "less", "links"),
    "jain": _made("jain", "Jain's index", "more", "flows"),
    "rtt_fairness": _made("rtt_fairness", "goodput over that of the first group", "", "flows"),
    "power": _made("power", "power", "more", "traffic", "times"),
    "mos": _score("mos", "MOS", "more", 1, "of 1 to 4.5"),
    "stalls": _score("stalls", "stalls", "less", 4),
    "bitrate": _score("bitrate", "bit rate of the video", "more", 5),
    "missed": _score("missed", "frames missed", "less", 3, "% of the frames"),
    "late": _score("late", "late packets", "less", 6, "% of the packets"),
    "rpm": _score("rpm", "round trips a minute", "more", 2, "RPM"),
}  # fmt: skip
"""How the values of each are computed; the others are no single number a run and subject."""

_MORE = (
    Metric("http_l", "application", "s", "Response time under load, of the responsiveness test.",
           "table `times`: `http_l` (workload `rpm`)", "draft-ietf-ippm-responsiveness"),
    Metric("stall", "application", "s", "How long a player stood still, each time.",
           "table `times`: `stall` (workloads `dash`, `video`)", "RFC 7928, section 2.1"),
    Metric("frame", "application", "s", "The delay of a frame of a video: from the camera to the "
           "last of its packets.", "table `times`: `frame` (workload `video`)", "this program"),
    Metric("download", "application", "bit/s", "Goodput of the downloads of a test.",
           "table `scores`: `download` (workloads `rrul`, `rpm`)", "RRUL"),
)  # fmt: skip
_HOW |= {
    "http_l": _time("http_l", "response time under load", 4),
    "stall": _time("stall", "length of a stall", 6),
    "frame": _time("frame", "delay of a frame", 9),
    "download": _score("download", "download", "more", 7),
}

_INDICES = ("rtt_fairness",)
"""Of unit 1, and above 1 as well."""


def _limited(metric: Metric) -> Metric:
    if metric.name == "mos":
        return replace(metric, least=1.0, most=4.5)
    is_share = metric.unit == "1" and metric.name not in _INDICES
    return replace(metric, most=1.0) if is_share else metric


METRICS = tuple(_limited(replace(each, **_HOW.get(each.name, {}))) for each in (*_TOLD, *_MORE))
register(METRICS)
