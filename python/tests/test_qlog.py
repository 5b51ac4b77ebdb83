"""`aqmlab run --qlog`: the drafts' required fields, and the values that recordings have."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab
from test_capture import SCENARIO

import aqmlab as package
from aqmlab.results import RunResult

# draft-ietf-quic-qlog-quic-events-13: fields by event, the required ones with True.
FIELDS = {
    "quic:recovery_parameters_set": {
        "timer_granularity": True, "max_datagram_size": False, "initial_congestion_window": False,
    },
    "quic:packet_sent": {"header": True, "frames": False, "raw": False},
    "quic:packet_received": {"header": True, "frames": False, "raw": False},
    "quic:packet_lost": {"header": False, "frames": False, "trigger": False},
    "quic:recovery_metrics_updated": dict.fromkeys(
        ("min_rtt", "smoothed_rtt", "rtt_variance", "congestion_window", "bytes_in_flight",
         "ssthresh", "pacing_rate"), False),
    "quic:congestion_state_updated": {"new": True, "old": False},
}  # fmt: skip
# Optional fields of events.
EXTENSIONS = {"congestion_control", "retransmission", "ece"}
TRIGGERS = {"reordering_threshold", "time_threshold", "pto_expired"}
STATES = {"slow_start", "congestion_avoidance", "recovery", "loss", "ecn_reduction", "open"}


def logged(text: str, tmp_path: Path, **options: Any) -> tuple[list[Any], RunResult]:
    (tmp_path / "scenario.toml").write_text(text)
    file = tmp_path / "out.sqlog"
    result = package.run(tmp_path / "scenario.toml", qlog=file, **options)
    # RFC 7464, section 2: each text after a record separator, ended by a line feed.
    first, *texts = file.read_text(encoding="utf-8").split("\x1e")
    assert first == "" and all(text.endswith("\n") for text in texts)
    return [json.loads(text) for text in texts], result


def test_the_log_has_what_the_drafts_require(tmp_path: Path) -> None:
    (head, scenario, *events), _ = logged(SCENARIO.replace("4s", "1s"), tmp_path)
    # draft-ietf-quic-qlog-main-schema-14, LogFile and TraceSeq.
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert head["serialization_format"] == "application/qlog+json-seq"
    trace = head["trace"]
    # draft-ietf-quic-qlog-quic-events-13, section 2.1: a draft has its number in the URI.
    assert "urn:ietf:params:qlog:events:quic-13" in trace["event_schemas"]
    assert trace["vantage_point"]["type"] in ("client", "server", "network", "unknown")
    clock = trace["common_fields"]["reference_time"]
    assert clock == {"clock_type": "monotonic", "epoch": "unknown"}
    assert scenario["name"] == "simulation:scenario"
    assert scenario["data"]["details"]["links"]["down"]["rate"] == "10mbit"
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    for event in events:
        assert event.keys() == {"time", "name", "data", "group_id"}
        known, data = FIELDS[event["name"]], event["data"]
        assert data and data.keys() <= known.keys() | EXTENSIONS
        assert all(name in data for name, required in known.items() if required)
        if event["name"].startswith("quic:packet"):
            assert data["header"].keys() == {"packet_type", "packet_number"}
            kinds = {frame["frame_type"] for frame in data.get("frames", ())}
            assert kinds <= {"ack" if event["name"].endswith("received") else "stream"}
        if event["name"] == "quic:packet_lost":
            assert data["trigger"] in TRIGGERS
        if event["name"] == "quic:congestion_state_updated":
            assert {data["new"], data.get("old", data["new"])} <= STATES
    assert {event["name"] for event in events} == FIELDS.keys()


def test_metrics_are_those_of_recordings_at_any_time(tmp_path: Path) -> None:
    record = {"level": "series", "interval": "7ms"}
    events, result = logged(SCENARIO, tmp_path, record=record)
    series = result.series
    names = {"cwnd_bytes": ("congestion_window", 1), "in_flight_bytes": ("bytes_in_flight", 1),
             "smoothed_rtt_s": ("smoothed_rtt", 1e-3)}  # fmt: skip
    for flow in ("bulk.0", "bulk.1"):
        own = [event for event in events if event.get("group_id") == flow]
        for quantity, (name, scale) in names.items():
            told = [(event["time"], event["data"][name]) for event in own if name in event["data"]]
            assert all(one[1] != two[1] for one, two in pairwise(told))
            sampled = series.filter(subject=flow, quantity=quantity).select("time_s", "value")
            assert sampled.height > 500
            for time, value in sampled.iter_rows():
                at = bisect_right(told, (time * 1e3 + 1e-7, float("inf"))) - 1
                assert told[at][1] * scale == pytest.approx(value, rel=1e-9), (time, quantity)
        sent = [event["data"] for event in own if event["name"] == "quic:packet_sent"]
        row = result.flows.filter(pl.col("index") == int(flow[-1])).row(0, named=True)
        assert sum("frames" in packet for packet in sent) == row["segments_sent"]
        again = sum("retransmission" in packet for packet in sent)
        assert again == row["retransmissions"] > 0
        assert [packet["header"]["packet_number"] for packet in sent] == list(range(len(sent)))
        states = [event["data"]["new"] for event in own if "new" in event["data"]]
        # One may begin with the acknowledgement that ends another.
        assert row["fast_retransmits"] / 2 < states.count("recovery") <= row["fast_retransmits"]


def numbers(events: list[Any], name: str) -> list[int]:
    """The numbers of the packets in events of this name."""
    named = [event["data"]["header"] for event in events if event["name"] == f"quic:{name}"]
    return [header["packet_number"] for header in named]


RFC = '{ profile = "rfc" }'


def acked(events: list[Any]) -> list[int]:
    frames = [frame for event in events if event["name"] == "quic:packet_received"
              for frame in event["data"]["frames"]]  # fmt: skip
    ranges = [each for frame in frames for each in frame.get("acked_ranges", ())]
    return [number for each in ranges for number in range(each[0], each[-1] + 1)]


@pytest.mark.parametrize(
    "own", ['{ profile = "linux-6" }', RFC, '{ profile = "rfc", recovery = "newreno" }']
)
def test_each_packet_is_acknowledged_lost_or_under_way(tmp_path: Path, own: str) -> None:
    text = SCENARIO.replace('{ profile = "linux-6" }', own)
    (_, _, *events), result = logged(text, tmp_path)
    received = 0
    for row in result.flows.to_dicts():
        mine = [event for event in events if event["group_id"] == f"bulk.{row['index']}"]
        sent, lost, arrived = (
            numbers(mine, "packet_sent"),
            numbers(mine, "packet_lost"),
            acked(mine),
        )
        assert len(arrived) == len(set(arrived)) and arrived[0] == 0
        # Without reordering, the packets declared lost are those that the queue dropped.
        assert len(lost) == len(set(lost)) == row["dropped"] > 10
        assert not set(lost) & set(arrived) and set(lost) | set(arrived) <= set(sent)
        under_way = set(sent) - set(lost) - set(arrived)
        assert len(under_way) < 40 and min(under_way) > max(sent) - 60
        received += len(numbers(mine, "packet_received"))
    up = result.links.filter(pl.col("link") == "up").row(0, named=True)
    assert up["arrived"] - 40 < received <= up["delivered"]


def test_the_cause_of_a_loss_is_named(tmp_path: Path) -> None:
    def triggers(own: str, loss: float) -> set[str]:
        text = SCENARIO.replace('{ profile = "linux-6" }', own)
        (_, _, *events), _ = logged(text, tmp_path, set={"links.down.loss": loss})
        return {event["data"]["trigger"] for event in events if event["name"] == "quic:packet_lost"}

    assert triggers('{ profile = "linux-6" }', 0.0) == {"time_threshold"}
    assert triggers(RFC, 0.0) == {"reordering_threshold"}
    assert triggers(RFC, 0.2) == {"reordering_threshold", "pto_expired"}


def test_acknowledgements_carry_the_echo_of_marks(tmp_path: Path) -> None:
    classic = SCENARIO.replace('"linux-6"', '"linux-6", ecn = "classic"')
    events, result = logged(classic, tmp_path, set={"queue.ecn": True})
    assert result.links["marked"][0] > 5
    assert sum("ece" in event.get("data", ()) for event in events) > 5
    events, result = logged(SCENARIO.replace("linux-6", "linux-l4s"), tmp_path,
                            set={"queue": "dualpi2"})  # fmt: skip
    counts = [frame["ce"] for event in events for frame in event.get("data", {}).get("frames", ())
              if frame["frame_type"] == "ack"]  # fmt: skip
    assert result.links["marked"][0] >= max(counts) > 20


@pytest.mark.parametrize("control", ["bbr", "prague"])
def test_paced_senders_tell_their_rate(tmp_path: Path, control: str) -> None:
    own = f'{{ profile = "linux-l4s", congestion_control = "{control}" }}'
    text = SCENARIO.replace('{ profile = "linux-6" }', own).replace('"4s"', '"1s"')
    (_, *events), _ = logged(text, tmp_path, set={"queue": "dualpi2"})
    rates = [event["data"]["pacing_rate"] for event in events if "pacing_rate" in event["data"]]
    assert len(rates) > 20 and min(rates) > 100_000
    states = {event["data"]["new"] for event in events if "new" in event["data"]}
    assert ("open" in states) == (control == "bbr")


def test_each_connection_of_a_page_has_its_own_group(tmp_path: Path) -> None:
    page = SCENARIO.replace("[flows.bulk]\ncount = 2", '[flows.web]\nworkload = "page"')
    (_, *events), _ = logged(page, tmp_path)
    begun = [event["group_id"] for event in events
             if event["name"] == "quic:recovery_parameters_set"]  # fmt: skip
    assert len(begun) == len(set(begun)) > 10
    opened = [event for event in events if event["name"] == "quic:packet_sent"
              and event["data"]["header"]["packet_type"] == "initial"]  # fmt: skip
    # The answering side of a connection sends no SYN of its own.
    assert len(opened) <= len(begun) // 2 + 1


def test_the_command_writes_both_files_the_same_each_time(aqmlab: Aqmlab, tmp_path: Path) -> None:
    logged(SCENARIO.replace("4s", "500ms"), tmp_path)
    done = aqmlab.ok("run", "scenario.toml", "--qlog", "b.sqlog", "--pcap", "b.pcapng")
    assert (tmp_path / "b.sqlog").read_bytes() == (tmp_path / "out.sqlog").read_bytes()
    refused = aqmlab("run", "scenario.toml", "--qlog", "nowhere/b.sqlog")
    assert refused.returncode == 1 and "nowhere/b.sqlog" in refused.stderr
    assert "there is no folder nowhere" in refused.stderr and "resume" not in refused.stderr
    assert "Written: b.pcapng, b.sqlog\nNothing else was saved" in done.stdout


def test_the_command_names_the_logs_of_connections(aqmlab: Aqmlab, tmp_path: Path) -> None:
    text = SCENARIO.replace('transport = { profile = "linux-6" }', 'endpoint = "quic"')
    (tmp_path / "scenario.toml").write_text(text.replace("4s", "500ms"))
    done = aqmlab.ok("run", "scenario.toml", "--qlog", "b.sqlog")
    assert "Written: b-*.sqlog\n" in done.stdout
    assert len(list(tmp_path.glob("b-*.sqlog"))) == 4 and not (tmp_path / "b.sqlog").exists()
    refused = aqmlab("run", "scenario.toml", "--qlog", "nowhere/b.sqlog")
    assert refused.returncode == 1 and "there is no folder nowhere" in refused.stderr


def test_logs_of_connections_stay_in_the_folder(tmp_path: Path) -> None:
    text = SCENARIO.replace("[flows.bulk]", '[flows."../a%/b"]').replace("4s", "500ms")
    text = text.replace('transport = { profile = "linux-6" }', 'endpoint = "quic"')
    (tmp_path / "in").mkdir()
    (tmp_path / "in/scenario.toml").write_text(text.replace("count = 2", "count = 1"))
    package.run(tmp_path / "in/scenario.toml", qlog=tmp_path / "in/run.sqlog")
    assert [each.name for each in tmp_path.iterdir()] == ["in"]
    ends = {each.name for each in (tmp_path / "in").glob("run-*")}
    assert ends == {f"run-..%2Fa%25%2Fb.0-{end}.sqlog" for end in ("client", "server")}
    for other in ("/dev/null", tmp_path / "in"):
        with pytest.raises(package.InputError, match=r"qlog: .*expected a file"):
            package.run(tmp_path / "in/scenario.toml", qlog=other)


@pytest.mark.parametrize("stack", ["noq", "quinn"])
def test_quic_stacks_write_logs_of_their_own(stack: str, tmp_path: Path) -> None:
    """Each end of each connection, beside the log of TCP senders; times are virtual."""
    quic = f'''
[flows.quic]
path = "down"
return_path = "up"
count = 2
endpoint = {{ kind = "quic", stack = "{stack}", controller = "cubic" }}
[flows.bulk]'''
    text = SCENARIO.replace("[flows.bulk]", quic)
    (head, *_), result = logged(text, tmp_path)
    assert head["title"].startswith("aqmlab")
    ends = ("quic.0-client", "quic.0-server", "quic.1-client", "quic.1-server")
    files = {end: tmp_path / f"out-{end}.sqlog" for end in ends}
    assert set(tmp_path.glob("out-*")) == set(files.values())
    flows = result.flows.filter(group="quic").sort("index")
    for index, flow in enumerate(flows.to_dicts()):
        first, *texts = files[f"quic.{index}-client"].read_text(encoding="utf-8").split("\x1e")
        (log, *events) = map(json.loads, texts)
        assert first == "" and f"quic.{index} (client)" in json.dumps(log)
        times = [event["time"] for event in events]
        assert times == sorted(times)
        # Milliseconds of the run, to a microsecond.
        assert times[0] == pytest.approx(1e3 * flow["start_s"], abs=2e-3)
        assert 3900 < times[-1] <= 4000
        names = [event["name"].rpartition(":")[2] for event in events]
        # Packets of the handshake share datagrams.
        headers = (event["data"].get("header", {}) for event in events)
        shared = sum(header.get("packet_type") == "handshake" for header in headers)
        assert 0 <= names.count("packet_sent") - flow["segments_sent"] <= shared
        # A lost probe of the path's MTU: noq counts it and does not log it, quinn the reverse.
        probes = {"noq": (-1, 0), "quinn": (0, 1)}[stack]
        assert names.count("packet_lost") - flow["retransmissions"] in probes
        assert flow["retransmissions"] > 0
    again = tmp_path / "again"
    again.mkdir()
    logged(text, again)
    for file in files.values():
        assert (again / file.name).read_bytes() == file.read_bytes()


def test_the_log_names_flows_as_the_tables_do(tmp_path: Path) -> None:
    """Flows start in another order than they are numbered."""
    text = SCENARIO.replace("count = 2", "count = 6").replace('start = "0s"', "")
    (_, _, *events), result = logged(text, tmp_path)
    begun = {e["group_id"]: e["time"] for e in events if e["name"].endswith("parameters_set")}
    starts = [
        (f"{each['group']}.{each['index']}", 1e3 * each["start_s"])
        for each in result.flows.to_dicts()
    ]
    assert starts != sorted(starts, key=lambda each: each[1])
    assert begun == pytest.approx(dict(starts))


def test_datagrams_of_a_page_do_not_move_the_names_of_its_connections(tmp_path: Path) -> None:
    """Flows of datagrams (here a DNS query and its answer) are last in the tables."""
    page = SCENARIO.replace("[flows.bulk]\ncount = 2", '[flows.web]\nworkload = "page"')
    (_, _, *events), result = logged(page, tmp_path, set={"record.level": "series"})
    sent = Counter(e["group_id"] for e in events if e["name"] == "quic:packet_sent")
    rows = result.flows.filter(pl.col("tcp_stack").is_not_null()).to_dicts()
    assert len(rows) == len(result.flows) - 2 > 10
    for row in rows:
        syns = {"reverse": 1, "forward": 0}[row["direction"]]
        assert sent[f"web.{row['index']}"] - row["segments_sent"] == syns
