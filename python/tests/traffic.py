"""A small server and clients for the tests of the emulator; a program of its own.

traffic.py serve PORT          TCP sink and UDP echo, both versions of IP
traffic.py bulk HOST PORT S    sends for S seconds: what came in, in bit/s
traffic.py trip HOST PORT N       sends N bytes: seconds until connected, and until all is answered
traffic.py flood HOST PORT S MBIT   datagrams of 1000 bytes for S seconds at that rate: how many
traffic.py rtt HOST PORT N     N datagrams one after the other: round trips in ms
traffic.py burst HOST PORT N TOS   N datagrams at once: [came back, with CE at the server]
traffic.py classes HOST PORT   ECN fields both ways, each [sent, at the server, in the answer]
traffic.py stamp PORT          a server that says how long the way of the datagrams was
traffic.py loaded HOST PORT S CPU   one datagram each ms, and for S seconds of that two busy loops
                               on a processor: the longest way, the longest gap in s
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

CE = 3
TURN = b"\xff"
"""Asks the server for an answer with another ECN field."""
FIELDS = {
    socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS),
    socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS),
}
"""Level of the socket options, the one that sets the field, and the one that receives it."""


def serve(port: int) -> None:
    tcp = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    for level, _, receive in FIELDS.values():
        udp.setsockopt(level, receive, 1)
    udp.bind(("::", port))
    threading.Thread(target=echo, args=(udp,), daemon=True).start()
    while True:
        connection, _ = tcp.accept()
        threading.Thread(target=sink, args=(connection,), daemon=True).start()


def sink(connection: socket.socket) -> None:
    received, room, began = 0, bytearray(1 << 20), time.monotonic()
    while size := connection.recv_into(room):
        received += size
    took = time.monotonic() - began
    connection.sendall(struct.pack("!Qd", received, took))
    connection.close()


def echo(udp: socket.socket) -> None:
    while True:
        data, control, _, sender = udp.recvmsg(2048, 256)
        tos = next((each[2][0] for each in control), 0)
        for level, field, _ in FIELDS.values():
            udp.setsockopt(level, field, tos ^ CE if data == TURN else 0)
        udp.sendto(bytes([tos]) + data[1:], sender)


def connect(host: str, port: int) -> socket.socket:
    """The server may not be there yet."""
    for _ in range(600):
        try:
            return socket.create_connection((host, port), timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.03)
    raise SystemExit("no server")


def bulk(host: str, port: int, seconds: float) -> float:
    connection = connect(host, port)
    block, until = bytes(1 << 20), time.monotonic() + seconds
    while time.monotonic() < until:
        connection.send(block)
    connection.shutdown(socket.SHUT_WR)
    answer = connection.recv(16, socket.MSG_WAITALL)
    received, took = struct.unpack("!Qd", answer)
    return received * 8 / took


def trip(host: str, port: int, size: int) -> list[float]:
    began = time.perf_counter()
    connection = socket.create_connection((host, port), timeout=5)
    connected = time.perf_counter() - began
    connection.sendall(bytes(size))
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(1 << 16):
        pass
    return [connected, time.perf_counter() - began]


def datagrams(host: str, port: int, tos: int = 0) -> socket.socket:
    # Until the server has closed, too: resets in answer to later segments would wait in the queue.
    with connect(host, port) as connection:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(64):
            pass
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.setsockopt(*FIELDS[family][:2], tos)
    udp.connect((host, port))
    udp.settimeout(2)
    return udp


def flood(host: str, port: int, seconds: float, mbit: float) -> int:
    udp = datagrams(host, port)
    began, sent = time.monotonic(), 0
    while (now := time.monotonic() - began) < seconds:
        while sent < now * mbit * 1e6 / 8000:
            udp.send(bytes(1000))
            sent += 1
        time.sleep(0.001)
    # The socket stays until all is answered: later answers would be answered with ICMP errors.
    udp.settimeout(0.2)
    with contextlib.suppress(OSError):
        while udp.recv(2048):
            pass
    return sent


def rtt(host: str, port: int, count: int) -> list[float]:
    udp = datagrams(host, port)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        udp.send(bytes(100))
        udp.recv(2048)
        times.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.002)
    return times


def burst(host: str, port: int, count: int, tos: int) -> list[int]:
    udp = datagrams(host, port, tos)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    for _ in range(count):
        udp.send(bytes(1000))
    came, marked = 0, 0
    with contextlib.suppress(TimeoutError):
        while came < count:
            tos = udp.recv(2048)[0]
            came, marked = came + 1, marked + (tos & CE == CE)
    return [came, marked]


def classes(host: str, port: int) -> list[list[int]]:
    udp = datagrams(host, port)
    level, field, receive = FIELDS[udp.family]
    udp.setsockopt(level, receive, 1)
    found = []
    for tos in (0, 1, 2, 3, 40):
        udp.setsockopt(level, field, tos)
        udp.send(TURN)
        data, control, _, _ = udp.recvmsg(100, 100)
        found.append([tos, data[0], control[0][2][0]])
    return found


SO_TIMESTAMPNS = 35


def stamp(port: int) -> None:
    """Answers an empty datagram with the longest delay in s, except of listed packets."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    udp.bind(("", port))
    ways: dict[int, int] = {}
    while True:
        data, control, _, sender = udp.recvmsg(2048, 64)
        times = struct.unpack(f"{len(data) // 8}q", data)
        seconds, nanoseconds = struct.unpack("qq", control[0][2])
        if times[:1] == (0,):
            ways = {sent: way for sent, way in ways.items() if sent not in times}
            udp.sendto(struct.pack("d", max(ways.values()) / 1e9), sender)
        else:
            ways[times[0]] = seconds * 10**9 + nanoseconds - times[0]


