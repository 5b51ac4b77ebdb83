"""Studies on other processes and machines: the same bytes, even if workers fail."""

from __future__ import annotations

import gc
import importlib.util
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    PATIENCE,
    SCENARIO_TEXT,
    Aqmlab,
    assert_refused,
    command,
    runs_kept,
    started,
    table_bytes,
    wait_until,
    write_study,
)

import aqmlab as package
from aqmlab.study import cluster as cluster_module
from aqmlab.study import spread
from aqmlab.study.points import Points

dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None,
    reason="not installed: dask.distributed (the extra `cluster`)",
)


# Any executor


def test_a_pool_of_processes_gives_the_same_bytes(study: Path) -> None:
    package.Study(study).run(study.parent / "here")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        away = package.Study(study).run(study.parent / "away", executor=executor)
        memory = package.Study(study).run(executor=executor)
    assert away.computed == 12
    assert table_bytes(study.parent / "away") == table_bytes(study.parent / "here")
    assert memory.links.equals(away.links)


class Recorded(ThreadPoolExecutor):
    """Computes in threads, and remembers the sizes of the batches."""

    def __init__(self) -> None:
        super().__init__(1)
        self.sizes: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sizes.append(len(args[-1]))
        return super().submit(fn, *args, **kwargs)


def test_batches_grow_until_they_take_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "TARGET_SECONDS", 0.1)
    plan = package.Study(write_study(tmp_path, replications=40))
    with Recorded() as executor:
        plan.run(tmp_path / "out", executor=executor)
    assert executor.sizes[0] == 1
    assert max(executor.sizes) >= 8
    assert len(executor.sizes) < 100
    plan.run(tmp_path / "here")
    assert table_bytes(tmp_path / "out") == table_bytes(tmp_path / "here")


