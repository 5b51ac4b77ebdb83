"""Nothing of `aqmlab shell` stays behind, however it ends.

Others may run shells here at the same time: only what a test has made itself is looked at.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from helpers import PATIENCE, command, environment, wait_until
from real_packets import as_root

pytestmark = pytest.mark.real_packets
SIOCGIFADDR = 0x8915
HOST_FILES = ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding")


class Running:
    """A running shell and its namespaces and devices."""

    def __init__(self, *inside: str, option: str = "--far=sleep 999") -> None:
        self.mark = uuid.uuid4().hex
        self.host = host()
        self.before = devices()
        inside = inside or ("sleep", "999")
        words = command("shell", option, "--", *inside)
        marked = {**environment(), "AQMLAB_TEST": self.mark}
        # A session of its own: no terminal, and no signals of the tests.
        self.shell = subprocess.Popen(words, env=marked, start_new_session=True,
                                      stderr=subprocess.PIPE, text=True)  # fmt: skip
        commands = [list(inside)] + [["sleep", "999"]] * option.startswith("--far")
        wait_until(lambda: self.have_begun(*commands) and len(self.processes()) >= 4 and self.far())
        self.device = {each for each in devices() - self.before if address(each[1]) == self.far()}
        own = network(os.getpid())
        # Held open, so that no namespace of somebody else gets the same number.
        self.networks = {
            network(pid): os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            for pid in self.processes()
            if network(pid) not in (own, "")
        }

    def processes(self) -> list[int]:
        """The emulator, the init process inside, the two commands: in their order."""
        return marked_by(self.mark)

    def have_begun(self, *commands: list[str]) -> bool:
        """True if each of the commands has begun: before, a process is its parent's copy."""
        found = [arguments(pid) for pid in self.processes()]
        return all(found.count(each) >= commands.count(each) for each in commands)

    def far(self) -> str:
        """Address of the far end in the environment of the commands."""
        variables = contents(Path(f"/proc/{self.processes()[-1]}/environ")).split(b"\0")
        found = [each[11:].decode() for each in variables if each.startswith(b"AQMLAB_FAR=")]
        return found[0] if found else ""

    def assert_gone(self) -> None:
        wait_until(lambda: not self.processes())
        wait_until(lambda: not devices() & self.device)
        alive = {network(int(each.name)) for each in Path("/proc").iterdir() if each.name.isdigit()}
        assert not alive & set(self.networks)
        for held in self.networks.values():
            os.close(held)
        assert host() == self.host


def marked_by(mark: str) -> list[int]:
    """The processes that have the mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and mark.encode() in contents(entry / "environ"):
            found.append(int(entry.name))
    return sorted(found)


def devices_of(pid: int) -> list[str]:
    """The devices of aqmlab in the network of a process."""
    return [line for line in contents(Path(f"/proc/{pid}/net/dev")).decode().splitlines()
            if "aqmlab" in line]  # fmt: skip


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def arguments(pid: int) -> list[str]:
    return contents(Path(f"/proc/{pid}/cmdline")).decode().split("\0")[:-1]


def network(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return ""


def devices() -> set[tuple[int, str]]:
    """Numbers, which are not given twice, and names."""
    return {each for each in socket.if_nameindex() if each[1].startswith("aqmlab")}


def address(device: str) -> str:
    """Address of a device here, if it still exists."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            request = struct.pack("256s", device.encode())
            return socket.inet_ntoa(fcntl.ioctl(asked, SIOCGIFADDR, request)[20:24])
    except OSError:
        return ""


def holders(device: str) -> set[int]:
    """The processes that have a device of this name open, here or elsewhere."""
    line = f"iff:\t{device}\n".encode()
    files = Path("/proc").glob("[0-9]*/fdinfo/*")
    return {int(file.parts[2]) for file in files if line in contents(file)}


def host() -> list[str]:
    """State of the host that must not change: forwarding, and routes over other devices."""
    routes = Path("/proc/net/route").read_text().splitlines()
    files = [Path(each).read_text() for each in HOST_FILES if Path(each).exists()]
    files += [each.name for each in Path("/run/netns").glob("*")]
    return files + [line for line in routes if not line.startswith("aqmlab")]


