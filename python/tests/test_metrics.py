"""The metrics: where the catalogue says they are, and worth what their definitions say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import STUDY_TEXT, Aqmlab

import aqmlab
from aqmlab import _core
from aqmlab._core import check_playable
from aqmlab.metrics import everything as measures_of
from aqmlab.metrics import values
from aqmlab.metrics.catalogue import COMPUTED, METRICS
from aqmlab.scenario import Scenario
from aqmlab.search import Measure

LINKS = {
    "down": {"rate": "10mbit", "delay": "5ms", "queue": "codel", "thresholds": ["15000b"]},
    "far": {"rate": "1gbit", "delay": "40ms"},
    "up": {"rate": "10mbit", "delay": "5ms"},
}
WORKLOADS: dict[str, Any] = {
    "bulk": "bulk",
    "cbr": {"kind": "cbr", "rate": "1mbit"},
    "requests": {"kind": "requests", "response": "20000b", "gap": "200ms", "requests": 1},
    "packmime": "packmime",
    "page": {"kind": "page", "objects": 5},
    "voip": {"kind": "voip", "codec": "g729"},
    "dash": {"kind": "dash"},
    "video": {"kind": "video", "rate": "300kbit"},
    "game": "game",
    "incast": {"kind": "incast", "senders": 4},
    "rpm": "rpm",
    "rrul": {"kind": "rrul", "lead": "1s", "length": "3s"},
    "probe": "probe",
}


SHORT, DEEP = ({"discipline": "droptail", "limit": limit} for limit in ("2p", "1000p"))
UDP = {"workload": {"kind": "cbr", "rate": "1mbit"}}


def flows(**groups: dict[str, Any]) -> dict[str, Any]:
    """Groups of flows, each with or without its path."""
    return {name: {"path": "down", "return_path": "up"} | group for name, group in groups.items()}


def run(**more: Any) -> aqmlab.RunResult:
    rfc = {"profile": "rfc"}
    return aqmlab.run({"duration": "12s", "links": LINKS, "transport": rfc} | more)


def of(result: aqmlab.RunResult) -> dict[tuple[str, str], float]:
    return {(row["subject"], row["metric"]): row["value"] for row in result.metrics.to_dicts()}


@pytest.fixture(scope="module")
def everything() -> aqmlab.RunResult:
    groups = {name: {"workload": kind, "delays": True} for name, kind in WORKLOADS.items()}
    groups["bulk"] |= {"count": 2, "start": "0s"}
    groups["distant"] = {"path": ["down", "far"]}
    record = {"level": "series", "interval": "500ms"}
    return run(duration="20s", flows=flows(**groups), record=record)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_where_the_catalogue_says(
    metric: Any, everything: aqmlab.RunResult
) -> None:
    if metric.name == "tradeoff":
        return
    known = set(everything.table_names) | set(WORKLOADS) | {"metrics"}
    for name in everything.table_names:
        known |= set(everything.table(name).columns)
    for name in ("times", "scores", "series"):
        known |= set(everything.table(name)["quantity"].unique())
    known |= {f"{reason}_REASON" for reason in ("drop", "mark")}
    for name in re.findall(r"`(\w+)`", metric.where):
        stem = "loss_interval" if name.startswith("_p") or name == "_max_s" else ""
        assert stem + name in known, f"{metric.name}: {name}"
    if COMPUTED in metric.where and metric.name != "loss_synchronisation":
        assert metric.name in set(everything.metrics["metric"])


def test_flows_without_a_common_link_are_not_compared() -> None:
    groups = flows(
        near={}, back={"path": ["up"], "return_path": ["down"]}, far={"path": ["down", "far"]}
    )
    found = of(run(flows=groups))
    assert ("all", "jain") not in found
    assert ("back", "rtt_fairness") not in found
    assert found["far", "rtt_fairness"] > 0


def test_a_loss_event_counts_the_flows_that_have_data_then() -> None:
    """Four flows, two of which begin in the middle, and one of which is stopped before."""
    groups = flows(early={"count": 1}, gone={"count": 1}, late={"count": 2, "start": "4s"})
    stop = [{"at": "2s", "key": "flows.gone.active", "value": False}]
    record = {"level": "packets"}
    result = run(flows=groups, changes=stop, record=record, duration="8s")
    drops = result.packets.filter(pl.col("verdict") != "delivered").sort("end_s")
    losing, present, end = 0, 0.0, 0.0
    seen: set[str] = set()
    ends = dict(result.flows.select("group", pl.col("finish_s").fill_null(8.0)).rows())
    for time, flow in drops.filter(link="down", is_ack=False).select("end_s", "flow").rows():
        if time >= end:
            end, seen = time + 0.020, set()
            present += 1 + (time < ends["gone"]) + 2 * (end > 4)
        losing += flow not in seen
        seen.add(flow)
    assert result.links.filter(link="down")["loss_events"][0] > 20
    assert of(result)["down", "loss_synchronisation"] == pytest.approx(losing / present)


def test_flows_with_base_delays_of_their_own_have_no_common_delay_variation() -> None:
    steady = {"kind": "cbr", "rate": "100kbit"}
    own = {"workload": steady, "count": 2, "access_delay": {"list": ["0ms", "50ms"]}}
    alike = {"workload": steady, "count": 2, "access_delay": "50ms"}
    found = of(run(flows=flows(own=own, alike=alike)))
    assert ("own", "delay_variation") not in found
    assert ("own", "delay_variation_p95") not in found
    assert ("own", "power") in found
    assert 0 <= found["alike", "delay_variation"] < 0.01


@pytest.mark.parametrize(
    "workload", ["page", {"kind": "rrul", "length": "3s", "lead": "1s", "gap": "50ms"}]
)
def test_the_delays_of_some_packets_give_no_power_of_the_data(workload: Any) -> None:
    """Queries of names and probes meet no queue of the downloads beside them."""
    for delays in (False, True):
        found = of(run(flows=flows(own={"workload": workload, "delays": delays})))
        assert ("own", "delay_variation") in found and (("own", "power") in found) == delays


def test_a_group_that_a_change_adds_counts_as_those_of_the_start() -> None:
    more = {**next(iter(flows(more={"count": 2}).values())), "start": "1s"}
    begun = of(run(flows=flows(own={}, more=more)))
    change = {"at": "1s", "key": "flows.more", "value": more}
    added = of(run(flows=flows(own={}), changes=[change]))
    assert added.keys() == begun.keys() and 0.9 < added["all", "jain"] <= 1


def test_the_metrics_are_their_definitions() -> None:
    groups = flows(near={"count": 3, "delays": True}, far={"count": 2, "path": ["down", "far"]})
    result = run(flows=groups, record={"warmup": "2s"})
    found = of(result)
    rates = {
        name: result.flows.filter(pl.col("group") == name)["goodput_bps"].to_numpy()
        for name in groups
    }
    jain = float(rates["near"].sum() ** 2 / (3 * (rates["near"] ** 2).sum()))
    assert found["near", "jain"] == pytest.approx(jain)
    every = np.concatenate([rates["near"], rates["far"]])
    assert found["all", "jain"] == pytest.approx(every.sum() ** 2 / (5 * (every**2).sum()))
    assert found["far", "rtt_fairness"] == pytest.approx(rates["far"].mean() / rates["near"].mean())
    assert found["far", "rtt_fairness"] < 0.8
    assert ("near", "rtt_fairness") not in found
    # All flows begin at 0: the sum over their times is that of the group over the run.
    assert found["near", "goodput"] == pytest.approx(rates["near"].sum())
    delay = result.times.filter(group="near", quantity="delay").row(0, named=True)
    assert found["near", "delay_variation"] == pytest.approx(delay["p999_s"] - delay["min_s"])
    assert found["near", "power"] == pytest.approx(found["near", "goodput"] / delay["mean_s"])
    assert ("far", "power") not in found
    link = result.links.filter(link="down").row(0, named=True)
    assert found["down", "loss_synchronisation"] == pytest.approx(link["loss_event_flows"] / 5)
    assert 0.2 <= found["down", "loss_synchronisation"] <= 1
    assert found["down", "drop_share"] == pytest.approx(link["dropped"] / link["arrived"])
    near = result.flows.filter(group="near")
    dropped = near["dropped"].sum()
    assert found["near", "loss_share"] == dropped / (dropped + near["arrived"].sum()) > 0
    assert found["near", "loss_share_queue"] == found["near", "loss_share"]
    assert found["near", "loss_share_link"] == 0
    total = found["near", "goodput"] + found["far", "goodput"]
    assert 0.8 * found["down", "throughput"] < total < found["down", "throughput"] <= 10e6


def test_a_group_with_the_name_of_a_link_has_its_own_throughput() -> None:
    result = run(duration="1s", flows=flows(down={}, near={}))
    found = dict(values(result, "throughput").select("subject", "value").iter_rows())
    assert set(found) == {"down", "down (group)", "far", "up", "near"}
    row = result.metrics.filter(subject="down", metric="throughput", direction="forward")
    assert [found["down (group)"]] == row["value"].to_list() != [found["down"]]
    measure = Measure.parse("max:throughput@down (group)", "goal")
    assert measure.of(result).tolist() == [found["down (group)"]]


def test_losses_are_shares_by_cause() -> None:
    """Hundreds of SYNs and their data at a queue of two packets, and a link that loses packets:
    with only one of them in the denominator, shares were above 1."""
    flood = {"workload": {"kind": "cbr", "rate": "1.6mbit"}}
    mice = {"count": 200, "size": "500b", "start": {"each": ["0s", "5s"]}}
    links = {**LINKS, "down": {"rate": "1mbit", "delay": "5ms", "queue": SHORT, "loss": 0.05}}
    result = run(links=links, flows=flows(mice=mice, flood=flood))
    found = of(result)
    for name in ("mice", "flood"):
        row = result.traffic.filter(group=name).row(0, named=True)
        ended = row["arrived"] + row["dropped"] + row["lost"]
        assert found[name, "loss_share_queue"] == row["dropped"] / ended
        assert found[name, "loss_share_link"] == row["lost"] / ended > 0
        whole = found[name, "loss_share_queue"] + found[name, "loss_share_link"]
        assert found[name, "loss_share"] == pytest.approx(whole)
        assert 0.3 < found[name, "loss_share"] < 1
    # Of what left the queue, one packet in twenty.
    sent = result.traffic["arrived"].sum() + result.traffic["lost"].sum()
    assert result.traffic["lost"].sum() / sent == pytest.approx(0.05, abs=0.02)
    assert result.traffic.filter(group="mice")["dropped_syns"].item() > 200


def test_what_is_lost_on_a_link_is_shown(aqmlab: Aqmlab, tmp_path: Path) -> None:
    links = {**LINKS, "down": {**LINKS["down"], "loss": 0.05}}
    result = run(links=links, flows=flows(udp=UDP, more=UDP))
    file = tmp_path / "loss.toml"
    file.write_text(Scenario.from_table(result.scenario).to_toml())
    told = aqmlab("run", file).stdout
    lost = result.links.filter(link="down")["lost"].item()
    assert lost > 50
    assert f"down: {lost:,} packets were lost on the link (`loss`)" in told
    share = of(result)["udp", "loss_share"]
    assert share == pytest.approx(0.05, abs=0.02)
    assert re.search(rf"^udp .* {share:.2%} ", told, re.MULTILINE), told
    assert "losses-of-the-link" in set(result.notes["id"])


def test_the_directions_of_a_group_are_not_mixed() -> None:
    links = {
        "down": {"rate": "10mbit", "delay": "20ms", "queue": DEEP},
        "up": {"rate": "10mbit", "delay": "20ms"},
    }
    two_way = {name: {"workload": name} for name in ("probe", "game", "voip")}
    groups = flows(bulk={"count": 4, "delays": True}, **two_way)
    result = run(duration="20s", links=links, flows=groups, record={"warmup": "8s"})
    waited = result.links.filter(link="down")["sojourn_mean_s"].item()
    assert waited > 0.5
    for name in two_way:
        worse, better = result.times.filter(group=name, quantity="delay").to_dicts()
        assert (worse["direction"], better["direction"]) == ("forward", "reverse")
        assert worse["p50_s"] == pytest.approx(waited + 0.02, rel=0.2)
        assert better["p50_s"] == pytest.approx(0.020, abs=0.002)
        metrics = result.metrics.filter(subject=name)
        for metric in ("delay_variation", "power"):
            rows = metrics.filter(metric=metric).to_dicts()
            assert [row["direction"] for row in rows] == ["forward", "reverse"], metric
            for row, delay in zip(rows, (worse, better), strict=True):
                goodput = metrics.filter(metric="goodput", direction=row["direction"])["value"]
                expected = {
                    "delay_variation": delay["p999_s"] - delay["min_s"],
                    "power": goodput.item() / delay["mean_s"],
                }
                assert row["value"] == pytest.approx(expected[metric])
        # The value of the group is that of the worse direction.
        assert values(result, "delay_p50").filter(subject=name)["value"].to_list() == [
            worse["p50_s"]
        ]
    mos = result.scores.filter(group="voip", quantity="mos")
    assert mos["direction"].to_list() == ["forward", "reverse"]
    assert mos["value"][0] < 3 < 4.2 < mos["value"][1]
    assert values(result, "mos")["value"].to_list() == mos["value"].to_list()[:1]
    assert result.delays.filter(group="voip")["direction"].n_unique() == 2


def test_a_dead_direction_is_the_worse_one() -> None:
    unused = {"rate": "1mbit", "driver": {"limit": "5p"}}
    links = {**LINKS, "up": {**LINKS["up"], "loss": 1}, "unused": unused}
    result = run(links=links, flows=flows(call={"workload": "voip"}))
    rows = {
        metric: result.metrics.filter(subject="call", metric=metric).to_dicts()
        for metric in ("power", "delay_variation", "loss_share", "goodput")
    }
    assert [row["direction"] for row in rows["goodput"]] == ["forward", "reverse"]
    for metric in ("power", "delay_variation", "loss_share"):
        assert [row["direction"] for row in rows[metric]] == ["reverse", "forward"], metric
    assert (rows["power"][0]["value"], rows["loss_share"][0]["value"]) == (0, 1)
    assert rows["delay_variation"][0]["value"] is None
    assert values(result, "mos")["value"].to_list() == [1.0]
    for name in ("delay", "delay_variation"):
        assert values(result, name).filter(subject="call").is_empty(), name
    (dead,) = result.times.filter(group="call", direction="reverse").to_dicts()
    assert dead["count"] == 0 and all(dead[f"{each}_s"] is None for each in ("mean", "min", "max"))
    (link,) = result.links.filter(link="unused").to_dicts()
    assert link["driver_mean_s"] is link["driver_max_s"] is link["sojourn_max_s"] is None


def test_the_goodput_of_flows_that_come_and_go_does_not_depend_on_the_record() -> None:
    mice = {"workload": {"kind": "transfers", "gap": "20ms", "size": "uniform(3kb, 20kb)"}}
    call = {"workload": {"kind": "cbr", "rate": "1mbit"}}
    found = [
        run(flows=flows(mice=mice, call=call), record={"level": level})
        for level in ("summary", "series")
    ]
    traffic = [each.traffic for each in found]
    assert traffic[0].equals(traffic[1])
    done = found[0].groups.join(traffic[0], on="group").filter(group="mice").row(0, named=True)
    # At the end, not all arrived data is acknowledged.
    assert abs(done["delivered_bytes"] - done["completed_bytes"]) < 100_000
    assert done["completed"] > 500
    call_bytes = traffic[0].filter(group="call")["delivered_bytes"].item()
    assert call_bytes == pytest.approx(1e6 / 8 * 12, rel=0.05)


def test_datagrams_that_did_not_arrive_have_no_delay_and_no_jitter() -> None:
    result = run(flows=flows(call=UDP), duration="1ms")
    (row,) = result.flows.filter(group="call").to_dicts()
    assert row["segments_sent"] > row["datagrams_received"] == 0
    assert [row[name] for name in ("delay_mean_s", "delay_max_s", "jitter_s")] == [None] * 3


def test_flows_of_one_group_may_have_different_round_trip_times() -> None:
    spread = {"count": 3, "delays": True, "access_delay": {"list": ["0ms", "20ms", "80ms"]}}
    result = run(flows=flows(bulk=spread), record={"warmup": "2s"})
    flow = result.flows.sort("index")
    assert flow["delay_mean_s"].diff()[1:].to_list() == pytest.approx([0.02, 0.06], abs=0.003)
    assert flow["goodput_bps"][0] > 1.3 * flow["goodput_bps"][2]
    assert aqmlab.run(result.scenario).flows.equals(result.flows)
    with pytest.raises(aqmlab.InputError, match="access_delay"):
        check_playable(_core.Scenario(result.scenario))


def test_flows_meet_where_a_hash_alone_chooses_the_queue() -> None:
    """Jain's index falls most when one of two flows has half its share, or two of more flows."""
    flows = {
        "bulk": {"path": "down", "return_path": "up", "count": 2},
        "call": {"path": "down", "return_path": "up", "workload": "voip"},
    }
    study = {
        "scenario": {"duration": "2s", "links": LINKS, "flows": flows},
        "axes": [
            {"name": "queue", "key": "links.down.queue", "values": ["codel", "fq_codel", "cake"]},
            {"name": "flows", "key": "flows.bulk.count", "values": [2, 10]},
        ],
    }
    of = {each.title: each for each in measures_of(aqmlab.study(study))}
    changed = [of["bulk: Jain's index"].event(point) for point in range(6)]
    assert changed == pytest.approx([0, 0, 1 - 1.5**2 / 2.5, 1 - 9**2 / 85, 0, 0])
    assert [of["call: MOS"].event(point) for point in range(6)] == [0, 0, 3.5, 3.5, 0, 0]
    assert of["call: one-way delay, p95"].event(2) == pytest.approx(100)


