"""Runs that make no progress are given up; the others of a study are kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import Aqmlab

import aqmlab
from aqmlab import _core
from aqmlab.errors import StuckError

STUDY = """
scenario = "scenario.toml"
[[axes]]
key = "flows.camera.workload.packet"
values = ["1000b", "1b"]
"""
# A frame a second: 30,000 packets of 1000 bytes, or 30,000,000 of one, at one moment.
SCENARIO = """
duration = "1s"
[links.down]
rate = "10mbit"
[links.up]
rate = "10mbit"
[flows.camera]
path = "down"
return_path = "up"
workload = { kind = "video", rate = "240mbit", fps = 1, gop = 1 }
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_a_study_keeps_the_others_and_says_which_failed(
    study: Path, tmp_path: Path, aqmlab: Aqmlab
) -> None:
    out = tmp_path / "out"
    done = aqmlab("study", study, "--out", out, "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    [failed] = told["failed"]
    assert failed["run"] == 1 and failed["replication"] == 0
    assert failed["point"] == {"packet": "1b"}
    assert "no progress" in failed["problem"] and "flows `camera`" in failed["problem"]
    assert "1 of 2 runs are kept" in told["error"] and told["error"] in done.stderr
    again = aqmlab("study", study, "--out", out)
    assert again.returncode == 1 and "packet=1b, replication 0" in again.stderr


def test_a_command_says_at_which_moment_a_run_stands_still(study: Path, aqmlab: Aqmlab) -> None:
    setting = ("--set", "flows.camera.workload.packet=1b")
    done = aqmlab("run", study.parent / "scenario.toml", *setting)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"no progress: [0-9]+ events at 0 s", done.stderr)
    assert len(done.stderr.splitlines()) == 1


def test_a_run_that_failed_is_over_and_the_others_go_on() -> None:
    small, large = (
        aqmlab.Run(aqmlab.Scenario.from_toml(SCENARIO), set={"flows.camera.workload.packet": size})
        for size in ("1b", "1000b")
    )
    with pytest.raises(StuckError, match="1 run was abandoned: no progress"):
        _core.advance_all([large._run, small._run], [0.1, 0.1], 2)
    assert small.is_over and repr(small) == "<Run: over>"
    late = (small.observe, small.step, small.finish, lambda: small.time, lambda: small.advance(1))
    for each in late:
        with pytest.raises(aqmlab.InputError, match="the run is over"):
            each()
    with pytest.raises(aqmlab.InputError, match="the run is over"):
        _core.advance_all([large._run, small._run], [0.2, 0.2], 2)
    assert large.time == 0.1 and not large.is_over
    large.finish()
    assert large.digest in repr(large)
