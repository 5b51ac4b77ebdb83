"""What the tests of real packets share. Their mark is `real_packets` (see conftest.py)."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

from helpers import command

TRAFFIC = f"{sys.executable} {Path(__file__).parent / 'traffic.py'}"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]

PATIENCE = 20
"""Seconds that something which takes none on an idle machine may take on a busy one."""


@functools.cache
def missing() -> str | None:
    """What is missing for an emulated path here, in the words of the program."""
    words = command("shell", "--quiet", "--", "true")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.stderr.strip() if done.returncode else None


def tun_for_all(folder: Path) -> str:
    """A line of a shell that makes /dev/net/tun what it is on most machines: everybody's."""
    return (
        f"mknod -m 666 {folder}/tun c 10 200 && chmod 666 {folder}/tun && "
        f"mount --bind {folder}/tun /dev/net/tun || exit 99;"
    )
