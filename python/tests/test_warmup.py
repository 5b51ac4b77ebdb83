"""Measurements count from the end of the warm-up: a run with one is the run without, less
the run that ends there."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab

import aqmlab
from aqmlab.scenario import Scenario

WARMUP, END = 6.0, 16.0
SIZE = 200_000
BOTH: dict[str, Any] = {"path": "down", "return_path": "up"}
SCENARIO: dict[str, Any] = {
    "duration": f"{END:g}s",
    "bottleneck": "down",
    "links": {
        "down": {
            "rate": {"steps": [["0s", "4mbit"], ["3s", "2mbit"], ["9s", "3mbit"]]},
            "delay": "20ms",
            "queue": {"discipline": "pie", "limit": "60p", "target": "80ms"},
            "loss": 0.01,
            "driver": {"limit": "3p"},
            "thresholds": ["15000b"],
        },
        "up": {"rate": "2mbit", "delay": "20ms"},
    },
    "flows": {
        "bulk": {**BOTH, "count": 2},
        "before": {**BOTH, "size": "20kb"},
        "across": {**BOTH, "start": "3s", "size": "800000b"},
        "after": {**BOTH, "start": "9s", "size": f"{SIZE}b"},
        "udp": {**BOTH, "workload": {"kind": "cbr", "rate": "300kbit"}},
        "mice": {**BOTH, "workload": {"kind": "transfers", "gap": "200ms", "size": "5kb"}},
        "call": {**BOTH, "workload": "voip"},
    },
    "record": {"warmup": f"{WARMUP:g}s"},
}
COUNTS = {
    "links": (
        "delivered", "dropped", "marked", "delivered_bytes", "dropped_bytes", "lost", "lost_bytes",
        "drop_pie", "drop_overlimit", "dropped_queued", "capacity_bytes",
    ),
    "groups": ("started", "completed", "completed_bytes"),
    "traffic": (
        "sent_bytes", "delivered_bytes", "arrived", "dropped", "lost", "arrived_acks",
        "dropped_acks", "dropped_syns",
    ),
    "flows": (
        "arrived", "dropped", "lost",
        "segments_sent", "retransmissions", "timeouts", "fast_retransmits", "datagrams_received",
    ),
}  # fmt: skip


def run(**settings: str) -> aqmlab.RunResult:
    return aqmlab.run(SCENARIO, set={key.replace("__", "."): at for key, at in settings.items()})


@pytest.fixture(scope="module")
def result() -> aqmlab.RunResult:
    return run()


@pytest.fixture(scope="module")
def whole() -> aqmlab.RunResult:
    return run(record__warmup="0s")


@pytest.fixture(scope="module")
def early() -> aqmlab.RunResult:
    """The run that ends with the warm-up."""
    return run(record__warmup="0s", duration=f"{WARMUP:g}s")


def row(result: aqmlab.RunResult, table: str, name: str) -> dict[str, Any]:
    key = "link" if table == "links" else "group"
    return result.table(table).filter(pl.col(key) == name).row(0, named=True)


@pytest.mark.parametrize("table", COUNTS)
def test_counts_are_those_of_the_run_less_those_of_the_warm_up(
    table: str, result: aqmlab.RunResult, whole: aqmlab.RunResult, early: aqmlab.RunResult
) -> None:
    columns = COUNTS[table]
    keys = {
        "links": ["link"],
        "groups": ["group"],
        "traffic": ["group", "direction"],
        "flows": ["group", "index"],
    }[table]
    every = whole.table(table).join(early.table(table), on=keys, suffix="_early", how="left")
    every = every.join(result.table(table), on=keys, suffix="_late")
    assert every.height == whole.table(table).height > 1
    for each in every.to_dicts():
        for column in columns:
            then = each[f"{column}_early"] or 0
            if column == "started" and each["group"] == "after":
                then = 0  # Flows without an application are counted from the start.
            if each[column] is None:
                continue
            late = each[column] - then
            if table == "links" and column.startswith("delivered"):
                # Without the packet whose transmission spans the end of the warm-up.
                late -= each[f"{column}_late"]
                assert 0 <= late <= (1 if column == "delivered" else 1500), column
            else:
                assert each[f"{column}_late"] == pytest.approx(late), column
    assert result.runs["warmup_s"].item() == WARMUP
    assert whole.runs["warmup_s"].item() == 0


def test_what_waits_at_the_end_of_the_warm_up_arrives_then(
    result: aqmlab.RunResult, whole: aqmlab.RunResult, early: aqmlab.RunResult
) -> None:
    late, all_, first = (row(each, "links", "down") for each in (result, whole, early))
    waiting = first["arrived"] - first["delivered"] - first["dropped"]
    assert waiting > 3
    # The packet whose transmission spans the end of the warm-up is in neither count.
    spanning = all_["delivered"] - first["delivered"] - late["delivered"]
    assert spanning in (0, 1)
    assert late["arrived"] == all_["arrived"] - first["arrived"] + waiting - spanning
    left = all_["arrived"] - all_["delivered"] - all_["dropped"]
    assert late["arrived"] == late["delivered"] + late["dropped"] + left
    used = (late["delivered_bytes"]) / late["capacity_bytes"]
    assert late["utilisation"] == pytest.approx(used, abs=0.002)
    assert 0 < late["backlog_mean_bytes"] <= late["backlog_max_bytes"]
    means = [each["backlog_mean_bytes"] for each in (all_, first, late)]
    assert means[2] == pytest.approx((means[0] * END - means[1] * WARMUP) / (END - WARMUP))
    assert late["driver_mean_s"] > 0
    assert late["loss_interval_max_s"] <= END - WARMUP


def test_a_metric_has_one_value_after_the_warm_up(
    result: aqmlab.RunResult, aqmlab: Aqmlab, tmp_path: Any
) -> None:
    rows = result.metrics.to_dicts()
    found = {
        (each["subject"], each["metric"]): each["value"]
        for each in rows
        if each["direction"] != "reverse"
    }
    link, lasted = row(result, "links", "down"), END - WARMUP
    assert found["down", "throughput"] == link["delivered_bytes"] * 8 / lasted
    assert found["down", "drop_share"] == link["dropped"] / link["arrived"]
    for name in ("bulk", "udp", "across"):
        delivered = row(result, "traffic", name)["delivered_bytes"]
        assert found[name, "goodput"] == delivered * 8 / lasted
    flows = result.flows.filter(group="bulk")["goodput_bps"]
    assert found["bulk", "goodput"] == pytest.approx(flows.sum())
    # By the command line, which computes them from few rows without tables.
    file = tmp_path / "scenario.toml"
    file.write_text(Scenario.from_table(SCENARIO).to_toml())
    told = aqmlab.json("run", file, "--json")["metrics"]
    assert told == rows


def test_flows_that_end_before_the_end_of_the_warm_up_or_begin_after_it(
    result: aqmlab.RunResult, whole: aqmlab.RunResult, early: aqmlab.RunResult
) -> None:
    flows = {name: row(result, "flows", name) for name in ("before", "across", "after", "bulk")}
    assert flows["before"]["finish_s"] < WARMUP
    assert flows["before"]["goodput_bps"] is None
    assert flows["before"]["segments_sent"] == 0
    assert row(result, "groups", "before")["completed"] == 0
    assert flows["after"]["goodput_bps"] == row(whole, "flows", "after")["goodput_bps"] > 0
    after = row(result, "groups", "after")
    assert (after["started"], after["completed_bytes"]) == (1, SIZE)
    across = flows["across"]
    assert across["finish_s"] > WARMUP
    rest = 800_000 - row(early, "traffic", "across")["delivered_bytes"]
    completed = across["start_s"] + across["completion_s"]
    assert completed < across["finish_s"]
    assert across["goodput_bps"] == pytest.approx(rest * 8 / (completed - WARMUP))
    # The time of what ends after the warm-up is a whole one.
    times = result.times.filter(quantity="completion")
    assert set(times["group"]) == {"across", "after", "mice"}
    taken = times.filter(group="across")["max_s"].item()
    same = whole.times.filter(group="across", quantity="completion")
    assert taken == pytest.approx(same["max_s"].item())
    counts = {
        each: run.times.filter(group="mice", quantity="completion")["count"].item()
        for each, run in (("late", result), ("all", whole), ("early", early))
    }
    assert counts["late"] == counts["all"] - counts["early"]


@pytest.mark.parametrize(
    ("workload", "slow", "bad"),
    [("voip", "50kbit", "late"), ("game", "25kbit", "late"), ("video", "500kbit", "missed")],
)
def test_scores_count_from_the_end_of_the_warm_up(workload: str, slow: str, bad: str) -> None:
    rate = {"steps": [["0s", slow], ["3s", "50mbit"]]}
    links = {"down": {"rate": rate, "delay": "10ms"}, "up": {"rate": "50mbit", "delay": "10ms"}}
    flows = {"user": {**BOTH, "workload": workload}}
    scenario = {**SCENARIO, "links": links, "flows": flows}
    all_, late = (
        aqmlab.run(scenario, set={"record.warmup": warmup}).scores for warmup in ("0s", "6s")
    )
    assert all_.filter(quantity=bad)["value"][0] > 0.02, "the worse direction is first"
    assert late.filter(quantity=bad)["value"][0] == 0
    assert set(all_["quantity"]) == set(late["quantity"])


def test_a_run_that_ends_in_its_warm_up_has_none() -> None:
    scenario = {**SCENARIO, "until": "before"}
    result = aqmlab.run(scenario)
    assert result.runs["end_s"].item() < WARMUP
    assert result.runs["warmup_s"].item() == 0
    plain = aqmlab.run(scenario, set={"record.warmup": "0s"})
    assert result.links.equals(plain.links)
    assert result.metrics.equals(plain.metrics)
