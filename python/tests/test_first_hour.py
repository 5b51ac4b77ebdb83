"""The first hour: the commands on the page give the results that the page names."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tools.first_hour import PAGE, parts, run, table

PARTS = parts()


def test_the_table_counts_the_commands() -> None:
    rows = re.findall(r"^\| \[.*$", PAGE.read_text(), re.MULTILINE)
    minutes = r"[\d.]+|–"
    for part, row in zip(PARTS, rows, strict=True):
        shown = re.escape(part.row("OWN", "TOTAL")).replace("OWN", f"(?:{minutes})")
        assert re.fullmatch(shown.replace("TOTAL", f"(?:{minutes})"), row), row
    assert [len(part.commands) for part in PARTS] == [1, 3, 1]
    assert table(PARTS, [120.0, 30.0, 6.0])[2].endswith("| 1 | 0.1 | 2.6 |")


def installed(folder: Path) -> None:
    """`.venv` of a clone that has been set up."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    place = Path(sys.executable).parent
    (folder / ".venv" / "bin" / "activate").write_text(f"PATH={place}:$PATH\n")


def test_the_figure_of_ones_own_study(tmp_path: Path) -> None:
    installed(tmp_path)
    assert len(run([PARTS[1]], tmp_path, dict(os.environ))) == 1
    assert (tmp_path / PARTS[1].result).read_bytes().startswith(b"%PDF")


@pytest.mark.real_packets
@pytest.mark.needs("ping")
def test_a_real_program_behind_a_queue(tmp_path: Path) -> None:
    installed(tmp_path)
    environment = dict(os.environ) | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run([PARTS[2]], tmp_path, environment)
    assert "in the queue of" in (tmp_path / PARTS[2].result).read_text()


def test_the_demo_writes_the_report_that_the_page_names() -> None:
    (command,) = re.findall(
        r"^demo:.*?\$\(BIN\)/(aqmlab reproduce [^\n]*)$",
        (PAGE.parents[1] / "Makefile").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    assert PARTS[0].commands == ("make demo",)
    assert f"{command.partition('--out ')[2]}/report.html" == PARTS[0].result


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="A figure of your own study"):
        run([PARTS[1]], tmp_path, dict(os.environ))
