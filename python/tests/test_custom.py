"""Queue disciplines and congestion controls in Python: equal to ours, packet by packet."""

from __future__ import annotations

import json
import pickle
from collections import deque
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, table_bytes

import aqmlab
from aqmlab import _core
from aqmlab.control import AckSample, CongestionEvent, LostSegment, SentSample, Setup
from aqmlab.queue import Context, Link, Packet

EXAMPLES = Path(__file__).parents[2] / "examples"
CODEL = f"{EXAMPLES}/codel.py:CoDel"
MINE = f"{EXAMPLES}/my_control.py:MyControl"

BUSY: dict[str, Any] = {
    "duration": "20s",
    "links": {
        "down": {"rate": "4mbit", "delay": "15ms"},
        "up": {"rate": "1mbit", "delay": "15ms"},
    },
    "flows": {
        "bulk": {"count": 3, "path": ["down"], "return_path": ["up"]},
        "upload": {"count": 2, "path": ["up"], "return_path": ["down"]},
        "page": {
            "count": 4,
            "path": ["down"],
            "return_path": ["up"],
            "size": "100kb",
            "start": {"uniform": ["2s", "4s"]},
        },
    },
    "transport": {"profile": "rfc"},
}
"""Data and acknowledgements meet in both queues."""


OURS = ["sojourn", "delay_estimate"]
"""States that ours name in recordings and the classes here do not."""


def equal(mine: aqmlab.RunResult, ours: aqmlab.RunResult) -> aqmlab.RunResult:
    """All tables have to be equal; `ours` is returned."""
    assert ours.packets.height > 2500
    for name in ours.table_names:
        if name != "notes":
            assert shared(mine, name).equals(shared(ours, name)), name
    assert notes_of(mine) == notes_of(ours)
    return ours


def with_queue(discipline: object, **settings: Any) -> aqmlab.RunResult:
    """Runs `BUSY` with a queue on both links."""
    ecn = {"transport": {"ecn": "classic", "recovery": "rack"}} if "ecn" in settings else {}
    queue = {"discipline": discipline, **settings}
    changes = {"links.down.queue": queue, "links.up.queue": queue}
    return aqmlab.run(BUSY | ecn, set=changes, record="packets")


def shared(result: aqmlab.RunResult, name: str) -> pl.DataFrame:
    """A table without what only ours record."""
    table = result.table(name)
    return table.filter(~pl.col("quantity").is_in(OURS)) if name == "series" else table


def notes_of(result: aqmlab.RunResult) -> list[tuple[Any, ...]]:
    """The notes without the name of the discipline, in which the two differ, and without
    what ours explain of themselves."""
    name = result.scenario["links"]["down"]["queue"]["discipline"]
    notes = result.notes.filter(
        ~pl.col("id").is_in(["codel-target-below-packet", "aqm-never-acted"])
    )
    return [(*row, text.replace(name, "QUEUE")) for *row, text in notes.rows()]


@pytest.mark.parametrize(
    "settings",
    [
        {"limit": "1000p", "target": "13.5ms", "interval": "40ms"},
        {"limit": "20000b"},
        {"limit": "0.7bdp", "target": "1ms"},
    ],
)
def test_codel_in_python_equals_codel_packet_by_packet(settings: dict[str, str]) -> None:
    result = equal(with_queue(CODEL, **settings), with_queue("codel", **settings))
    assert result.links["drop_codel"].sum() > 0
    assert (result.links["drop_overlimit"].min() > 0) == (settings["limit"] != "1000p")


def test_codel_in_python_marks_as_codel_does() -> None:
    result = equal(with_queue(CODEL, ecn=True), with_queue("codel", ecn=True))
    assert result.links["mark_codel"].min() > 10
    assert result.links["drop_codel"].sum() < result.links["mark_codel"].sum()
    assert result.flows["ecn_reductions"].min() > 0
    assert result.flows["tail_probes"].sum() > 0


def with_control(control: object, **transport: Any) -> aqmlab.RunResult:
    """Runs `BUSY` with a control of all flows."""
    own = {"profile": "rfc", "congestion_control": control, **transport}
    queue: dict[str, Any] = {"discipline": "droptail", "limit": "20p"}
    if "ecn" in transport:
        queue = {"discipline": "codel", "ecn": True}
    changes = {"links.down.queue": queue, "links.up.loss": 0.01, "links.up.queue": queue}
    return aqmlab.run(BUSY | {"transport": own}, set=changes, record="packets")


