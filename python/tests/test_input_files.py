"""Files that scenarios name: read once for a study, and however large they are."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest
from helpers import command, environment, run_program

import aqmlab
from aqmlab import files

SCENARIO = """
duration = "2s"
[links.down]
rate = { trace = "down.trace" }
delay = "5ms"
queue = { discipline = "droptail", limit = "500p" }
[links.up]
rate = { csv = "up.csv" }
delay = "5ms"
[flows.bulk]
count = 2
path = ["down"]
return_path = ["up"]
"""
STUDY = """
scenario = "scenario.toml"
replications = 2
[[axes]]
key = "queue"
values = ["droptail", "codel", "pie"]
[[axes]]
key = "links.down.rate.opportunity"
values = ["1504b", "3008b"]
"""
HUNDRED_MB = 100_000_000
# 12 opportunities a millisecond of 1504 bytes: 144 Mbit/s. A line has 8 bytes.
EACH = 12
# What the program takes by itself, and three times the file: its text as it comes and as it is
# parsed, and the times in it.
MEMORY = 200_000_000 + 3 * HUNDRED_MB
# Linux passes the peak of a process on to its children: a small one is in between.
METER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss}")
sys.exit(code)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "down.trace").write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    (tmp_path / "up.csv").write_text("0,50\n1,100\n")
    return tmp_path


def test_a_study_reads_each_file_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, original = [], files.read_bytes

    def reads(path: Path, *most: int) -> bytes:
        if Path(path).suffix != ".toml":  # the study's own reading, before or after the patch
            read.append(Path(path).name)
        return original(path, *most)

    monkeypatch.setattr(files, "read_bytes", reads)
    study = aqmlab.Study(folder / "study.toml")
    assert len(study.points) == 6
    assert sorted(read) == ["down.trace", "up.csv"]
    # Another study reads them again: they may have changed.
    (folder / "down.trace").write_text("1\n500\n1000\n")
    again = aqmlab.Study(folder / "study.toml")
    assert again.digest != study.digest
    assert sorted(read) == ["down.trace", "down.trace", "up.csv", "up.csv"]


def test_points_that_share_a_file_run_as_if_they_did_not(folder: Path) -> None:
    study = aqmlab.Study(folder / "study.toml")
    links = study.run().links
    for point in study.points:
        alone = aqmlab.run(
            folder / "scenario.toml",
            set={
                "queue": point.labels["queue"],
                "links.down.rate.opportunity": point.labels["opportunity"],
            },
            replication=1,
        )
        here = links.filter(pl.col("replication") == 1)
        for name, label in point.labels.items():
            here = here.filter(pl.col(name) == label)
        assert here.select(alone.links.columns).equals(alone.links)


@pytest.fixture
def large(folder: Path) -> Path:
    count = HUNDRED_MB // (8 * EACH)
    with (folder / "down.trace").open("wb") as file:
        file.writelines((b"%07d\n" % ms) * EACH for ms in range(1, count + 1))
    return folder


def measured(folder: Path, *arguments: object) -> tuple[CompletedProcess[str], float, int]:
    """What a command said, its CPU seconds, and the bytes it had at most."""
    usage = folder / "usage"
    done = run_program(
        [sys.executable, "-c", METER, str(usage), *command(*arguments)], env=environment()
    )
    seconds, kibibytes = usage.read_text().split()
    return done, float(seconds), int(kibibytes) * 1024


def test_a_trace_of_100_mb_is_run_or_refused_in_little_time_and_memory(large: Path) -> None:
    trace = large / "down.trace"
    try:
        assert trace.stat().st_size > 0.99 * HUNDRED_MB
        done, seconds, memory = measured(
            large, "study", large / "study.toml", "--out", large / "out"
        )
        assert done.returncode == 0, done.stderr
        assert seconds < 20
        assert memory < MEMORY
        links = aqmlab.StudyResult.open(large / "out").links.filter(
            (pl.col("link") == "down") & (pl.col("queue") == "droptail")
        )
        # Two flows fill a queue of 500 packets in two seconds, but for their start.
        for size, opportunity in [("1504b", 1504), ("3008b", 3008)]:
            delivered = links.filter(pl.col("opportunity") == size)["delivered_bytes"]
            assert delivered.len() == 2
            most = 2000 * EACH * opportunity
            assert delivered.max() <= most
            assert delivered.min() > 0.6 * most
        with trace.open("ab") as file:
            file.write(b"12 34\n")
        done, seconds, memory = measured(large, "run", large / "scenario.toml")
        assert done.returncode == 2
        number = HUNDRED_MB // (8 * EACH) * EACH + 1
        assert done.stderr.count("\n") <= 3
        assert f"down.trace:{number}: links.down.rate.trace: `12 34`" in done.stderr
        assert seconds < 10
        assert memory < MEMORY
    finally:
        trace.unlink()


def test_a_trace_of_flows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each flow begins when the file says and has the size it says; sizes from a table of shares
    are distributed as it says."""
    lines = ["start,size", *(f"{0.01 * n * n:.2f},{1000 + 700 * n}" for n in range(1, 15))]
    (tmp_path / "flows.csv").write_text("\r\n".join(lines))
    (tmp_path / "sizes.cdf").write_text("1000 10\n2000 60\n9000 100\n")
    trace = {
        "kind": "transfers",
        "number": 14,
        "gap": {"list": {"file": "flows.csv", "unit": "s", "differences": True}},
        "size": {"list": {"file": "flows.csv", "column": 2, "unit": "b"}},
    }
    drawn = {"kind": "transfers", "gap": "2ms", "size": {"cdf": {"file": "sizes.cdf", "unit": "b"}}}
    link = {"rate": "100mbit", "delay": "5ms"}
    path = {"path": "down", "return_path": "up"}
    scenario = {
        "duration": "5s",
        "links": {"down": link, "up": link},
        "flows": {"trace": path | {"workload": trace}, "drawn": path | {"workload": drawn}},
        "record": {"level": "series", "interval": "1s"},
    }
    monkeypatch.chdir(tmp_path)
    result = aqmlab.run(scenario)
    flows = result.flows.filter(group="trace")
    assert flows["start_s"].to_list() == pytest.approx([0.01 * n * n for n in range(1, 15)])
    assert flows["size_bytes"].to_list() == [1000 + 700 * n for n in range(1, 15)]
    sizes = result.flows.filter(group="drawn")["size_bytes"]
    assert sizes.len() > 2400
    assert (sizes <= 2000).mean() == pytest.approx(0.6, abs=0.03)
    assert sizes.filter(sizes > 2000).mean() == pytest.approx(5500, rel=0.05)
    assert aqmlab.run(result.scenario).flows.equals(result.flows)
