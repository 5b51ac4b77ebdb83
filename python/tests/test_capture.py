"""`aqmlab run --pcap`: tshark's findings in a capture equal the counts of the run."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, run_program, wait_until

import aqmlab as package
from aqmlab.results import RunResult

LINKS = """
[links.down]
rate = "10mbit"
delay = "10ms"
queue = { discipline = "codel", limit = "100p" }
[links.up]
rate = "10mbit"
delay = "10ms"
[flows.bulk]
count = 2
path = ["down"]
return_path = ["up"]
start = "0s"
transport = { profile = "linux-6" }
"""
SCENARIO = f'duration = "4s"\nseed = 1\n{LINKS}'
SUSPECTED = "This frame is a (suspected) "
REPAIRS = {"retransmission", "fast retransmission", "spurious retransmission"}
# A repair that leaves within a round-trip time of new data; tshark has no other name for it.
OUT_OF_ORDER = "out-of-order segment"

needs_tshark = pytest.mark.needs("tshark")


def tshark(file: Path, *options: str) -> str:
    done = run_program(["tshark", "-n", "-r", str(file), *options], check=True)
    problems = [line for line in done.stderr.splitlines() if "as user" not in line]
    assert not problems
    return done.stdout


def fields(file: Path, *names: str, only: str = "") -> list[list[str]]:
    options = [option for name in names for option in ("-e", name)]
    text = tshark(file, "-Y", only, "-T", "fields", *options)
    return [line.split("\t") for line in text.splitlines()]


def expert(file: Path) -> dict[str, Counter[str]]:
    """Messages of tshark by severity; duplicate acknowledgements as one."""
    found: dict[str, Counter[str]] = {}
    severity = ""
    for line in tshark(file, "-q", "-z", "expert").splitlines():
        words = line.split(None, 3)
        if line[:1].isalpha() and line.endswith(")"):
            severity = words[0]
        elif words and words[0].isdigit():
            what = words[3].split(" (#")[0]
            found.setdefault(severity, Counter())[what] += int(words[0])
    return found


def captured(text: str, tmp_path: Path, **options: Any) -> tuple[Path, RunResult]:
    (tmp_path / "scenario.toml").write_text(text)
    file = tmp_path / "out.pcapng"
    return file, package.run(tmp_path / "scenario.toml", pcap=file, **options)


def assert_checksums(file: Path) -> None:
    checked = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
               "-o", "udp.check_checksum:TRUE", "-T", "fields"]  # fmt: skip
    status = [f"{name}.checksum.status" for name in ("ip", "tcp", "udp")]
    found = Counter(tshark(file, *checked, *(o for s in status for o in ("-e", s))).splitlines())
    assert found
    for states in found:
        ip, *transport = states.split("\t")
        # 1 is good, 2 not checked: of a packet with payload, which is not in the file.
        assert ip == "1" and set(transport) <= {"", "1", "2"}, found
    assert any("1" in states.split("\t")[1:] for states in found) or "udp" in str(file)


@needs_tshark
def test_sack_and_retransmissions_are_those_of_the_run(tmp_path: Path) -> None:
    file, result = captured(SCENARIO, tmp_path)
    found = expert(file)
    assert set(found) <= {"Warns", "Notes", "Chats"}
    assert set(found.get("Warns", ())) <= {SUSPECTED + OUT_OF_ORDER}
    assert set(found["Notes"]) <= {"Duplicate ACK", *(SUSPECTED + each for each in REPAIRS)}
    assert_checksums(file)
    names = ("tcp.stream", "frame.len", "tcp.len", "tcp.analysis.retransmission",
             "tcp.analysis.out_of_order", "tcp.flags.syn")  # fmt: skip
    packets = fields(file, *names, only="tcp.dstport == 50000")
    flows = result.flows.to_dicts()
    assert sum(flow["retransmissions"] for flow in flows) > 20
    for stream, flow in enumerate(flows):
        own = [each for each in packets if each[0] == str(stream)]
        data = [each for each in own if each[2] != "0"]
        assert len(data) == flow["segments_sent"]
        again = [each for each in data if each[3] or each[4]]
        assert len(again) == flow["retransmissions"]
        # The SYN is longer by its options.
        size = sum(int(each[1]) if each[5] in ("0", "False") else 52 for each in own)
        seconds = result.runs["end_s"][0] - flow["start_s"]
        assert size * 8 / seconds == pytest.approx(flow["throughput_bps"], rel=1e-9)
    sacked = fields(file, "tcp.options.sack.count", only="tcp.options.sack.count > 0")
    assert {row[0] for row in sacked} >= {"1", "2"}
    assert max(int(row[0]) for row in sacked) <= 3


@needs_tshark
def test_a_syn_has_the_options_of_its_transport(tmp_path: Path) -> None:
    own = '{ profile = "rfc", receive_window = "100000b", ecn = "classic" }'
    text = SCENARIO.replace('{ profile = "linux-6" }', own).replace("4s", "100ms")
    file, _ = captured(text, tmp_path)
    names = ("tcp.flags.str", "tcp.options.mss_val", "tcp.options.wscale.shift",
             "tcp.options.timestamp.tsval", "tcp.window_size", "ip.len")  # fmt: skip
    rows = fields(file, *names, only="tcp.stream == 0")
    assert rows[0] == ["····CE····S·", "1460", "1", "", "65535", "52"]
    assert rows[1] == ["·····E·A··S·", "1460", "1", "", "65535", "52"]
    assert {row[4] for row in rows[2:]} == {"100000"} and rows[2][5] == "1500"
    assert set(expert(file)) == {"Chats"}


@needs_tshark
@pytest.mark.parametrize(("ecn", "lost"), [("classic", [1]), ("accurate", [1, 2])])
def test_a_connection_without_ecn_has_no_flags_of_it(
    ecn: str, lost: list[int], tmp_path: Path
) -> None:
    text = SCENARIO.replace('"linux-6"', f'"linux-6", ecn = "{ecn}"').replace(
        "count = 2", "count = 1"
    )
    text = text.replace("[links.up]", f"loss = {{ packets = {lost} }}\n[links.up]")
    file, _ = captured(text, tmp_path)
    rows = fields(file, "tcp.flags.syn", "tcp.flags.ece", "tcp.flags.cwr", "ip.dsfield.ecn")
    syns = [row[1:] for row in rows if row[0] in ("1", "True")]
    assert [row[0] in ("1", "True") for row in syns] == [True] * len(lost) + [False, False]
    assert len({tuple(row[1:]) for row in rows[len(syns) :]}) == 1 and rows[-1][3] == "0"


@needs_tshark
def test_accurate_ecn_counts_the_marks(tmp_path: Path) -> None:
    behind = '[links.lan]\nrate = "1gbit"\ndelay = "0ms"\n'
    text = SCENARIO.replace("linux-6", "linux-l4s").replace("[links.up]", f"{behind}[links.up]")
    text = text.replace('["down"]', '["down", "lan"]').replace("count = 2", "count = 1")
    options = {"set": {"queue": "dualpi2"}}
    file, result = captured(text, tmp_path, **options)
    assert set(expert(file)) == {"Chats"}
    assert_checksums(file)
    rows = fields(file, "tcp.srcport", "tcp.flags.ace", "tcp.flags.str", "ip.dsfield.ecn")
    assert rows[0][2:] == ["···ACE····S·", "0"] and rows[1][2:] == ["····C··A··S·", "0"]
    data = [row for row in rows[2:] if row[0] != "50000"]
    assert {row[3] for row in data} == {"1"}
    # RFC 9768, section 3.2.2.1: the first reports the SYN-ACK; then no packet has a mark.
    assert data[0][1] == "2" and {row[1] for row in data[1:]} == {"5"}
    counts = [int(row[1]) for row in rows[2:] if row[0] == "50000"]
    steps = sum((after - before) % 8 for before, after in zip([5, *counts], counts, strict=False))
    captured(text, tmp_path, **options, pcap_links=["lan"])
    marks = Counter(row[0] for row in fields(file, "ip.dsfield.ecn"))["3"]
    # The last marked packets are on their way to this link at the end.
    marked = result.links.row(0, named=True)["marked"]
    assert marked - 20 < marks <= marked
    assert marks > 100
    # Packets in flight at the end are not reported yet.
    assert marks - 20 < steps <= marks


@needs_tshark
def test_datagrams_and_pages_have_addresses_ports_and_checksums(tmp_path: Path) -> None:
    page = SCENARIO.replace("[flows.bulk]\ncount = 2", '[flows.web]\nworkload = "page"')
    page = page.replace('"linux-6"', '"linux-6", dsack = false')
    path = 'path = ["down"]\nreturn_path = ["up"]\n'
    file, result = captured(f'{page}\n[flows.call]\nworkload = "voip"\n{path}', tmp_path)
    assert_checksums(file)
    found = expert(file)
    assert set(found.get("Warns", ())) <= {SUSPECTED + OUT_OF_ORDER} and "Errors" not in found
    assert set(found["Notes"]) <= {"Duplicate ACK", *(SUSPECTED + each for each in REPAIRS)}
    # Both directions of a connection are one: its data carry acknowledgements.
    opened = fields(file, "tcp.stream", only="tcp.flags.syn == 1 && tcp.flags.ack == 0")
    assert len(opened) == len({row[0] for row in opened}) > 6
    sizes = fields(file, "udp.srcport", "udp.dstport", "frame.len", "udp.length", only="udp")
    groups = dict(result.traffic.group_by("group").agg(pl.col("sent_bytes").sum()).rows())
    assert all(int(length) == int(datagram) + 20 for *_, length, datagram in sizes)
    # Group 0 is the page with its DNS, group 1 the call.
    assert groups["call"] == sum(int(row[2]) for row in sizes if "50001" in row[:2])
    tcp = fields(file, "frame.number", only="tcp.port == 50000")
    assert len(tcp) > 500


DUPLICATES = {"links.down.duplicate": 0.01}
LATE = {"links.down.reordering": True, "links.down.jitter": {"spread": "3ms"}}
LAN = '[links.lan]\nrate = "1gbit"\ndelay = "0ms"\n'
BEHIND = SCENARIO.replace("[links.up]", f"{LAN}[links.up]").replace('["down"]', '["down", "lan"]')
BEHIND = BEHIND.replace("count = 2", "count = 1")


# With timestamps the receiver drops late packets (PAWS), also some that it has not got.
LATE_WITHOUT_PAWS = LATE | {"flows.bulk.transport.timestamps": False}


@needs_tshark
@pytest.mark.parametrize("way", [DUPLICATES, LATE_WITHOUT_PAWS], ids=["duplicated", "reordered"])
def test_warnings_at_the_hosts_are_true_of_the_packets(tmp_path: Path, way: dict[str, Any]) -> None:
    file, result = captured(BEHIND, tmp_path, set=way)
    found = expert(file)
    warned, flow = found["Warns"], result.flows.row(0, named=True)
    assert set(warned) <= {"D-SACK Sequence", SUSPECTED + OUT_OF_ORDER}
    assert_checksums(file)
    # All that tshark takes for sent again was.
    notes = found["Notes"]
    again = notes[SUSPECTED + "retransmission"] + warned[SUSPECTED + OUT_OF_ORDER]
    assert again == flow["retransmissions"] > 10
    # A D-SACK for each packet received twice: duplicated by a link, or retransmitted needlessly.
    twice = result.links["duplicated"][0] if way == DUPLICATES else again - flow["dropped"]
    assert twice - 2 <= warned["D-SACK Sequence"] <= twice + 2 and twice > 4


@needs_tshark
def test_warnings_behind_a_link_are_true_of_the_packets(tmp_path: Path) -> None:
    file, _ = captured(BEHIND, tmp_path, set=LATE, pcap_links=["lan"])
    top, late = 0, 0
    for (row,) in fields(file, "tcp.seq", only="tcp.dstport == 50000 && tcp.len > 0"):
        late += int(row) < top
        top = max(top, int(row))
    found = expert(file)
    assert found["Warns"].pop(SUSPECTED + OUT_OF_ORDER) == late > 1000
    # A gap in what has come: tshark cannot know that the rest comes later.
    assert set(found["Warns"]) == {"Previous segment(s) not captured (common at capture start)"}
    file, result = captured(BEHIND, tmp_path, set=DUPLICATES, pcap_links=["lan"])
    seen = expert(file)["Notes"][SUSPECTED + "retransmission"]
    assert result.links["duplicated"][0] - 2 <= seen <= result.links["duplicated"][0]


@needs_tshark
def test_a_link_shows_all_that_comes_to_it(tmp_path: Path) -> None:
    file, result = captured(SCENARIO, tmp_path, pcap_links=["up", "down"])
    rows = fields(file, "frame.interface_name", "frame.time_epoch")
    counts = Counter(row[0] for row in rows)
    arrived = {row["link"]: row["arrived"] for row in result.links.to_dicts()}
    assert counts == arrived
    times = [float(row[1]) for row in rows]
    assert times[0] == 0.0 and times == sorted(times) and times[-1] < 4.0


def test_a_capture_is_the_same_each_time_and_leaves_the_run_alone(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    file, result = captured(SCENARIO.replace("4s", "1s"), tmp_path)
    once = file.read_bytes()
    plain = package.run(tmp_path / "scenario.toml")
    assert result.flows.equals(plain.flows) and result.links.equals(plain.links)
    aqmlab.ok("run", "scenario.toml", "--pcap", "again.pcapng", "--no-report")
    assert (tmp_path / "again.pcapng").read_bytes() == once
    assert once[:4] == bytes.fromhex("0a0d0d0a") and len(once) > 100_000
    of_link = [
        captured(SCENARIO.replace("4s", "1s"), tmp_path, pcap_links=links)[0].read_bytes()
        for links in ("down", ["down"])
    ]
    assert of_link[0] == of_link[1] != once


@needs_tshark
def test_what_is_killed_leaves_a_file_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(SCENARIO.replace("4s", "10000s"))
    file = tmp_path / "cut.pcapng"
    command = [sys.executable, "-m", "aqmlab", "run", "long.toml", "--pcap", file.name]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as running:
        wait_until(lambda: file.exists() and file.stat().st_size > 300_000, running)
        running.send_signal(signal.SIGKILL)
    # The kernel may have ended the last write within a packet.
    numbers = tshark(file, "-c", "99", "-T", "fields", "-e", "frame.number").split()
    assert numbers == [str(number) for number in range(1, 100)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pcap", "nowhere/x.pcapng"), "nowhere/x.pcapng"),
        (("--pcap", "/dev/full"), "/dev/full"),
        (("--pcap", "x.pcapng", "--pcap-link", "dwn"), "dwn"),
        (("--pcap-link", "down"), "--pcap"),
    ],
)
def test_files_and_links_that_cannot_be_are_named(
    aqmlab: Aqmlab, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("4s", "20ms"))
    done = aqmlab("run", "scenario.toml", *words)
    assert done.returncode in (1, 2) and said in done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


@needs_tshark
def test_packets_of_quic_have_their_bytes(tmp_path: Path) -> None:
    """tshark finds the handshake of QUIC, and one connection with both directions."""
    endpoint = '{ kind = "quic", stack = "quinn" }'
    workload = '{ kind = "requests", response = "20kb", requests = 3 }'
    text = SCENARIO.replace("count = 2", f"endpoint = {endpoint}\nworkload = {workload}")
    file, result = captured(text, tmp_path)
    kinds = fields(file, "quic.long.packet_type", "udp.stream", "quic.version", only="quic")
    assert kinds[0] == ["0", "0", "0x00000001"]  # Initial, version 1
    assert {stream for _, stream, _ in kinds} == {"0"}
    ports = fields(file, "udp.srcport", "udp.dstport", "udp.length", "frame.len", only="udp")
    assert {frozenset(each[:2]) for each in ports} == {frozenset(ports[0][:2])}
    assert all(int(length) + 20 == int(frame) for _, _, length, frame in ports)
    assert len(ports) == result.table("flows")["segments_sent"].sum()
    assert_checksums(file)


def test_a_log_needs_a_sender_that_writes_one(tmp_path: Path) -> None:
    text = SCENARIO.replace('transport = { profile = "linux-6" }', 'endpoint = "tfrc"')
    (tmp_path / "scenario.toml").write_text(text)
    with pytest.raises(package.InputError, match=r"qlog: .*no flow is TCP or QUIC"):
        package.run(tmp_path / "scenario.toml", qlog=tmp_path / "run.sqlog")