@pytest.mark.parametrize("profile", ["rfc", "ns2-sack1", "rfc-newreno", "linux-6"])
def test_reno_in_python_equals_reno_packet_by_packet(profile: str) -> None:
    # The one in Python counts bytes, as RFC 5681 recommends; ns-2's does not. A control of one's
    # own runs in the sender of the RFCs: Linux's Reno is compared there, too.
    reno = {"algorithm": "reno", "byte_counting": 1}
    mine, ours = (with_control(each, profile=profile, stack="rfc") for each in (MINE, reno))
    assert equal(mine, ours).flows["fast_retransmits"].sum() > 3
    assert ours.flows["timeouts"].sum() > 0


def test_reno_in_python_answers_to_ecn_echoes_as_reno_does() -> None:
    mine, ours = (with_control(each, ecn="classic") for each in (MINE, "reno"))
    assert equal(mine, ours).flows["ecn_reductions"].sum() > 20


def changed(queue: str, *, key: str = "queue.target", value: object = "15ms") -> aqmlab.RunResult:
    changes = [
        {"at": "5s", "key": key, "value": value},
        {"at": "12s", "key": "queue.limit", "value": "7p"},
        {"at": "15s", "key": "queue.limit", "value": "50p"},
    ]
    settings = {"links.down.queue": queue, "links.up.queue": queue, "bottleneck": "down"}
    return aqmlab.run({**BUSY, "changes": changes}, set=settings, record="packets")


def test_changes_of_codel_in_python_equal_those_of_codel() -> None:
    ours = equal(changed(CODEL), changed("codel"))
    assert not ours.packets.equals(changed("codel", value="14ms").packets)


class Still(aqmlab.Queue):
    """Takes no other values while it runs."""

    def __init__(self, link: Link, depth: int = 30) -> None:
        super().__init__(link)
        self.depth, self.fifo = depth, deque[Packet]()

    def enqueue(self, packet: Packet, cx: Context) -> None:
        if len(self.fifo) < self.depth:
            self.fifo.append(packet)
        else:
            cx.drop(packet, "overlimit")

    def dequeue(self, cx: Context) -> Packet | None:
        return self.fifo.popleft() if self.fifo else None


class Forgetful(Still):
    """Loses packets when it changes."""

    def change(self, cx: Context, depth: int) -> None:
        self.depth = depth
        self.fifo.clear()


def test_a_queue_without_change_can_only_be_replaced() -> None:
    run = aqmlab.Run(BUSY, set={"links.down.queue": Still, "bottleneck": "down"})
    run.advance("3s")
    with pytest.raises(aqmlab.InputError, match=r"queue\.depth: .*Still. has no method .change."):
        run.set("queue.depth", 3)
    run.replace("queue.depth", 3)
    run.advance("4s")
    assert run.observe()["links"]["down"]["backlog_packets"] <= 3
    run.finish()


def test_what_goes_wrong_in_change_is_an_error_of_the_class() -> None:
    run = aqmlab.Run(BUSY, set={"links.down.queue": Forgetful, "bottleneck": "down"})
    while run.observe()["links"]["down"]["backlog_packets"] < 5:
        run.advance(run.time + 0.01)
    run.set("queue.depth", 3)
    with pytest.raises(aqmlab.QueueError, match=r"Forgetful\.change at .* s: a packet was lost"):
        run.advance(run.time + 0.1)


