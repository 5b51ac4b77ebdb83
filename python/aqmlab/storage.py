"""Files of results: written as a whole or not at all, and recognised by their checksums.

A file is written under another name, synced, renamed, and the folder is synced: after a
crash or a power cut there is the old file or the new one. Its `Seal` is kept elsewhere; a
file that does not match it is `Damaged`, and no number of it is used.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

import polars as pl
from polars.io.plugins import register_io_source

from aqmlab.errors import FolderError

DIGEST_BYTES = 16
BLOCK = 1 << 20
GROUP_BYTES = 1 << 24
"""What a row group of a table holds about, before compression: it bounds the memory that
writing and reading in parts takes."""
LONG = {"text"}
"""Columns of sentences."""
LONG_BYTES, TEXT_BYTES = 256, 24
"""What a value takes in memory, roughly: a sentence and a name. Numbers take 8 bytes."""


MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Exceptions of code that reads JSON of another form than expected."""


class Damaged(FolderError):
    """A file differs from its checksum. `path` and `reason` describe it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: damaged ({reason})")
        self.path, self.reason = path, reason


@dataclass(frozen=True)
class Seal:
    """Size and checksum (BLAKE2b, 16 bytes) of a file."""

    size: int
    digest: str

    @staticmethod
    def of(content: bytes) -> Seal:
        """The seal of a file with this content."""
        return Seal(len(content), hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest())

    @staticmethod
    def of_file(file: IO[bytes]) -> Seal:
        """The seal of the rest of an open file."""
        state, size = hashlib.blake2b(digest_size=DIGEST_BYTES), 0
        while block := file.read(BLOCK):
            state.update(block)
            size += len(block)
        return Seal(size, state.hexdigest())

    @staticmethod
    def from_json(given: Any) -> Seal:
        """Reads what `to_json` gave. Raises `KeyError`, `TypeError` or `ValueError`."""
        return Seal(int(given["bytes"]), str(given["blake2b"]))

    def to_json(self) -> dict[str, Any]:
        """{"bytes", "blake2b"}."""
        return {"bytes": self.size, "blake2b": self.digest}

    def check(self, path: Path) -> None:
        """Raises `Damaged` if the file at `path` is another, or none."""
        with opened(path) as file:
            self._compare(path, os.fstat(file.fileno()).st_size, file)

    def read(self, path: Path) -> bytes:
        """The content of the file at `path`. Raises `Damaged` if it is not this one."""
        with opened(path) as file:
            content = file.read()
        self._compare(path, len(content), io.BytesIO(content))
        return content

    def _compare(self, path: Path, size: int, file: IO[bytes]) -> None:
        if size != self.size:
            raise Damaged(path, f"it has {size:,} bytes, not {self.size:,}")
        if Seal.of_file(file).digest != self.digest:
            raise Damaged(path, "its checksum differs")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file at `path`, to be read. Raises `Damaged` if it is missing, no regular file, or
    unreadable by the device; other errors of the system are `OSError` as ever."""
    try:
        # A pipe without a writer, or an endless device, would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Damaged(path, "it is not a regular file")
            yield file
    except FileNotFoundError:
        raise Damaged(path, "it is missing") from None
    except OSError as error:
        if error.errno is not None and error.errno not in MEDIUM:
            raise
        raise Damaged(path, error.strerror or str(error)) from error


MEDIUM = {5, 61, 74, 117}
"""EIO, ENODATA, EBADMSG and EUCLEAN: what file systems say of blocks that they cannot trust."""


