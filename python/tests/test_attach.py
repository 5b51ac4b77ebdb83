"""`aqmlab attach`: a path in front of a namespace that exists already, gone without a trace."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, environment, run_program, wait_until
from real_packets import as_root

pytestmark = [pytest.mark.real_packets, pytest.mark.needs("ip"), as_root]
STATE = ("/proc/net/dev", "/proc/net/route", "/proc/net/ipv6_route",
         "/proc/sys/net/ipv4/ip_forward")  # fmt: skip
TRIP = """
import socket, sys, time
times = []
for _ in range(5):
    began = time.perf_counter()
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
    s.sendall(b"x"); s.recv(1); s.close()
    times.append(time.perf_counter() - began)
print(min(times))
"""


@pytest.fixture
def box() -> Iterator[int]:
    """A process in a network namespace of its own, as a container: its ID."""
    script = "ip link set lo up; ip route add default dev lo; echo ready; exec sleep 60"
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def server() -> Iterator[int]:
    """Echoes one byte a connection, at the machine: its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.sendall(connection.recv(1))

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def inside(pid: int, *words: str) -> subprocess.CompletedProcess[str]:
    return run_program(["nsenter", f"--net=/proc/{pid}/ns/net", *words])


def state(pid: int) -> str:
    """Devices, routes and forwarding, without the counts of packets."""
    text = inside(pid, "cat", *STATE[1:]).stdout
    devices = [line.split(":")[0] for line in inside(pid, "cat", STATE[0]).stdout.splitlines()]
    return text + "\n".join(devices)


def attached(pid: int, *options: str) -> subprocess.Popen[str]:
    words = command("attach", "--pid", str(pid), *options)
    process = subprocess.Popen(words, env=environment(), text=True, stderr=subprocess.PIPE)
    wait_until(lambda: "aqmlab" in state(pid), process)
    return process


def far_of(pid: int) -> str:
    """The gateway, which stands for the machine: the address before that of the device."""
    script = (
        "import fcntl, socket, struct; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "a = fcntl.ioctl(s, 0x8915, struct.pack('256s', b'aqmlab'))[20:24];"
        "print(socket.inet_ntoa((int.from_bytes(a) - 1).to_bytes(4)))"
    )
    return inside(pid, sys.executable, "-c", script).stdout.strip()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_path_comes_and_goes(box: int, server: int, end: signal.Signals) -> None:
    before = state(box)
    process = attached(box, "--delay", "15ms", "--rate", "10mbit")
    assert "aqmlab" in state(box)
    found = inside(box, sys.executable, "-c", TRIP, far_of(box), str(server))
    assert found.returncode == 0, found.stderr
    # A round trip to connect and one for the byte.
    assert 0.06 < float(found.stdout) < 0.2
    os.kill(process.pid, end)
    _, said = process.communicate(timeout=PATIENCE)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and state(box) != before:
        time.sleep(0.02)
    assert state(box) == before
    assert ("detached" in said) == (end == signal.SIGINT)


def test_it_ends_after_a_while_and_leaves_results(box: int, aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = aqmlab.ok("attach", "--pid", box, "--rate", "5mbit", "--for", "0.5", "--out", "out")
    assert "attached for 0.5 s\n" in done.stderr
    assert (tmp_path / "out/report.html").exists()


def test_what_cannot_be_attached_to_is_named(aqmlab: Aqmlab) -> None:
    own = aqmlab("attach", "--pid", os.getpid(), "--for", "1")
    assert_refused(own, "--pid", "same network namespace")
    none = aqmlab("attach", "--pid", 2**22 + 1, "--for", "1")
    assert_refused(none, "--pid", "No such file")
