"""Files and values that nobody means well: one clear error each, soon."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import SCENARIO_TEXT, Aqmlab

import aqmlab as api
from aqmlab import files

SOON = 20.0
"""Seconds: what had no end before."""


def error_of(path: Path | dict[str, Any], **settings: Any) -> str:
    begun = time.monotonic()
    with pytest.raises(api.InputError) as caught:
        api.run(path, **settings)
    assert time.monotonic() - begun < SOON
    return str(caught.value)


@pytest.mark.parametrize("value", [{"trace": "/dev/zero"}, {"csv": "/dev/zero"}])
def test_a_device_is_no_file(scenario: Path, value: dict[str, str]) -> None:
    text = error_of(scenario, set={"links.down.rate": value})
    assert "links.down.rate" in text and "neither a file nor a pipe" in text


def test_a_list_from_a_device_is_refused(scenario: Path) -> None:
    sizes = {"list": {"file": "/dev/zero", "unit": "b"}}
    workload = {"kind": "transfers", "size": sizes, "number": 1}
    table = {"flows.first.workload": workload, "flows.first.size": "none"}
    assert "neither a file nor a pipe" in error_of(scenario, set=table)
    assert "neither a file nor a pipe" in error_of(Path("/dev/zero"))


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
    done = aqmlab("study", study, "--threads", "9" * 30)
    assert done.returncode == 0, done.stderr


def test_many_values_on_an_axis_take_as_long_as_they_are_many() -> None:
    """40,000 took 400 times as long as 2,000; they may take 20 times, and some more."""

    def seconds(count: int) -> float:
        from aqmlab.study import _axes

        axes = [{"key": "flows.one.count", "name": "many", "values": list(range(count))}]
        begun = time.process_time()
        assert len(next(_axes(axes, "x")).values) == count
        return time.process_time() - begun

    few = min(seconds(2_000) for _ in range(3))
    assert seconds(40_000) < 100 * few
