"""What the tests of real packets share. Their mark is `real_packets` (see conftest.py)."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import PATIENCE, command, run_program

TRAFFIC = f"{sys.executable} {Path(__file__).parent / 'traffic.py'}"
PORT = 20_000 + os.getpid() % 20_000
"""Port of the server of a test: others may run here at the same time."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


@functools.cache
def missing() -> str | None:
    """Reason why this machine cannot create an emulated path, in the words of the program."""
    words = command("shell", "--quiet", "--", "true")
    done = run_program(words, timeout=PATIENCE)
    return done.stderr.strip() if done.returncode else None


def tun_for_all(folder: Path) -> str:
    """Shell command that makes /dev/net/tun accessible to all users, as on most machines."""
    return (
        f"mknod -m 666 {folder}/tun c 10 200 && chmod 666 {folder}/tun && "
        f"mount --bind {folder}/tun /dev/net/tun || exit 99;"
    )


def python_for_all(folder: Path) -> str:
    """A line of a shell that lets everybody have this Python, if it is in a home that is closed."""
    place = Path(sys.base_prefix)
    closed = [each for each in place.parents if not each.stat().st_mode & 1]
    if not closed:
        return ""
    kept = folder / "python"
    return (
        f"mkdir {kept} && mount --bind {place} {kept} && "
        f"mount -t tmpfs -o mode=755 tmpfs {closed[-1]} && mkdir -p {place} && "
        f"mount --bind {kept} {place} || exit 99;"
    )


def without(lacks: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs it as root who lacks some capabilities, as in a container."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    words = ["setpriv", "--bounding-set", lacks, "--inh-caps", lacks, *words]
    return run_program(words, cwd=folder)


def without_ipv6() -> Callable[[], None]:
    """Returns a function for `preexec_fn`, after which a process has no IPv6."""
    if platform.machine() != "x86_64":
        pytest.skip("the filter has numbers of x86-64")
    # seccomp(2): socket(AF_INET6, ...) returns EAFNOSUPPORT; everything else is allowed.
    steps = [(0x20, 0, 0, 0), (0x15, 0, 3, 41), (0x20, 0, 0, 16), (0x15, 0, 1, 10),
             (0x06, 0, 0, 0x50061), (0x06, 0, 0, 0x7FFF0000)]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in steps))

    def refuse() -> None:
        program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
        prctl = ctypes.CDLL(None).prctl
        assert prctl(38, 1, 0, 0, 0) == prctl(22, 2, program, 0, 0) == 0

    return refuse
