"""Hostile files and values: one clear error each, soon."""

from __future__ import annotations

import bz2
import gzip
import os
import shlex
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE, SCENARIO_TEXT, Aqmlab, assert_refused, command, run_program

import aqmlab as api
from aqmlab import files, storage
from tools.bench import sizes


def error_of(path: Path | dict[str, Any], **settings: Any) -> str:
    with pytest.raises(api.InputError) as caught:
        api.run(path, **settings)
    return str(caught.value)


def test_a_device_is_no_file(scenario: Path) -> None:
    sizes = {"list": {"file": "/dev/zero", "unit": "b"}}
    workload = {"kind": "transfers", "size": sizes, "number": 1}
    for key, table in (
        ("links.down.rate", {"links.down.rate": {"trace": "/dev/zero"}}),
        ("links.down.rate", {"links.down.rate": {"csv": "/dev/zero"}}),
        ("size", {"flows.first.workload": workload, "flows.first.size": "none"}),
    ):
        text = error_of(scenario, set=table)
        assert key in text and "neither a file nor a pipe" in text
    assert "neither a file nor a pipe" in error_of(Path("/dev/zero"))


def compared_with(aqmlab: Aqmlab, tmp_path: Path, name: str, content: bytes) -> Any:
    """The answer to a file of another tool beside results of ours."""
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    aqmlab.ok("run", "scenario.toml", "--no-report", "--out", "ours")
    (tmp_path / name).write_bytes(content)
    return aqmlab("compare", "ours", name)