def read_table(source: Path | bytes, path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """The table in a Parquet file (or in its content), of that `path`.

    Raises `Damaged` for whatever polars cannot make sense of.
    """
    with decoded(path):
        return pl.read_parquet(source, columns=columns, glob=False)


def slices(path: Path, rows: int, columns: Collection[str] = ()) -> Iterator[pl.DataFrame]:
    """The table in a Parquet file, or some columns of it, in frames of `rows` rows; the last has
    fewer. Raises `Damaged`."""
    for start in count(0, rows):
        with decoded(path):
            whole = pl.scan_parquet(path, glob=False)
            part = (whole.select(columns) if columns else whole).slice(start, rows).collect()
        yield part
        if part.height < rows:
            return


@contextmanager
def decoded(path: Path) -> Iterator[None]:
    """Turns what polars says of a file that is no good Parquet into `Damaged`."""
    try:
        yield
    except FileNotFoundError:
        raise Damaged(path, "it is missing") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        text = next(iter(str(error).splitlines()), type(error).__name__)
        raise Damaged(path, f"it cannot be read as Parquet: {text}") from error


class Target(io.RawIOBase):
    """A file that is being written: counts and hashes what passes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._state = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._size = 0
        self.error: OSError | None = None
        """Why a write failed: libraries between us and the file forget it."""

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, content: Any) -> int:
        """Writes all of `content`. Raises `OSError`."""
        try:
            self._file.write(content)
        except OSError as error:
            self.error = error
            raise
        self._state.update(content)
        self._size += len(content)
        return len(content)

    def seal(self) -> Seal:
        """Waits until all is on the disk; the seal. Raises `OSError`."""
        self._file.flush()
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            os.fsync(self._file.fileno())
        return Seal(self._size, self._state.hexdigest())

    def close(self) -> None:
        """Closes the file. What could not be written was said before, or does not matter."""
        with suppress(OSError):
            self._file.close()
        super().close()


Fill = Callable[[Target], object]


def write_synced(path: Path, fill: Fill) -> Seal:
    """Writes a file and waits until it is on the disk. Raises `OSError`."""
    target = Target(path)
    try:
        fill(target)
        return target.seal()
    except (pl.exceptions.PolarsError, OSError):  # polars has an `OSError` without number
        if target.error:
            raise target.error from None
        raise
    finally:
        target.close()


def is_special(path: Path) -> bool:
    """True for devices and pipes, and for all in /dev and /proc (`/dev/stdout` is a link): they are
    written to, never replaced."""
    parent = path.parent.resolve()
    if parent == Path("/dev") or parent.parts[1:2] == ("proc",):
        return True
    return path.exists() and not path.is_file()


def replace(path: Path, fill: Fill) -> Seal:
    """Replaces the file at `path` atomically; writes to it if it `is_special`. Raises `OSError`."""
    if is_special(path):
        return write_synced(path, fill)
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        seal = write_synced(temporary, fill)
        temporary.rename(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)
    return seal


def content(given: bytes) -> Fill:
    """Fills a file with these bytes."""
    return lambda target: target.write(given)


OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "statistics": True,
    "data_page_size": BLOCK,
}
"""Pinned, so that equal tables give equal bytes."""


def stream(frames: Iterable[pl.DataFrame], schema: Mapping[str, Any]) -> Fill:
    """Fills a file with the rows of `frames`, one row group after the other: there are never
    more than a few in memory. The bytes depend on the rows alone, not on the frames."""
    rows = group_rows(schema)

    def source(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        for frame in frames:
            yield frame if columns is None else frame.select(columns)

    def fill(to: Target) -> None:
        lazy = register_io_source(source, schema=pl.Schema(schema))
        file = cast("IO[bytes]", to)
        lazy.sink_parquet(file, row_group_size=rows, maintain_order=True, **OPTIONS)

    return fill


def group_rows(schema: Mapping[str, object]) -> int:
    """Rows of a row group of a table: a power of two, at most `GROUP_BYTES`."""
    texts = {name: LONG_BYTES if name in LONG else TEXT_BYTES for name in schema}
    width = sum(texts[name] if kind == pl.String else 8 for name, kind in schema.items())
    most = GROUP_BYTES // max(width, 1)
    return 1 << (most.bit_length() - 1)


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, on the disk. Raises `OSError`."""
    if path.is_dir():
        return
    if not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def sync(folder: Path) -> None:
    """Waits until the names in `folder` are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
