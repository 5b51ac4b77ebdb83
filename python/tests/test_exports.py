"""Results in the formats of other programs, and those of other programs beside ours."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import SCENARIO, SCENARIO_TEXT, Aqmlab, assert_refused, run_program
from pytest import approx

from aqmlab import study
from aqmlab.report import exports
from aqmlab.results import StudyResult


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "run"
    study({"name": "run", "scenario": {**SCENARIO, "record": {"level": "packets"}}}, out=out)
    return out


def test_a_name_that_a_spreadsheet_would_run_is_text_in_csv(aqmlab: Aqmlab, tmp_path: Path) -> None:
    text = SCENARIO_TEXT.replace("flows.first", 'flows."=1+1"')
    assert text != SCENARIO_TEXT
    (tmp_path / "scenario.toml").write_text(text)
    aqmlab.ok("run", "scenario.toml", "--out", "out")
    aqmlab.ok("export", "out", "x.csv", "--table", "groups")
    assert set(pl.read_csv(tmp_path / "x.csv")["group"]) == {"'=1+1", "second"}
    course = pl.read_csv(tmp_path / "out/data/course.csv")
    assert "'=1+1.0" in set(course["name"])
    assert not course["name"].str.starts_with("=").any()
    aqmlab.ok("export", "out", "x.parquet", "--table", "groups")
    assert set(pl.read_parquet(tmp_path / "x.parquet")["group"]) == {"=1+1", "second"}


@pytest.mark.parametrize("name", ["x.csv", "x.arrow", "x.parquet", "x.flent.gz"])
def test_a_full_disk_leaves_no_file(
    name: str, folder: Path, aqmlab: Aqmlab, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        done = aqmlab("export", folder, name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_refused(done, f"{name}: the limit on the size of a file", "rerun", status=1)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [(name, b"old")]


def test_a_table_of_one_run(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    study = 'name = "s"\nscenario = "scenario.toml"\nreplications = 3\n'
    (tmp_path / "study.toml").write_text(study)
    aqmlab.ok("study", "study.toml", "--no-report", "--out", "out")
    aqmlab.ok("export", "out", "x.csv", "--table", "flows", "--run", 2)
    assert set(pl.read_csv(tmp_path / "x.csv")["run"]) == {2}
    aqmlab.ok("export", "out", "all.csv", "--table", "flows")
    assert set(pl.read_csv(tmp_path / "all.csv")["run"]) == {0, 1, 2}
    assert_refused(aqmlab("export", "out", "x.csv", "--run", 3), "--run: `3`", "below 3")


def test_tables_as_csv_arrow_and_parquet(folder: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    links = pl.read_parquet(folder / "links.parquet")
    for name, read in {
        "x.csv": pl.read_csv,
        "x.arrow": pl.read_ipc,
        "x.parquet": pl.read_parquet,
    }.items():
        aqmlab.ok("export", folder, name)
        found: Any = read(tmp_path / name)
        assert found["delivered"].to_list() == links["delivered"].to_list()
    aqmlab("export", folder, "series.csv", "--table", "series")
    assert (
        pl.read_csv(tmp_path / "series.csv").height
        == pl.read_parquet(folder / "series.parquet").height
    )
    assert_refused(aqmlab("export", folder, "x.xls"), ".flent.gz")
    lnks = aqmlab("export", folder, "x.csv", "--table", "lnks")
    assert_refused(lnks, "--table: `lnks`", "did you mean `links`?")
    assert_refused(aqmlab("export", folder, "x.log", "--run", "1"), "below 1")


def test_flents_file_has_goodput_and_ping(folder: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    aqmlab.ok("export", folder, "x.flent.gz")
    found = json.loads(gzip.decompress((tmp_path / "x.flent.gz").read_bytes()))
    count = len(found["x_values"])
    assert all(len(values) == count for values in found["results"].values())
    rates = [each for each in found["results"]["TCP download sum"] if each is not None]
    assert 1.5 < sum(rates[10:]) / len(rates[10:]) < 2.0, "the link has 2 Mbit/s"
    pings = found["results"]["Ping (ms) ICMP"]
    assert min(pings) >= 40 and max(pings) > 45
    beside = aqmlab.json("compare", f"ours={folder}", "theirs=x.flent.gz", "--json")
    ours, theirs = beside["measured"]
    assert theirs["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.1)
    assert theirs["rtt_p50_s"] == pytest.approx(ours["rtt_p50_s"], rel=0.2)


def test_flows_of_a_flent_file_are_added_where_they_are(tmp_path: Path) -> None:
    """One flow alone, two together, the other alone: 6 Mbit/s all the time."""
    flows = {"TCP download::1": [6, 3, None], "TCP download::2": [None, 3, 6]}
    file = tmp_path / "x.flent.gz"
    file.write_bytes(gzip.compress(json.dumps({"results": flows, "x_values": [0, 1, 2]}).encode()))
    assert exports.read(file).goodput_bps == 6e6


def flent_of(text: str, aqmlab: Aqmlab, tmp_path: Path) -> Any:
    """A file of flent of this scenario, the results of which are in `out`."""
    (tmp_path / "scenario.toml").write_text(text)
    aqmlab.ok("run", "scenario.toml", "--no-report", "--out", "out")
    aqmlab.ok("export", "out", "x.flent.gz")
    return json.loads(gzip.decompress((tmp_path / "x.flent.gz").read_bytes()))


def test_a_flow_of_a_flent_file_ends_when_it_does(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """A flow from 0.5 s until it has sent its data: no zeros before it or after its end."""
    endless = """
        [flows.endless]
        path = ["down"]
        return_path = ["up"]
        """
    text = SCENARIO_TEXT.replace("count = 2", 'start = "500ms"', 1) + endless
    found = flent_of(text, aqmlab, tmp_path)
    short = pl.read_parquet(tmp_path / "out" / "flows.parquet").row(0, named=True)
    courses = [zip(found["x_values"], each, strict=True) for each in found["results"].values()]
    lives = [[time for time, value in course if value is not None] for course in courses]
    (there,) = [life for life in lives if life[0] == approx(0.6)]
    assert short["finish_s"] < found["x_values"][-1] - 0.2
    assert 0 <= there[-1] - short["finish_s"] <= 0.1


def test_flows_of_datagrams_are_none_of_flents_tcp_flows(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """Each direction of `rrul` has two flows and four probes of 3.4 kbit/s."""
    text = """
        duration = "5s"
        [flows.a]
        path = "down"
        return_path = "up"
        workload = { kind = "rrul", lead = "1s", length = "2s", flows = 2 }
        [links]
        down = { rate = "10mbit", delay = "10ms" }
        up = { rate = "10mbit", delay = "10ms" }
    """
    found = flent_of(text, aqmlab, tmp_path)["results"]
    of_tcp = [each for each in found if each.startswith("TCP download::")]
    assert len(of_tcp) == 2 and len([each for each in found if each.startswith("UDP upload")]) == 4
    place = found["TCP download avg"].index(max(filter(None, found["TCP download avg"])))
    assert found["TCP download sum"][place] == approx(2 * found["TCP download avg"][place])


@pytest.mark.parametrize(
    ("delay", "change", "pings", "base"),
    [
        ('{ steps = [["0s", "20ms"], ["1s", "60ms"]], repeat = true }', "0s", [32, 72, 32], 52),
        ('"0s"', "40ms", [12, 12, 52], 32),
        ('{ csv = "delays.csv", unit = "1ms" }', "", [None] * 3, None),
    ],
)
def test_a_ping_has_the_delay_of_its_time(
    delay: str,
    change: str,
    pings: list[float | None],
    base: float | None,
    aqmlab: Aqmlab,
    tmp_path: Path,
) -> None:
    (tmp_path / "delays.csv").write_text("0,20\n1,60\n")
    key = "up" if delay == '"0s"' else "spare"
    text = f"""
        duration = "4s"
        transport.receive_window = "9kb"
        flows.a = {{ path = ["down"], return_path = ["up"], start = "300ms", access_delay = "1ms" }}
        links.down = {{ rate = "1gbit", delay = "10ms" }}
        links.up = {{ rate = "1gbit", delay = {delay} }}
        links.spare = {{ rate = "1gbit", delay = "1ms" }}
        changes = [{{ at = "2s", key = "links.{key}.delay", value = "{change or "2ms"}" }}]
    """
    found = flent_of(text, aqmlab, tmp_path)
    course = dict(zip(found["x_values"], found["results"]["Ping (ms) ICMP"], strict=True))
    assert [course[at] and round(course[at]) for at in (0, 1.5, 2.5)] == pings, "also without load"
    aqmlab.ok("compare", "ours=out", "theirs=x.flent.gz", "--json")
    ours = exports.ours(StudyResult.open(tmp_path / "out"))
    assert ours.rtt_p50_s == (base and approx(base / 1e3, abs=1e-4))


def test_what_flents_file_lacks_is_named(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO_TEXT)
    for key, hint in (("level=summary", "record.level=series"), ("flows=false", "flows=true")):
        out = key.partition("=")[0]
        aqmlab.ok("run", "s.toml", "--no-report", "--set", f"record.{key}", "--out", out)
        assert_refused(aqmlab("export", out, "x.flent.gz"), "flows that were sampled", hint)


def test_flent_opens_and_plots_it(folder: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which("flent", path=places)
    if program is None:
        pytest.skip("not installed: flent")
    aqmlab("export", folder, "x.flent.gz")
    words = [program, "-i", "x.flent.gz", "-p", "totals", "-o", "x.png"]
    done = run_program(words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr
    picture = (tmp_path / "x.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000


def test_mahimahis_log_counts_every_packet(folder: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    aqmlab.ok("export", folder, "down.log", "--table", "down")
    lines = (tmp_path / "down.log").read_text().splitlines()
    assert lines[1] == "# base timestamp: 0"
    kinds = [line.split()[1] for line in lines[2:]]
    link = pl.read_parquet(folder / "links.parquet").row(0, named=True)
    # The last packet that left the queue may be in transmission.
    assert kinds.count("-") - link["delivered"] in (0, 1)
    assert kinds.count("d") == link["dropped"] > 0
    times = [int(line.split()[0]) for line in lines[2:]]
    assert times == sorted(times)
    # mahimahi's clock has whole milliseconds; a wait is the difference of two of its times.
    packets = pl.read_parquet(folder / "packets.parquet").filter(link="down", verdict="delivered")
    arrival, end = (_millis(packets[name]) for name in ("arrival_s", "end_s"))
    waits = [(out, out - into) for into, out in zip(arrival, end, strict=True)]
    told = [line.split() for line in lines if " - " in line]
    assert sorted((int(each[0]), int(each[3])) for each in told) == sorted(waits)


def _millis(times: pl.Series) -> list[int]:
    return [round(time * 1e9) // 1_000_000 for time in times]


def test_a_log_has_the_milliseconds_of_a_trace(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """1.011 times 1000 is less than 1011 in floating point."""
    (tmp_path / "odd.trace").write_text("1\n3\n")
    text = SCENARIO_TEXT.replace('rate = "2mbit"', 'rate = { trace = "odd.trace" }', 1)
    assert text != SCENARIO_TEXT
    (tmp_path / "scenario.toml").write_text(text)
    level = ("--set", "record.level=packets", "--no-report")
    aqmlab.ok("run", "scenario.toml", *level, "--out", "out")
    aqmlab.ok("export", "out", "x.log", "--table", "down")
    times = {int(line.split()[0]) for line in (tmp_path / "x.log").read_text().splitlines()[2:]
             if "#" in line}  # fmt: skip
    assert len(times) > 500 and {time % 3 for time in times} == {0, 1}


def test_flows_against_the_bottleneck_are_flents_uploads(aqmlab: Aqmlab, tmp_path: Path) -> None:
    upload = '[flows.upload]\npath = "up"\nreturn_path = "down"\n'
    found = flent_of(f"{SCENARIO_TEXT}\n{upload}", aqmlab, tmp_path)["results"]
    series = pl.read_parquet(tmp_path / "out" / "series.parquet")
    own = series.filter(subject="upload.0", quantity="goodput_bps")["value"] * 1e-6
    first, *others = found["TCP upload::1"]
    assert others == approx(own[1:].to_list()) and first is None, "what was 0 over no time"
    assert "TCP upload::2" not in found and "TCP download::2" in found
    # The link has 2 Mbit/s.
    assert max(each for each in found["TCP download sum"] if each is not None) < 2.1


def test_iperf3_and_irtt_stand_beside_ours(folder: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    streams = [{"streams": [{"rtt": rtt}]} for rtt in (40000, 60000, 50000)]
    iperf = {"start": {"version": "iperf 3.16"}, "intervals": streams,
             "end": {"sum_received": {"bits_per_second": 1.8e6}}}  # fmt: skip
    (tmp_path / "iperf.json").write_text(json.dumps(iperf))
    trips = [{"lost": "false", "delay": {"rtt": rtt}} for rtt in (10_000_000, 30_000_000)]
    irtt = {"version": {"irtt": "0.9"}, "round_trips": [*trips, {"lost": "true", "delay": {}}]}
    (tmp_path / "irtt.json").write_text(json.dumps(irtt))
    files = ("iperf.json", "irtt.json")
    rows = aqmlab.json("compare", folder, *files, "--json")["measured"]
    assert [row["source"] for row in rows] == ["aqmlab", "iperf3", "irtt"]
    assert (rows[1]["goodput_bps"], rows[1]["rtt_p50_s"]) == (1.8e6, approx(0.05))
    assert (rows[2]["goodput_bps"], rows[2]["rtt_p50_s"]) == (None, approx(0.02))
    assert "irtt" in aqmlab("compare", folder, *files).stdout
    (tmp_path / "other.json").write_text("{}")
    assert_refused(aqmlab("compare", folder, "other.json"), "other.json", "iperf3")