def test_metrics_are_listed_and_explained(aqmlab: Aqmlab) -> None:
    listed = aqmlab.json("list", "metrics", "--json")["metrics"]
    assert [each["name"] for each in listed] == [metric.name for metric in METRICS]
    explained = aqmlab("explain", "rtt_fairness").stdout
    for words in ("bulk", "RFC 7928, section 6.3", "table `metrics`"):
        assert words in explained
    both = aqmlab("explain", "delay").stdout
    assert "RFC 7679" in both
    assert "propagation delay" in both.lower()
    assert "did you mean `power`?" in aqmlab("explain", "powr").stderr
    assert "## Metrics" in aqmlab("explain", "--markdown").stdout
    lists = aqmlab("list").stdout
    assert "--set queue=my_queue.py:MyQueue" in lists


def test_a_study_has_a_tradeoff(aqmlab: Aqmlab, scenario: Path) -> None:
    folder = scenario.parent
    (folder / "study.toml").write_text(STUDY_TEXT.format(replications=3))
    words = ("study", "study.toml", "--no-report", "--tradeoff")
    aqmlab.ok(*words, "a.svg", "--out", "out", cwd=folder)
    picture = (folder / "a.svg").read_text()
    assert "goodput (Mbit/s)" in picture
    assert picture.count("DropTail") >= 1
    single = ("--no-report", "--replications", 1, "--tradeoff", "one.svg", "--out", "one")
    aqmlab.ok("study", "study.toml", *single, cwd=folder)
    assert "1 run per point" in (folder / "one.svg").read_text()
    from aqmlab.results import StudyResult

    result = StudyResult.open(folder / "out")
    runs = result.tradeoff
    assert runs.height == result.info.points * 3
    first = runs.row(0, named=True)
    link = result.bottleneck.row(0, named=True)
    assert first["queue_delay_s"] == link["sojourn_mean_s"]
    groups = result.traffic.filter(run=0)["delivered_bytes"].sum()
    end = result.runs["end_s"][0]
    assert first["goodput_bps"] == pytest.approx(groups * 8 / end)
    refused = aqmlab("study", "study.toml", "--tradeoff", "a.txt", cwd=folder)
    assert refused.returncode == 2
    assert "--tradeoff" in refused.stderr
