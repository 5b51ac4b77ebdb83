"""`aqmlab shell --pcap`, read by a reader of pcapng written for this from its specification."""

from __future__ import annotations

import itertools
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused, run_program

pytestmark = pytest.mark.real_packets
Client = Callable[..., Any]
ALL = ["--pcap", "all.pcapng", "--pcap-at", "all"]


@dataclass(frozen=True)
class Captured:
    """A packet in a capture."""

    interface: str
    nanos: int
    size: int
    data: bytes
    comment: str

    @property
    def ecn(self) -> int:
        """ECN field of an IPv4 packet."""
        return self.data[1] & 3


def options(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 0:
            assert length == 0
            return
        yield code, body[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def read(file: Path) -> list[Captured]:
    """All packets; every rule of the format that concerns them is checked."""
    content, at = file.read_bytes(), 0
    names: list[str] = []
    packets: list[Captured] = []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        assert length % 4 == 0 and length >= 12
        assert struct.unpack_from("<I", content, at + length - 4) == (length,)
        body = content[at + 8 : at + length - 4]
        if at == 0:
            assert kind == 0x0A0D0D0A
            assert struct.unpack_from("<IHHq", body) == (0x1A2B3C4D, 1, 0, -1)
        elif kind == 1:
            link_type, reserved, snap = struct.unpack_from("<HHI", body)
            found = dict(options(body[8:]))
            assert (link_type, reserved, found[9]) == (101, 0, b"\x09")
            assert snap >= 65_535
            names.append(found[2].decode())
            assert found[1].decode().startswith("packets ")
        else:
            assert kind == 6
            interface, high, low, kept, size = struct.unpack_from("<IIIII", body)
            assert kept == size
            data = body[20 : 20 + kept]
            end = 20 + (kept + 3) // 4 * 4
            assert body[20 + kept : end].strip(b"\0") == b""
            comment = dict(options(body[end:])).get(1, b"").decode()
            packets.append(Captured(names[interface], high << 32 | low, size, data, comment))
        at += length
    assert at == len(content)
    return packets


def v4_checksum_is_right(packet: bytes) -> bool:
    words = struct.unpack(f"!{(packet[0] & 15) * 2}H", packet[: (packet[0] & 15) * 4])
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def test_every_packet_is_in_it_before_and_after(client: Client, tmp_path: Path) -> None:
    before = time.time_ns()
    queue = ["--rate", "20mbit", "--queue", "codel limit=20p", "--delay", "2ms"]
    client(*queue, "--out", "out", *ALL, do="bulk 1")
    packets = read(tmp_path / "all.pcapng")
    count = Counter(packet.interface for packet in packets)
    for row in pl.read_parquet(tmp_path / "out/links.parquet").to_dicts():
        link = row["link"]
        assert count[f"{link} in"] == row["arrived"]
        assert count[f"{link} dropped"] == row["dropped"]
        # A few may have been under way at the end.
        assert row["delivered"] - 60 <= count[f"{link} out"] <= row["delivered"]
        reasons = Counter(packet.comment for packet in packets
                          if packet.interface == f"{link} dropped")  # fmt: skip
        assert reasons.get("overlimit", 0) == row["drop_overlimit"]
        assert reasons.get("codel", 0) == row["drop_codel"]
    assert count["up dropped"] > 0
    # Segments of large packets are whole packets: their own lengths, numbers and checksums.
    up = [packet for packet in packets if packet.interface == "up in" and packet.data[0] >> 4 == 4]
    assert all(struct.unpack_from("!H", packet.data, 2) == (packet.size,) for packet in up)
    assert all(v4_checksum_is_right(packet.data) for packet in up)
    assert max(packet.size for packet in up) == 1500
    assert before < packets[0].nanos < packets[-1].nanos < time.time_ns()


def tcp(packet: Captured) -> tuple[int, int, int]:
    """Source port, sequence number and bytes of data of a TCP segment over IPv4."""
    head = (packet.data[0] & 15) * 4
    port, _, number = struct.unpack_from("!HHI", packet.data, head)
    return port, number, packet.size - head - (packet.data[head + 12] >> 4) * 4


@pytest.mark.parametrize("at", ["near", "far"])
def test_each_packet_is_once_in_it(client: Client, tmp_path: Path, at: str) -> None:
    """Captures as on either host: TCP's analysis treats all interfaces as one."""
    path = ["--rate", "20mbit", "--delay", "2ms", "--queue", "droptail limit=1000p"]
    client(*path, "--pcap", "one.pcapng", "--pcap-at", at, do="bulk 0.5")
    packets = read(tmp_path / "one.pcapng")
    sides = {"near": {"up in", "down out"}, "far": {"up out", "down in"}}
    assert {packet.interface for packet in packets} == sides[at]
    segments = Counter(tcp(each) for each in packets if each.data[9] == 6 and tcp(each)[2] > 0)
    assert len(segments) > 300
    assert set(segments.values()) == {1}, "nothing was dropped: nothing is there twice"


@pytest.mark.needs("tshark")
def test_wireshark_reads_it_and_finds_no_retransmissions_where_there_are_none(
    client: Client, tmp_path: Path
) -> None:
    path = ["--rate", "20mbit", "--delay", "2ms", "--queue", "droptail limit=1000p"]
    client(*path, "--pcap", "one.pcapng", do="bulk 0.5")
    words = ["tshark", "-r", str(tmp_path / "one.pcapng")]
    shown = ["-T", "fields", "-e", "frame.interface_name", "-e", "ip.proto"]
    seen = Counter(run_program([*words, *shown], check=True).stdout.splitlines())
    assert min(seen["up in\t6"], seen["down out\t6"]) > 100
    for name in ("retransmission", "out_of_order", "lost_segment"):
        done = run_program([*words, "-Y", f"tcp.analysis.{name}"], check=True)
        assert done.stdout == "", name


def test_times_are_exact_and_marks_are_seen(client: Client, tmp_path: Path) -> None:
    queue = "queue={ discipline = 'codel', ecn = true, ce_threshold = '1ms' }"
    client("--up", f"rate=10mbit {queue}", *ALL, do="burst 100 2")
    packets = [packet for packet in read(tmp_path / "all.pcapng") if packet.size == 1028]
    out = [packet for packet in packets if packet.interface == "up out"]
    assert len(out) == 100
    assert {packet.ecn for packet in packets if packet.interface == "up in"} == {2}
    assert sum(packet.ecn == 3 for packet in out) > 50
    assert all(v4_checksum_is_right(packet.data) for packet in out)
    gaps = [second.nanos - first.nanos for first, second in itertools.pairwise(out)]
    # Back to back on the link: 1028 bytes at 10 Mbit/s, by the schedule.
    assert sum(gap == 822_400 for gap in gaps) > 80


def test_a_packet_lost_on_the_link_has_a_comment(client: Client, tmp_path: Path) -> None:
    client("--up", "loss=0.3 rate=50mbit", *ALL, do="burst 200 0")
    dropped = [each for each in read(tmp_path / "all.pcapng") if each.interface == "up dropped"]
    assert 30 < len(dropped) < 100
    assert {packet.comment for packet in dropped} == {"lost on the link"}


def test_a_ring_keeps_the_last(client: Client, tmp_path: Path) -> None:
    ring = ["--pcap", "ring.pcapng", "--pcap-ring", "2mb"]
    client("--rate", "50mbit", *ring, do="bulk 1")
    files = [tmp_path / "ring.pcapng", tmp_path / "ring.pcapng.old"]
    assert all(file.stat().st_size < 2_200_000 for file in files)
    older, newer = read(files[1]), read(files[0])
    assert older[-1].nanos <= newer[0].nanos
    assert sum(packet.size for packet in older) > 1_500_000


def test_a_file_that_cannot_be_written_is_named(aqmlab: Aqmlab) -> None:
    done = aqmlab("shell", "--pcap", "nowhere/all.pcapng", "--", "echo", "never")
    assert_refused(done, "nowhere/all.pcapng")
