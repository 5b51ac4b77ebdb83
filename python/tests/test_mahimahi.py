"""`aqmlab mahimahi` through the real command line, with real packets."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, link_of, run_program
from real_packets import PORT, TRAFFIC, as_root, without

pytestmark = pytest.mark.real_packets


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """12 Mbit/s."""
    file = tmp_path / "12mbit.trace"
    file.write_text("".join(f"{ms}\n" for ms in range(1, 101)))
    return file


def client(what: str) -> list[str]:
    mode, _, rest = what.partition(" ")
    return ["sh", "-c", f"{TRAFFIC} {mode} $MAHIMAHI_BASE {PORT} {rest}"]


def datagrams(count: int, after: str = "") -> list[str]:
    """A command that sends so many datagrams to the other end, and does something after each."""
    sends = f"s.sendto(b'', (os.environ['MAHIMAHI_BASE'], 9)); {after}"
    code = "import os, socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    return [sys.executable, "-c", f"{code}for _ in range({count}): {sends}"]


def events(log: Path) -> list[tuple[int, str, int, int | None]]:
    """A log by the rules of mahimahi's own programs: time since the base, event, two numbers.

    Written from what mm-throughput-graph and mm-delay-graph accept, with what they ignore.
    """
    base, rows = None, []
    for line in log.read_text().splitlines():
        if header := re.match(r"# base timestamp: (\d+)", line):
            assert base is None, "base timestamp multiply defined"
            base = int(header[1])
        elif line.startswith("#"):
            continue
        else:
            words = line.split()
            assert len(words) >= 3, line
            assert re.fullmatch(r"\d+", words[0]) and re.fullmatch(r"\d+", words[2]), line
            assert base is not None, "logfile is missing base timestamp"
            moment = int(words[0]) - base
            assert words[1] in "#+-d", line
            second = int(words[3]) if len(words) > 3 else None
            if words[1] == "-":
                assert second is not None and 0 <= second <= moment, line
            rows.append((moment, words[1], int(words[2]), second))
    return rows


@pytest.fixture
def uplink(aqmlab: Aqmlab, server: None, trace: Path, tmp_path: Path) -> Callable[..., Any]:
    """Runs a client behind mm-link with a queue at its uplink: what the client found, and what the
    link did."""

    def run(queue: str, arguments: str, *options: str, do: str, up: Path = trace) -> Any:
        given = [f"--uplink-queue={queue}", f"--uplink-queue-args={arguments}", *options]
        found = aqmlab.json("mahimahi", "--out", "out", "link", up, trace, *given, *client(do))
        return found, link_of(tmp_path / "out")

    return run


def test_delay_is_in_both_directions(aqmlab: Aqmlab, server: None) -> None:
    times = aqmlab.json("mahimahi", "delay", "15", *client("rtt 20"))
    assert min(times) >= 30
    assert statistics.median(times) < 32


@as_root
def test_servers_here_are_reached_without_a_device_here(server: None, tmp_path: Path) -> None:
    words = command("mahimahi", "delay", "15", *client("rtt 5"))
    assert min(json.loads(without("-net_admin", words, tmp_path).stdout)) >= 30


def test_the_log_of_a_link_is_mahimahis(
    aqmlab: Aqmlab, server: None, trace: Path, tmp_path: Path
) -> None:
    options = ["--uplink-log=up.log", "--downlink-log", "down.log", "--uplink-queue=droptail",
               "--uplink-queue-args=packets=20"]  # fmt: skip
    words = ["mahimahi", "link", trace, trace, *options, "--", *client("bulk 1.2")]
    assert 6e6 < aqmlab.json(*words) < 12e6
    head = [line for line in (tmp_path / "up.log").read_text().splitlines() if line[0] == "#"]
    assert head[0] == f"# mahimahi mm-link (Uplink) [{trace}] > up.log"
    assert head[2] == "# queue: droptail [packets=20]"
    rows = events(tmp_path / "up.log")
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    opportunities = [row[0] for row in rows if row[1] == "#"]
    assert opportunities == list(range(1, opportunities[-1] + 1))
    assert {row[2] for row in rows if row[1] == "#"} == {1504}
    # Arrived packets have left, were dropped, or are in the queue of 20 and on the wire.
    count = Counter(row[1] for row in rows)
    assert count["d"] > 10
    assert all(row[2] == 1 and row[3] is not None for row in rows if row[1] == "d")
    assert 0 <= count["+"] - count["-"] - count["d"] <= 21
    # A full packet has mahimahi's size, and no millisecond delivers more than its opportunities.
    assert max(row[2] for row in rows if row[1] == "-") == 1504
    delivered = sum(row[2] for row in rows if row[1] == "-")
    assert 0.7 < delivered / (1504 * len(opportunities)) <= 1
    assert max(row[3] or 0 for row in rows if row[1] == "-") <= 22
    assert events(tmp_path / "down.log")


def test_drops_at_dequeue_are_in_the_log(uplink: Callable[..., Any], tmp_path: Path) -> None:
    arguments = "packets=1000, target=5, interval=100"
    _, up = uplink("codel", arguments, "--uplink-log=up.log", do="flood 1.5 15")
    count = Counter(row[1] for row in events(tmp_path / "up.log"))
    assert count["d"] == up["dropped"] == up["drop_codel"] > 0
    assert count["+"] == up["arrived"]


@pytest.mark.parametrize(
    ("queue", "arguments", "key"),
    [("drophead", "packets=1000 bytes=30000", "drop_overlimit"),
     ("codel", "packets=20;bytes=1000000,target=500,interval=900,qdelay_ref=5", "drop_overlimit"),
     ("pie", "packets=1000, bytes=2000000, qdelay_ref=5, max_burst=10", "drop_pie")],
)  # fmt: skip
def test_queues(uplink: Callable[..., Any], queue: str, arguments: str, key: str) -> None:
    # Twice what the link carries.
    sent, up = uplink(queue, arguments, do="flood 1 24")
    assert 0.1 * sent < up[key] == up["dropped"] < 0.7 * sent
    # The lower limit counts: 20 packets, or those of 1028 bytes that fit.
    if key == "drop_overlimit":
        limit = 20 if "packets=20" in arguments else 30_000 // 1028
        assert limit - 1 <= up["backlog_max_packets"] <= limit


def test_pie_keeps_a_slow_link_short(uplink: Callable[..., Any], tmp_path: Path) -> None:
    """2 Mbit/s: mahimahi's departure rate is measured there, too."""
    slow = tmp_path / "2mbit.trace"
    slow.write_text("".join(f"{ms}\n" for ms in range(6, 601, 6)))
    _, up = uplink("pie", "packets=1000,qdelay_ref=20,max_burst=100", do="bulk 4", up=slow)
    assert up["drop_pie"] > 0
    assert up["sojourn_mean_s"] < 0.3


