"""Files that a user names, read with a limit of size and of waiting; locks of folders."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import platform
import select
import stat
import time
import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path

MOST = 256 << 20
"""The most bytes of a file that is read: a trace of an hour at 1 Gbit/s has about a sixth of it."""
PATIENCE_SECONDS = 10.0
"""Time for which a pipe may be silent."""
BLOCK = 1 << 20
PACKED = {"gzip": b"\x1f\x8b", "bz2": b"BZh"}
"""Modules of compressed files, and how these begin."""
LOCK = ".lock"
"""The file by which a process has a folder for itself."""
OWNER = ".lock.owner"
"""The same where the file system has no locks: it contains host and process."""
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of `flock` on such file systems, as Lustre without the mount option `flock`."""


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


def unpack(content: bytes, path: Path, most: int = MOST) -> bytes:
    """Content of a gzip or bzip2 file; other content unchanged. Raises `OSError` if that is damaged
    or more than `most` bytes."""
    kind = next((kind for kind, magic in PACKED.items() if content.startswith(magic)), None)
    if kind is None:
        return content
    try:
        with import_module(kind).open(io.BytesIO(content)) as packed:
            unpacked: bytes = packed.read(most + 1)
    except EOFError:
        raise OSError(errno.EINVAL, f"it is a {kind} file that ends early", str(path)) from None
    except (OSError, zlib.error) as error:
        problem = f"it is a damaged {kind} file ({error})"
        raise OSError(errno.EINVAL, problem, str(path)) from None
    if len(unpacked) > most:
        raise OSError(errno.EFBIG, _too_large(most), str(path))
    return unpacked


def _too_large(most: int) -> str:
    return f"it has more than {most >> 20} MiB, the maximum"


def _read(descriptor: int, path: Path, most: int, *, is_pipe: bool) -> bytes:
    content = bytearray()
    while len(content) <= most:
        block = _from_pipe(descriptor, path, content) if is_pipe else os.read(descriptor, BLOCK)
        if not block:
            return bytes(content)
        content += block
    raise OSError(errno.EFBIG, _too_large(most), str(path))


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


def free(path: Path) -> Path:
    """The path, or the first of its name with a number that is not there."""
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def lock(folder: Path) -> int:
    """Locks the folder against other processes; give the result to `unlock`.

    The file is removed by who had the lock before, so it counts only if it still has its name.
    Raises `BlockingIOError` if another process has it. On a file system without locks, it has a
    file name: that of the file to remove if the process was killed on another machine.
    """
    path = folder / LOCK
    while True:
        found = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(found)
            if error.errno in NO_LOCKS:
                return _own(folder / OWNER)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(found), path.stat()):
                return found
        os.close(found)


def _own(path: Path) -> int:
    """Creates the file of the owner; removes that of a process of this machine which has ended."""
    here = platform.node()
    for _ in range(2):
        try:
            found = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            host, _, process = path.read_text(errors="replace").rpartition(" ")
            if host == here and process.isdecimal() and not Path("/proc", process).exists():
                path.unlink(missing_ok=True)
                continue
            problem = f"process {process} of {host}; if it was killed, remove {path}"
            raise BlockingIOError(errno.EWOULDBLOCK, problem, str(path)) from None
        os.write(found, f"{here} {os.getpid()}".encode())
        return found
    raise BlockingIOError(errno.EWOULDBLOCK, "another process was faster", str(path))


def unlock(folder: Path, found: int) -> None:
    """Ends what `lock` gave."""
    for name in (LOCK, OWNER):
        (folder / name).unlink(missing_ok=True)
    os.close(found)
