"""Nothing of `aqmlab shell` stays behind, however it ends, and its command cannot change its path.

Others may run shells here at the same time: only what a test has made itself is looked at. Root who
lacks capabilities, as in a container, is in a user namespace as well, and gets all capabilities
that there are with every program.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from helpers import PATIENCE, command, environment, run_program, wait_until
from real_packets import NOBODY, PORT, TRAFFIC, as_root, python_for_all, tun_for_all, without

from aqmlab.study.folder import open_results

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
        assert not {network(pid) for pid in processes()} & set(self.networks)
        for held in self.networks.values():
            os.close(held)
        assert host() == self.host


def processes() -> list[int]:
    return sorted(int(each.name) for each in Path("/proc").glob("[0-9]*"))


def marked_by(mark: str) -> list[int]:
    """The processes that have the mark in their environment."""
    return [pid for pid in processes() if mark.encode() in contents(Path(f"/proc/{pid}/environ"))]


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


def as_nobody(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs it as a user who is not root, where everyone may open /dev/net/tun."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    prepare = tun_for_all(folder) + python_for_all(folder)
    machine = ["unshare", "--mount", "sh", "-c", f'{prepare} exec "$@"', "sh"]
    return run_program([*machine, *NOBODY, *words], cwd="/", env=environment())


TRIES = (
    "import fcntl, socket, struct; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    'fcntl.ioctl(s, 0x8922, struct.pack("16si12x", b"aqmlab", 900))'  # SIOCSIFMTU
)
"""Sets the MTU of the command's end of the path."""


@as_root
def test_the_command_of_a_user_has_no_capabilities_unless_it_keeps_them(tmp_path: Path) -> None:
    show = ["grep", "CapEff", "/proc/self/status"]
    for options, is_confined in (([], True), (["--keep-capabilities"], False)):
        place = tmp_path / str(is_confined)
        place.mkdir()
        done = as_nobody(command("shell", "-q", *options, "--", *show), place)
        assert done.returncode == 0, done.stderr
        assert (int(done.stdout.split()[1], 16) == 0) == is_confined


@as_root
def test_the_path_cannot_be_changed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", TRIES]
    done = without("-sys_admin", command("shell", "-q", "--", *words), tmp_path)
    assert done.returncode == 1
    assert "Operation not permitted" in done.stderr
    kept = command("shell", "-q", "--keep-capabilities", "--", *words)
    done = without("-sys_admin", kept, tmp_path)
    assert done.returncode == 0, done.stderr


@as_root
@pytest.mark.parametrize("lacks", ["-sys_admin", "-sys_admin,-net_admin", None])
def test_shells_inside_have_their_far_ends(tmp_path: Path, lacks: str | None) -> None:
    """Twelve deep, by a device that each gets from the one around it: all paths are passed. Without
    `lacks` by a user who is not root."""
    words = ["sh", "-c", f"{TRAFFIC} rtt $AQMLAB_FAR {PORT} 5; {sys.executable} -c '{TRIES}'"]
    for _ in range(11):
        words = command("shell", "-q", "--delay", "1ms", "--", *words)
    far = ["--far", f"{TRAFFIC} serve {PORT}"]
    words = command("shell", "-q", *far, "--", *words)
    done = without(lacks, words, tmp_path) if lacks else as_nobody(words, tmp_path)
    assert "Operation not permitted" in done.stderr
    assert min(json.loads(done.stdout)) >= 22


@as_root
@pytest.mark.needs("ping")
@pytest.mark.parametrize("is_silent", [True, False])
def test_a_far_end_that_answers_nothing_is_remarked_on(is_silent: bool) -> None:
    script = f'echo {int(is_silent)} > /proc/sys/net/ipv4/icmp_echo_ignore_all; exec "$@"'
    words = command("shell", "--", "sh", "-c", "ping -c 1 -W 1 $AQMLAB_FAR")
    done = run_program(["unshare", "--net", "sh", "-c", script, "sh", *words])
    assert done.returncode == int(is_silent)
    assert ("no packet returned from the far end" in done.stderr) == is_silent
    assert ("100.64.0.0/10" in done.stderr) == is_silent


@as_root
def test_a_far_end_without_a_server_is_remarked_on(tmp_path: Path) -> None:
    words = command("shell", "--", "sh", "-c", f"{TRAFFIC} trip $AQMLAB_FAR {PORT} 1")
    assert "no server is at $AQMLAB_FAR" in as_nobody(words, tmp_path).stderr
    words[-4:-4] = ["--far", "sleep 9"]
    assert "no server is at $AQMLAB_FAR" not in as_nobody(words, tmp_path).stderr


DATAGRAM = "import socket; socket.socket(2, 2).sendto(b'', ('198.51.100.9', 53))"


@as_root
@pytest.mark.parametrize("is_root", [True, False])
def test_other_networks_are_said_to_need_nat(tmp_path: Path, is_root: bool) -> None:
    """A name that cannot be resolved is the first thing that goes wrong."""
    words = command("shell", "--", sys.executable, "-c", DATAGRAM)
    done = run_program(["unshare", "--net", *words]) if is_root else as_nobody(words, tmp_path)
    assert "other networks need --nat" in done.stderr
    assert "a firewall may drop packets" not in done.stderr


ASKS = r"""
import socket, struct
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect("\0aqmlab-broker")
client.send(struct.pack("<I", 1500))
text, descriptors, _, _ = client.recvmsg(200, socket.CMSG_SPACE(4))
print(text[:1].decode(), len(descriptors), text[1:].decode(errors="replace"))
"""
"""Asks the first process of a shell for a device."""


@as_root
@pytest.mark.needs("nsenter", "setpriv")
def test_only_processes_of_the_shell_get_devices(tmp_path: Path) -> None:
    """Another process in its network namespace is refused."""
    asks, lacks = [sys.executable, "-c", ASKS], "-sys_admin"
    token = f"echo {tmp_path}; read end"
    words = command("shell", "-q", "--", "sh", "-c", f"{shlex.join(asks)}; {token}")
    words = ["setpriv", "--bounding-set", lacks, "--inh-caps", lacks, *words]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin and shell.stdout
        inside = shell.stdout.readline()
        assert shell.stdout.readline().strip() == str(tmp_path)
        own = ("", network(os.getpid()))
        there = [pid for pid in processes() if token in " ".join(arguments(pid))]
        place = f"/proc/{max(pid for pid in there if network(pid) not in own)}/ns/net"
        outside = run_program(["nsenter", f"--net={place}", *asks], check=True, timeout=PATIENCE)
        shell.communicate("\n")
    assert inside.startswith("M 1 ")
    assert outside.stdout.split(maxsplit=2)[:2] == ["R", "0"]
    assert "only the processes of this shell" in outside.stdout


@pytest.mark.needs("ping")
def test_figures_that_cannot_be_drawn_cost_no_results(tmp_path: Path) -> None:
    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    script = "ping -c 1 $AQMLAB_FAR; exit 3"
    words = command("shell", "--out", "o", "--", "sh", "-c", script)
    done = run_program(words, cwd=tmp_path, preexec_fn=little_memory)
    assert done.returncode == 3
    assert "o: the figures were not written: " in done.stderr
    assert "; the results are in o" in done.stderr
    assert open_results(tmp_path / "o").single().links.height == 2


@pytest.mark.needs("ping")
def test_a_full_stderr_keeps_the_status_of_the_command() -> None:
    script = "ping -c 1 $AQMLAB_FAR; exit 3"
    with Path("/dev/full").open("w") as full:
        words = command("shell", "--delay", "1ms", "--", "sh", "-c", script)
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert done.returncode == 3
