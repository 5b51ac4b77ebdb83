"""Reading files that a user names: with a limit of size, and without waiting for ever."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from pathlib import Path

MOST = 256 << 20
"""The most bytes of a file that is read: a trace of an hour at 1 Gbit/s has about a sixth of it."""
PATIENCE_SECONDS = 10.0
"""Time for which a pipe may be silent."""
BLOCK = 1 << 20


def read_bytes(path: Path, most: int = MOST) -> bytes:
    """Reads the file or pipe at `path`.

    Raises `OSError` if it cannot be read, is a folder, a device or a socket, holds more than
    `most` bytes, or is a pipe out of which nothing comes for 10 s.
    """
    # A named pipe without a writer would otherwise block here.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(errno.EINVAL, "it is neither a file nor a pipe", str(path))
        return _read(descriptor, path, most, is_pipe=stat.S_ISFIFO(mode))
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path, most: int, *, is_pipe: bool) -> bytes:
    content = bytearray()
    while len(content) <= most:
        block = _from_pipe(descriptor, path, content) if is_pipe else os.read(descriptor, BLOCK)
        if not block:
            return bytes(content)
        content += block
    problem = f"it has more than {most >> 20} MiB, the maximum"
    raise OSError(errno.EFBIG, problem, str(path))


def _from_pipe(descriptor: int, path: Path, content: bytearray) -> bytes:
    """Next bytes; empty at the end."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (left := end - time.monotonic()) > 0:
        select.select([descriptor], [], [], left)
        try:
            block = os.read(descriptor, BLOCK)
        except BlockingIOError:
            continue
        if block or content:
            return block
        time.sleep(0.02)  # nobody writes to it yet
    problem = f"it is a pipe out of which nothing came for {PATIENCE_SECONDS:g} s"
    raise OSError(errno.ETIMEDOUT, problem, str(path))
