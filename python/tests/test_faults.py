"""Faults of the machine: each ends with the same tables, or with one clear error."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import PATIENCE, Aqmlab, assert_refused, command, environment, run_program, table_bytes

import aqmlab as package
from aqmlab.cli.common import reported

pytestmark = pytest.mark.slow

PANIC = re.compile(r"Traceback|panicked|bug in aqmlab")


@pytest.fixture
def right(study: Path) -> dict[str, bytes]:
    """The tables of the study of 12 runs when nothing happens."""
    package.Study(study).run(study.parent / "right")
    return table_bytes(study.parent / "right")


def shell(lines: str, folder: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """Runs lines of a shell in `folder`, where `aqmlab` is the command."""
    text = f'aqmlab() {{ {shlex.join(command())} "$@"; }}\n{lines}'
    return run_program([*before, "sh", "-c", text], cwd=folder, env=environment(), timeout=PATIENCE)


def apart(lines: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The same with mounts of its own; the test is skipped where none are permitted."""
    probe = ["mount", "-t", "tmpfs", "none", str(folder)]
    for way in (["unshare", "-m"], ["unshare", "-Urm"]):
        if not subprocess.run([*way, *probe], capture_output=True, check=False).returncode:
            return shell(lines, folder, *way)
    pytest.skip("no mounts are permitted here")


def test_a_small_disk_fills_up(study: Path, right: dict[str, bytes]) -> None:
    """On a file system that is too small at every step; then there is room."""
    done = apart(
        """
        mkdir disk saved
        mount -t tmpfs -o size=16k none disk
        for size in 16k 64k 128k 160k 50m; do
            mount -o remount,size=$size none disk || exit 9
            aqmlab study study.toml --json --out disk/out > said 2>> errors
            echo $?
        done
        cp disk/out/*.parquet saved
        """,
        study.parent,
    )
    *failed, last = done.stdout.split()
    assert last == "0", done.stderr
    errors = (study.parent / "errors").read_text().splitlines()
    assert failed.count("1") == len(errors) == 4, (failed, errors)
    for line in errors:
        assert re.fullmatch(
            r"error: disk/out: no space left on the disk; \d+ of 12 runs are kept\. Free some "
            r"space and rerun the same command to resume\.",
            line,
        )
    assert table_bytes(study.parent / "saved") == right


def test_a_disk_that_cannot_be_written(study: Path, right: dict[str, bytes]) -> None:
    done = apart(
        """
        mkdir disk
        mount -t tmpfs none disk
        cp -r right disk/done
        aqmlab study study.toml --shard 1/2 --out disk/part > said
        mount -o remount,ro none disk
        aqmlab study study.toml --json --out disk/new; echo $?
        aqmlab run scenario.toml --out disk/run > said; echo $?
        aqmlab compare --json right disk/done > said; echo $?
        aqmlab study study.toml --json --out disk/done > said; echo $?
        aqmlab study study.toml --json --out disk/part > said; echo $?
        """,
        study.parent,
    )
    assert done.stdout.split() == ["1", "1", "0", "0", "1"], done.stderr
    first, second, third = done.stderr.splitlines()
    assert first.startswith("error: disk/new: Read-only file system; 0 of 12 runs are kept")
    assert second.startswith("error: disk/run: Read-only file system; 0 of 1 runs are kept")
    assert third.startswith("error: disk/part: Read-only file system; the runs in it are kept")


@pytest.mark.parametrize("blocks", [1, 8, 24, 40])
def test_files_may_not_grow(blocks: int, study: Path, right: dict[str, bytes]) -> None:
    """`ulimit -f` in units of 512 bytes: every write of a large file fails."""
    done = shell(f"ulimit -f {blocks}; aqmlab study study.toml --json --out out", study.parent)
    kept = 12
    if done.returncode:
        assert_refused(done, "out: the limit on the size of a file is reached; ", status=1)
        kept = int(re.findall(r"(\d+) of 12 runs are kept", done.stderr)[0])
    again = package.Study(study).run(study.parent / "out")
    assert again.computed == 12 - kept
    assert table_bytes(study.parent / "out") == right


@pytest.mark.parametrize("files", [6, 16, 31, 32])
def test_few_open_files(files: int, study: Path, right: dict[str, bytes]) -> None:
    done = shell(f"ulimit -n {files}; aqmlab study study.toml --json --out out", study.parent)
    if files < 32:
        expected = f"error: 32 open files are needed, and {files} allowed; raise the limit"
        assert_refused(done, expected, status=1)
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert table_bytes(study.parent / "out") == right


