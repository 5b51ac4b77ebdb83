"""Senders and receivers that measure an emulated path; a program of its own.

traffic.py serve PORT REPORT        TCP both ways, UDP echo, numbered datagrams
traffic.py tcp up|down HOST PORT CONNECTIONS SECONDS
traffic.py rtt HOST PORT COUNT INTERVAL
traffic.py train HOST PORT RATE SECONDS REPORT
traffic.py udp up|down HOST PORT SECONDS

Each client prints one JSON object; that of `train` is written by the server to the file
REPORT. Nothing but the standard library is loaded. Real-time priority is taken where it is
permitted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
import statistics
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

PRIORITY = 40
"""Priority of the emulator."""
FLOOD_PRIORITY = 20
"""A sender that never waits must not keep the receiver from its processor."""
WARM_UP = 0.4
"""This share of a transfer is not counted: slow start."""
BLOCK = 1 << 20
DATAGRAM = 1472
"""Bytes of payload of a packet of 1500."""
SMALL = 1372
"""Bytes of payload of a packet of 1400."""
REST = 0.0005
"""Seconds between two looks of a receiver of many small packets."""
AT_ONCE = 10_000
"""So many it takes before it looks at the time."""
TRAIN = 43
"""Datagrams in a large packet: what fits in 64 kB."""
AHEAD = 1.03
"""So much faster than the link a train is sent: the queue never runs empty."""
UDP_SEGMENT = 103
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
ROOM = 64 << 20


def quantile(values: list[float], share: float) -> float:
    """The value that this share of all is below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# --- TCP ---------------------------------------------------------------------


def send_for(connection: socket.socket, seconds: float) -> None:
    """Sends as much as goes."""
    block, until = bytes(BLOCK), time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < until:
            connection.send(block)
        connection.shutdown(socket.SHUT_WR)


def count(connection: socket.socket, total: list[int], index: int) -> None:
    """Receives until the end; `total` has the bytes received so far."""
    room = bytearray(BLOCK)
    with contextlib.suppress(OSError):
        while size := connection.recv_into(room):
            total[index] += size


def receive_rate(connections: list[socket.socket], seconds: float) -> float:
    """Received bits per second, after a warm-up."""
    total = [0] * len(connections)
    for index, each in enumerate(connections):
        threading.Thread(target=count, args=(each, total, index), daemon=True).start()
    time.sleep(seconds * WARM_UP)
    began, before = time.monotonic(), sum(total)
    time.sleep(seconds * (1 - WARM_UP) - 0.05)
    return (sum(total) - before) * 8 / (time.monotonic() - began)


def serve_tcp(listener: socket.socket) -> None:
    """Each client requests a direction, a number of connections and a time in seconds."""
    groups: dict[bytes, list[socket.socket]] = {}
    while True:
        connection, _ = listener.accept()
        request = connection.recv(32, socket.MSG_WAITALL)
        if len(request) < 32:
            connection.close()  # It only asked whether somebody is here.
            continue
        direction, connections, seconds, name = struct.unpack("!BBd22s", request)
        if direction in UDP_WAYS:
            asked = (connection, direction, seconds, name)
            threading.Thread(target=serve_packets, args=asked, daemon=True).start()
            continue
        if direction == ord("d"):
            args = (connection, seconds)
            threading.Thread(target=send_for, args=args, daemon=True).start()
            continue
        group = groups.setdefault(request, [])
        group.append(connection)
        if len(group) == connections:
            threading.Thread(target=answer, args=(groups.pop(request), seconds)).start()


def answer(connections: list[socket.socket], seconds: float) -> None:
    """Receives, and tells the client how fast."""
    rate = receive_rate(connections, seconds)
    with contextlib.suppress(OSError):
        connections[0].sendall(struct.pack("!d", rate))


def connect(host: str, port: int) -> socket.socket:
    """The server may not be there yet."""
    for _ in range(300):
        try:
            return socket.create_connection((host, port), timeout=30)
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise SystemExit("no server")