class Pi2(aqmlab.Queue):
    """PI squared as in `pi2`: random decisions and a timer."""

    def __init__(
        self, link: Link, target: Any = "15ms", tupdate: Any = "16ms", alpha: float = 0.16
    ) -> None:
        self.target, self.tupdate, self.alpha = target / 1e9, tupdate, alpha
        self.fifo: deque[Packet] = deque()
        self.next_update = tupdate
        self.base = self.delay = 0.0

    def enqueue(self, packet: Packet, cx: Context) -> None:
        self.fifo.append(packet)

    def dequeue(self, cx: Context) -> Packet | None:
        while self.fifo:
            packet = self.fifo.popleft()
            if not (cx.random() < self.base and cx.random() < self.base):
                return packet
            cx.drop(packet, "pi2")
        return None

    def next_wakeup(self) -> int:
        return int(self.next_update)

    def on_wakeup(self, cx: Context) -> None:
        self.next_update += self.tupdate
        delay = (cx.now - self.fifo[0].arrival) / 1e9 if self.fifo else 0.0
        change = self.alpha * (delay - self.target) + 3.2 * (delay - self.delay)
        self.base, self.delay = min(max(self.base + change, 0.0), 1.0), delay

    def observe(self) -> dict[str, float]:
        return {
            "base_probability": self.base,
            "drop_probability": self.base * self.base,
            "delay_estimate": self.delay,
        }


@pytest.mark.parametrize("alpha", [0.16, 1])
def test_random_numbers_timers_and_recordings_are_the_same(alpha: float) -> None:
    result = equal(with_queue(Pi2, alpha=alpha), with_queue("pi2", alpha=alpha))
    assert result.links["drop_pi2"].min() > 10


class Kinds(aqmlab.Queue):
    """Prints its arguments."""

    seen: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, link: Link, a: Any = "5ms", b: Any = "10mbit", c: Any = "1500b",
                 d: Any = "2bdp", e: int = 3, f: float = 0.5, g: bool = True,
                 h: str = "fast") -> None:  # fmt: skip
        self.seen.append({**locals()})
        self.fifo: deque[Packet] = deque()

    def enqueue(self, packet: Packet, cx: Context) -> None:
        assert (cx.packets, cx.bytes) == (len(self.fifo), sum(each.size for each in self.fifo))
        assert packet.arrival == cx.now
        assert (packet.ecn, packet.ecn_capable, packet.class_) == (0, False, 46)
        assert packet.pure_ack is None
        assert len(packet.hosts) == 2
        if len(self.fifo) > 5:
            cx.drop(self.fifo.pop())
            assert cx.packets == len(self.fifo)
        self.fifo.append(packet)

    def dequeue(self, cx: Context) -> Packet | None:
        return self.fifo.popleft() if self.fifo else None

    def observe(self) -> dict[str, float]:
        return {"queued": len(self.fifo)}

    def notes(self) -> dict[str, str]:
        return {"kinds": "all kinds were seen"}


def test_units_are_converted_and_all_is_shown(mapping: dict[str, Any]) -> None:
    Kinds.seen.clear()
    mapping["flows"]["bulk"]["class"] = "ef"
    mapping["links"]["down"]["queue"] = {"discipline": Kinds, "b": "8kbit", "e": -4, "h": "slow"}
    result = aqmlab.run(mapping, record="series", set={"queue.a": "1.5us", "duration": "1s"})
    (given,) = Kinds.seen
    link, limit = given["link"], given["d"]
    assert (link.rate, link.base_rtt, link.mtu) == (2_000_000, 40_000_000, 1514)
    assert limit.admits(9, 18_500, 1500)
    assert not limit.admits(9, 18_501, 1500)
    del given["self"], given["link"], given["d"]
    assert given == {"a": 1500, "b": 8000, "c": 1500, "e": -4, "f": 0.5, "g": True, "h": "slow"}
    assert result.links["drop_user"][0] > 0
    assert 1 < result.series.filter(quantity="queued")["value"].max() <= 6
    assert ("kinds", "all kinds were seen") in result.notes.select("id", "text").rows()
    queue = result.scenario["links"]["down"]["queue"]
    assert queue["discipline"] == f"{__name__}:Kinds"
    assert queue["d"] == "2bdp"
    resolved = json.dumps(result.scenario, separators=(",", ":"))
    assert _core.Scenario(result.scenario).resolved == resolved
    assert pickle.loads(pickle.dumps(result)).scenario == result.scenario


def test_what_is_shown_has_a_name_of_its_own() -> None:
    """Two values of one name at one time would be averaged, or one of them lost."""

    class Same(Pi2):
        def observe(self) -> dict[str, float]:
            return {"backlog_packets": 1.0}

    error = (
        r"Same\.observe at 0 s: `backlog_packets` is a quantity that aqmlab records for each link"
    )
    with pytest.raises(aqmlab.CustomError, match=error):
        aqmlab.run(BUSY, set={"queue": Same, "duration": "1s"}, record="series")