def test_a_gzip_file_has_a_limit_of_what_is_in_it(
    aqmlab: Aqmlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two parts, as `cat a.gz b.gz` makes: the limit is of the sum.
    packed = gzip.compress(b" " * (5 << 20)) + gzip.compress(b" " * (5 << 20))
    assert files.unpack(packed, Path("x")) == b" " * (10 << 20)
    with pytest.raises(OSError, match="more than 9 MiB"):
        files.unpack(packed, Path("x"), most=9 << 20)
    for damaged in (packed[:-1], packed[:100], b"\x1f\x8bxx", packed + b"no gzip"):
        with pytest.raises(OSError, match="gzip"):
            files.unpack(damaged, Path("x"))
    other = bz2.compress(b" " * (5 << 20)) * 2
    assert files.unpack(other, Path("x")) == b" " * (10 << 20)
    with pytest.raises(OSError, match="more than 9 MiB"):
        files.unpack(other, Path("x"), most=9 << 20)
    for damaged in (other[:-1], b"BZhx"):
        with pytest.raises(OSError, match="bz2"):
            files.unpack(damaged, Path("x"))
    monkeypatch.setattr(files.unpack, "__defaults__", (1 << 20,))
    done = compared_with(aqmlab, tmp_path, "bomb.flent.gz", packed)
    assert_refused(done, "bomb.flent.gz", "more than 1 MiB")


def test_json_may_be_nested_as_deep_as_anybody_likes(aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = compared_with(aqmlab, tmp_path, "deep.flent", b"[" * 100_000)
    assert_refused(done, "deep.flent", "flent")


@pytest.mark.parametrize("option", ["run", "--out", "--pcap"])
def test_a_name_that_is_no_utf8_is_refused(tmp_path: Path, option: str) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    name = b"no\xff.toml"
    words = [b"run", name] if option == "run" else [b"run", b"scenario.toml", option.encode(), name]
    line = [*(word.encode() for word in command()), *words]
    done = run_program(line, cwd=tmp_path, timeout=PATIENCE)
    assert_refused(done, "no\\xff.toml", "UTF-8")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_are_no_fault(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """Cron and daemons start programs without them; files opened later must not be them."""
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    shut = " ".join(f"{number}>&-" for number in closed)
    text = f"{shlex.join(command('run', 'scenario.toml', '--out', 'out'))} {shut}"
    done = run_program(["sh", "-c", text], cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out/report.html").stat().st_size > 1000


def test_devices_and_pipes_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    """`aqmlab bundle out /dev/null` by root must leave the device."""
    said, pipe = tmp_path / "said", tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: said.write_bytes(pipe.read_bytes()))
    reader.start()
    storage.replace(pipe, storage.content(b"x" * 1000))
    reader.join(PATIENCE)
    assert said.read_bytes() == b"x" * 1000
    assert pipe.is_fifo() and not (tmp_path / "pipe.tmp").exists()
    # A redirected stdout is a regular file, by a name that must stay.
    with (tmp_path / "stdout").open("wb") as file:
        number, before = file.fileno(), os.fstat(file.fileno()).st_ino
        storage.replace(Path(f"/proc/self/fd/{number}"), storage.content(b"text"))
        assert (tmp_path / "stdout").stat().st_ino == before
    assert (tmp_path / "stdout").read_bytes() == b"text"
    assert [storage.is_special(Path("/dev") / each) for each in ("null", "stdout", "new")] == [
        True
    ] * 3
    assert not storage.is_special(tmp_path / "new") and not storage.is_special(said)


@pytest.mark.slow
def test_a_file_has_a_limit_that_the_message_names(scenario: Path) -> None:
    large = scenario.parent / "large"
    with large.open("wb") as file:
        file.truncate(files.MOST + 1)
    assert "more than 256 MiB" in error_of(scenario, set={"links.down.rate": {"trace": "large"}})
    assert "more than 64 MiB" in error_of(large)


def test_pipes_are_read_and_do_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.5)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "nothing came for 0.5 s" in error_of(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(SCENARIO_TEXT))
    writer.start()
    assert api.run(pipe).links.height == 2
    writer.join()


COMMANDS = {
    "run": ["run"],
    "study": ["study"],
    "parity": ["parity"],
    "shell --scenario": ["shell", "--scenario"],
    "shell --topology": ["shell", "--topology"],
    "shell --trace": ["shell", "--trace"],
    "conformance": ["conformance", "--vectors"],
    "compare": ["compare"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_every_command_refuses_what_has_no_end(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aqmlab: Aqmlab
) -> None:
    """A device, and a pipe without a writer; for folders, instead of a file in them."""
    monkeypatch.setattr(files, "PATIENCE_SECONDS", 0.2)
    given = Path("/dev/zero")
    if kind == "pipe":
        given = tmp_path / "pipe"
        os.mkfifo(given)
    if name in ("conformance", "compare"):
        inner = {"conformance": "codel_linux/one/case.json", "compare": "manifest.json"}[name]
        (tmp_path / "folder" / inner).parent.mkdir(parents=True)
        (tmp_path / "folder" / inner).symlink_to(given)
        given = tmp_path / "folder"
    rest = ["--", "true"] if name.startswith("shell") else []
    done = aqmlab(*COMMANDS[name], given, *rest)
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr.count("\n") <= 1  # conformance lists what cannot be replayed on stdout
    words = ("neither a file nor a pipe", "nothing came for 0.2 s", "not a regular file")
    said = " ".join((done.stdout + done.stderr).split())
    assert any(word in said for word in words), said


@pytest.mark.parametrize("name", ["runs.parquet", "scenarios.json"])
def test_a_table_that_is_a_pipe_is_damaged(name: str, study: Path) -> None:
    folder = study.parent / "out"
    api.Study(study, replications=1).run(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(api.AqmlabError, match=f"{name}: damaged \\(it is not a regular file"):
        api.StudyResult.open(folder)


@pytest.mark.parametrize("option", ["--pcap", "--qlog"])
def test_a_pipe_that_nobody_reads_is_not_waited_for(
    option: str, scenario: Path, aqmlab: Aqmlab
) -> None:
    os.mkfifo(scenario.parent / "pipe")
    refused = aqmlab("run", str(scenario), option, "pipe")
    assert refused.returncode == 1
    assert "this pipe has no reader" in refused.stderr


def test_depth_has_a_limit(tmp_path: Path, scenario: Path) -> None:
    path = tmp_path / "deep.toml"
    deep = {
        "lists": "scenario = 1\naxes = " + "[" * 1000 + "]" * 1000,
        "tables": "a = " + "{ a = " * 1000 + "1" + " }" * 1000,
        "parts": ".".join(["a"] * 100_000) + " = 1",
    }
    for text in deep.values():
        path.write_text(text)
        assert len(error_of(path)) < 1000
        with pytest.raises(api.InputError) as caught:
            api.Study(path)
        assert len(str(caught.value)) < 1000
    many = ".".join(["duration"] * 20_000)
    assert "at most 64 parts" in error_of(scenario, set={many: 1})
    table: dict[str, Any] = {}
    for _ in range(1_000):
        table = {"a": table}
    assert "more than 64 deep" in error_of({"links": table})


def test_what_is_no_value_names_its_key(scenario: Path) -> None:
    text = error_of(scenario, set={"links.down.thresholds": ["1500b", None]})
    assert "links.down.thresholds: `None`: expected" in text


def test_long_values_are_not_shown_whole(scenario: Path) -> None:
    text = error_of(scenario, set={"links.down.rate": "x" * 10_000})
    assert "xxx... (10000 characters)" in text and len(text) < 1000


def test_any_number_of_threads_is_one(aqmlab: Aqmlab, tmp_path: Path, scenario: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('scenario = "scenario.toml"\nreplications = 2\n')
    aqmlab.ok("study", study, "--no-report", "--threads", "9" * 30)


@pytest.mark.slow
def test_many_values_on_an_axis_take_as_long_as_they_are_many() -> None:
    """40,000 took 400 times as long as 2,000; they may take 20 times, and some more."""

    def seconds(count: int) -> float:
        from aqmlab.study.sweep import _axes

        axes = [{"key": "flows.one.count", "name": "many", "values": list(range(count))}]
        begun = time.process_time()
        assert len(next(_axes(axes, {}, "x")).values) == count
        return time.process_time() - begun

    few = min(seconds(2_000) for _ in range(3))
    assert seconds(40_000) < 100 * few


@pytest.mark.slow
def test_many_links_take_as_long_as_they_are_many() -> None:
    """200,000 were not read in 25 s; twenty times as many may take 20 times as long, and more."""
    few = sizes.seconds(sizes.links, 2_000)
    assert sizes.seconds(sizes.links, 40_000) < 100 * few


@pytest.mark.parametrize(
    "value",
    [
        {"flows.first.transport.initial_window": "unlimited"},
        {"flows.first.transport.congestion_control": {"algorithm": "reno", "byte_counting": 2**62}},
        {"flows.first.workload": {"kind": "video", "variation": 1e6}, "flows.first.size": "none"},
        {"flows.first.workload": {"kind": "dash", "variation": -1}, "flows.first.size": "none"},
        {"queue": {"discipline": "red", "mark_p": -1}},
    ],
    ids=["initial_window", "byte_counting", "video", "dash", "mark_p"],
)
def test_values_without_an_end_are_refused(scenario: Path, value: dict[str, Any]) -> None:
    """Each was accepted; the first doubled memory until there was none, the third never ended."""
    key = next(iter(value)).split(".")[-1]
    inner = next(iter(value.values()))
    name = list(inner)[-1] if isinstance(inner, dict) else key
    text = error_of(scenario, set=value)
    assert name in text and "unknown key" not in text