def tcp(direction: str, host: str, port: int, connections: int, seconds: float) -> dict[str, Any]:
    """A transfer over so many connections, to the server or from it."""
    sockets = [connect(host, port) for _ in range(connections)]
    request = struct.pack("!BBd22s", ord(direction[0]), connections, seconds, os.urandom(22))
    for each in sockets:
        each.sendall(request)
    if direction == "down":
        return {"bps": receive_rate(sockets, seconds)}
    for each in sockets:
        threading.Thread(target=send_for, args=(each, seconds), daemon=True).start()
    (rate,) = struct.unpack("!d", sockets[0].recv(8, socket.MSG_WAITALL))
    return {"bps": rate}


# --- packets a second --------------------------------------------------------

UDP_WAYS = {ord("U"): "up", ord("D"): "down"}


def flood(address: tuple[str, int], seconds: float) -> None:
    """Sends small datagrams, one a call, as fast as they go."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FLOOD_PRIORITY))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(address)
    data, until = bytes(SMALL), time.monotonic() + seconds
    while time.monotonic() < until:
        # The far end may be gone by the end.
        with contextlib.suppress(OSError):
            for _ in range(64):
                udp.send(data)


def receive_packets(udp: socket.socket, seconds: float) -> float:
    """Received datagrams per second, after a warm-up."""
    begin = time.monotonic() + seconds * WARM_UP
    end = begin + seconds * (1 - WARM_UP) - 0.05
    udp.setblocking(False)
    counted, began = 0, 0.0
    while (now := time.monotonic()) < end:
        if now >= begin and not began:
            counted, began = 0, now
        counted += take_all(udp)
        # The rest comes together: a wake-up for each would cost more than the packet.
        time.sleep(REST)
    return counted / (end - (began or begin))


def take_all(udp: socket.socket) -> int:
    """Receives pending datagrams; returns their number."""
    room, counted = bytearray(2048), 0
    with contextlib.suppress(BlockingIOError):
        while counted < AT_ONCE:
            udp.recv_into(room)
            counted += 1
    return counted


def serve_packets(connection: socket.socket, direction: int, seconds: float, name: bytes) -> None:
    """Receives datagrams and reports their rate, or sends them to the client's port."""
    if UDP_WAYS[direction] == "down":
        (port,) = struct.unpack_from("!H", name)
        flood((connection.getpeername()[0], port), seconds)
        return
    udp = packet_socket()
    connection.sendall(struct.pack("!H", udp.getsockname()[1]))
    rate = receive_packets(udp, seconds)
    with contextlib.suppress(OSError):
        connection.sendall(struct.pack("!d", rate))


