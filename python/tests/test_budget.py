"""Budgets of the engine (`make budget`): the comparison, and words where nothing is compared."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[2] / "crates" / "budget.py"


@pytest.fixture(scope="module")
def budget() -> ModuleType:
    spec = importlib.util.spec_from_file_location("budget", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["budget"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def test_three_percent_more_is_over_budget(budget: ModuleType) -> None:
    assert budget.verdict(1030.0, 1000.0) == "over budget"
    assert budget.verdict(1009.0, 1000.0) == budget.verdict(991.0, 1000.0) == ""
    assert budget.verdict(970.0, 1000.0) == "lower the budget"


def test_each_scenario_has_its_budgets(budget: ModuleType) -> None:
    budgets = tomllib.loads(budget.BUDGETS.read_text())
    for measure in budget.MEASURES:
        assert list(budgets[measure]) == list(budget.SCENARIOS)
        assert all(value > 0 for value in budgets[measure].values())


def test_a_machine_without_valgrind_says_so(
    budget: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    budget.main()
    assert capsys.readouterr().out == "BUDGETS NOT CHECKED: valgrind is not installed\n"
    monkeypatch.undo()
    monkeypatch.setattr(budget, "compiler", lambda: "0.0.0")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["budget.py"])
    budget.main()
    assert "this is 0.0.0" in capsys.readouterr().out
