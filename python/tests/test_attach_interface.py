"""`aqmlab attach --interface`: what an interface sends and receives takes the path, and nothing of
its configuration changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, environment, run_program, wait_until
from real_packets import as_root

from aqmlab.study.folder import open_results

pytestmark = [pytest.mark.real_packets, pytest.mark.needs("ip", "tc"), as_root]
NEAR, FAR = "10.77.0.1", "10.77.0.2"
NEAR6, FAR6 = "fd77::1", "fd77::2"
# How to make the interface `there` of a cable, and `back` at its other end.
NAMED, TUNNEL = "ip link set cable name back", "type vxlan id 7 dstport 4789 remote"
KINDS = {
    "veth": ("ip link set cable name there", NAMED),
    "macvlan": ("ip link add there link cable type macvlan", NAMED),
    "bridge": ("ip link add there type bridge && ip link set cable master there", NAMED),
    "bond": ("ip link add there type bond && ip link set cable master there", NAMED),
    "vlan": ("ip link add there link cable type vlan id 7",
             "ip link add back link cable type vlan id 7"),
    "vxlan": (f"ip addr add 192.0.2.1/24 dev cable && ip link add there {TUNNEL} 192.0.2.2",
              f"ip addr add 192.0.2.2/24 dev cable && ip link add back {TUNNEL} 192.0.2.1"),
}  # fmt: skip
# Timers of a bridge run on.
STATE = ("ip -d link | sed 's/_timer *[0-9.]*//g'; ip address; ip -4 route show table all;"
         "ip -6 route show table all; ip rule; ip -6 rule; tc qdisc;"
         "tc filter show dev there ingress; tc filter show dev there egress;"
         "sysctl -a -r '^net.ipv[46].(conf|ip_forward)' 2>/dev/null")  # fmt: skip
SERVE = """
import socket, sys, threading
def serve(family, address):
    listener = socket.create_server((address, 5000), family=family)
    while True:
        connection, _ = listener.accept()
        while data := connection.recv(1 << 16):
            connection.sendall(data[:1])
        connection.close()
threads = [threading.Thread(target=serve, args=(socket.AF_INET, sys.argv[1])),
           threading.Thread(target=serve, args=(socket.AF_INET6, sys.argv[2]))]
[thread.start() for thread in threads]
"""
TRIP = """
import socket, sys, time
began = time.perf_counter()
s = socket.create_connection((sys.argv[1], 5000), timeout=5)
print(time.perf_counter() - began)
s.sendall(b"x" * int(sys.argv[2]))
s.shutdown(socket.SHUT_WR)
while s.recv(1 << 16):
    pass
