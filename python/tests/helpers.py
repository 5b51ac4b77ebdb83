"""Texts and small functions that the tests share."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

COMMAND = str(Path(sys.executable).parent / "aqmlab")

PATIENCE = 240.0
"""Seconds to wait for a process: what takes longer on a busy machine does not end at all."""

SCENARIO_TEXT = """
duration = "20s"
seed = 1

[links.down]
rate = "2mbit"
delay = "20ms"
queue = { discipline = "codel", limit = "100p" }
thresholds = ["15000b"]

[links.up]
rate = "2mbit"
delay = "20ms"
queue = "droptail"

[transport]
profile = "rfc"

[flows.first]
count = 2
path = ["down"]
return_path = ["up"]
size = "350400b"

[flows.second]
count = 1
path = ["down"]
return_path = ["up"]
size = "350400b"
start = { uniform = ["0s", "650ms"] }
"""

STUDY_TEXT = """
name = "small"
title = "A small study"
replications = {replications}
seed = 3
scenario = "scenario.toml"

[[axes]]
name = "queue"
values = [
  {{ label = "CoDel", set = {{ queue = "codel" }} }},
  {{ label = "DropTail", set = {{ queue = {{ discipline = "droptail", limit = "60p" }} }} }},
]

[[axes]]
key = "flows.first.count"
name = "flows"
values = [1, 2, 4]
"""

SCENARIO: dict[str, Any] = {
    "duration": "5s",
    "links": {
        "down": {"rate": "2mbit", "delay": "20ms", "queue": "codel"},
        "up": {"rate": "2mbit", "delay": "20ms"},
    },
    "transport": {"profile": "rfc"},
    "flows": {"bulk": {"count": 2, "path": ["down"], "return_path": ["up"]}},
}


class Aqmlab:
    """The command; a call with its words returns its output and exit status."""

    def __init__(self, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        self._run = run

    def __call__(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return self._run(*words, **options)

    def ok(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """The same, and status 0 is asserted."""
        done = self(*words, **options)
        assert done.returncode == 0, done.stderr
        return done

    def json(self, *words: object, **options: Any) -> Any:
        """The value that the command prints as JSON, at status 0."""
        return json.loads(self.ok(*words, **options).stdout)


def in_process(
    main: Callable[[], object], *arguments: object, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a program in this process: `sys.argv`, the working directory, the environment and the
    streams are those of a process of its own, whose output and exit status are returned."""
    words = [str(each) for each in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    before, status = Path.cwd(), 0
    with (
        mock.patch.object(sys, "argv", ["aqmlab", *words]),
        mock.patch.object(sys.modules["__main__"], "__package__", ""),  # of `python -m pytest`
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.dict(os.environ, environment()),
        warnings.catch_warnings(),
    ):
        os.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            os.chdir(before)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(words, status, *texts)


def command(*arguments: object) -> list[str]:
    return [COMMAND, *(str(each) for each in arguments)]


def run_program(words: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a program and returns its output as text; any exit status is accepted."""
    options.setdefault("check", False)
    return subprocess.run(words, capture_output=True, text=True, **options)


def started(words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Starts a program, whose output is kept as text."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=environment(), **options
    )


def wait_until(is_so: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    """Waits until `is_so()` is true; the process must not end before."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert not process or process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < until, f"condition not met in {PATIENCE} s"
        time.sleep(0.02)


def is_open(port: int) -> bool:
    """True if a server listens on this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def environment() -> dict[str, str]:
    """Variables of commands. CPython 3.11 keeps half of a bytecode file if files may not grow."""
    own = {"COLUMNS": "200", "AQMLAB_TRACEBACK": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **own}


def built_example(name: str) -> Path:
    """The program of a crate in `examples`, as `make tests-compiled` builds it."""
    root = Path(__file__).parents[2]
    program = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "debug" / name
    if not program.exists():
        pytest.skip(f"{name} is not built: run `make tests-compiled`")
    return program


def write_study(folder: Path, replications: int) -> Path:
    (folder / "scenario.toml").write_text(SCENARIO_TEXT)
    path = folder / "study.toml"
    path.write_text(STUDY_TEXT.format(replications=replications))
    return path


def table_bytes(folder: Path) -> dict[str, bytes]:
    """Name and content of every Parquet file of a results folder."""
    files = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    assert len(files) >= 6, f"no tables in {folder}"
    return files


def flip(path: Path, bit: int) -> None:
    """Flips a bit of a file."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table of a results folder."""
    return pl.read_parquet(folder / f"{table}.parquet").to_dicts()


def link_of(folder: Path, name: str = "up") -> dict[str, Any]:
    """What a link did: its row in a results folder."""
    return next(row for row in rows_of(folder, "links") if row["link"] == name)


def runs_kept(out: Path) -> list[int]:
    """Numbers of the finished runs in the folder of a study that is not finished."""
    chunks = [each for each in sorted(out.glob("chunks/*")) if not each.suffix]
    return [run for each in chunks for run in pl.read_parquet(each / "runs.parquet")["run"]]


def assert_refused(done: subprocess.CompletedProcess[str], *words: str, status: int = 2) -> None:
    """One clear message on stderr, with `words` in it; nothing on stdout; no traceback."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"


def assert_ends_with_ctrl_c(*arguments: object, begun: Path) -> None:
    """A command that goes on and on ends at Ctrl-C: status 130, one word, nothing on stdout. It
    has begun when the file `begun` exists."""
    process = started(command(*arguments))
    wait_until(begun.exists, process)
    time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert (process.returncode, stdout, stderr.strip()) == (130, "", "interrupted")


def built_library(name: str) -> Path:
    """The shared library of a crate in `examples`, as `make tests-compiled` builds it."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return built_example(f"deps/lib{name}.{suffix}")
