"""Congestion controls written in Python: equal to ours, packet by packet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, table_bytes

import aqmlab
from aqmlab import _core
from aqmlab.control import AckSample, CongestionEvent, LostSegment, SentSample, Setup

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE = f"{EXAMPLES}/my_control.py:MyControl"

BUSY: dict[str, Any] = {
    "duration": "10s",
    "links": {
        "down": {
            "rate": "4mbit",
            "delay": "15ms",
            "queue": {"discipline": "droptail", "limit": "20p"},
        },
        "up": {"rate": "1mbit", "delay": "15ms", "loss": 0.01},
    },
    "flows": {
        "bulk": {"count": 3, "path": ["down"], "return_path": ["up"], "start": "0s"},
        "page": {
            "count": 4,
            "path": ["down"],
            "return_path": ["up"],
            "size": "50kb",
            "start": {"uniform": ["2s", "4s"]},
        },
        "upload": {"path": ["up"], "return_path": ["down"]},
    },
    "transport": {"profile": "rfc"},
}  # fmt: skip


def both(mine: object, ours: object, **transport: Any) -> aqmlab.RunResult:
    """Runs `BUSY` with two controls of all flows; all tables have to be equal."""

    def run(control: object) -> aqmlab.RunResult:
        own = {"profile": "rfc", "congestion_control": control, **transport}
        scenario = BUSY | {"transport": own}
        marks = {"discipline": "codel", "ecn": True}
        changes = {"links.down.queue": marks, "links.up.queue": marks} if "ecn" in transport else {}
        return aqmlab.run(scenario, set=changes, record="packets")

    left, right = run(mine), run(ours)
    assert left.packets.height > 2500
    for name in right.table_names:
        assert left.table(name).equals(right.table(name)), name
    return left


@pytest.mark.parametrize("profile", ["rfc", "ns2-sack1", "rfc-newreno", "linux-6"])
def test_reno_in_python_equals_reno_packet_by_packet(profile: str) -> None:
    # The one in Python counts bytes, as RFC 5681 recommends; ns-2's does not. A control of one's
    # own runs in the sender of the RFCs: Linux's Reno is compared there, too.
    reno = {"algorithm": "reno", "byte_counting": 1}
    result = both(MINE, reno, profile=profile, stack="rfc")
    assert result.flows["fast_retransmits"].sum() > 3
    assert result.flows["timeouts"].sum() > 0


def test_reno_in_python_answers_to_ecn_echoes_as_reno_does() -> None:
    assert both(MINE, "reno", ecn="classic").flows["ecn_reductions"].sum() > 20


class Cbr(aqmlab.CongestionControl):
    """Only a rate."""

    recovers_by_itself = True

    def __init__(self, setup: Setup, rate: Any = "1mbit") -> None:
        self.window = self.ssthresh = 2**62 - 1
        self.pacing_rate = rate

    def on_ack(self, ack: AckSample) -> None:
        pass

    def on_congestion(self, event: CongestionEvent) -> None:
        pass


def test_a_pacing_rate_is_kept() -> None:
    result = both(
        {"algorithm": Cbr, "rate": "1.5mbit"}, {"algorithm": "cbr", "rate": "1.5mbit"}, prr=True,
    )  # fmt: skip
    assert result.links["dropped"].sum() > 100


class Everything(aqmlab.CongestionControl):
    """Prints its arguments."""

    needs_rate_samples = True
    seen: dict[str, list[Any]] = {}  # noqa: RUF012

    def __init__(self, setup: Setup, a: Any = "5ms", b: Any = "3p", c: Any = "unlimited",
                 d: bool = False, e: str = "x") -> None:  # fmt: skip
        super().__init__(setup)
        self.note("init", (a, b, c, d, e, setup.mss, setup.header, setup.random()))
        self.acks = 0

    def note(self, name: str, value: Any) -> None:
        self.seen.setdefault(name, []).append(value)

    def on_ack(self, ack: AckSample) -> None:
        self.acks += 1
        self.note("ack", ack)
        if not ack.in_recovery:
            self.window += ack.acked

    def on_congestion(self, event: CongestionEvent) -> None:
        self.note("congestion", event)
        self.window = max(event.flight_size // 2, 1)

    def on_connected(self, now: int, rtt: int | None) -> None:
        assert now == rtt
        self.note("connected", rtt)

    def on_sent(self, sent: SentSample) -> None:
        self.note("sent", sent)

    def on_lost(self, lost: LostSegment) -> None:
        self.note("lost", lost)

    def observe(self) -> dict[str, float]:
        return {"acks": self.acks}


def test_all_is_told_in_whole_numbers() -> None:
    Everything.seen.clear()
    control = {"algorithm": Everything, "b": "4000b", "d": True}
    changes = {
        "flows.bulk.count": 1,
        "flows.bulk.transport": {"congestion_control": control, "timestamps": True},
        "links.up.loss": 0,
    }
    result = aqmlab.run(BUSY, set=changes, record="series")
    seen = Everything.seen
    (made,) = seen["init"]
    assert made[:7] == (5_000_000, 4000, 2**62 - 1, True, "x", 1460, 40)
    assert 0 <= made[7] < 1
    assert seen["connected"][0] > 30_000_000
    flow = result.flows.row(0, named=True)
    assert len(seen["sent"]) == flow["segments_sent"]
    assert sum(each.retransmission for each in seen["sent"]) == flow["retransmissions"] > 0
    assert {each.kind for each in seen["congestion"]} <= {"loss", "timeout"}
    assert len(seen["congestion"]) == flow["fast_retransmits"] + flow["timeouts"]
    acks = seen["ack"]
    assert sum(ack.delivered for ack in acks) == acks[-1].total_delivered
    assert sum(ack.lost for ack in acks) <= acks[-1].total_lost > 0
    assert sum(each.bytes for each in seen["lost"]) >= acks[-1].total_lost
    rates = [ack.rate for ack in acks if ack.rate is not None]
    assert len(rates) > len(acks) // 2
    assert max(8e9 * rate.delivered / rate.interval for rate in rates) < 4.1e6
    assert min(ack.rtt for ack in acks if ack.rtt) == acks[-1].min_rtt
    assert acks[-1].min_rtt > seen["connected"][0], "a SYN is short"
    assert all(15_000_000 < ack.one_way_delay < ack.now for ack in acks)
    assert repr(acks[0]).startswith("<AckSample of ")
    assert repr(seen["congestion"][0]).startswith("<CongestionEvent loss, ")
    assert result.series.filter(quantity="acks")["value"].max() == len(acks)
    resolved = json.dumps(result.scenario, separators=(",", ":"))
    assert _core.Scenario(result.scenario).resolved == resolved


def test_flows_with_different_controls_and_parameters() -> None:
    changes = {
        "transport.congestion_control": "cubic",
        "flows.bulk.transport.congestion_control": MINE,
        "flows.upload.transport.congestion_control": {"algorithm": MINE, "kept": 0.9},
    }
    scenario = aqmlab.run(BUSY, set=changes).scenario
    controls = {
        name: flow["transport"]["congestion_control"] for name, flow in scenario["flows"].items()
    }
    assert controls["page"]["algorithm"] == "cubic"
    assert controls["bulk"] == controls["upload"] | {"kept": "0.5"}
    assert controls["upload"]["kept"] == "0.9"


def test_a_parameter_is_set_from_the_command_line(aqmlab: Aqmlab) -> None:
    name = "transport.congestion_control"
    less = ["--set", f"{name}=my_control.py:MyControl", "--set", "duration=5s", "--json"]
    half, most = (
        json.loads(aqmlab("run", EXAMPLES / "scenario.toml", *less, *more).stdout)
        for more in ([], ["--set", f"{name}.kept=0.9"])
    )
    assert half["flows"] != most["flows"]


def study_of(controls: list[object], **changes: Any) -> aqmlab.Study:
    axes = [{"key": "transport.congestion_control", "values": controls}]
    scenario = {**BUSY, "duration": "2s", "transport": {}}
    return aqmlab.Study({"scenario": scenario, "axes": axes}, replications=3, **changes)


def test_threads_change_nothing_and_labels_are_names(tmp_path: Path) -> None:
    controls = [Cbr, {"algorithm": MINE, "kept": 0.7}, "reno"]
    study = study_of(controls)
    assert study.axes[0].labels == ["Cbr", MINE, "reno"]
    for threads in (1, 2):
        study_of(controls).run(tmp_path / str(threads), threads=threads)
    assert table_bytes(tmp_path / "1") == table_bytes(tmp_path / "2")


def test_results_of_other_code_are_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = (EXAMPLES / "my_control.py").read_text()
    file.write_text(text)
    resolved = study_of([f"{file}:MyControl"]).points[0].scenario.resolved
    file.write_text(text.replace("2 * self.mss", "3 * self.mss"))
    assert study_of([f"{file}:MyControl"]).points[0].scenario.resolved != resolved
    with pytest.raises(aqmlab.InputError, match="the code has changed since"):
        aqmlab.run(json.loads(resolved))


def test_a_class_is_explained(aqmlab: Aqmlab) -> None:
    done = aqmlab("explain", "examples/my_control.py:MyControl", "--json", cwd=EXAMPLES.parent)
    (entry,) = json.loads(done.stdout)
    assert entry["section"] == "congestion_control"
    assert [(each["name"], each["default"]) for each in entry["params"]] == [("kept", "0.5")]
