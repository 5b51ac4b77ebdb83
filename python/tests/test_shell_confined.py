"""What a command in a user namespace may do to its path: nothing; shells inside work all the same.

Root who lacks capabilities, as in a container, is in a user namespace as well, and gets all
capabilities that there are with every program."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import PATIENCE, command, environment, run_program
from real_packets import NOBODY, TRAFFIC, as_root, python_for_all, tun_for_all, without

PORT = 20_000 + os.getpid() % 20_000
pytestmark = pytest.mark.real_packets


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


ASKS = r"""
import socket, struct
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect("\0aqmlab-broker")
client.send(struct.pack("<I", 1500))
text, descriptors, _, _ = client.recvmsg(200, socket.CMSG_SPACE(4))
print(text[:1].decode(), len(descriptors), text[1:].decode(errors="replace"))
"""
"""Asks the first process of a shell for a device."""


def processes_with(token: str) -> list[int]:
    """The processes with this text in their command line, in other network namespaces."""
    found, own = [], Path("/proc/self/ns/net").readlink()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().decode(errors="replace")
            if token in words and (place / "ns/net").readlink() != own:
                found.append(int(place.name))
    return found


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
        place = f"/proc/{max(processes_with(token))}/ns/net"
        outside = run_program(["nsenter", f"--net={place}", *asks], check=True, timeout=PATIENCE)
        shell.communicate("\n")
    assert inside.startswith("M 1 ")
    assert outside.stdout.split(maxsplit=2)[:2] == ["R", "0"]
    assert "only the processes of this shell" in outside.stdout