print(time.perf_counter() - began)
"""


class Machine:
    """Two network namespaces, with an interface `there` of a kind in the first, and servers in the
    second."""

    def __init__(self, kind: str) -> None:
        self.processes = [self._idle(), self._idle()]
        near, far = self.processes
        self.run(f"ip link add cable type veth peer name cable netns {far.pid}")
        for here, script in zip((near, far), KINDS[kind], strict=True):
            self.run(script, here)
            self.run("ip link set cable addrgenmode none; ip link set cable up", here)
        if not self.run("ip link show there"):
            pytest.skip(f"the kernel makes no interface of the kind {kind}")
        for here, name, v4, v6 in ((near, "there", NEAR, NEAR6), (far, "back", FAR, FAR6)):
            # Without link-local addresses, which change a while after they are made.
            for words in (f"link set {name} addrgenmode none", f"address add {v4}/24 dev {name}",
                          f"-6 address add {v6}/64 dev {name} nodad", f"link set {name} up",
                          "link set lo up"):  # fmt: skip
                self.run(f"ip {words}", here)
        words = self.words(far, sys.executable, "-c", SERVE, FAR, FAR6)
        self.processes.append(subprocess.Popen(words))
        wait_until(lambda: len(self.trip(FAR, 1) + self.trip(FAR6, 1)) >= 4)
        # Neighbours are known, and addresses settled.
        self.before = self.state()

    @staticmethod
    def _idle() -> subprocess.Popen[bytes]:
        words = ["unshare", "--net", "sh", "-c", "echo; exec sleep 60"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def words(self, here: subprocess.Popen[bytes], *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{here.pid}/ns/net", *words]

    def run(self, script: str, here: subprocess.Popen[bytes] | None = None) -> str:
        words = self.words(here or self.processes[0], "sh", "-c", script)
        return run_program(words).stdout

    def trip(self, to: str, size: int) -> list[float]:
        """Seconds to connect, and until all of so many bytes are answered."""
        words = self.words(self.processes[0], sys.executable, "-c", TRIP, to, str(size))
        done = run_program(words)
        return [float(word) for word in done.stdout.split()]

    def state(self) -> str:
        return self.run(STATE)

    def attach(self, *options: str) -> subprocess.Popen[str]:
        """Attaches, and waits until it is said."""
        words = self.words(self.processes[0], *command("attach", "--interface", "there", *options))
        process = subprocess.Popen(words, env=environment(), text=True, stderr=subprocess.PIPE,
                                   cwd="/tmp")  # fmt: skip
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "attached" in said, said + process.stderr.read()
        return process

    def now(self) -> str:
        """The state, when it is as before or patience is at an end."""
        until = time.monotonic() + PATIENCE
        while (state := self.state()) != self.before and time.monotonic() < until:
            time.sleep(0.02)
        return state


@contextmanager
def machine_with(kind: str) -> Iterator[Machine]:
    here = Machine(kind)
    try:
        yield here
    finally:
        for process in here.processes:
            process.kill()
            process.wait()


@pytest.fixture
def machine() -> Iterator[Machine]:
    with machine_with("veth") as here:
        yield here


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "veth"])
def test_interfaces_of_other_kinds_have_a_path(kind: str) -> None:
    with machine_with(kind) as machine:
        process = machine.attach("--delay", "15ms")
        for address in (FAR, FAR6):
            assert 0.03 < machine.trip(address, 1000)[0] < 0.2, address
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
        assert machine.now() == machine.before
        assert min(machine.trip(FAR, 1000)[0] for _ in range(5)) < 0.025


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interface_has_a_path_for_a_while(machine: Machine, end: signal.Signals) -> None:
    process = machine.attach("--delay", "15ms", "--rate", "20mbit")
    for address in (FAR, FAR6):
        connected, whole = machine.trip(address, 500_000)
        assert 0.03 < connected < 0.2, address
        # 500 kB at 20 Mbit/s.
        assert 0.2 < whole < 2, address
    os.kill(process.pid, end)
    _, said = process.communicate(timeout=PATIENCE)
    assert machine.now() == machine.before
    assert ("detached" in said) == (end == signal.SIGINT)
    assert machine.trip(FAR, 500_000)[1] < 0.1


def test_both_directions_are_counted(machine: Machine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = machine.attach("--down", "rate=10mbit", "--up", "rate=5mbit", "--out", str(out),
                             "--name", "interface")  # fmt: skip
    assert machine.trip(FAR, 100_000)[1] > 0.1
    again = machine.words(machine.processes[0], *command("attach", "--interface", "there"))
    refused = run_program(again, env=environment())
    assert_refused(refused, "--interface", "`there`: this interface has a path already")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert machine.now() == machine.before
    links = {row["link"]: row for row in open_results(out).single().links.to_dicts()}
    assert links["up"]["delivered_bytes"] > 100_000
    assert 2_000 < links["down"]["delivered_bytes"] < 50_000


def test_what_is_no_interface_is_refused(aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("attach", "--interface", "etx0"), "--interface", "unknown interface")
    assert_refused(aqmlab("attach", "--interface", "lo"), "--interface", "no Ethernet frames")
    assert_refused(aqmlab("attach"), "--pid and --interface")
    both = aqmlab("attach", "--interface", "lo", "--pid", os.getpid())
    assert_refused(both, "--pid and --interface")
