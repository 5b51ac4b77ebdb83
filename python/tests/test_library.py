"""Queue disciplines and congestion controls of shared libraries: those of `examples`."""

from __future__ import annotations

import json
import multiprocessing
import struct
import tomllib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, assert_refused, built_library, table_bytes

import aqmlab as package
from aqmlab.share.bundle import bundle

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENARIO = EXAMPLES / "scenario.toml"
CONTROL = "transport.congestion_control"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of the queue's library, which a test may change."""
    file = tmp_path / "libmine.so"
    file.write_bytes(built_library("rust_queue").read_bytes())
    return file


def test_the_same_queue_in_python_has_the_same_results(mine: Path) -> None:
    changes = {"duration": "10s"}
    for patience in ("20ms", "7ms"):
        loaded, python = (
            package.run(SCENARIO, set={**changes, "queue": f"{name}:MyQueue patience={patience}"})
            for name in (mine, "my_queue.py")
        )
        assert loaded.links.equals(python.links)
        assert loaded.links["drop_user"].sum() > 0


def test_the_same_control_in_python_has_the_same_results() -> None:
    loaded, python = (
        package.run(SCENARIO, set={CONTROL: {"algorithm": name, "kept": 0.7}, "duration": "10s"})
        for name in (f"{built_library('rust_control')}:MyControl", "my_control.py:MyControl")
    )
    assert loaded.flows.equals(python.flows)
    assert loaded.links.equals(python.links)


def study_of(file: Path) -> package.Study:
    values = ["codel", f"{file}:MyQueue", f"{file}:MyQueue patience=7ms"]
    scenario = {**tomllib.loads(SCENARIO.read_text()), "duration": "2s"}
    axes = [{"key": "queue", "values": values}]
    return package.Study({"scenario": scenario, "axes": axes}, replications=2)


def test_a_library_is_an_axis_and_a_change_of_it_is_noticed(mine: Path, tmp_path: Path) -> None:
    before = study_of(mine)
    before.run(tmp_path / "one", threads=2)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        before.run(tmp_path / "two", executor=executor)
    assert table_bytes(tmp_path / "one") == table_bytes(tmp_path / "two")
    assert study_of(mine).run(tmp_path / "one").computed == 0
    resolved = before.points[1].scenario.resolved
    with mine.open("ab") as file:
        file.write(b"another build")
    with pytest.raises(package.FolderError, match="another scenario"):
        study_of(mine).run(tmp_path / "one")
    with pytest.raises(package.InputError, match="the code has changed since"):
        package.run(json.loads(resolved))
    mine.unlink()
    made = bundle(tmp_path / "one", tmp_path / "one.aqmlab.zip")
    with pytest.raises(package.InputError, match=r"would execute code: .*libmine\.so"):
        package.rerun(made, out=tmp_path / "again")
    again = package.rerun(made, out=tmp_path / "again", trust=True)
    assert again.agrees


def test_the_packs_take_libraries(mine: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    quick = ["--quick", "--replications", "1", "--json"]
    queue = ["characterize", f"{mine}:MyQueue patience=9ms", "--section", "5.2"]
    control = ["evaluate", f"{built_library('rust_control')}:MyControl", "--only", "constrained"]
    for command in (queue, control):
        aqmlab.ok(*command, *quick, "--out", tmp_path / command[0])


def test_a_type_of_a_library_is_explained(mine: Path, aqmlab: Aqmlab) -> None:
    (entry,) = aqmlab.json("explain", f"{mine}:MyQueue", "--json")
    assert entry["section"] == "queue"
    assert entry["summary"] == "drops from the front what has waited too long"
    (patience,) = entry["params"]
    assert (patience["name"], patience["default"], patience["kind"]) == ("patience", "20ms", "time")
    assert patience["meaning"] == "Longest sojourn time of a packet."
    control = f"{built_library('rust_control')}:MyControl"
    (entry,) = aqmlab.json("explain", control, "--json")
    assert entry["section"] == "congestion_control"
    assert entry["params"][0]["range"] == ["0", "1"]


def patched(place: int, form: str, value: int) -> Callable[[bytes], bytes]:
    """Writes a number at `place` of the header of the exported table."""

    def patch(content: bytes) -> bytes:
        start = content.index(b"MyQueue".ljust(64, b"\0")) - 16 + place
        size = struct.calcsize(form)
        return content[:start] + struct.pack(form, value) + content[start + size :]

    return patch


def of_machine(content: bytes) -> bytes:
    return content[:18] + struct.pack("<H", 8) + content[20:]


def cut(kept: int, of: int) -> Callable[[bytes], bytes]:
    return lambda content: content[: len(content) * kept // of]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("libmine.so:MyQueu", None, "did you mean `MyQueue`?"),
        ("libmine.so:MyQueue patence=7ms", None, "did you mean `patience`?"),
        ("libmine.so:MyQueue patience=7", None, "expected a time with its unit"),
        ("libmin.so:MyQueue", None, "there is no file "),
        ("libmine.so", None, "expected FILE:NAME"),
        ("libmine.so:MyQueue", lambda _: b"no library", "not a shared library that can be loaded"),
        ("libmine.so:MyQueue", cut(1, 50), "this library is cut short"),
        ("libmine.so:MyQueue", cut(1, 200), "this library is cut short"),
        ("libmine.so:MyQueue", cut(0, 1), "not a shared library that can be loaded"),
        ("libmine.so:MyQueue", of_machine, "for another processor (ELF machine 8, not "),
        ("libmine.so:MyQueue", patched(0, "<I", 99), "it has ABI version 99, not "),
        ("libmine.so:MyQueue", patched(4, "<I", 8), "another layout of its structs"),
        ("libmine.so:MyQueue", patched(8, "<Q", 1), "another layout of its structs"),
        (None, None, "this library exports no queue discipline"),
    ],
)
def test_what_is_wrong_with_a_library_is_said(
    name: str | None, change: Any, expected: str, mine: Path, aqmlab: Aqmlab
) -> None:
    if change:
        mine.write_bytes(change(mine.read_bytes()))
    queue = name or f"{built_library('rust_control')}:MyControl"
    done = aqmlab("run", SCENARIO, "--set", f"queue={queue}", cwd=mine.parent)
    assert_refused(done, expected, "queue")