def test_a_class_is_given_by_itself_by_module_or_by_file(tmp_path: Path) -> None:
    class Local(Pi2):
        pass

    named = aqmlab.run(BUSY, set={"queue": f"{__name__}:Pi2", "duration": "1s"})
    for queue in (Pi2, Local):
        assert aqmlab.run(BUSY, set={"queue": queue, "duration": "1s"}).links.equals(named.links)
    (tmp_path / "scenario.toml").write_text((EXAMPLES / "scenario.toml").read_text())
    (tmp_path / "my_queue.py").write_text((EXAMPLES / "my_queue.py").read_text())
    near = _core.Scenario(
        (tmp_path / "scenario.toml").read_text(),
        overrides={"queue": "my_queue.py:MyQueue", "duration": "1s"},
        folders=[str(tmp_path)],
    )
    again = aqmlab.run(near, set={"queue.patience": "20ms"})
    assert again.links.equals(aqmlab.run(near).links)
    assert again.links["drop_user"].sum() > 0


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
    mine, ours = (
        with_control({"algorithm": each, "rate": "1.5mbit"}, prr=True) for each in (Cbr, "cbr")
    )
    assert equal(mine, ours).links["dropped"].sum() > 100


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
        "links.down.queue": {"discipline": "droptail", "limit": "20p"},
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


def study_of(key: str, values: list[object]) -> aqmlab.Study:
    scenario = {**BUSY, "duration": "1s", "transport": {}}
    axes = [{"key": key, "values": values}]
    return aqmlab.Study({"scenario": scenario, "axes": axes}, replications=3)


CONTROL = "transport.congestion_control"
AXES: dict[str, tuple[list[object], list[str]]] = {
    "queue": ([Pi2, {"discipline": Still, "depth": 20}, CODEL, "codel"],
              ["Pi2", "Still", CODEL, "codel"]),
    CONTROL: ([Cbr, {"algorithm": MINE, "kept": 0.7}, "reno"], ["Cbr", MINE, "reno"]),
}  # fmt: skip


@pytest.mark.parametrize("key", AXES)
def test_threads_change_nothing_and_labels_are_names(key: str, tmp_path: Path) -> None:
    values, labels = AXES[key]
    assert study_of(key, values).axes[0].labels == labels
    for threads in (1, 2):
        study_of(key, values).run(tmp_path / str(threads), threads=threads)
    assert table_bytes(tmp_path / "1") == table_bytes(tmp_path / "2")


@pytest.mark.parametrize(
    ("key", "name", "before", "after"),
    [
        ("queue", "my_queue.py:MyQueue", "> 1 and", "> 2 and"),
        (CONTROL, "my_control.py:MyControl", "2 * self.mss", "3 * self.mss"),
    ],
)
def test_results_of_other_code_are_not_taken(
    key: str, name: str, before: str, after: str, tmp_path: Path
) -> None:
    file = tmp_path / name.partition(":")[0]
    text = (EXAMPLES / file.name).read_text()
    file.write_text(text)
    study = study_of(key, [f"{tmp_path}/{name}"])
    study.run(tmp_path / "out")
    assert study_of(key, [f"{tmp_path}/{name}"]).run(tmp_path / "out").computed == 0
    resolved = study.points[0].scenario.resolved
    file.write_text(text.replace(before, after))
    with pytest.raises(aqmlab.FolderError, match="another scenario"):
        study_of(key, [f"{tmp_path}/{name}"]).run(tmp_path / "out")
    with pytest.raises(aqmlab.InputError, match="the code has changed since"):
        aqmlab.run(json.loads(resolved))


def test_a_class_is_explained(aqmlab: Aqmlab) -> None:
    control = "examples/my_control.py:MyControl"
    (entry,) = aqmlab.json("explain", control, "--json", cwd=EXAMPLES.parent)
    assert entry["section"] == "congestion_control"
    assert [(each["name"], each["default"]) for each in entry["params"]] == [("kept", "0.5")]
