"""`aqmlab parity` and `reproduce --emulate` through the real command line: the kernel's own TCP
and UDP through the same links and queues as in a simulation."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, run_program, started
from test_mahimahi import events
from test_pcapng import read

import aqmlab
from aqmlab.errors import DamageWarning
from aqmlab.packs.parity import pack
from aqmlab.study.runner import finished

pytestmark = pytest.mark.real_packets

LINKS = """
duration = "{duration}"
seed = 1
bottleneck = "down"

[links.down]
rate = "20mbit"
delay = "10ms"
queue = "codel"

[links.up]
rate = "20mbit"
delay = "10ms"
"""
PATH = 'path = ["down"]\nreturn_path = ["up"]\n'
BULK = f"[flows.bulk]\ncount = 4\n{PATH}"
WORKLOADS = f"""
[flows.files]
{PATH}
workload = {{ kind = "transfers", size = "30000b", gap = {{ exponential = "100ms" }}, number = 8 }}

[flows.web]
{PATH}
[flows.web.workload]
kind = "requests"
request = "400b"
response = "20000b"
gap = "200ms"
requests = 2
think = "50ms"

[flows.call]
{PATH}
workload = {{ kind = "cbr", rate = "400kbit", packet = "500b" }}

[flows.ping]
{PATH}
workload = {{ kind = "probe", gap = "20ms" }}
"""


def scenario(folder: Path, flows: str, duration: str = "2s") -> str:
    (folder / "here.toml").write_text(LINKS.format(duration=duration) + flows)
    return "here.toml"


def parity(aqmlab: Aqmlab, *arguments: object) -> dict[str, tuple[float, float]]:
    """Readings by subject and metric: simulated, and with real packets."""
    (question,) = aqmlab.json("parity", *arguments, "--json")["questions"]
    simulated, real = (contender["readings"] for contender in question["contenders"])
    return {
        f"{one['subject']} {one['metric']}": (one["values"][0], other["values"][0])
        for one, other in zip(simulated, real, strict=True)
    }


def rows(folder: Path, table: str, by: str) -> list[dict[str, Any]]:
    """The rows of a table of the first kind of runs (`simulator`), or the second."""
    frame = pl.read_parquet(folder / f"{table}.parquet")
    return frame.filter(pl.col("run") == ("simulator", "emulator").index(by)).to_dicts()


def test_bulk_flows_fill_the_link_in_both(aqmlab: Aqmlab, tmp_path: Path) -> None:
    # Slow start, half of a run of two seconds, does not decide the median of six.
    file = scenario(tmp_path, BULK, "6s")
    found = parity(aqmlab, file, "--out", "out", "--log", "down=d.log", "--pcap", "p.pcapng",
                   "--pcap-at", "all")  # fmt: skip
    (link,) = [row for row in rows(tmp_path / "out", "links", "emulator") if row["link"] == "down"]
    seen = Counter(row[1] for row in events(tmp_path / "d.log"))
    assert (seen["+"], seen["d"]) == (link["arrived"], link["dropped"])
    assert Counter(each.interface for each in read(tmp_path / "p.pcapng"))["down in"] == seen["+"]
    for name in ("down utilisation", "bulk goodput"):
        simulated, real = found[name]
        assert real == pytest.approx(simulated, rel=0.1), name
    assert found["down utilisation"][1] > 0.8
    # Goodput of the group is over the time of all of its flows: no more than the link has.
    assert max(found["bulk goodput"]) < 20e6 * max(found["down utilisation"])
    # CoDel holds its target, and does so by dropping.
    assert 0.5e-3 < found["down sojourn_p50"][1] < 15e-3
    assert found["down drop_share"][1] > 0
    assert found["bulk jain"][1] > 0.5
    flows = [row for row in rows(tmp_path / "out", "flows", "emulator") if row["group"] == "bulk"]
    assert len(flows) == 4
    assert all(row["segments_sent"] > 100 and row["goodput_bps"] > 0 for row in flows)
    assert sum(row["retransmissions"] for row in flows) > 0
    # Losses of a flow's packets are unknown, not 0.
    unknown = ("arrived", "dropped", "lost", "fast_retransmits", "undone")
    assert {row[key] for row in flows for key in unknown} == {None}
    for by, stack in (("simulator", "linux-6.12"), ("emulator", "kernel")):
        for table in ("flows", "groups"):
            rows_of = rows(tmp_path / "out", table, by)
            assert {row["tcp_stack"] for row in rows_of if row["group"] == "bulk"} == {stack}


def test_a_run_that_ends_within_its_warm_up_ends_then_in_both(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    one = f'[flows.one]\n{PATH}size = "200000b"\n'
    file = scenario(tmp_path, one, "20s")
    settings = ("--set", "until=one", "--set", "record.warmup=10s")
    aqmlab.ok("parity", file, "--out", "out", *settings)
    for by in ("simulator", "emulator"):
        (run,) = rows(tmp_path / "out", "runs", by)
        assert run["end_s"] < 2
        (flow,) = rows(tmp_path / "out", "flows", by)
        # Without a warm-up all of it is measured.
        assert flow["goodput_bps"] > 1e6, by


def test_a_run_shorter_than_a_sample_has_no_course(aqmlab: Aqmlab, scenario: Path) -> None:
    aqmlab.ok("parity", scenario, "--duration", "20ms", "--out", "out")
    assert (scenario.parent / "out/report.html").exists()


def test_the_report_shows_both(aqmlab: Aqmlab, tmp_path: Path) -> None:
    options = ("--duration", "1s", "--control", "reno", "--figures")
    done = aqmlab.ok("parity", scenario(tmp_path, BULK), *options)
    assert "utilisation" in done.stdout
    folder = tmp_path / "results" / "parity-here-reno"
    page = (folder / "report.html").read_text()
    for text in ("simulator", "emulator", "aqmlab parity here.toml", 'id="specs"'):
        assert text in page
    assert {file.name for file in (folder / "figures").iterdir()} >= {"sojourn.svg", "course.png"}


def test_every_workload_has_its_draws_and_its_times(aqmlab: Aqmlab, tmp_path: Path) -> None:
    found = parity(aqmlab, scenario(tmp_path, WORKLOADS), "--out", "out")
    groups = {
        by: {row["group"]: row for row in rows(tmp_path / "out", "groups", by)}
        for by in ("simulator", "emulator")
    }
    simulated, real = groups["simulator"], groups["emulator"]
    # The same draws: as many files of the same size begin, and end.
    for key in ("started", "completed"):
        assert real["files"][key] == simulated["files"][key], key
    assert real["files"]["completed"] == 8
    assert abs(real["web"]["completed"] - simulated["web"]["completed"]) <= 2
    assert real["ping"]["completed"] >= 90
    # A file takes a handshake, and two round trips at least; a request of an open connection,
    # one round trip and the 8 ms of its 20 kB.
    for name, least in (("files completion_p50", 50e-3), ("web response_p50", 28e-3)):
        before, after = found[name]
        assert least < before < 0.3, name
        assert after == pytest.approx(before, rel=0.35), name
    # There and back are 20 ms each in propagation, and next to nothing in the queues.
    assert 20e-3 <= found["ping rtt_p50"][1] < 30e-3
    assert 10e-3 <= found["call delay_p50"][1] < 16e-3
    (call,) = [row for row in rows(tmp_path / "out", "flows", "emulator") if row["group"] == "call"]
    assert call["goodput_bps"] == pytest.approx(400e3, rel=0.06)


APPLICATIONS = {
    "sessions": 'kind = "sessions", on = "600ms", off = "200ms"',
    "noise": 'kind = "pareto-onoff", rate = "300kbit", packet = "500b"',
    "noisetcp": 'kind = "pareto-onoff", over = "tcp", rate = "300kbit", packet = "500b"',
    "web": 'kind = "packmime", rate = 10.0',
    "call": 'kind = "voip"',
    "page": 'kind = "page", objects = 12, think = "300ms"',
    "film": 'kind = "video", rate = "1mbit"',
    "filmtcp": 'kind = "video", over = "tcp", rate = "1mbit", buffer = "500ms"',
    "dash": 'kind = "dash", segment = "500ms", start_with = "500ms", resume_with = "500ms"',
    "game": 'kind = "game"',
    "incast": 'kind = "incast", senders = 8, response = "5kb", number = 5',
    "rrul": 'kind = "rrul", lead = "500ms", length = "1500ms", gap = "50ms", flows = 2',
    "rpm": 'kind = "rpm", interval = "200ms", most = 4',
}


def test_every_application_of_the_simulator_runs_with_real_sockets(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    # The tests of the response under load have links of their own.
    link = 'rate = "20mbit"\ndelay = "5ms"\nqueue = "fq_codel"\n'
    text = 'duration = "3500ms"\nseed = 1\nbottleneck = "down"\n'
    text += "".join(f"[links.{way}{number}]\n{link}" for way in ("down", "up")
                    for number in ("", "-rrul", "-rpm"))  # fmt: skip
    # What the emulator says of itself is in the tables of the first group.
    text += f"[flows.first]\n{PATH}workload = 'cbr'\n"
    for name, workload in APPLICATIONS.items():
        own = f"-{name}" if name in ("rrul", "rpm") else ""
        text += f"[flows.{name}]\npath = ['down{own}']\nreturn_path = ['up{own}']\n"
        text += f"workload = {{ {workload} }}\n"
    (tmp_path / "all.toml").write_text(text)
    done = aqmlab.ok("parity", "all.toml", "--out", "out")
    assert "a connection failed" not in done.stderr

    def of(table: str, by: str, *keys: str) -> dict[str, dict[tuple[Any, ...], dict[str, Any]]]:
        found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        for row in rows(tmp_path / "out", table, by):
            found.setdefault(row["group"], {})[tuple(row[key] for key in keys)] = row
        return found

    groups = [of("groups", by) for by in ("simulator", "emulator")]
    times = [of("times", by, "quantity") for by in ("simulator", "emulator")]
    scores = [of("scores", by, "quantity") for by in ("simulator", "emulator")]
    for name in APPLICATIONS:
        simulated, real = (each[name][()] for each in groups)
        assert (real["started"] > 0) == (simulated["started"] > 0), name
        assert (real["completed"] > 0) == (simulated["completed"] > 0), name
        assert set(times[1].get(name, {})) == set(times[0].get(name, {})), name
        known = {key for key in scores[1].get(name, {}) if not key[0].startswith("kernel_")}
        assert known == set(scores[0].get(name, {})), name
    for name in ("sessions", "web", "page", "incast", "dash", "film", "call", "game"):
        simulated, real = (each[name][()] for each in groups)
        assert real["started"] == pytest.approx(simulated["started"], rel=0.25, abs=2), name
        assert real["completed"] == pytest.approx(simulated["completed"], rel=0.25, abs=2), name
    before, after = (each["rrul"][("rtt",)] for each in times)
    assert 10e-3 < after["p50_s"] < 4 * before["p50_s"]
    for way in ("download", "upload"):
        assert scores[1]["rrul"][(way,)]["value"] > 10e6, way


def test_marks_are_answered_by_the_kernel(aqmlab: Aqmlab, tmp_path: Path) -> None:
    settings = ["--set", "queue.ecn=true", "--set", "transport.ecn=classic"]
    found = parity(aqmlab, scenario(tmp_path, BULK), *settings)
    marked, dropped = found["down mark_share"][1], found["down drop_share"][1]
    assert marked > 0.0005
    assert dropped < marked


def test_what_real_sockets_cannot_do_is_said(aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = aqmlab("parity", scenario(tmp_path, BULK), "--set", "record.level=packets")
    assert_refused(done, "record.level", "summary or series")
    file = scenario(tmp_path, f'{BULK}transport = {{ congestion_control = "vegas" }}\n')
    assert_refused(aqmlab("parity", file), "vegas", "cubic")
    assert_refused(aqmlab("parity", file, "--control", "carrier-pigeon"), "cubic, reno, bbr")


def interrupt_at(folder: Path, line: str, *words: str) -> None:
    """Ctrl-C when a line comes: one run is kept, and nothing goes on."""
    process = started(command(*words), cwd=folder)
    assert process.stderr
    while line not in (said := process.stderr.readline()):
        assert said, "it ended before"
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert rest.startswith(
        "interrupted: 1 of 2 runs are kept in out/emulated; rerun the same command"
    )
    assert len(rest.splitlines()) == 1, rest


def test_a_published_study_runs_with_real_packets(aqmlab: Aqmlab, tmp_path: Path) -> None:
    chosen = ["--only", "steps", "--only", "load=bulk", "--only", "sender=CUBIC"]
    run = ["--emulate", "--step", "500ms", "--replications", "1", "--out", "out"]
    interrupt_at(tmp_path, "run 2 of 2", "reproduce", "cs244_2015", *chosen, *run)
    done = aqmlab.ok("reproduce", "cs244_2015", *chosen, *run, "--json")
    # The first run was finished, and is not made again.
    assert "run 2 of 2" in done.stderr
    assert "run 1 of 2" not in done.stderr
    tables = {table["name"]: table for table in json.loads(done.stdout)["tables"]}
    (name,) = [name for name in tables if name.endswith("simulated, real packets")]
    cells = {(cell["row"], cell["column"]): cell for cell in tables[name]["cells"]}
    columns = {column for _, column in cells}
    assert columns == {"simulated, 300s", "simulated, 3s", "real packets, 3s"}
    for queue, printed in (("tail drop", 0.97), ("CoDel", 0.88)):
        cell = cells[f"{queue}: CUBIC, bulk", "real packets, 3s"]
        assert cell["published"] == printed
        # Steps of half a second are five round trips: little is left of what CoDel costs.
        assert 0.15 < cell["measured"] <= 1
    manifest = json.loads((tmp_path / "out" / "emulated" / "manifest.json").read_text())
    # Emulated runs are not repeated.
    again = aqmlab("reproduce", "cs244_2015", *chosen, *run, "--json")
    assert "real packets, run" not in again.stderr
    assert json.loads((tmp_path / "out" / "emulated" / "manifest.json").read_text()) == manifest


def test_real_packets_are_kept_elsewhere_if_the_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is not writable after they were sent."""
    (tmp_path / "s.toml").write_text(LINKS.format(duration="300ms") + BULK)
    values = [{"label": by, "set": {}} for by in pack.BOTH]
    axes = [{"name": "by", "values": values}]
    study = aqmlab.Study({"name": "s", "scenario": str(tmp_path / "s.toml"), "axes": axes})
    (batch,) = finished([(1, study.points[1].scenario, 0)], None)
    late = {"p99_s": float("nan")}  # No packet left the emulator.
    sent: Any = [SimpleNamespace(results=batch, lateness=late, remarks=())]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    out = Path("/proc/nowhere")
    with pytest.warns(DamageWarning, match=f"^{out}: .*; the results are in ") as told:
        found = pack.put_together(study, sent, out)
    assert str(told[0].message).endswith(str(found.result.folder))
    assert found.result.folder and found.result.folder.parent == tmp_path
    assert aqmlab.StudyResult.open(found.result.folder).runs.height == 2
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["lateness_p99_s"] is None


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    place = tmp_path / "no\udcff"
    place.mkdir()
    (place / "s.toml").write_text(LINKS.format(duration="300ms") + BULK)
    done = run_program(command("parity", "s.toml", "--out", "out"), cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "out/report.html").exists()
