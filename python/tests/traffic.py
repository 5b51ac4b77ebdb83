"""A small server and clients for the tests of the emulator; a program of its own.

traffic.py serve PORT          TCP sink and UDP echo, both versions of IP
traffic.py bulk HOST PORT S    sends for S seconds: what came in, in bit/s
traffic.py flood HOST PORT S MBIT   datagrams of 1000 bytes for S seconds at that rate: how many
traffic.py rtt HOST PORT N     N datagrams one after the other: round trips in ms
traffic.py burst HOST PORT N TOS   N datagrams at once: [came back, with CE at the server]
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
import time

CE = 3


def serve(port: int) -> None:
    tcp = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
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


def datagrams(host: str, port: int, tos: int = 0) -> socket.socket:
    connect(host, port).close()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)
    else:
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
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


MODES = {"bulk": bulk, "flood": flood, "rtt": rtt, "burst": burst}


def main(mode: str, *words: str) -> None:
    if mode == "serve":
        serve(int(words[0]))
    host, port = words[0], int(words[1])
    rest = [float(word) if mode in ("bulk", "flood") else int(word) for word in words[2:]]
    print(json.dumps(MODES[mode](host, port, *rest)))


if __name__ == "__main__":
    main(*sys.argv[1:])
