"""Catalogue: the metrics that aqmlab has, each declared once.

A declaration has the name, unit, meaning, place in the results and source, then how a value a run
and subject is computed and which direction is better. `aqmlab list metrics` and
`aqmlab explain jain` show it; docs/results.md describes the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqmlab.metrics.formulas import ack_loss_share, may_meet, queued_share, unequal
from aqmlab.metrics.registry import LESS, MORE, NEITHER, Metric, register
from aqmlab.metrics.runs import of_formula, of_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from aqmlab.metrics.formulas import Facts, Formula

    Compute = Callable[..., Any]
    Event = Callable[[Facts, str], float]

COMPUTED = "table `metrics`"
"""Place of the metrics that are computed from others (`aqmlab.metrics.table`)."""
TIMES = ("p95", "mean", "p50", "p99", "max")


SYN_LOST = 1.0
"""A lost SYN costs the initial retransmission timeout, in seconds (RFC 6298, section 2)."""
DRAINED = 0.1
"""The time that CoDel allows a queue to drain, in seconds (RFC 8289, section 4.3)."""


def _shared(cost: float) -> Event:
    """The event of a packet that meets a download in its queue where a hash chooses the queue."""
    return lambda scenario, _: cost if may_meet(scenario) else 0.0


def _of(compute: Compute, title: str, direction: int, *needs: str, **more: Any) -> dict[str, Any]:
    return {"compute": compute, "title": title, "direction": direction, "needs": needs, **more}


def _link(title: str, direction: int, column: str, *statistics: str) -> dict[str, Any]:
    return _of(of_rows("links", "link", column), title, direction, "links", statistics=statistics)


def _time(quantity: str, title: str, rank: int = 0, event: float | Event = 0.0) -> dict[str, Any]:
    return _of(of_rows("times", "group", "{}_s", quantity), title, LESS, "times",
               observations=quantity, rank=rank, event=event, statistics=TIMES)  # fmt: skip


def _score(quantity: str, title: str, direction: int, rank: int, unit: str = "") -> dict[str, Any]:
    compute = of_rows("scores", "group", "value", quantity)
    return _of(compute, title, direction, "scores", rank=rank, shown_unit=unit)


def _made(name: str, title: str, direction: int, *needs: str, **more: Any) -> dict[str, Any]:
    compute = of_rows("metrics", "subject", "value", f"{name}_{{}}", key="metric")
    return _of(compute, title, direction, *needs, **more)


def _formula(
    title: str, direction: int, table: str, subject: str, formula: Formula
) -> dict[str, Any]:
    return _of(of_formula(table, subject, formula), title, direction, table)


METRICS = (
    # Time
    Metric("sojourn", "link", "s", "Time that a packet spends in the queue, of packets that "
           "left it: mean, percentiles, maximum; at the bottleneck the whole distribution.",
           "table `links`: `sojourn_mean_s` to `sojourn_max_s`; table `sojourn`; series "
           "`sojourn_mean_s`, `sojourn_max_s`", "RFC 7567, section 4.2; RFC 7928, section 4.2",
           **_link("time in the queue", LESS, "sojourn_{}_s", "p95", "mean", "p50", "p99", "max")),
    Metric("delay", "group", "s", "One-way delay of a packet from its sender to its receiver: "
           "queuing, transmission and propagation. Of datagrams always, of TCP with "
           "`delays = true`.",
           "table `times`: `delay`; table `delays`; table `flows`: `delay_mean_s`, `delay_max_s`",
           "RFC 7679; RFC 7928, section 2.6",
           **_time("delay", "one-way delay", 8, _shared(DRAINED))),
    Metric("delay_variation", "group", "s", "Packet delay variation: the 99.9th percentile of the "
           "one-way delay less its minimum; `delay_variation_p95` with the 95th. None for groups "
           "whose flows have base delays of their own (`access_delay`).",
           COMPUTED, "RFC 5481, section 4.2; RFC 7928, section 2.6",
           **_made("delay_variation", "delay variation", LESS, "times", statistics=("", "p95")),
           observations="delay"),
    Metric("delay_jitter", "flow", "s", "Smoothed difference of the delays of consecutive "
           "datagrams.", "table `flows`: `jitter_s`",
           "RFC 3550, section 6.4.1"),
    Metric("rtt", "application", "s", "Round-trip time of probes, with and without load.",
           "table `times`: `rtt`, `rtt_idle` (workloads `probe`, `rrul`)", "RFC 2681",
           **_time("rtt", "round trip of a probe", 7, _shared(DRAINED))),
    Metric("spike_duration", "link", "s", "How long the backlog stays above a threshold, and how "
           "often: `thresholds = [\"15000b\"]` of a link.",
           "table `excursions`: `count`, `longest_s`, `total_s`", "Järvinen and Kojo 2014"),
    Metric("completion", "group", "s", "Flow completion time: from the SYN to the last byte.",
           "table `times`: `completion`; each flow: table `flows`, `completion_s`",
           "RFC 7928, section 2.1",
           **_time("completion", "completion time", 5, SYN_LOST)),
    Metric("startup", "group", "s", "Flow start-up time: from the client's request for a "
           "connection until the server may send, or with requests begins to.",
           "table `times`: `startup`", "RFC 7928, section 2.2",
           **_time("startup", "start-up time", event=SYN_LOST)),
    Metric("response", "group", "s", "From a request to the last byte of its response.",
           "table `times`: `response` (workloads `requests`, `packmime`, `incast`)",
           "Järvinen and Kojo 2014",
           **_time("response", "response time", 3, SYN_LOST)),
    Metric("page_load", "group", "s", "Page load time: from the start of a page to the last byte "
           "of its last object; `first_byte` of its document.",
           "table `times`: `page_load`, `first_byte` (workload `page`)", "RFC 7928, section 2.1",
           **_time("page_load", "page load time", 1, SYN_LOST)),
    Metric("query", "group", "s", "Query completion time of an incast.",
           "table `times`: `query` (workload `incast`)", "Alizadeh and others, DCTCP, 2010",
           **_time("query", "time of a query", 2, SYN_LOST)),
    # Rates
    Metric("goodput", "flow, group", "bit/s", "Data that reached the receiver, each byte "
           "counted once, when it first arrives, whether in order or not (of datagrams with their "
           "headers), after the warm-up: of a flow over the time until its last byte arrives "
           "or a change stops it, of a group and direction over all of it.",
           f"table `flows`: `goodput_bps`; {COMPUTED}; series `goodput_bps`",
           "RFC 7928, section 2.5",
           **_made("goodput", "goodput", MORE, "traffic", "runs")),
    Metric("goodput_share", "group", "share", "Share of the total goodput of all groups and "
           "directions.", COMPUTED, "this program",
           **_made("goodput_share", "share of the goodput", NEITHER, "traffic")),
    Metric("throughput", "link, flow, group", "bit/s", "Of a link, the egress: packets "
           "transmitted in full after the warm-up. Of flows, all packets of their senders, with "
           "headers and retransmissions. A group with the name of a link is called `NAME (group)`.",
           f"{COMPUTED}; table `flows`: `throughput_bps`; of links over time: series "
           "`throughput_bps`", "RFC 7928, sections 2.5 and 4.2",
           **_made("throughput", "throughput", MORE, "links", "traffic", "runs")),
    Metric("ingress", "link", "bit/s", "Arrival rate at the queue over time.",
           "series `ingress_bps`", "Hill and Shah 2015"),
    Metric("cumulative_bytes", "link", "bytes", "Packets transmitted since the start.",
           "series `delivered_bytes`", "Hill and Shah 2015"),
    Metric("utilisation", "link", "share", "Used share of the capacity that the link offered since "
           "its first packet or the end of the warm-up, also where its rate changes.",
           "table `links`: `utilisation`", "RFC 7928, section 4.2",
           **_link("link busy", MORE, "utilisation")),
    Metric("possible_share", "link", "share", "Share of the bytes that the link could transmit "
           "from the end of the warm-up to that of the run, in packets transmitted in full.",
           COMPUTED, "Hill and Shah 2015",
           **_made("possible_share", "part of what was possible", MORE, "links")),
    # Queue and losses
    Metric("queue_length", "link", "packets", "Backlog: mean over time, and largest.",
           "table `links`: `backlog_mean_packets`, `backlog_max_bytes`, ...; series "
           "`backlog_packets`, `backlog_bytes`", "RFC 7928, section 4.2",
           **_link("mean backlog", LESS, "backlog_mean_packets")),
    Metric("drop_share", "link", "share", "Of the packets that came after the warm-up or waited at "
           "its end, those the queue dropped; by reason in the table `links`.",
           f"{COMPUTED}; table `links`: `drop_REASON`", "RFC 7928, section 2.3",
           **_made("drop_share", "dropped", LESS, "links")),
    Metric("queued_drop_share", "link", "share", "Share of the drops that were taken from the "
           "queue, not at arrival.", "table `links`: `dropped_queued`, `dropped`",
           "RFC 7928, section 4.6",
           **_formula("drops from the queue", NEITHER, "links", "link", queued_share)),
    Metric("mark_share", "link", "share", "Of the packets that came after the warm-up or waited at "
           "its end, those that were marked (CE).",
           f"{COMPUTED}; table `links`: `mark_REASON`", "RFC 7928, section 4.5",
           **_made("mark_share", "marked", NEITHER, "links")),
    Metric("loss_share", "group", "share", "Share of lost packets (data packets and SYNs), by "
           "direction: of those that arrived, were dropped by a queue or were lost on a link after "
           "the warm-up, those that did not arrive. `loss_share_queue` and `loss_share_link` are "
           "its two causes.", COMPUTED, "RFC 7928, section 2.3",
           **_made("loss_share", "lost", LESS, "traffic", statistics=("", "queue", "link"))),
    Metric("ack_loss_share", "group", "share", "Share of the acknowledgements that were dropped or "
           "lost.", "table `traffic`: `dropped_acks`, `lost_acks`, `arrived_acks`",
           "RFC 7928, section 9.2",
           **_formula("acknowledgements lost", LESS, "traffic", "group", ack_loss_share)),
    Metric("loss_interval", "link", "s", "Time between two consecutive drops at the link, "
           "of all its flows. (The RFCs mean those of one flow.)",
           "table `links`: `loss_interval_mean_s`, `_p50_s`, `_p95_s`, `_max_s`",
           "RFC 3611; RFC 7928, section 2.3",
           **_link("gap between drops", NEITHER, "loss_interval_{}_s", "mean", "p50",
                   "p95", "max")),
    Metric("loss_events", "link", "events", "Events in which data packets are dropped; each spans "
           "one maximum round-trip time.", "table `links`: `loss_events`, `loss_event_flows`, "
           "`loss_event_bulk_flows`",
           "RFC 7928, section 2.4",
           **_link("loss events", LESS, "loss_events")),
    Metric("loss_synchronisation", "link", "share", "Of the flows with data in a loss event, the "
           "share that loses packets in it; where all flows with data on the link are endless bulk "
           "flows.",
           COMPUTED, "RFC 7928, section 2.4",
           **_made("loss_synchronisation", "loss synchronisation", LESS, "links")),
    # Fairness and trade-offs
    Metric("jain", "group", "ratio", "Jain's index of the goodput of flows that are alike: of a "
           "group of bulk, cbr or pareto-onoff, and of `all` endless bulk flows if they share a "
           "link. 1: equal, 1/n: one flow has everything.",
           COMPUTED, "Jain, Chiu and Hawe 1984",
           **_made("jain", "Jain's index", MORE, "flows"), most=1.0, event=unequal),
    Metric("rtt_fairness", "group", "ratio", "Mean goodput of its endless bulk flows, over that "
           "of the flows of the scenario's first such group (category I), if they share a link.",
           COMPUTED,
           "RFC 7928, section 6.3",
           **_made("rtt_fairness", "goodput over that of the first group", NEITHER, "flows")),
    Metric("power", "group", "bit/s²", "Goodput over mean one-way delay, where that is of all data "
           "(`page` and `rrul` need `delays = true`).", COMPUTED,
           "Kleinrock 1979",
           **_made("power", "power", MORE, "traffic", "times")),
    Metric("tradeoff", "runs", "s, bit/s", "Mean time in the queue and goodput, a point a run, "
           "with the ellipse of the most likely normal distribution.",
           "`aqmlab study FILE --tradeoff FILE.svg`; `StudyResult.tradeoff`; "
           "`aqmlab characterize`", "RFC 7928, section 2.7; Winstein 2014"),
    # Applications
    Metric("mos", "application", "1 to 4.5", "Mean opinion score of calls by the E-model; with "
           "`r_factor`, `lost` and `late`.", "table `scores`: `mos` (workload `voip`)",
           "ITU-T G.107",
           **_score("mos", "MOS", MORE, 1, "of 1 to 4.5"), least=1.0, most=4.5,
           event=_shared(3.5)),
    Metric("stalls", "application", "number", "Rebuffering events of a player; `stalled`: share "
           "of the time; their lengths: times `stall`; time to the first picture: times `join`. A "
           "player that never starts has none.",
           "table `scores`: `stalls`, `stalled`; table `times` (workloads `dash`, `video`)",
           "RFC 7928, section 2.1",
           **_score("stalls", "stalls", LESS, 4)),
    Metric("bitrate", "application", "bit/s", "Mean rate of the segments played; `switches` "
           "between rates.", "table `scores`: `bitrate`, `switches` (workload `dash`)",
           "FESTIVE, BOLA",
           **_score("bitrate", "bit rate of the video", MORE, 5)),
    Metric("missed", "application", "share", "Frames that were not complete when their turn came.",
           "table `scores`: `missed` (workload `video`)", "this program",
           **_score("missed", "frames missed", LESS, 3, "% of the frames")),
    Metric("late", "application", "share", "Packets that came too late to be used.",
           "table `scores`: `late` (workloads `voip`, `game`)", "this program",
           **_score("late", "late packets", LESS, 6, "% of the packets")),
    Metric("rpm", "application", "round trips/min", "Responsiveness under load.",
           "table `scores`: `rpm` (workload `rpm`)", "draft-ietf-ippm-responsiveness",
           **_score("rpm", "round trips a minute", MORE, 2, "RPM")),
    Metric("http_l", "application", "s", "Response time under load, of the responsiveness test.",
           "table `times`: `http_l` (workload `rpm`)", "draft-ietf-ippm-responsiveness",
           **_time("http_l", "response time under load", 4)),
    Metric("stall", "application", "s", "Length of each rebuffering event.",
           "table `times`: `stall` (workloads `dash`, `video`)", "RFC 7928, section 2.1",
           **_time("stall", "length of a stall", 6)),
    Metric("frame", "application", "s", "The delay of a frame of a video: from the camera to the "
           "last of its packets, late frames included.",
           "table `times`: `frame` (workload `video`)", "this program",
           **_time("frame", "delay of a frame", 9)),
    Metric("download", "application", "bit/s", "Goodput of the downloads of a test.",
           "table `scores`: `download` (workloads `rrul`, `rpm`)", "RRUL",
           **_score("download", "download", MORE, 7)),
)  # fmt: skip
register(*METRICS)
