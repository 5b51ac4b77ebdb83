"""Every statement of a study is one rule, and a wrong result fails it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import aqmlab_studies
from aqmlab.campaign import FAILS, HOLDS, Rule
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.published import Published
from aqmlab.reproduce.schema import printed
from aqmlab.reproduce.signs import chance, same_signs
from aqmlab.stats import Interval
from aqmlab_studies.jarvinen2014 import claims as jarvinen2014
from aqmlab_studies.jarvinen2014.levels import HEADLINE, LEVELS
from aqmlab_studies.ns3.study import BUILDS, JOBS, QUANTITIES, Quantity, outcome
from aqmlab_studies.ns3.study import rule as rule_of

AnyRule = Rule[Any, Any]


def found_rules() -> dict[str, list[AnyRule]]:
    """The rules of each study: those in its modules, and in tuples there."""
    found: dict[str, dict[int, AnyRule]] = {}
    for module in pkgutil.walk_packages(aqmlab_studies.__path__, f"{aqmlab_studies.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, Rule):
                    found.setdefault(module.name.split(".")[1], {})[id(each)] = each
    return {name: list(rules.values()) for name, rules in found.items()}


RULES = found_rules()
EVERY = [
    pytest.param(rule, id=f"{name}-{rule.id}") for name, rules in RULES.items() for rule in rules
]


@pytest.mark.parametrize("rule", EVERY)
def test_a_wrong_result_fails_the_rule(rule: AnyRule) -> None:
    assert not rule.holds(rule.refuted_by)
    assert rule.told(rule.refuted_by)
    assert rule.rule and rule.text.endswith(".")


def test_no_rule_is_left_out() -> None:
    """Statements come from rules, all of which are fed here; but for the two studies that compare
    quantities one by one, whose statements are fed below and in `test_linux2026`."""
    counts = {"cs244_2015": 17, "jarvinen2014": 45, "kuhn2014": 42, "l4s2020": 8,
              "monga2016": 31, "nichols2012": 30, "quic2026": 30, "ware2019": 4}  # fmt: skip
    assert {name: len(rules) for name, rules in RULES.items()} == counts
    folder = Path(aqmlab_studies.__path__[0])
    own = {file.parent.name for file in folder.rglob("*.py") if "own=True" in file.read_text()}
    own -= {"l4s2020", "quic2026", "ware2019"}  # whose rules are above
    assert own == {"ns3", "linux2026"}
    assert {each.parent.name for each in folder.glob("*/study.toml")} == {*RULES, *own}


WRONG = {"utilisation": 0.3, "p50": 1e4, "p95": 1e4, "loss": 90.0, "jain": 0.1}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda each: each.key)
def test_a_quantity_outside_of_its_band_fails(job: str, quantity: Quantity) -> None:
    def verdict(value: float) -> str:
        window: Any = SimpleNamespace(
            values=lambda _: np.array([value, value]), replications=5, looks=1
        )
        window.draws = [window] * 2
        answer = rule_of(job, quantity).answer(window)
        assert answer is not None
        return answer.verdict

    theirs = float(outcome(BUILDS[0], job)[quantity.key])
    assert verdict(theirs) == HOLDS
    assert verdict(WRONG[quantity.key]) == FAILS


@pytest.mark.parametrize("name", RULES)
def test_statements_have_ids_of_their_own(name: str) -> None:
    idents = [rule.id for rule in RULES[name]]
    assert len(idents) == len(set(idents))


class Printed:
    """Measurements equal to the paper's tables II and III."""

    def __init__(self) -> None:
        published = Published.load("jarvinen2014")
        loads = ("1+1", "2+2", "4+4", "6+6")
        self.tables = {
            kind: {
                (queue, load): value
                for queue in published.main_rows(table)
                for load, value in zip(loads, printed(published.paper, table, queue), strict=True)
            }
            for kind, table in (("p95", "table-2"), ("worst", "table-3"))
        }

    def has(self, queue: str, flows: str, rest: str) -> bool:
        return (queue, flows) in self.tables["p95"] and rest == "11 ms"

    def delay_quantile(self, share: float, queue: str, flows: str, rest: str) -> float:
        assert share == 0.95
        return self.tables["p95"][queue, flows]

    def largest(self, of: int, queue: str, flows: str, rest: str) -> float:
        assert of == 100
        return self.tables["worst"][queue, flows]


OF_FIGURES = (
    "median-delay",
    "hred-quartiles",
    "sfq-medians-as-hred",
    "codel-maximum-grows",
    "sfq-median-with-one",
    "spikes-as-maxima",
)
"""Rules whose numbers the paper prints in no table."""
OF_TABLES = [
    rule
    for rule in (*HEADLINE, *jarvinen2014.HIGH_END, *LEVELS)
    if rule.id not in OF_FIGURES and not rule.id.startswith("initial")
]


@pytest.mark.parametrize("rule", OF_TABLES, ids=lambda rule: rule.id)
def test_the_papers_own_numbers_keep_its_statements(rule: AnyRule) -> None:
    """A rule that the printed tables fail would be about something else than the statement."""
    found = rule.measure(Printed())
    assert found is not None
    assert rule.holds(found), rule.told(found)


def cells(values: Iterable[float], reference: float = 1.0) -> tuple[Cell, ...]:
    return tuple(
        Cell.judged(str(number), "CoDel", reference, value, Interval(value, value))
        for number, value in enumerate(values)
    )


def test_deviations_of_one_sign_are_flagged() -> None:
    low = CellTable("a", "Packet time", "s", cells([0.99] * 9), reference="ns-2")
    mixed = CellTable("b", "Other", "s", cells([0.99, 1.01] * 5), reference="ns-2")
    few = CellTable("c", "Few", "s", cells([0.99] * 5), reference="ns-2")
    (cause,) = same_signs([low, mixed, few])
    assert "Packet time, CoDel: 9 of 9 below" in cause.text
    assert "Other" not in cause.text and "Few" not in cause.text


def test_deviations_of_one_sign_are_flagged_along_rows_and_over_a_whole_table() -> None:
    turned = [replace(cell, row=cell.column, column=cell.row) for cell in cells([1.01] * 9)]
    (cause,) = same_signs([CellTable("a", "Rows", "s", tuple(turned), reference="ns-2")])
    assert cause.text.endswith("Rows, CoDel: 9 of 9 above.")
    square = [
        replace(cell, row=str(number // 3), column=str(number % 3))
        for number, cell in enumerate(cells([1.01] * 9))
    ]
    table = CellTable("a", "Square", "s", tuple(square), reference="ns-2")
    (cause,) = same_signs([table])
    assert cause.text.endswith("Square: 9 of 9 above."), "no row or column alone has enough"
    # Settings beside the reference's own are not counted.
    assert same_signs([table], lambda _: ["0", "1"]) == []


def test_chances_of_signs() -> None:
    assert chance(6, 6) == pytest.approx(2 / 64)
    assert chance(5, 10) == 1.0