def test_loss_and_nesting(aqmlab: Aqmlab, server: None, tmp_path: Path) -> None:
    inner = [sys.executable, "-m", "aqmlab", "mahimahi", "delay", "5", *client("burst 1000 0")]
    words = ["mahimahi", "--out", "out", "loss", "uplink", "0.2", *inner]
    came, _ = aqmlab.json(*words)
    up = link_of(tmp_path / "out")
    assert 1000 <= up["delivered"] < 1030
    assert 140 < up["lost"] < 260
    assert came > 0


def test_a_link_that_is_off_drops(aqmlab: Aqmlab, tmp_path: Path) -> None:
    words = ["mahimahi", "--out", "out", "onoff", "uplink", "0.05", "0.05"]
    done = aqmlab(*words, *datagrams(1000, "time.sleep(1e-3)"))
    assert "refused" not in done.stderr
    up = link_of(tmp_path / "out")
    assert up["dropped"] == 0
    assert 250 < up["lost"] < 750
    # Packets do not wait until the link is on again.
    assert up["arrived"] == up["delivered"] >= 1000
    assert up["sojourn_max_s"] < 0.001


def test_once_ends_with_the_trace(aqmlab: Aqmlab, trace: Path) -> None:
    """And not with its command, which would exceed the test's patience."""
    aqmlab.ok("mahimahi", "link", "--once", trace, trace, "sleep", "9999")


