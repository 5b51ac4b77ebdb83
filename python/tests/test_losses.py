"""Losses of flows, loss events, the warm-up and samples, against the record of every packet."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import aqmlab
from aqmlab import _core

WARMUP = 8.0
SCENARIO: dict[str, Any] = {
    "duration": "30s",
    "bottleneck": "down",
    "links": {
        "down": {"rate": "2mbit", "delay": "20ms", "queue": {"discipline": "pie", "limit": "30p"}},
        "up": {"rate": "2mbit", "delay": "20ms"},
    },
    "flows": {
        "bulk": {"count": 3, "path": "down", "return_path": "up", "delays": True, "start": "0s"},
        "udp": {"path": "down", "return_path": "up",
                "workload": {"kind": "cbr", "rate": "300kbit"}},
    },
    "record": {"level": "packets", "warmup": f"{WARMUP:g}s"},
}  # fmt: skip


@pytest.fixture(scope="module")
def result() -> aqmlab.RunResult:
    return aqmlab.run(SCENARIO)


@pytest.fixture(scope="module")
def data(result: aqmlab.RunResult) -> pl.DataFrame:
    """Data packets at the bottleneck that left it, or were dropped, after the warm-up."""
    late = result.packets.filter(~pl.col("is_ack"), pl.col("end_s") >= WARMUP)
    return late.filter(link="down")


def test_flows_lose_what_the_record_says(result: aqmlab.RunResult, data: pl.DataFrame) -> None:
    lost = data.filter(pl.col("verdict") != "delivered")
    by_flow = dict(lost.group_by("flow").len().rows())
    assert len(by_flow) == 4
    for row in result.flows.to_dicts():
        assert row["dropped"] == by_flow[f"{row['group']}.{row['index']}"]
        assert row["segments_sent"] > 0
    groups = {row["group"]: row for row in result.traffic.to_dicts()}
    assert groups["udp"]["dropped"] == by_flow["udp.0"]
    assert groups["bulk"]["dropped"] == lost.height - by_flow["udp.0"]


def test_drops_from_the_queue_are_told_from_those_on_arrival(result: aqmlab.RunResult) -> None:
    late = result.packets.filter(pl.col("end_s") >= WARMUP, pl.col("link") == "down")
    lost = late.filter(pl.col("verdict") != "delivered")
    queued = lost.filter(pl.col("end_s") > pl.col("arrival_s")).height
    assert result.links.filter(link="down")["dropped_queued"].item() == queued == 0
    for drop, expected in (("tail", 0), ("head", 1)):
        queue = {"discipline": "droptail", "limit": "20p", "drop": drop}
        fifo = aqmlab.run(SCENARIO, set={"links.down.queue": queue, "record.level": "summary"})
        link = fifo.links.filter(link="down").row(0, named=True)
        assert link["dropped"] > 90
        assert link["dropped_queued"] == expected * link["dropped"]


def test_throughput_is_what_came_to_the_first_queue(result: aqmlab.RunResult) -> None:
    came = result.packets.filter(
        ~pl.col("is_ack"), pl.col("link") == "down", pl.col("arrival_s") >= WARMUP
    )
    queued = result.links.filter(link="down")
    left = queued["arrived"] - queued["delivered"] - queued["dropped"]
    by_flow = dict(came.group_by("flow").agg(pl.col("size_bytes").sum()).rows())
    for row in result.flows.to_dicts():
        sent = row["throughput_bps"] * (30 - WARMUP) / 8
        # Packets are recorded when they leave the queue.
        waiting = sent - by_flow[f"{row['group']}.{row['index']}"]
        assert -1e-3 < waiting <= 1500 * left.item()
        assert row["throughput_bps"] > row["goodput_bps"]
    groups = {row["group"]: row["sent_bytes"] for row in result.traffic.to_dicts()}
    rates = result.flows.group_by("group").agg(pl.col("throughput_bps").sum())
    for group, rate in rates.rows():
        assert groups[group] * 8 / (30 - WARMUP) == pytest.approx(rate)


def test_loss_events_are_what_the_record_says(result: aqmlab.RunResult, data: pl.DataFrame) -> None:
    drops = data.filter(pl.col("verdict") != "delivered").sort("end_s")
    events: list[set[str]] = []
    end = 0.0
    for time, flow in drops.select("end_s", "flow").rows():
        if time >= end:  # There and back are 40 ms.
            events.append(set())
            end = time + 0.040
        events[-1].add(flow)
    link = result.links.filter(link="down").row(0, named=True)
    assert link["loss_events"] == len(events) > 10
    assert link["loss_event_flows"] == pytest.approx(sum(map(len, events)) / len(events))
    assert result.links.filter(link="up")["loss_event_flows"].to_list() == [None]


def test_distributions_begin_after_the_warm_up(
    result: aqmlab.RunResult, data: pl.DataFrame
) -> None:
    sent = data.filter(verdict="delivered")
    assert result.sojourn.filter(link="down")["count"].sum() == sent.height
    delays = result.times.filter(group="udp", quantity="delay").row(0, named=True)
    received = result.flows.filter(group="udp")["datagrams_received"][0]
    assert 0 < delays["count"] == received
    # 40 bytes of IP and UDP header are not more than a millisecond.
    assert 0.020 < delays["min_s"] <= delays["p50_s"] <= delays["p99_s"] <= delays["p999_s"]
    assert delays["p999_s"] <= delays["max_s"] + 1e-9


def test_the_warm_up_changes_nothing_that_happens(result: aqmlab.RunResult) -> None:
    plain = aqmlab.run(SCENARIO, set={"record.warmup": "0s"})
    assert plain.packets.equals(result.packets)
    own = "sojourn_mean_s"  # The mean since the sample before, or the end of the warm-up.
    for each in (plain, result):
        assert each.series.height > 1000
    different = pl.col("quantity") != own
    assert plain.series.filter(different).equals(result.series.filter(different))
    assert (plain.flows["dropped"] > result.flows["dropped"]).any()
    assert (plain.flows["segments_sent"] > result.flows["segments_sent"]).all()


def test_a_scenario_without_warm_up_is_as_it_was() -> None:
    scenario = {**SCENARIO, "record": {"level": "packets"}}
    assert "warmup" not in json.loads(_core.Scenario(scenario).resolved)["record"]
    late = json.loads(_core.Scenario(SCENARIO).resolved)["record"]
    assert late["warmup"] == "8s"


def test_samples_of_goodput_add_up(result: aqmlab.RunResult) -> None:
    # Samples each 100 ms, the last at the very end.
    rows = result.series.filter(pl.col("quantity") == "goodput_bps", pl.col("time_s") > WARMUP)
    sums = rows.group_by("subject").agg(pl.col("value").sum() * 0.1)
    bits = dict(sums.rows())
    for row in result.flows.to_dicts():
        whole = row["goodput_bps"] * (30.0 - WARMUP)
        assert bits[f"{row['group']}.{row['index']}"] == pytest.approx(whole)