def loaded(host: str, port: int, seconds: float, cpu: float) -> list[float]:
    """The loops begin after the first datagrams and end before the last."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.settimeout(2)
    udp.connect((host, port))
    code = "input()\nwhile True: pass"
    loop = ["taskset", "-c", str(int(cpu)), sys.executable, "-c", code]
    busy = [subprocess.Popen(loop, stdin=subprocess.PIPE) for _ in range(2)]
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {int(cpu)})
    times = send_each_ms(udp, 0.5)
    for each in busy:
        os.write(each.stdin.fileno(), b"\n")
    times += send_each_ms(udp, seconds)
    for each in busy:
        each.kill()
    times += send_each_ms(udp, 0.5)
    for each in busy:
        each.wait()
    # What the sender itself held up between the clock and the path says nothing of the path.
    held_up = [sent for sent, done in times if done - sent > 500_000]
    udp.send(struct.pack(f"{1 + len(held_up)}q", 0, *held_up))
    (longest,) = struct.unpack("d", udp.recv(8))
    gap = max(done - sent for (sent, _), (_, done) in itertools.pairwise(times))
    return [longest, gap / 1e9]


def send_each_ms(udp: socket.socket, seconds: float) -> list[tuple[int, int]]:
    """Times before (which is in the datagram) and after each."""
    began, times = time.monotonic(), []
    while len(times) < seconds * 1e3:
        sent = time.time_ns()
        with contextlib.suppress(ConnectionRefusedError):  # The server begins.
            udp.send(struct.pack("q", sent))
        times.append((sent, time.time_ns()))
        time.sleep(max(0, began + len(times) / 1e3 - time.monotonic()))
    return times


MODES = {each.__name__: each for each in (bulk, trip, flood, rtt, burst, classes, loaded)}


def main(mode: str, *words: str) -> None:
    if mode in ("serve", "stamp"):
        {"serve": serve, "stamp": stamp}[mode](int(words[0]))
    host, port = words[0], int(words[1])
    real = mode in ("bulk", "flood", "loaded")
    rest = [float(word) if real else int(word) for word in words[2:]]
    print(json.dumps(MODES[mode](host, port, *rest)))


if __name__ == "__main__":
    main(*sys.argv[1:])