@pytest.fixture
def running() -> Iterator[Running]:
    shell = Running()
    yield shell
    shell.shell.kill()
    shell.shell.wait()


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_killing_any_process_ends_all(running: Running, which: int) -> None:
    processes = running.processes()
    assert len(processes) == 4
    assert processes[0] == running.shell.pid
    if os.geteuid() == 0:
        assert len(running.device) == 1
    assert len(running.networks) >= 1
    is_far = (
        arguments(processes[which]) == ["sleep", "999"]
        and network(processes[which]) not in running.networks
    )
    os.kill(processes[which], signal.SIGKILL)
    if is_far:
        # The far end's command may end before the other.
        time.sleep(0.2)
        assert running.shell.poll() is None
        running.shell.terminate()
        assert running.shell.wait(PATIENCE) == 128 + signal.SIGTERM
    elif which == 0:
        assert running.shell.wait(PATIENCE) == -signal.SIGKILL
    else:
        assert running.shell.wait(PATIENCE) == 128 + signal.SIGKILL
    running.assert_gone()


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_killing_any_process_of_a_gateway_ends_all(which: int) -> None:
    """The emulator, the init process inside, the one in the gateway, the command."""
    running = Running(option="--nat")
    try:
        processes = running.processes()
        assert len(processes) == 4
        for _, name in running.device:
            # Gateways take free addresses of the machine, which are not this shell's.
            assert holders(name) - set(processes), "nothing is in the machine's own namespace"
        assert len(running.networks) == 2
        os.kill(processes[which], signal.SIGKILL)
        assert running.shell.wait(PATIENCE) != 0
        running.assert_gone()
    finally:
        running.shell.kill()


@as_root
@pytest.mark.slow
def test_thirty_kills_at_any_moment_leave_nothing() -> None:
    """Also during start-up, in a network namespace without other devices."""
    random, mark = Random(1), uuid.uuid4().hex
    idle = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 99"],
                            stdout=subprocess.PIPE)  # fmt: skip
    assert idle.stdout is not None
    idle.stdout.readline()
    marked = {**environment(), "AQMLAB_TEST": mark}
    where = ["nsenter", f"--net=/proc/{idle.pid}/ns/net"]
    words = [*where, *command("shell", "--quiet", "--far=sleep 999", "--", "sleep", "999")]
    killed = had_device = 0
    try:
        while killed < 30:
            shells = [
                subprocess.Popen(words, env=marked, start_new_session=True,
                                 stderr=subprocess.DEVNULL)
                for _ in range(10)
            ]  # fmt: skip
            for number in range(10):
                if number % 2:
                    wait_until(lambda: devices_of(idle.pid) or len(marked_by(mark)) < 2)
                    had_device += len(devices_of(idle.pid)) > 0
                time.sleep(random.uniform(0, 0.1))
                with suppress(ProcessLookupError, IndexError):
                    os.kill(random.choice(marked_by(mark)), signal.SIGKILL)
                    killed += 1
            for each in shells:
                each.terminate()
                each.wait(PATIENCE)
            wait_until(lambda: not marked_by(mark))
            wait_until(lambda: not devices_of(idle.pid))
    finally:
        for pid in marked_by(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        idle.kill()
        idle.wait()
    assert had_device >= 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(running: Running, number: int) -> None:
    running.shell.send_signal(number)
    assert running.shell.wait(PATIENCE) == 128 + number
    running.assert_gone()


def test_a_command_that_will_not_end_is_ended() -> None:
    running = Running("sh", "-c", "trap '' TERM; echo ready >&2; while :; do sleep 1; done")
    try:
        assert running.shell.stderr and running.shell.stderr.readline() == "ready\n"
        running.shell.terminate()
        began = time.monotonic()
        assert running.shell.wait(PATIENCE) == 128 + signal.SIGKILL
        assert time.monotonic() - began > 1
        running.assert_gone()
    finally:
        running.shell.kill()


def test_what_the_command_leaves_behind_ends_with_it() -> None:
    running = Running("sh", "-c", "setsid sleep 98 & sleep 3; exit 4")
    try:
        assert running.shell.wait(PATIENCE) == 4
        running.assert_gone()
    finally:
        running.shell.kill()
