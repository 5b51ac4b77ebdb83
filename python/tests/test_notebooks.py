"""The notebooks: every cell runs in the folder of the notebook, in order, and its checks hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["explore", "teach"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_every_cell_of_a_notebook_runs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    names: dict[str, Any] = {}
    notebook = json.loads(file.read_text())
    assert notebook["nbformat"] == 4
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    assert len(cells) >= 3
    for number, cell in enumerate(cells):
        exec(compile(cell, f"{file.name}, cell {number}", "exec"), names)
    assert all(not each.get("outputs") for each in notebook["cells"]), "kept without outputs"
