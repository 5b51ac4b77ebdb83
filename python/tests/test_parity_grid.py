"""The parity grid: its cells, its verdicts, its page, and a cell with real packets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.parity import (
    ALIKE,
    DIFFERS,
    FEW,
    QUANTITIES,
    Cell,
    cells,
    main,
    page,
    verdict,
)

GOODPUT, DELAY, DROPS = QUANTITIES
CELL = Cell("Reno", "CoDel", "10 Mbit/s, 80 ms")

ROOT = Path(__file__).parents[2]


def result(real_median: float) -> dict[str, Any]:
    """Output of `aqmlab parity --json` for five runs each."""
    spread = [-0.02, -0.01, 0.0, 0.01, 0.02]

    means = {
        "simulator": (4e6, 5e6, 2e-3, 0.002),
        "emulator": (4.05e6, 5.05e6, real_median, 0.0023),
    }
    named = [("first", "goodput"), ("second", "goodput"), ("down", "sojourn_p50"),
             ("down", "drop_share")]  # fmt: skip
    contenders = [
        {
            "name": by,
            "readings": [
                {"subject": of, "metric": name, "values": [value * (1 + each) for each in spread]}
                for (of, name), value in zip(named, values, strict=True)
            ],
        }
        for by, values in means.items()
    ]
    return {
        "replications": 5,
        "lateness_p99_s": 0.0004,
        "questions": [{"contenders": contenders}],
    }


def test_three_of_each_make_27_cells() -> None:
    every = cells()
    assert len(every) == len({cell.file for cell in every}) == 27
    assert cells(["Reno, CoDel", "10 Mbit/s, 80 ms"]) == [CELL]
    assert cells(["SFQ"]) == []
    fifo = Cell("CUBIC", "FIFO", "100 Mbit/s, 10 ms").command(10, "20s", Path("out"))
    for word in ("queue=droptail", "queue.limit=124p", "links.up.delay=5ms", "cubic", "--json"):
        assert word in fifo


def test_a_verdict_needs_runs_and_intervals_that_are_apart() -> None:
    noise = np.array([-0.1, -0.05, 0.0, 0.05, 0.1])
    assert verdict(DELAY, 5 + noise, 9 + noise, 10.0) == DIFFERS
    assert verdict(DELAY, 5 + 40 * noise, 9 + 40 * noise, 10.0) == ALIKE
    assert verdict(DELAY, 5 + noise, 6.1 + noise, 10.0) == ALIKE, "a packet takes 1.2 ms"
    assert verdict(DELAY, 5 + noise, 6.1 + noise, 100.0) == DIFFERS, "a packet takes 0.12 ms"
    assert verdict(DELAY, 5 + noise[:3], 9 + noise[:3], 10.0) == FEW
    assert verdict(GOODPUT, 9 + noise, 9.4 + noise, 10.0) == ALIKE
    assert verdict(DROPS, 0.2 + noise / 100, 0.31 + noise / 100, 10.0) == DIFFERS


def test_the_page_has_all_three_sources_and_the_verdict() -> None:
    for median, word in ((2.1e-3, ALIKE), (5e-3, DIFFERS)):
        text = list(page({CELL: result(median)}, "the command"))
        (row,) = [line for line in text if "| median delay" in line]
        columns = [column.strip() for column in row.strip("|").split("|")]
        assert columns[-1] == word and columns[3].startswith("2.00 (")
        with_bursts = [line for line in text if line.startswith(f"| {CELL.label}: median delay")]
        assert len(with_bursts) == (word == DIFFERS)
        for line in with_bursts:
            real, *simulated = (float(each) for each in line.strip("| ").split("|")[1:])
            assert real == 5 and len(simulated) == 3 and all(0.5 < each < 5 for each in simulated)
        assert columns[5] != "–", "this path was recorded in virtual time"
        assert any("1 of 27 cells, 5 runs" in line for line in text)
        (told,) = [line for line in text if line.startswith("- Reno over CoDel")]
        assert "simulated 0.196 to 0.204; real 0.225 to 0.235; recorded 0.2" in told
    elsewhere = Cell("Reno", "CoDel", "50 Mbit/s, 40 ms")
    lines = [line for line in page({elsewhere: result(2e-3)}, "") if "Reno, CoDel" in line]
    assert len(lines) == 3 and all("| – |" in line for line in lines)


def test_what_is_kept_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    (tmp_path / CELL.file).write_text(json.dumps(result(2e-3)))
    words = [str(tmp_path / "page.md"), "--only", "Reno, CoDel", "--only", "10 Mbit/s, 80 ms"]
    main([*words, "--out", str(tmp_path)])
    assert "| Reno, CoDel | 10 Mbit/s, 80 ms |" in (tmp_path / "page.md").read_text()
    with pytest.raises(SystemExit):
        main([str(tmp_path / "page.md"), "--only", "SFQ"])
    assert "no cell has SFQ" in capsys.readouterr().err


@pytest.mark.real_packets
def test_cells_side_by_side_are_simulated_and_run_with_real_packets(tmp_path: Path) -> None:
    words = ["--only", "CoDel, 10 Mbit/s", "--repeat", "1", "--duration", "2s", "--at-once", "3"]
    command = [sys.executable, "-m", "tools.parity", str(tmp_path / "page.md"), *words]
    subprocess.run([*command, "--out", str(tmp_path / "out")], check=True, cwd=ROOT)
    page = (tmp_path / "page.md").read_text()
    assert "--at-once 3" in page
    found = [line.split("|")[1:-1] for line in page.splitlines() if "goodput, Mbit/s" in line]
    assert [row[0].strip() for row in found] == ["CUBIC, CoDel", "Reno, CoDel", "BBR, CoDel"]
    for row in found:
        simulated, real = (float(column.split()[0]) for column in row[3:5])
        assert 3 < real < 10 and real == pytest.approx(simulated, rel=0.5)