def packet_socket() -> socket.socket:
    """For many datagrams, at a port of its own."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    make_room(udp)
    udp.bind(("", 0))
    return udp


def make_room(udp: socket.socket) -> None:
    """Gives a socket as large a buffer as it may have."""
    for option in (SO_RCVBUFFORCE, socket.SO_RCVBUF):
        with contextlib.suppress(PermissionError):
            udp.setsockopt(socket.SOL_SOCKET, option, ROOM)
            return


def packets(direction: str, host: str, port: int, seconds: float) -> dict[str, Any]:
    """Small datagrams to the server or from it: how many a second come through."""
    connection, udp = connect(host, port), packet_socket()
    name = struct.pack("!H20s", udp.getsockname()[1], b"")
    connection.sendall(struct.pack("!BBd22s", ord(direction[0].upper()), 1, seconds, name))
    if direction == "down":
        return {"packets_per_second": receive_packets(udp, seconds)}
    (far,) = struct.unpack("!H", connection.recv(2, socket.MSG_WAITALL))
    flood((host, far), seconds)
    (rate,) = struct.unpack("!d", connection.recv(8, socket.MSG_WAITALL))
    return {"packets_per_second": rate}


# --- round trips -------------------------------------------------------------


def serve_udp(udp: socket.socket, report: Path) -> None:
    """Echoes small datagrams, and notes when numbered large ones come."""
    while True:
        data, sender = udp.recvfrom(2048)
        if len(data) < DATAGRAM:
            udp.sendto(data, sender)
        else:
            watch_train(udp, report)


def rtt(host: str, port: int, number: int, interval: float) -> dict[str, Any]:
    """Round trips of datagrams that leave at set times, whether answers have come or not."""
    connect(host, port).close()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect((host, port))
    times: list[float] = []
    sent, begin = 0, time.perf_counter()
    while len(times) < number:
        now = time.perf_counter()
        due = begin + sent * interval
        if sent < number and now >= due:
            udp.send(struct.pack("!d", time.perf_counter()))
            sent += 1
            continue
        if sent == number and now > due + 2:
            break
        wait = due - now if sent < number else 0.5
        if select.select([udp], [], [], wait)[0]:
            (left,) = struct.unpack("!d", udp.recv(64))
            times.append(time.perf_counter() - left)
    return {
        "count": len(times),
        "lost": number - len(times),
        "p50_s": quantile(times, 0.5),
        "p90_s": quantile(times, 0.9),
        "p99_s": quantile(times, 0.99),
    }


# --- trains ------------------------------------------------------------------


def watch_train(udp: socket.socket, report: Path) -> None:
    """Takes a train in; what the spacing and the rate were by the kernel's clock."""
    arrivals: list[tuple[int, int]] = []
    udp.settimeout(1.0)
    room = bytearray(2048)
    head = struct.Struct("!II")
    last = None
    with contextlib.suppress(TimeoutError):
        while last is None or arrivals[-1][0] < last:
            _, control, _, _ = udp.recvmsg_into([room], 64)
            number, total = head.unpack_from(room)
            seconds, nanos = struct.unpack("qq", control[0][2])
            arrivals.append((number, seconds * 1_000_000_000 + nanos))
            last = total - 1
    udp.settimeout(None)
    # The first tenth fills the queue.
    kept = arrivals[len(arrivals) // 10 :]
    gaps = [
        (then - now) / 1e3
        for (number, now), (follower, then) in itertools.pairwise(kept)
        if follower == number + 1
    ]
    (first, began), (final, ended) = kept[0], kept[-1]
    found = {
        "bps": (final - first) * (DATAGRAM + 28) * 8e9 / (ended - began),
        "received": len(arrivals),
        "sent": (last or 0) + 1,
        "gap_us": {
            "p50": quantile(gaps, 0.5),
            "p90": quantile(gaps, 0.9),
            "p99": quantile(gaps, 0.99),
            "mean": statistics.mean(gaps),
        },
    }
    part = report.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(report)


def train(host: str, port: int, rate: float, seconds: float, report: Path) -> dict[str, Any]:
    """Sends numbered datagrams, a little faster than the link; waits for the report."""
    connect(host, port).close()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
    udp.connect((host, port))
    total = round(rate * seconds / (8 * (DATAGRAM + 28)))
    # At low rates at most as many at once as the link sends in 10 ms.
    batch = max(1, min(TRAIN, round(rate * 0.01 / 12_000)))
    rest = bytes(DATAGRAM - 8)
    begin = time.monotonic()
    interval = batch * 12_000 / (rate * AHEAD)
    for index, first in enumerate(range(0, total, batch)):
        numbers = range(first, min(first + batch, total))
        message = b"".join(struct.pack("!II", number, total) + rest for number in numbers)
        # Some at once at the beginning, so that the queue is not empty.
        wait = begin + (index - 8) * interval - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        udp.send(message)
    until = time.monotonic() + seconds + 3
    while not report.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return {}


def serve(port: int, report: Path) -> None:
    """Runs until it is killed."""
    listener = socket.create_server(("", port), backlog=64)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    make_room(udp)
    udp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    udp.bind(("", port))
    threading.Thread(target=serve_udp, args=(udp, report), daemon=True).start()
    serve_tcp(listener)


def main(mode: str, *words: str) -> None:
    """What the command line asks for."""
    # Without the permission it runs as any program.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    match mode, words:
        case "serve", (port, report):
            serve(int(port), Path(report))
        case "tcp", (direction, host, port, connections, seconds):
            print(json.dumps(tcp(direction, host, int(port), int(connections), float(seconds))))
        case "udp", (direction, host, port, seconds):
            print(json.dumps(packets(direction, host, int(port), float(seconds))))
        case "rtt", (host, port, number, interval):
            print(json.dumps(rtt(host, int(port), int(number), float(interval))))
        case "train", (host, port, rate, seconds, report):
            train(host, int(port), float(rate), float(seconds), Path(report))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
