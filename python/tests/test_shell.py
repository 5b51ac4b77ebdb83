"""`aqmlab shell` through the real command line, with real packets."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from helpers import (
    PATIENCE,
    Aqmlab,
    assert_refused,
    command,
    environment,
    link_of,
    rows_of,
    run_program,
    started,
    wait_until,
)
from real_packets import NOBODY, PORT, TRAFFIC, as_root, tun_for_all, without, without_ipv6

from aqmlab.emulator import keep
from aqmlab.study.folder import open_results

EXAMPLES = Path(__file__).parents[2] / "examples"
QUEUE = "queue={ discipline = 'droptail', limit = 'unlimited' }"
FAST = f"rate=50mbit {QUEUE}"
"""So fast that the receiver's buffer holds what comes."""


pytestmark = pytest.mark.real_packets

QUEUES = """
from collections import deque
import aqmlab

class Good(aqmlab.Queue):
    def __init__(self, link):
        self.packets = deque()
    def enqueue(self, packet, cx):
        self.packets.append(packet)
    def dequeue(self, cx):
        return self.packets.popleft() if self.packets else None

class Bad(Good):
    def enqueue(self, packet, cx):
        raise ValueError("too bad")
"""
Client = Callable[..., Any]


def scores_of(folder: Path) -> dict[str, float]:
    return {row["quantity"]: row["value"] for row in rows_of(folder, "scores")}


def test_the_exit_status_is_the_commands(aqmlab: Aqmlab, tmp_path: Path) -> None:
    assert aqmlab("shell", "--", "sh", "-c", "exit 7").returncode == 7
    assert aqmlab("shell", "--", "sh", "-c", "kill -TERM $$").returncode == 128 + 15
    absent = aqmlab("shell", "--", "there-is-no-such-thing")
    assert absent.returncode == 127
    assert "there-is-no-such-thing: there is no such program" in absent.stderr
    (tmp_path / "file").write_text("")
    assert aqmlab("shell", "--", "./file").returncode == 126


@pytest.mark.needs("dash")
@pytest.mark.parametrize("hosts", [(), ("--topology", EXAMPLES / "topology.toml")])
def test_an_interactive_shell_has_job_control(hosts: tuple[Any, ...], tmp_path: Path) -> None:
    """dash needs a process group that exists in its namespace."""
    (tmp_path / "sh").symlink_to(str(shutil.which("dash")))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        script = '"$@"; echo "status $?"; read line; echo "read $line"'
        words = ["sh", "-c", script, "sh", *command("shell", "-q", *hosts, "--", "./sh")]
        os.execve("/bin/sh", words, environment() | {"PS1": "ready> "})
    seen = ""
    steps = [("ready> ", "sleep 99\n"), ("sleep 99", "\x03"), ("ready> ", "exit 7\n"),
             ("status 7", "mine\n"), ("read mine", "")]  # fmt: skip
    for text, typed in steps:
        while text not in seen:
            assert select.select([terminal], [], [], PATIENCE)[0], seen
            seen += os.read(terminal, 65_536).decode()
        seen = seen.partition(text)[2]
        time.sleep(0.5)  # The program that reads may begin after the text.
        os.write(terminal, typed.encode())
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_second_interrupt_does_not_lose_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def write(*_: object) -> str:
        signal.raise_signal(signal.SIGINT)
        return ""

    monkeypatch.setattr(keep, "_write", write)
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("interrupted"))
    with keep.Reserved(tmp_path / "out") as kept:
        pass
    kept.keep(cast("Any", None))
    assert (kept.place, kept.problem, seen) == (tmp_path / "out", "", [])
    signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert seen == ["interrupted"]


def test_the_results_are_about_the_link_where_packets_waited(
    client: Client, tmp_path: Path
) -> None:
    client("--rate", "5mbit", "--out", "out", do="flood 1 10")
    result = open_results(tmp_path / "out").single()
    assert result.bottleneck == "up"
    assert set(result.sojourn["link"]) == {"up"}
    assert "in the scenario, but" not in (tmp_path / "out/report.html").read_text()