@pytest.mark.parametrize("kilobytes", [80_000, 600_000, 1_990_000])
def test_little_memory(study: Path, kilobytes: int) -> None:
    """Between these OpenBLAS loops for ever, and polars aborts."""
    text = f"ulimit -v {kilobytes}; aqmlab study study.toml --json --out out"
    lack = "2000000 kB of memory are needed"
    assert_refused(shell(text, study.parent), lack, "(ulimit -v 2000000)", status=1)
    text = f"ulimit -v {kilobytes}; aqmlab shell --out out -- echo never"
    assert_refused(shell(text, study.parent), lack, "nothing was run")
    done = shell(f"ulimit -v {kilobytes}; aqmlab run scenario.toml", study.parent)
    assert (done.returncode, done.stderr) == (0, "")


def test_too_little_memory_for_pictures(study: Path) -> None:
    done = shell("ulimit -v 8000000; aqmlab explain codel --chart codel.svg", study.parent)
    assert_refused(done, "codel.svg: the process that draws failed", "(ulimit -v)", status=1)


@pytest.mark.parametrize("setting", ["POLARS_MAX_THREADS=0", "SOURCE_DATE_EPOCH=x"])
def test_environments_that_libraries_refuse(study: Path, setting: str) -> None:
    done = shell(f"{setting} aqmlab study study.toml --json --out out", study.parent)
    assert_refused(done, f"error: {setting}: ", status=1)


def test_a_library_that_needs_its_docstrings(scenario: Path) -> None:
    key = "--key links.down.delay=1ms..9ms --hurt goodput@bulk"
    line = f"PYTHONOPTIMIZE=2 aqmlab search attack {scenario.name} {key} --trials 2"
    assert_refused(shell(line, scenario.parent), "PYTHONOPTIMIZE=2: cma needs its docstrings")


def test_few_threads(capsys: pytest.CaptureFixture[str]) -> None:
    """`ulimit -u` does not limit root, so the error is that of CPython."""

    @reported
    def refused() -> None:
        raise RuntimeError("can't start new thread")

    with pytest.raises(SystemExit, match="1"):
        refused()
    assert "error: a thread cannot be started; is the number" in capsys.readouterr().err


def test_several_processes_on_one_folder(study: Path, right: dict[str, bytes]) -> None:
    """The first process computes; the others report that, or find finished results."""
    line = command("study", study, "--json", "--out", study.parent / "out")
    draw = random.Random(time.time_ns())
    pipe = subprocess.PIPE
    running = []
    for _ in range(5):
        running.append(subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True))
        time.sleep(draw.uniform(0, 0.15))
    said = [(process, *process.communicate(timeout=PATIENCE)) for process in running]
    told = [(process.returncode, stderr) for process, _, stderr in said]
    refused = f"error: {study.parent / 'out'}: another aqmlab process is writing to this folder\n"
    assert set(told) <= {(0, ""), (2, refused)}, told
    assert (0, "") in told
    assert table_bytes(study.parent / "out") == right


def killed_and_resumed(words: list[object], out: Path, moments: list[float]) -> None:
    """Starts the command, kills it after each of `moments`, and lets it end at last."""
    for moment in moments:
        process = subprocess.Popen(
            command(*words, "--out", out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(moment)
        process.kill()
        _, stderr = process.communicate()
        assert not PANIC.search(stderr.decode()), stderr
    done = run_program(command(*words, "--out", out), timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("characterize", "pie", "--section", "5.1.1", "--quick", "--replications", "3", "--json"),
        ("evaluate", "cbr", "--only", "collapse", "--quick", "--replications", "2", "--json"),
        ("study", "study.toml", "--json"),
        ("run", "scenario.toml"),
    ],
    ids=["characterize", "evaluate", "study", "run"],
)
def test_killed_at_random_moments(
    words: tuple[str, ...], study: Path, aqmlab: Aqmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.parent)
    began = time.monotonic()
    aqmlab.ok(*words, "--out", "right")
    took = time.monotonic() - began
    draw = random.Random(time.time_ns())
    moments = sorted(draw.uniform(0.05, 1.2 * took) for _ in range(3))
    killed_and_resumed([*words], Path("out"), moments)
    assert table_bytes(Path("out")) == table_bytes(Path("right")), moments


def test_a_panic_of_a_library_is_one_message() -> None:
    """The exception that polars raises is no `Exception`."""
    text = """
import sys
from aqmlab.cli.common import reported
import polars

@reported
def fails():
    raise polars.exceptions.PanicException("index out of bounds")

fails()
"""
    done = run_program([sys.executable, "-c", text])
    assert_refused(done, "PanicException: index out of bounds (this is a bug", status=70)