def test_random_losses_are_new_in_each_run_and_can_be_had_again(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    def lost(out: str, *words: str) -> tuple[int, str]:
        loss = ["loss", "uplink", "0.5", *datagrams(200)]
        done = aqmlab("mahimahi", "--out", out, *words, *loss)
        seed = re.search(r"seed (\d+)", done.stderr)
        return link_of(tmp_path / out)["lost"], seed[1] if seed else ""

    (first, seed), (_, other) = lost("first"), lost("second")
    assert seed and other and seed != other
    assert lost("again", "--seed", seed) == (first, "")


def test_options_may_stand_anywhere_and_traces_be_pipes(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """Pipes as in mm-link: `mm-link <(echo 1) <(echo 1) COMMAND OPTION`."""
    link = f"{sys.executable} -m aqmlab mahimahi link"
    script = f"{link} <(seq 20) --once <(echo 5) sleep --uplink-log=up.log 9999 -ddown.log"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0
    assert {row[1] for row in events(tmp_path / "up.log")} == {"#"}
    assert (tmp_path / "down.log").exists()


def test_shells_show_where_they_are(aqmlab: Aqmlab, trace: Path) -> None:
    inner = [sys.executable, "-m", "aqmlab", "mahimahi", "link", trace, trace,
             "sh", "-c", "echo $MAHIMAHI_SHELL_PREFIX"]  # fmt: skip
    done = aqmlab("mahimahi", "delay", "1", *map(str, inner))
    assert done.stdout == "[delay 1 ms] [link]\n"


def test_a_log_that_cannot_be_written_is_named(aqmlab: Aqmlab, trace: Path) -> None:
    words = [trace, trace, "--uplink-log=nowhere/up.log", "echo", "never"]
    assert_refused(aqmlab("mahimahi", "link", *words), "nowhere/up.log")


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("1\r\n2\r\n", 1),
        ("\n# a comment\n1\n\n2\n", 1),
        ("1\n" * 1_000_000, 0),
        ("1\n4294967295\n", None),
    ],
    ids=["crlf", "blank", "million", "late"],
)
def test_strange_traces_work(
    aqmlab: Aqmlab, server: None, trace: Path, tmp_path: Path, text: str, least: float | None
) -> None:
    """A link that is slow, fast, or dead for 50 days as the trace says, and the log small."""
    strange = trace.with_name("strange.trace")
    strange.write_text(text, newline="")
    words = ["mahimahi", "link", strange, trace, "--uplink-log=up.log"]
    if least is None:
        aqmlab.ok(*words, "true", timeout=PATIENCE)
        assert [row[0] for row in events(tmp_path / "up.log")] == [1]
        return
    times = aqmlab.json(*words, *client("rtt 10"), timeout=PATIENCE)
    # A host that gives its processors to others makes most of them longer, a slow link all.
    assert least < statistics.median(times) and min(times) < 8
    rows = events(tmp_path / "up.log")
    assert len(rows) < 20_000
    assert sum(row[1] == "-" for row in rows) >= 10


@pytest.mark.needs("curl")
def test_the_copy_of_a_site_in_the_guide_is_served_behind_the_path(tmp_path: Path) -> None:
    """What the guide says to use in place of mm-webreplay."""
    guide = (Path(__file__).parents[2] / "docs/emulator.md").read_text()
    (line,) = re.findall(r"^aqmlab (shell -q .*http\.server.*)$", guide, re.MULTILINE)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_bytes(bytes(300_000))
    text = line.replace("8000", str(PORT + 1)).replace("python3", sys.executable)
    done = run_program(["sh", "-c", f"{' '.join(command())} {text}"], cwd=tmp_path, check=True)
    # 300 kB at 12 Mbit/s take 0.2 s.
    (took,) = re.findall(r"^([0-9.]+) s$", done.stdout, re.MULTILINE)
    assert 0.2 < float(took) < 5


def test_a_newline_in_the_command_makes_no_line_of_a_log(aqmlab: Aqmlab, tmp_path: Path) -> None:
    aqmlab.ok("shell", "-q", "--log", "up=up.log", "--", "true", "x\n5 + 1500")
    lines = (tmp_path / "up.log").read_text().splitlines()
    assert "5 + 1500" not in lines
    assert all(line.startswith("# ") or line.split()[1] == "#" for line in lines)
