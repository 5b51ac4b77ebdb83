"""`aqmlab attach`: a path in front of a namespace or an interface that exists already, gone without
a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, environment, run_program, wait_until
from real_packets import PORT, TRAFFIC, as_root

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
FAR_OF = """
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a = fcntl.ioctl(s, 0x8915, struct.pack('256s', b'aqmlab'))[20:24]
print(socket.inet_ntoa((int.from_bytes(a) - 1).to_bytes(4)))
"""
"""Prints the gateway, which stands for the machine: the address before that of the device."""


class Box:
    """A network namespace with an idle process, as a container."""

    def __init__(self, script: str = "") -> None:
        words = ["unshare", "--net", "sh", "-c", f"{script}\necho; exec sleep 60"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()

    @property
    def pid(self) -> int:
        return self.process.pid

    def words(self, *words: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *words]

    def run(self, *words: str) -> str:
        return run_program(self.words(*words)).stdout

    def state(self) -> str:
        """Devices, addresses, routes, rules, queues and forwarding."""
        return self.run("sh", "-c", STATE)

    def state_like(self, before: str) -> str:
        """The state, when it is as before or patience is at an end."""
        until = time.monotonic() + PATIENCE
        while (state := self.state()) != before and time.monotonic() < until:
            time.sleep(0.02)
        return state

    def trip(self, to: str, size: int = 1000) -> list[float]:
        """Seconds to connect, and until so many bytes are answered; nothing without a server."""
        found = self.run(*TRAFFIC.split(), "trip", to, str(PORT), str(size))
        return list(json.loads(found or "[]"))


def attached(words: list[str]) -> subprocess.Popen[str]:
    """Attaches, and waits until it is said."""
    process = subprocess.Popen(words, env=environment(), text=True, stderr=subprocess.PIPE,
                               cwd="/tmp")  # fmt: skip
    assert process.stderr is not None
    said = process.stderr.readline()
    assert "attached" in said, said + process.stderr.read()
    return process


def ended(process: subprocess.Popen[str], end: int) -> str:
    """Ends it with a signal, and returns its later output."""
    process.send_signal(end)
    return process.communicate(timeout=PATIENCE)[1]


@contextmanager
def boxes(*scripts: str) -> Iterator[list[Box]]:
    with ExitStack() as stack:
        found = [Box(script) for script in scripts]
        for box in found:
            stack.enter_context(box.process)
            stack.callback(box.process.kill)
        yield found


@pytest.fixture
def box() -> Iterator[Box]:
    with boxes("ip link set lo up; ip route add default dev lo") as (found,):
        yield found


class Machine:
    """Two network namespaces, with an interface `there` of a kind in the first, and servers in the
    second."""

    def __init__(self, kind: str, near: Box, far: Box) -> None:
        self.near = near
        near.run(*f"ip link add cable type veth peer name cable netns {far.pid}".split())
        for here, script in zip((near, far), KINDS[kind], strict=True):
            here.run("sh", "-c", script)
            here.run("sh", "-c", "ip link set cable addrgenmode none; ip link set cable up")
        if not near.run("ip", "link", "show", "there"):
            pytest.skip(f"the kernel makes no interface of the kind {kind}")
        for here, name, v4, v6 in ((near, "there", NEAR, NEAR6), (far, "back", FAR, FAR6)):
            # Without link-local addresses, which change a while after they are made.
            for words in (f"link set {name} addrgenmode none", f"address add {v4}/24 dev {name}",
                          f"-6 address add {v6}/64 dev {name} nodad", f"link set {name} up",
                          "link set lo up"):  # fmt: skip
                here.run("ip", *words.split())
        self.server = subprocess.Popen(far.words(*TRAFFIC.split(), "serve", str(PORT)))
        wait_until(lambda: len(self.trip(FAR, 1) + self.trip(FAR6, 1)) >= 4)
        # Neighbours are known, and addresses settled.
        self.before = near.state()

    def trip(self, to: str, size: int = 1000) -> list[float]:
        return self.near.trip(to, size)

    def words(self, *options: str) -> list[str]:
        return self.near.words(*command("attach", "--interface", "there", *options))

    def is_as_before(self) -> bool:
        return self.near.state_like(self.before) == self.before


@contextmanager
def machine_with(kind: str) -> Iterator[Machine]:
    with boxes("", "") as (near, far):
        machine = Machine(kind, near, far)
        try:
            yield machine
        finally:
            machine.server.kill()
            machine.server.wait()


@pytest.fixture
def machine() -> Iterator[Machine]:
    with machine_with("veth") as here:
        yield here


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_path_comes_and_goes(box: Box, server: None, end: signal.Signals) -> None:
    before = box.state()
    words = command("attach", "--pid", str(box.pid), "--delay", "15ms", "--rate", "10mbit")
    process = attached(words)
    assert_refused(run_program(words, env=environment()), "namespace has a path already")
    assert "aqmlab" in box.state()
    far = box.run(sys.executable, "-c", FAR_OF).strip()
    # A round trip to connect and one for the byte.
    assert 0.06 < min(box.trip(far, 1)[1] for _ in range(5)) < 0.2
    said = ended(process, end)
    assert box.state_like(before) == before
    assert ("detached" in said) == (end == signal.SIGINT)


def test_it_ends_after_a_while_and_leaves_results(box: Box, aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = aqmlab.ok("attach", "--pid", box.pid, "--rate", "5mbit", "--for", "0.5", "--out", "out")
    assert "attached for 0.5 s\n" in done.stderr
    assert (tmp_path / "out/report.html").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "veth"])
def test_interfaces_of_other_kinds_have_a_path(kind: str) -> None:
    with machine_with(kind) as machine:
        process = attached(machine.words("--delay", "15ms"))
        for address in (FAR, FAR6):
            assert 0.03 < machine.trip(address)[0] < 0.2, address
        ended(process, signal.SIGKILL)
        assert machine.is_as_before()
        assert min(machine.trip(FAR)[0] for _ in range(5)) < 0.025


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interface_has_a_path_for_a_while(machine: Machine, end: signal.Signals) -> None:
    process = attached(machine.words("--delay", "15ms", "--rate", "20mbit"))
    for address in (FAR, FAR6):
        connected, whole = machine.trip(address, 500_000)
        assert 0.03 < connected < 0.2, address
        # 500 kB at 20 Mbit/s.
        assert 0.2 < whole < 2, address
    said = ended(process, end)
    assert machine.is_as_before()
    assert ("detached" in said) == (end == signal.SIGINT)
    assert machine.trip(FAR, 500_000)[1] < 0.1


def test_both_directions_are_counted(machine: Machine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = attached(machine.words("--down", "rate=10mbit", "--up", "rate=5mbit",
                                     "--out", str(out), "--name", "interface"))  # fmt: skip
    assert machine.trip(FAR, 200_000)[1] > 0.2
    refused = run_program(machine.words(), env=environment())
    assert_refused(refused, "--interface", "`there`: this interface has a path already")
    ended(process, signal.SIGINT)
    assert machine.is_as_before()
    links = {row["link"]: row for row in open_results(out).single().links.to_dicts()}
    assert links["up"]["delivered_bytes"] > 200_000
    assert 2_000 < links["down"]["delivered_bytes"] < 50_000


BOTH = ["--pid and --interface"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pid", os.getpid(), "--for", "1"], ["--pid", "same network namespace"]),
        (["--pid", 2**22 + 1, "--for", "1"], ["--pid", "no process with this ID"]),
        (["--interface", "etx0"], ["--interface", "unknown interface"]),
        (["--interface", "lo"], ["--interface", "no Ethernet frames"]),
        ([], BOTH),
        (["--interface", "lo", "--pid", os.getpid()], BOTH),
    ],
    ids=["own", "absent", "unknown", "loopback", "neither", "both"],
)
def test_what_cannot_be_attached_to_is_named(
    options: list[object], words: list[str], aqmlab: Aqmlab
) -> None:
    assert_refused(aqmlab("attach", *options), *words)
