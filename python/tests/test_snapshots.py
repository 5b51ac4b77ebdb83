"""Snapshots and copies of runs in steps."""

from __future__ import annotations

import copy
import pickle
import tomllib
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import polars as pl
import pytest

import aqmlab

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tools" / "bench" / "b-10mbit-codel.toml"
SCENE = """
duration = "4s"
[links.down]
rate = "5mbit"
delay = "10ms"
[links.up]
rate = "100mbit"
delay = "10ms"
[flows.bulk]
count = 2
path = ["down"]
return_path = ["up"]
"""


class Coin:
    """Queue that keeps its packets in tuples, and drops some of them at random."""

    def __init__(self, link: Any, *, limit: int = 50) -> None:
        self.link, self.limit = link, limit
        self.waiting: list[tuple[int, Any]] = []

    def enqueue(self, packet: Any, cx: Any) -> None:
        if len(self.waiting) >= self.limit or cx.random() < 0.01:
            cx.drop(packet)
            return
        self.waiting.append((cx.now, packet))

    def dequeue(self, cx: Any) -> Any:
        return self.waiting.pop(0)[1] if self.waiting else None


class Secretive(Coin):
    """Queue with state that cannot be copied."""

    def __init__(self, link: Any) -> None:
        super().__init__(link)
        self.numbers = (number for number in range(10))


class Halves:
    """Control with random steps."""

    def __init__(self, setup: Any) -> None:
        self.setup, self.window = setup, 4 * setup.mss

    def on_ack(self, sample: Any) -> None:
        self.window += int(self.setup.random() * 200)

    def on_congestion(self, event: Any) -> None:
        self.window = max(self.window // 2, 2 * self.setup.mss)


def run_of(**settings: Any) -> aqmlab.Run:
    return aqmlab.Run(aqmlab.Scenario.from_toml(SCENE), set=settings)


def digest(run: aqmlab.Run) -> str:
    run.finish()
    return run.digest


@pytest.mark.parametrize(
    "settings",
    [
        {"links.down.queue": "fq_codel"},
        {"links.down.queue": Coin, "bottleneck": "down"},
        {"flows.bulk.transport.congestion_control": Halves},
        {"flows.bulk.endpoint": "quic"},
    ],
    ids=["built in", "queue in Python", "control in Python", "QUIC"],
)
def test_every_copy_of_a_run_continues_as_the_run(settings: dict[str, Any]) -> None:
    whole = digest(run_of(**settings))
    run = run_of(**settings)
    run.advance(1.3)
    run.step()
    snapshot = run.snapshot()
    ways: list[Callable[[], aqmlab.Run]] = [
        run.fork,
        lambda: copy.copy(run),
        lambda: copy.deepcopy({"run": run})["run"],
    ]
    copies = [way() for way in ways]
    run.advance(2.7)
    assert {digest(each) for each in copies} == {whole}
    run.restore(snapshot)
    assert digest(run) == whole


def test_a_pickle_repeats_the_run_with_its_changes() -> None:
    run = run_of(**{"links.down.queue": "codel"})
    run.advance(1)
    run.set("links.down.rate", "3mbit")
    run.advance(2)
    run.set("queue.target", "10ms")
    [run.step() for _ in range(10)]
    again = pickle.loads(pickle.dumps(run))
    assert (again.time, again.observe()) == (run.time, run.observe())
    assert digest(again) == digest(run)


def test_a_copy_does_not_see_the_changes_of_the_other() -> None:
    run = run_of(**{"links.down.queue": "codel"})
    run.advance(1)
    other = run.fork()
    run.set("links.down.rate", "1mbit")
    assert "changes" not in other.scenario.to_toml()
    assert digest(other) == digest(run_of(**{"links.down.queue": "codel"})) != digest(run)


def test_what_cannot_be_copied_is_named() -> None:
    run = run_of(**{"links.down.queue": Secretive, "bottleneck": "down"})
    run.advance(1)
    with pytest.raises(aqmlab.CustomError, match=r"Secretive: the state cannot be copied: .*gener"):
        run.snapshot()
    whole = digest(run_of(**{"links.down.queue": Coin, "bottleneck": "down"}))
    assert digest(run) == whole, "the run continues"


def study_of(late: list[list[tuple[float, str]]], **settings: Any) -> aqmlab.Study:
    changes = [[{"at": f"{at}s", "key": "links.down.rate", "value": rate} for at, rate in each]
               for each in late]  # fmt: skip
    values = [{"label": str(number), "set": {"changes": each}}
              for number, each in enumerate(changes)]  # fmt: skip
    axes = [
        {"name": "late", "values": values},
        {"key": "links.down.queue", "values": ["red", "pie"]},
    ]
    scenario = tomllib.loads(SCENE)
    given = {"scenario": scenario, "axes": axes, "replications": 2}
    return aqmlab.Study(given, set=settings)


LATE = [
    [(3.5, "1mbit")],
    [(1.0, "2mbit"), (3.0, "3mbit")],
    [],
    [(1.0, "2mbit"), (3.0, "9mbit"), (3.0, "4mbit")],
    [(3.5, "2mbit")],
    [(0.0, "2mbit")],
]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"flows.bulk.size": "900kb"},
        {"flows.bulk.endpoint": "quic"},
        {"flows.bulk.transport.congestion_control": Halves},
        {"record.level": "packets"},
    ],
    ids=["TCP", "finite", "QUIC", "control in Python", "packets"],
)
def test_points_that_share_a_beginning_have_their_own_results(settings: dict[str, Any]) -> None:
    study = study_of(LATE, **settings)
    result = study.run(threads=2)
    for run in range(study.total):
        point, replication = divmod(run, 2)
        alone = aqmlab.run(study.points[point].scenario, replication=replication)
        for name in ("runs", "links", "flows"):
            whole = alone.table(name)
            own = result.table(name).filter(pl.col("run") == run).select(whole.columns)
            assert own.equals(whole), (run, name)


def test_a_common_beginning_is_simulated_once() -> None:
    study = study_of([[(48, f"{number}mbit")] for number in range(1, 13)], duration="50s")

    def alone() -> None:
        for run in range(study.total):
            aqmlab.run(study.points[run // 2].scenario, replication=run % 2)

    def least(function: Callable[[], object]) -> float:
        """The least of three times: the first includes imports, and other programs slow some."""
        times = []
        for _ in range(3):
            began = process_time()
            function()
            times.append(process_time() - began)
        return min(times)

    assert least(lambda: study.run(threads=1)) < 0.5 * least(alone)


def test_a_snapshot_costs_the_same_late_in_a_run() -> None:
    run = aqmlab.Run(BENCH, set={"duration": "200s", "record.level": "packets"})
    costs = []
    for until in (20, 180):
        run.advance(until)
        began = process_time()
        for _ in range(20):
            run.restore(run.snapshot())
        costs.append((process_time() - began) / 20)
    assert costs[1] < 5 * costs[0], costs
