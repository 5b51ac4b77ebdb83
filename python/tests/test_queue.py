"""Queue disciplines written in Python: equal to ours, packet by packet."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, table_bytes

import aqmlab
from aqmlab import _core
from aqmlab.queue import Context, Link, Packet

EXAMPLES = Path(__file__).parents[2] / "examples"

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


def assert_equal(
    mine: object, ours: object, scenario: dict[str, Any] = BUSY, **settings: Any
) -> aqmlab.RunResult:
    """Runs a scenario with two queues on both links; all tables have to be equal."""

    def run(discipline: object) -> aqmlab.RunResult:
        queue = {"discipline": discipline, **settings}
        changes = {"links.down.queue": queue, "links.up.queue": queue}
        return aqmlab.run(scenario, set=changes, record="packets")

    left, right = run(mine), run(ours)
    assert left.packets.height > 5000
    for name in right.table_names:
        if name != "notes":
            assert shared(left, name).equals(shared(right, name)), name
    assert notes_of(left) == notes_of(right)
    return right


OURS = ["sojourn", "delay_estimate"]
"""States that ours name in recordings and the classes here do not."""


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


@pytest.mark.parametrize("limit", ["1000p", "30p", "20000b", "0.7bdp"])
def test_codel_in_python_equals_codel_packet_by_packet(limit: str) -> None:
    result = assert_equal(f"{EXAMPLES}/codel.py:CoDel", "codel", limit=limit)
    assert result.links["drop_codel"].sum() > 0
    assert (result.links["drop_overlimit"].min() > 0) == (limit != "1000p")


@pytest.mark.parametrize("settings", [{"target": "1ms"}, {"target": "13.5ms", "interval": "40ms"}])
def test_codel_in_python_has_the_same_parameters(settings: dict[str, str]) -> None:
    assert_equal(f"{EXAMPLES}/codel.py:CoDel", "codel", **settings)


def test_codel_in_python_marks_as_codel_does() -> None:
    transport = {"ecn": "classic", "recovery": "rack"}
    result = assert_equal(
        f"{EXAMPLES}/codel.py:CoDel", "codel", scenario=BUSY | {"transport": transport}, ecn=True
    )
    assert result.links["mark_codel"].min() > 10
    assert result.links["drop_codel"].sum() < result.links["mark_codel"].sum()
    assert result.flows["ecn_reductions"].min() > 0
    assert result.flows["tail_probes"].sum() > 0


def changed(queue: str, *, key: str = "queue.target", value: object = "15ms") -> aqmlab.RunResult:
    changes = [
        {"at": "5s", "key": key, "value": value},
        {"at": "12s", "key": "queue.limit", "value": "7p"},
        {"at": "15s", "key": "queue.limit", "value": "50p"},
    ]
    settings = {"links.down.queue": queue, "links.up.queue": queue, "bottleneck": "down"}
    return aqmlab.run({**BUSY, "changes": changes}, set=settings, record="packets")


def test_changes_of_codel_in_python_equal_those_of_codel() -> None:
    mine, ours = changed(f"{EXAMPLES / 'codel.py'}:CoDel"), changed("codel")
    assert mine.packets.equals(ours.packets)
    assert shared(mine, "links").equals(shared(ours, "links"))
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
    result = assert_equal(Pi2, "pi2", alpha=alpha)
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


def test_a_queue_is_an_axis_of_a_study_beside_its_file(study: Path, aqmlab: Aqmlab) -> None:
    (study.parent / "my_queue.py").write_text((EXAMPLES / "my_queue.py").read_text())
    text = study.read_text()
    head, _ = text.split("[[axes]]", 1)
    study.write_text(f'{head}[[axes]]\nkey = "queue"\nvalues = ["codel", "my_queue.py:MyQueue"]\n')
    done = aqmlab("study", study, "--out", study.parent / "out", "--json", cwd="/")
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert [point["queue"] for point in points] == ["codel", "my_queue.py:MyQueue"]
    assert points[1]["dropped_share"] > 0


def study_of(queues: list[object], **changes: Any) -> aqmlab.Study:
    axes = [{"name": "queue", "values": [{"label": str(n), "set": {"queue": queue}}
                                         for n, queue in enumerate(queues)]}]  # fmt: skip
    scenario = {**BUSY, "duration": "1s"}
    return aqmlab.Study({"scenario": scenario, "axes": axes}, replications=3, **changes)


def test_threads_and_interruptions_change_nothing(tmp_path: Path) -> None:
    queues = [Pi2, f"{EXAMPLES}/codel.py:CoDel", "codel"]
    for threads in (1, 2):
        study_of(queues).run(tmp_path / str(threads), threads=threads)
    assert table_bytes(tmp_path / "1") == table_bytes(tmp_path / "2")


def test_the_label_of_a_class_is_its_name() -> None:
    study = aqmlab.Study({"scenario": BUSY, "axes": [{"key": "queue", "values": [
        Pi2, {"discipline": Kinds, "a": "7ms"}, "codel"]}]})  # fmt: skip
    assert study.axes[0].labels == ["Pi2", "Kinds", "codel"]


def test_results_of_other_code_are_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = (EXAMPLES / "my_queue.py").read_text()
    file.write_text(text)
    before = study_of([f"{file}:MyQueue"])
    before.run(tmp_path / "out")
    assert study_of([f"{file}:MyQueue"]).run(tmp_path / "out").computed == 0
    resolved = before.points[0].scenario.resolved
    file.write_text(text.replace("> 1 and", "> 2 and"))
    after = study_of([f"{file}:MyQueue"])
    assert after.digest != before.digest
    with pytest.raises(aqmlab.FolderError, match="another scenario"):
        after.run(tmp_path / "out")
    with pytest.raises(aqmlab.InputError, match="the code has changed since"):
        aqmlab.run(json.loads(resolved))
