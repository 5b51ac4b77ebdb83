"""Memory does not grow with what a run records, nor with the runs of a study."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest
from helpers import (
    PATIENCE,
    assert_refused,
    command,
    environment,
    run_program,
    table_bytes,
    wait_until,
)

import aqmlab
from aqmlab.results import tables
from aqmlab.study.execute import study_info
from aqmlab.study.folder import ResultsFolder
from tools.bench import memory, points

pytestmark = pytest.mark.slow

PACKETS = """
name = "packets"
replications = 2

[scenario]
duration = "6s"
record.level = "packets"
[scenario.links.down]
rate = "20mbit"
delay = "5ms"
queue = "fq_codel"
[scenario.links.up]
rate = "20mbit"
delay = "5ms"
queue = "red"
[scenario.flows.both]
path = ["down"]
return_path = ["up"]
workload = "rrul"
transport.ecn = "classic"
[scenario.flows.pages]
path = ["down"]
return_path = ["up"]
workload = "rfc7928-web"
"""


AT_ONCE = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0", "MALLOC_ARENA_MAX": "1"}
"""Returns free memory at once, so that only held memory counts. It takes time."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, float]]:
    """Folders with a run that recorded many packets, and the memory that this took, in MB."""
    sizes, found = ("1000000p", "4000000p"), {}
    for size in sizes:
        out = tmp_path_factory.mktemp(size)
        took = memory.in_child([memory.ALONE, size, str(out)], environment() | AT_ONCE)
        found[size] = out, took["peak_mb"]
    return found


def test_packets_wait_on_the_disk(recorded: dict[str, tuple[Path, float]]) -> None:
    """Four times as many packets: in memory the others would take 96 MB."""
    few, many = (peak for _, peak in recorded.values())
    assert many < few + 40, (few, many)


def test_a_report_reads_packets_in_parts(recorded: dict[str, tuple[Path, float]]) -> None:
    """Four times as many packets: whole tables of the others would take 700 MB."""
    few, many = (
        memory.in_child([memory.REPORT, str(out)], environment() | AT_ONCE)["report_peak_mb"]
        for out, _ in recorded.values()
    )
    assert many < few + 40, (few, many)


def test_a_run_in_memory_is_held_once() -> None:
    """800,000 packets more: with copies of the table and plain texts they took 170 MB."""
    sizes = ("200000p", "1000000p")
    few, many = (memory.in_child([memory.HELD, size], environment() | AT_ONCE) for size in sizes)
    assert many["rows"] - few["rows"] > 790_000
    assert many["run_peak_mb"] < few["run_peak_mb"] + 110, (few, many)


def test_tables_are_made_in_parts(tmp_path: Path) -> None:
    """The table of links of all runs takes 110 MB: it is never there as a whole."""
    found = memory.in_child([memory.ALONE, "3000x1x60", str(tmp_path)], environment())
    assert found["peak_mb"] < found["peak_mb_before_finish"] + 90, found


@pytest.fixture
def packets(tmp_path: Path) -> Path:
    """A study that records the packets of all kinds of flows on two links."""
    path = tmp_path / "study.toml"
    path.write_text(PACKETS)
    return path


def test_packets_that_waited_on_the_disk_are_the_same(packets: Path) -> None:
    plan = aqmlab.Study(packets)
    kept, written = plan.run(), plan.run(packets.parent / "out")
    rows = written.raw("packets")
    counts = rows.group_by("run", "link").len()["len"]
    assert len(counts) == 4 and counts.min() > 4000  # several blocks a link
    assert rows["verdict"].n_unique() > 1 and rows["ce"].any() and rows["is_ack"].any()
    assert rows["flow"].n_unique() > 20
    for name in kept.table_names:
        assert kept.raw(name).equals(written.raw(name)), name
    assert not (packets.parent / "out" / "spill").exists()
    plan.run(packets.parent / "one", threads=1)
    assert table_bytes(packets.parent / "one") == table_bytes(packets.parent / "out")


def test_tables_held_in_parts_are_the_same(packets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables in memory have codes for their texts and are made in parts, invisibly."""
    study = aqmlab.Study(packets, set={"duration": "1s"}, replications=3)
    plain = study.run(threads=1)
    monkeypatch.setattr(tables, "PART", 300)
    held = study.run(threads=2)
    assert held.raw("packets").height > 3000
    for name in plain.table_names:
        assert held.raw(name).equals(plain.raw(name)), name
        assert held.raw(name).schema == plain.raw(name).schema
    again = pl.concat(held.parts("packets", "run", "link", "end_s"))
    assert again.equals(plain.raw("packets").select("run", "link", "end_s"))


def test_more_replications_of_large_tables(packets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that were held and those of replications that came later are put together."""
    monkeypatch.setattr(tables, "PART", 300)
    wanted = {"metric": "sojourn_p95", "relative": 0.001, "at_most": 12}
    study = aqmlab.Study(packets, set={"duration": "300ms"}, precision=wanted)
    found, written = study.run(), study.run(packets.parent / "out")
    assert found.info.replications == 12
    for name in written.table_names:
        assert found.raw(name).equals(written.raw(name)), name


LONG = ("--set", "duration=1000s", "--threads", "1", "--json")
"""Setting that makes a run of the study last longer than a test."""


def spilled(out: Path) -> list[Path]:
    """The files in which packets of runs that have not ended are."""
    return [each for each in out.glob("spill/*") if each.stat().st_size > 100_000]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_packets_of_a_run_that_did_not_end_count_for_nothing(
    number: signal.Signals, packets: Path
) -> None:
    """What a killed process leaves there is gone when the study goes on."""
    out = packets.parent / "out"
    words = command("study", packets, "--out", out, *LONG)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: spilled(out), process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=PATIENCE)
    if number == signal.SIGKILL:
        assert spilled(out)
        study = aqmlab.Study(packets, set={"duration": "1000s"})
        with ResultsFolder(out, study_info(study), study.points.scenarios) as folder:
            assert list(folder.missing()) == [0, 1]
    else:
        assert "0 of 2 runs are kept" in stderr, stderr
    assert not (out / "spill").exists()


def test_a_disk_without_room_for_packets(packets: Path) -> None:
    """`ulimit -f` in units of 512 bytes: the error describes the next step, and no file is left."""
    out = packets.parent / "out"
    line = shlex.join(command("study", packets, "--json", "--out", out))
    words = ["sh", "-c", f"ulimit -f 100; {line}"]
    done = run_program(words, env=environment())
    assert_refused(
        done, f"{out}: the limit on the size of a file is reached; 0 of 2 runs are kept", status=1
    )
    assert not (out / "spill").exists()
    result = aqmlab.Study(packets).run(out)
    assert result.computed == 2
    aqmlab.Study(packets).run(packets.parent / "right")
    assert table_bytes(out) == table_bytes(packets.parent / "right")


def test_a_point_of_a_study_takes_little_memory_and_its_report_little_time() -> None:
    # More than a few parts of 1,000: what parts take is not given back at once.
    few, many = points.in_child(5_000), points.in_child(15_000)
    # A parsed scenario takes 20 kB.
    assert many["MB"] - few["MB"] < 10_000 * 10e3 / 1e6
    # Of all points only the first are shown.
    assert many["report"] < few["report"]
