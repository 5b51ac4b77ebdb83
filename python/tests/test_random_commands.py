"""Random command lines end without a traceback, a panic or status 70."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import run_program

from tools import random_commands

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_random_command_lines_end_as_they_should() -> None:
    words = ["--count", "150", "--seed", "20261124", "--processes", "0.1"]
    done = run_program(
        [sys.executable, "-m", "tools.random_commands", *words], cwd=ROOT, timeout=580
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 command lines of seed 20261124: 0 failed" in done.stdout


def test_a_command_line_follows_from_seed_and_index() -> None:
    lines = [random_commands.Line.draw(7, index, 0.1).text() for index in range(50)]
    assert lines == [random_commands.Line.draw(7, index, 0.1).text() for index in range(50)]
    assert len(set(lines)) == 50


@pytest.mark.parametrize(
    ("status", "output", "found"),
    [
        (2, "error: x", ""),
        (70, "error: x", "status 70"),
        (-11, "", "status -11"),
        (1, "Traceback (most recent call last):\n", "Traceback (most recent call last)"),
        (1, "thread 'main' panicked at src/x.rs", "panicked at"),
    ],
)
def test_what_counts_as_a_failure(status: int, output: str, found: str) -> None:
    assert random_commands.fault(status, output) == found