def test_arguments_input_and_output_are_the_commands(aqmlab: Aqmlab) -> None:
    done = aqmlab("shell", "-q", "--", "sh", "-c", 'echo "$1 $(cat)"', "x", "a  b", input="in")
    assert (done.stdout, done.stderr) == ("a  b in\n", done.stderr)
    assert done.returncode == 0


def test_json_is_alone_on_stdout(aqmlab: Aqmlab) -> None:
    done = aqmlab("shell", "--json", "--rate", "10mbit", "--", "sh", "-c", "echo said; exit 3")
    found = json.loads(done.stdout)
    assert done.returncode == found["status"] == 3
    assert "said" in done.stderr
    assert {row["link"] for row in found["links"]} == {"down", "up"}


def test_bytes_that_are_no_text_are_passed_on() -> None:
    words = command("shell", "-q", "--", "sh", "-c", 'printf %s "$1$STRANGE"', "x")
    done = subprocess.run(
        [*(os.fsencode(word) for word in words), b"a\xff"],
        env={**os.environb, b"STRANGE": b"\xfe"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout == b"a\xff\xfe", done.stderr


def test_variables_of_no_shell_are_not_believed() -> None:
    words = ["env", "AQMLAB_FAR=1.2.3.4", *command("shell", "-q", "--", "env")]
    done = run_program(words)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "AQMLAB_" in line)
    assert found["AQMLAB_FAR"].startswith("100.")
    assert found["AQMLAB_NEAR"].rsplit(".", 1)[0] == found["AQMLAB_FAR"].rsplit(".", 1)[0]


def test_without_ipv6_no_variable_has_an_address_of_it() -> None:
    done = run_program(command("shell", "-q", "--", "env"), preexec_fn=without_ipv6())
    found = [line.partition("=")[0] for line in done.stdout.splitlines() if "AQMLAB_" in line]
    assert sorted(found) == ["AQMLAB_FAR", "AQMLAB_NEAR"]


@pytest.mark.parametrize("far", ["$AQMLAB_FAR", "$AQMLAB_FAR6"])
def test_both_directions_have_the_delay(client: Client, far: str) -> None:
    times = client("--delay", "15ms", do="rtt 30", far=far)
    assert min(times) >= 30
    assert statistics.median(times) < 38


def test_an_idle_path_adds_little(client: Client) -> None:
    assert statistics.median(client(do="rtt 200")) < 2


def test_the_rate_is_exact(client: Client, tmp_path: Path) -> None:
    """By the clock of the run to the packet, and by the receiver's within the noise."""
    rate = ["--up", f"rate=10mbit {QUEUE}"]
    client(*rate, "--set", "record.level=packets", "--out", "out", do="burst 500 0")
    sent = pl.read_parquet(tmp_path / "out/packets.parquet").filter(link="up", size_bytes=1028)
    assert sent.height == 500
    waited = sent.filter(pl.col("end_s") > pl.col("arrival_s") + 1e-6)
    assert waited.height > 400
    gaps = waited["end_s"].diff().drop_nulls()
    assert gaps.median() == pytest.approx(1028 * 8 / 10e6, abs=1e-9)
    found = client(*rate, do="bulk 1")
    assert 8e6 < found < 10e6 * 1448 / 1500 * 1.02


def test_a_queue_keeps_its_target(client: Client, tmp_path: Path) -> None:
    client("--up", "rate=20mbit queue=codel", "--out", "out", do="bulk 1.5")
    up = link_of(tmp_path / "out")
    assert up["drop_codel"] > 0
    assert up["dropped"] == up["drop_codel"]
    assert up["sojourn_p50_s"] < 0.025


def test_it_is_fast_where_no_rate_is_asked_for(client: Client) -> None:
    assert client(do="bulk 1") > 1e9


def test_packets_are_lost_on_the_way(client: Client, tmp_path: Path) -> None:
    came, _ = client("--up", f"loss=0.1 {FAST}", "--out", "out", do="burst 2000 0")
    assert 1700 < came < 1900
    up = link_of(tmp_path / "out")
    assert up["dropped"] == 0
    assert 100 < up["lost"] < 300


def test_duplicates_and_disorder(client: Client, tmp_path: Path) -> None:
    options = ["--duplicate", "0.2", "--jitter", "3ms", "--delay", "10ms", "--reordering"]
    client(*options, "--up", FAST, "--out", "out", do="burst 500 0")
    up = link_of(tmp_path / "out")
    assert 50 < up["duplicated"] < 160
    assert up["reordered"] > 50


@pytest.mark.parametrize(
    ("far", "ecn"), [("$AQMLAB_FAR", 2), ("$AQMLAB_FAR6", 2), ("$AQMLAB_FAR", 0)]
)
def test_marks_reach_the_receiver_if_it_is_capable_of_ecn(
    client: Client, tmp_path: Path, far: str, ecn: int
) -> None:
    """CE in real packets, with a checksum that the kernel accepts."""
    queue = "queue={ discipline = 'codel', ecn = true, ce_threshold = '1ms' }"
    options = ["--up", f"rate=10mbit {queue}", "--out", "out"]
    came, marked = client(*options, do=f"burst 100 {ecn}", far=far)
    assert came == 100
    assert marked == link_of(tmp_path / "out")["marked"]
    assert marked > 50 if ecn else marked == 0


@as_root
def test_tcp_learns_of_marks(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """Marks in the middle of large packets, which the kernel cuts and checks."""
    script = f"echo 1 > /proc/sys/net/ipv4/tcp_ecn; {TRAFFIC} bulk $AQMLAB_FAR {PORT} 1"
    queue = "queue={ discipline = 'codel', ecn = true }"
    done = aqmlab.ok("shell", "--up", f"rate=100mbit {queue}", "--delay", "5ms", "--out", "out",
                  "--far", f"{TRAFFIC} serve {PORT}", "--", "sh", "-c", script)  # fmt: skip
    up = link_of(tmp_path / "out")
    assert up["marked"] > 0
    assert up["drop_codel"] == 0
    assert float(done.stdout) > 60e6


@as_root
def test_packets_that_make_no_sense_do_no_harm(aqmlab: Aqmlab, tmp_path: Path) -> None:
    code = f"""
import os, random, socket
random.seed(1)
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
for number in range(3000):
    kind = 0x86DD if number % 2 else 0x0800
    packet = bytearray(random.randbytes(random.randrange(1, 1400)))
    packet[0] = random.choice([0x45, 0x46, 0x4F, 0x60, packet[0]])
    if number % 3 and len(packet) > 6:
        packet[2:4] = packet[4:6] = len(packet).to_bytes(2, "big")
    raw.sendto(packet, ("aqmlab", kind))
os.execvp("sh", ["sh", "-c", "{TRAFFIC} burst $AQMLAB_FAR {PORT} 20 0"])
"""
    (tmp_path / "strange.py").write_text(code)
    done = aqmlab("shell", "--queue", "fq_codel", "--rate", "50mbit", "--out", "out", "--far",
                  f"{TRAFFIC} serve {PORT}", "--", sys.executable, "strange.py")  # fmt: skip
    assert done.stdout == "[20, 0]\n", done.stderr
    scores = scores_of(tmp_path / "out")
    unfit = sum(value for name, value in scores.items() if name.startswith("unfit_"))
    assert scores["unfit_truncated"] > 100 and scores["unfit_not_ip"] > 100
    assert scores["packets_in"] + unfit + scores["packets_not_read_in_time"] > 3000


def test_shells_nest(aqmlab: Aqmlab) -> None:
    inner = f"{TRAFFIC} rtt $AQMLAB_FAR {PORT} 20"
    words = ["sh", "-c", inner]
    for delay in ("3ms", "2ms"):
        words = command("shell", "-q", "--delay", delay, "--", *words)
    times = aqmlab.json("shell", "--delay", "1ms", "--far", f"{TRAFFIC} serve {PORT}", "--", *words)
    assert min(times) >= 12
    assert statistics.median(times) < 17


def test_twelve_shells_nest_and_a_second_one_has_room(aqmlab: Aqmlab) -> None:
    """As deep as mahimahi's own test of its shells; in the sixth, two run in sequence."""
    words = ["sh", "-c", f"{TRAFFIC} rtt $AQMLAB_FAR {PORT} 10"]
    for level in range(11):
        words = command("shell", "-q", "--delay", "1ms", "--", *words)
        if level == 5:
            beside = " ".join(command("shell", "-q", "--", "true"))
            words = ["sh", "-c", f'{beside} && exec "$@"', "sh", *words]
    assert min(aqmlab.json("shell", "-q", "--far", f"{TRAFFIC} serve {PORT}", "--", *words)) >= 22


def test_a_scenario_gives_the_links(client: Client, scenario: Path, tmp_path: Path) -> None:
    times = client("--scenario", scenario, "--set", "links.up.delay=5ms", "--out", "out",
                   do="rtt 20")  # fmt: skip
    assert 25 < statistics.median(times) < 32
    assert {row["link"] for row in rows_of(tmp_path / "out", "links")} == {"down", "up"}


def test_a_named_access_line_gives_the_links_and_options_change_it(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    words = ["--profile", "dsl", "--down", "rate=7mbit", "--out", "out", "--", "true"]
    aqmlab.ok("shell", *words)
    links = open_results(tmp_path / "out").scenarios[0]["links"]
    assert (links["down"]["rate"], links["up"]["rate"]) == ("7mbit", "10mbit")
    assert {(link["overhead"], link["framing"]) for link in links.values()} == {("30b", "ptm")}
    assert_refused(aqmlab("shell", "--profile", "dls", "--", "true"), "--profile", "dls", "dsl")


def test_links_in_a_row(client: Client) -> None:
    down = ["--down", "delay=4ms", "--down", "delay=5ms rate=100mbit"]
    assert 9 < statistics.median(client(*down, do="rtt 20")) < 14


def test_a_queue_in_python(client: Client, aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(QUEUES)
    times = client("--up", "rate=1mbit queue=mine.py:Good", do="rtt 20")
    assert 1 < statistics.median(times) < 5
    words = ["sh", "-c", f"{TRAFFIC} rtt $AQMLAB_FAR {PORT} 5"]
    done = aqmlab("shell", "--up", "rate=1mbit queue=mine.py:Bad", "--", *words)
    assert_refused(done, "mine.py", "Bad", "too bad")


def test_every_packet_is_accounted_for(client: Client, tmp_path: Path) -> None:
    client("--rate", "50mbit", "--loss", "0.01", "--out", "out", do="bulk 0.5")
    scores = scores_of(tmp_path / "out")
    links = rows_of(tmp_path / "out", "links")
    lost = sum(row["lost"] + row["dropped"] for row in links)
    assert scores["packets_in"] == scores["packets_out"] + lost + scores["packets_under_way"]
    assert scores["packets_in"] == sum(row["arrived"] for row in links)
    assert scores["packets_refused_by_device"] == scores["packets_not_read_in_time"] == 0
    page = (tmp_path / "out/report.html").read_text()
    # The title is the command, the tiles are the queue's, and what the emulator added is below.
    assert "<h1>sh -c &#39;" in page and "of the packets dropped" in page
    assert page.index("99th percentile") < page.index("Precision of the emulator")
    lateness = rows_of(tmp_path / "out", "times")[0]
    assert (lateness["quantity"], lateness["count"]) == ("lateness", scores["packets_out"])


@pytest.mark.parametrize(("drain", "arrive"), [("2s", True), ("100ms", False), ("0s", False)])
def test_packets_in_flight_arrive_when_the_command_has_ended(
    aqmlab: Aqmlab, tmp_path: Path, drain: str, arrive: bool
) -> None:
    script = (
        "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for _ in range(10): s.sendto(b'in flight', (os.environ['AQMLAB_FAR'], 9))"
    )
    options = ["--delay", "400ms", "--drain", drain, "--out", "out"]
    aqmlab.ok("shell", *options, "--", sys.executable, "-c", script)
    scores = scores_of(tmp_path / "out")
    assert scores["packets_in"] >= 10
    assert (scores["packets_out"] >= 10) == arrive
    assert (scores["packets_under_way"] == 0) == arrive


def test_every_packet_can_be_recorded(client: Client, tmp_path: Path) -> None:
    client("--rate", "50mbit", "--set", "record.level=packets", "--out", "out", do="bulk 0.3")
    links = {row["link"]: row["arrived"] for row in rows_of(tmp_path / "out", "links")}
    packets = pl.read_parquet(tmp_path / "out/packets.parquet")
    assert dict(packets.group_by("link").len().iter_rows()) == links
    # The connection in both directions, and attempts while the server started.
    flows = pl.read_parquet(tmp_path / "out/flows.parquet")
    assert flows.height == packets["flow"].n_unique() >= 2
    assert flows["throughput_bps"].max() == pytest.approx(50e6, rel=0.2)
    # Headers and retransmissions are in it: goodput is unknown, not 0.
    for column in ("goodput_bps", "segments_sent", "retransmissions", "dropped"):
        assert flows[column].null_count() == flows.height, column
    (group,) = rows_of(tmp_path / "out", "groups")
    assert (group["started"], group["completed_bytes"]) == (None, None)
    assert not set(pl.read_parquet(tmp_path / "out/metrics.parquet")["metric"]) & {
        "goodput",
        "jain",
    }
    assert packets.filter(link="down")["is_ack"].mean() > 0.9


@pytest.mark.needs("taskset")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the sender needs its own processor")
def test_a_loaded_core_is_seen_as_packets_see_it(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """Two busy loops on the emulator's processor: its packets wait before they are read."""
    mine, others = (str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    server = f"taskset -c {others} {TRAFFIC} stamp {PORT}"
    client = f"exec {TRAFFIC} loaded $AQMLAB_FAR {PORT} 2 {mine}"
    done = aqmlab.ok("shell", "--cpu", mine, "--priority", "0", "--out", "out", "--far", server,
                  "--", "sh", "-c", client)  # fmt: skip
    longest, gap = json.loads(done.stdout)
    assert longest > 0.003, "the loops did not load the processor"
    times = {row["quantity"]: row for row in rows_of(tmp_path / "out", "times")}
    for each in ("lateness", "input_lateness"):
        # Bounds: a time without a packet counts as if one had come at its beginning.
        assert 0.8 * longest <= times[each]["max_s"] <= 1.2 * longest + gap, each
    series = pl.read_parquet(tmp_path / "out/series.parquet").filter(subject="emulator")
    assert series.filter(quantity="input_lateness_max_s")["value"].max() == pytest.approx(
        times["input_lateness"]["max_s"]
    )
    notes = [row["text"] for row in rows_of(tmp_path / "out", "notes")]
    assert any("could not read packets in time" in text for text in notes)
    for text in notes:
        assert text in done.stderr


def test_large_packets_and_small_mtus(client: Client, tmp_path: Path) -> None:
    for mtu in ("9000b", "600b"):
        assert client("--mtu", mtu, "--out", mtu, do="bulk 0.3") > 1e8
        up = link_of(tmp_path / mtu)
        mean = up["delivered_bytes"] / up["delivered"]
        assert float(mtu[:-1]) * 0.9 < mean <= float(mtu[:-1])


@as_root
@pytest.mark.needs("setpriv")
def test_a_user_who_is_not_root_has_a_path(tmp_path: Path) -> None:
    script = "id -u; cat /proc/net/dev; sleep 0.5; exit 5"
    words = command(
        "shell", "--delay", "5ms", "--far", "cat /proc/net/dev", "--", "sh", "-c", script
    )
    machine = ["unshare", "--mount", "sh", "-c", f'{tun_for_all(tmp_path)} exec "$@"', "sh"]
    done = run_program([*machine, *NOBODY, *words], cwd="/", env=environment())
    assert done.returncode == 5, done.stderr
    assert "65534" in done.stdout.splitlines()
    assert "aqmlab:" in done.stdout and "aqmlab0:" in done.stdout
    assert "without real-time priority" in done.stderr
    assert "USER - rtprio 40" in done.stderr and "--cap-add SYS_NICE" in done.stderr


LIMIT = ["prlimit", "--rtprio=40:40", *NOBODY]
CAPABILITY = [*NOBODY, "--inh-caps", "+sys_nice", "--ambient-caps", "+sys_nice"]
BUSY = """
for each in 1 2 3 4 5 6; do timeout 3 sh -c 'while :; do :; done' & done
ping -q -i 0.01 -c 100 $AQMLAB_FAR"""


@as_root
@pytest.mark.needs("ping", "prlimit", "setpriv")
@pytest.mark.parametrize("remedy", [LIMIT, CAPABILITY], ids=["limit", "capability"])
def test_a_user_with_real_time_priority_is_on_time(tmp_path: Path, remedy: list[str]) -> None:
    """The remedies of the message and the documents, on a busy machine (without: 50 ms)."""
    able = run_program([*remedy, "true"])
    if able.returncode:
        pytest.skip(f"root may not give the permission on this machine: {able.stderr.strip()}")
    machine = ["unshare", "--mount", "sh", "-c", f'{tun_for_all(tmp_path)} exec "$@"', "sh"]
    words = command("shell", "--delay", "5ms", "--", "sh", "-c", BUSY)
    done = run_program([*machine, *remedy, *words], cwd="/", env=environment())
    assert done.returncode == 0, done.stderr
    assert "without real-time priority" not in done.stderr
    assert 10 <= float(done.stdout.split("= ")[1].split("/")[1]) < 15, done.stdout


@pytest.fixture
def stopped(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[list[str], Callable[[int, bool], object]]]:
    """A prefix of a command, and what stops or resumes the process with this id."""
    if request.param is None:
        yield [], lambda pid, stop: os.kill(pid, signal.SIGSTOP if stop else signal.SIGCONT)
        return
    parent, switch, words = request.param
    group = parent / f"aqmlab-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / switch).read_text()
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"this machine permits no control group that freezes: {error}")
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    yield enter, lambda pid, stop: (group / switch).write_text(words[stop])
    group.rmdir()


CGROUPS = Path("/sys/fs/cgroup")
GROUPS = {
    "v2": (CGROUPS, "cgroup.freeze", "01"),
    "v2 beside v1": (CGROUPS / "unified", "cgroup.freeze", "01"),
    "v1": (CGROUPS / "freezer", "freezer.state", ["THAWED", "FROZEN"]),
}
STOPS = [pytest.param(each, id=key, marks=pytest.mark.slow) for key, each in GROUPS.items()]


@pytest.mark.parametrize("stopped", [pytest.param(None, id="SIGSTOP"), *STOPS], indirect=True)
def test_a_stop_of_the_emulator_is_noted(stopped: Any, tmp_path: Path) -> None:
    """While it is stopped it does not wait for a processor, so the kernel counts no delay. A group
    that is frozen contains the command too."""
    enter, switch = stopped
    words = command("shell", "--delay", "5ms", "--out", "out", "--", "sh", "-c", "echo; sleep 1.5")
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*enter, *words], cwd=tmp_path, text=True, **streams) as shell:
        assert shell.stdout
        shell.stdout.readline()
        switch(shell.pid, True)
        time.sleep(0.4)
        switch(shell.pid, False)
        _, told = shell.communicate()
    found = re.search(r"did not run for (0\.\d+) s, once in all", told)
    assert found and 0.25 < float(found[1]) < 0.6, told
    assert [row["id"] for row in rows_of(tmp_path / "out", "notes")].count("stopped") == 1


@as_root
@pytest.mark.needs("ping")
@pytest.mark.parametrize("lacks", ["-sys_admin", "-sys_admin,-net_admin"])
def test_root_has_a_path_without_all_capabilities(tmp_path: Path, lacks: str) -> None:
    """A user namespace provides the missing capability."""
    pings = "ping -q -c 3 -i 0.1 $AQMLAB_FAR; id -u"
    far = ["--far", "touch far"]
    shell = command("shell", "-q", "--delay", "5ms", *far, "--", "sh", "-c", pings)
    done = without(lacks, shell, tmp_path)
    assert done.returncode == 0, done.stderr
    assert 10 <= float(done.stdout.split("= ")[1].split("/")[0]) < 13
    assert done.stdout.endswith("\n0\n")
    assert (tmp_path / "far").exists()
    hosts = command("shell", "-q", "--topology", str(EXAMPLES / "topology.toml"), "--", "true")
    done = without(lacks, hosts, tmp_path)
    assert done.returncode == 0, done.stderr


@as_root
def test_what_root_lacks_for_a_user_namespace_is_named(tmp_path: Path) -> None:
    done = without("-all", command("shell", "--", "true"), tmp_path)
    assert_refused(done, "CAP_SETFCAP", "another user")


@as_root
@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("mount -t tmpfs none /dev/net", ["/dev/net/tun", "modprobe tun"]),
        ("echo 0 > /proc/sys/user/max_user_namespaces", ["user.max_user_namespaces"]),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, machine: str, words: list[str]) -> None:
    inside = ["unshare", "--mount", "--user", "--map-root-user", "--pid", "--fork"]
    script = [*inside, "sh", "-c", f'{machine}; exec "$@"', "sh", *command("shell", "--", "true")]
    done = run_program(script, cwd=tmp_path)
    assert_refused(done, *words)


def test_a_folder_with_things_in_it_is_left_alone(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/letter").write_text("dear")
    done = aqmlab("shell", "--out", "out", "--", "echo", "never")
    assert_refused(done, "out", "not empty")


def test_a_folder_is_made_and_held_before_the_command_starts(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    words = ("sh", "-c", "echo ran; while [ ! -e go ]; do sleep 0.05; done")
    first = started(command("shell", "--out", "o", "--", *words), cwd=tmp_path)
    wait_until((tmp_path / "o/.lock").exists, first)
    done = aqmlab("shell", "--out", "o", "--", "echo", "never")
    assert_refused(done, "o", "another aqmlab process")
    (tmp_path / "go").write_text("")
    first.communicate(timeout=PATIENCE)
    assert first.returncode == 0
    assert (tmp_path / "o/report.html").exists()
    assert not (tmp_path / "o/.lock").exists()
    refused = aqmlab("shell", "--out", "new", "--rate", "fast", "--", "true")
    assert_refused(refused, "fast")
    assert not (tmp_path / "new").exists()


@as_root
@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_a_disk_that_is_full_in_the_end_costs_no_results(
    aqmlab: Aqmlab, tmp_path: Path, option: str
) -> None:
    (tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(tmp_path / "disk")]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        fill = "head -c 1150k /dev/zero > disk/filler; exit 3"
        done = aqmlab("shell", option, "--out", "disk/o", "--", "sh", "-c", fill)
        refused = aqmlab("shell", "--out", "disk/p", "--", "echo", "never")
        assert not (tmp_path / "disk/p").exists()
    finally:
        subprocess.run(["umount", str(tmp_path / "disk")], check=True)
    assert_refused(refused, "disk/p: no space left on the disk; nothing was run", status=1)
    assert done.returncode == 3
    (place,) = re.findall(r"no space left on the disk; the results are in (\S+)", done.stderr)
    assert "the command ended with status 3" in done.stderr
    assert "resume" not in done.stderr
    assert (Path(place) / "report.html").exists()
    shutil.rmtree(place)