def test_a_worker_sends_back_what_takes_too_long(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch out of time leaves the rest; finished runs are kept."""
    monkeypatch.setattr(spread, "MOST_SECONDS", 0.0)
    plan = package.Study(study)
    order = spread._pickled(plan.points, plan.replications)
    asked = spread.work("unknown", spread.own_build(), None, [0, 1, 2])
    assert (asked.needs_plan, asked.left) == (True, (0, 1, 2))
    reply = spread.work("known", spread.own_build(), order, [0, 1, 2])
    assert (reply.runs, reply.left) == ([0], (1, 2))
    with Recorded() as executor:
        result = plan.run(executor=executor)
    assert result.links.equals(package.Study(study).run().links)


def test_files_travel_with_the_points(tmp_path: Path) -> None:
    """A worker on another machine does not have the trace that a scenario names."""
    (tmp_path / "lte.trace").write_text("".join(f"{each}\n" for each in range(1, 1000, 5)))
    text = SCENARIO_TEXT.replace('rate = "2mbit"', 'rate = { trace = "lte.trace" }', 1)
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    points = package.Study({"name": "s", "scenario": str(path)}).points
    sent = pickle.dumps(points)
    (tmp_path / "lte.trace").unlink()
    arrived: Points = pickle.loads(sent)
    assert arrived[0].scenario.resolved == points[0].scenario.resolved


def test_a_worker_in_another_folder_finds_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path, 1)
    study.write_text(study.read_text().replace('queue = "codel"', 'queue = "my_queue.py:MyQueue"'))
    shutil.copy(Path(__file__).parents[2] / "examples" / "my_queue.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    plan = package.Study("study.toml")
    sent = pickle.dumps(plan.points)
    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path / "worker")
    arrived: Points = pickle.loads(sent)
    assert [each.scenario.resolved for each in arrived] == [
        each.scenario.resolved for each in plan.points
    ]


class Scripted(Executor):
    """Answers each batch at once: with the result of `answer`, or the exception that it raises."""

    waits_for = ""

    def __init__(self, answer: Callable[..., Any], slots: Callable[[], int] = lambda: 1) -> None:
        self._answer, self.slots = answer, slots

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self._answer(fn, *args))
        except OSError as error:
            future.set_exception(error)
        return future


def test_what_was_computed_before_the_workers_failed_is_kept(study: Path) -> None:
    out, answered = study.parent / "out", iter(range(5))

    def fails(work: Any, *args: Any) -> Any:
        if next(answered, None) is None:
            raise OSError("gone")
        return work(*args)

    with pytest.raises(package.ClusterError, match=r"OSError: gone; [1-9]\d* of 12 runs are kept"):
        package.Study(study).run(out, executor=Scripted(fails))
    rest = package.Study(study).run(out)
    assert 0 < rest.computed < 12
    package.Study(study).run(study.parent / "here")
    assert table_bytes(out) == table_bytes(study.parent / "here")


def test_another_aqmlab_computes_nothing() -> None:
    other = replace(spread.own_build(), engine="0" * 16)
    with pytest.raises(package.ClusterError, match="a worker has aqmlab"):
        spread.work("key", other, b"", [0])


def test_a_study_without_workers_says_so_and_goes_on(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "PATIENCE_SECONDS", 0.9)
    counts = [0, 0, 0]  # no worker at first
    executor = Scripted(
        lambda work, *args: spread.Reply(left=args[-1]) if counts else work(*args),
        lambda: counts.pop() if counts else 1,
    )
    executor.waits_for = "`dask worker tcp://x:1` starts one"
    expected = "12 of 12 runs wait for workers"
    with pytest.warns(package.errors.ClusterWarning, match=expected) as told:
        result = package.Study(study).run(executor=executor)
    assert "`dask worker tcp://x:1` starts one" in str(told[0].message)
    assert len(told) == 1
    assert result.links.equals(package.Study(study).run().links)


def _links_of(place: str, answers: Any) -> None:
    scenario = package.Study(place).points[0].scenario
    for start in (package.Study(place).run, lambda: package.run(scenario)):
        try:
            answers.put(start().links.height)
        except package.errors.ForkError as error:
            answers.put(str(error))


def test_a_forked_copy_raises_instead_of_waiting_for_ever(study: Path) -> None:
    package.Study(study).run()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with warnings.catch_warnings(action="ignore"):  # Python's own about forks
        child = context.Process(target=_links_of, args=(str(study), answers))
        child.start()
    assert all("spawn" in answers.get(timeout=PATIENCE) for _ in range(2))
    child.join(PATIENCE)
    assert child.exitcode == 0


@pytest.mark.slow
def test_the_command_does_little_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In calls, with batches ten times smaller than those of short runs are."""
    monkeypatch.setattr(spread._Given, "_size", lambda _: 100)
    monkeypatch.setattr(spread, "MOST_SECONDS", 1e9)
    scenario = SCENARIO_TEXT.replace('duration = "20s"', 'duration = "200ms"')
    (tmp_path / "short.toml").write_text(scenario)
    replies: dict[tuple[int, ...], bytes] = {}

    def replayed(work: Any, *args: Any) -> Any:
        """Computes each batch once, and then only unpickles its results."""
        runs = tuple(args[-1])
        if runs not in replies:
            reply = work(*args)
            if reply.needs_plan:
                return reply
            replies[runs] = pickle.dumps(reply)
        return pickle.loads(replies[runs])

    executor, calls = Scripted(replayed), 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def calls_for(runs: int) -> int:
        nonlocal calls
        plan = package.Study({"name": "s", "scenario": str(tmp_path / "short.toml"),
                              "replications": runs})  # fmt: skip
        plan.run(tmp_path / f"{runs}-prepared", executor=executor)
        calls = 0
        threading.setprofile(count)
        sys.setprofile(count)
        try:
            plan.run(tmp_path / str(runs), executor=executor)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return calls

    few, many = calls_for(500), calls_for(2500)
    assert (many - few) / 2000 < 25, (few, many)  # 18 on 2026-11-28


def test_the_engine_is_known_by_its_sources() -> None:
    """Not by its binary, which differs between machines and profiles."""
    assert re.fullmatch("[0-9a-f]{16}", spread.own_build().engine)
    binary = Path(package._core.__file__).read_bytes()
    assert spread.own_build().engine.encode() in binary


# A cluster


@contextmanager
def dask_program(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-m", "dask", *arguments]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], pattern: str) -> str:
    """What the process says that matches."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found[0]
    raise AssertionError(f"it ended without {pattern}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """The address of a scheduler, and its two workers of one thread."""
    quiet = ("--no-dashboard", "--host", "127.0.0.1")
    worker = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0")
    with dask_program("scheduler", "--port", "0", *quiet) as scheduler:
        address = told(scheduler, r"tcp://127\.0\.0\.1:\d+")
        start = ("worker", address, *worker, *quiet)
        with dask_program(*start) as first, dask_program(*start) as second:
            for each in (first, second):
                told(each, "Registered to")
            yield address, [first, second]


Cluster = tuple[str, list[subprocess.Popen[str]]]


@dask
def test_the_workers_have_this_aqmlab(cluster: Cluster, aqmlab: Aqmlab) -> None:
    form = aqmlab.json("cluster", "check", cluster[0], "--json")
    assert form["fits"] is True
    assert [each["threads"] for each in form["workers"]] == [1, 1]
    assert {each["engine"] for each in form["workers"]} == {form["engine"]}


@pytest.mark.slow
@dask
def test_ctrl_c_keeps_what_is_done_and_a_killed_worker_costs_its_batches_only(
    cluster: Cluster, tmp_path: Path, aqmlab: Aqmlab
) -> None:
    """Both in one study: interrupted once, then finished with one of two workers."""
    address, workers = cluster
    study, out = write_study(tmp_path, replications=600), tmp_path / "out"
    line = command("study", study, "--json", "--out", out, "--cluster", address)
    first = started(line)
    wait_until(lambda: runs_kept(out), first)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode == 130, said
    kept = re.search(r"([\d,]+) of 3,600 runs are kept", said)
    assert kept, said
    before = int(kept[1].replace(",", ""))
    assert 0 < before < 3600

    second = started(line)
    kept_before = len(runs_kept(out))
    wait_until(lambda: len(runs_kept(out)) > kept_before, second)
    os.kill(workers[0].pid, signal.SIGKILL)
    stdout, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, said
    assert json.loads(stdout)["computed"] == 3600 - before
    package.Study(study).run(tmp_path / "here")
    assert table_bytes(out) == table_bytes(tmp_path / "here")


@dask
def test_ctrl_c_while_connecting_leaves_nothing_to_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The destructor of dask's client waits 20 s for a scheduler that never answered."""
    closed = []

    class Interrupted:
        def __init__(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

        def __del__(self) -> None:
            closed.append(self)

    monkeypatch.setattr(importlib.import_module("distributed"), "Client", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster_module.workers("tcp://127.0.0.1:1")
    gc.collect()
    assert not closed


@dask
def test_where_there_is_no_scheduler(
    study: Path, aqmlab: Aqmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = aqmlab("study", study, "--cluster", "scheduler:8786")
    assert_refused(wrong, "--cluster", "tcp://HOST:8786", "scheduler:8786")
    monkeypatch.setattr(cluster_module, "TIMEOUT_SECONDS", 0.5)
    with pytest.raises(package.ClusterError, match=r"no scheduler at tcp://127\.0\.0\.1:1 "):
        cluster_module.workers("tcp://127.0.0.1:1")
