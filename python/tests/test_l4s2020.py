"""The L4S tests of 2020: the published tables, the rules, and a part of the study."""

from __future__ import annotations

import json

import pytest

from aqmlab.reproduce import reproduce
from aqmlab.reproduce.verdicts import DIFFERS
from aqmlab_studies.l4s2020.law import State, by_the_rules, cubic, prague
from aqmlab_studies.l4s2020.study import FILE, published

PAIR = "Prague 10 ms, CUBIC 10 ms"


def test_both_tables_are_packed() -> None:
    whole = json.loads(FILE.read_text("utf-8"))
    assert {queue: len(cells) for queue, cells in whole["study"].items()} == {
        "DualPI2": 24,
        "FIFO": 24,
        "FQ-CoDel": 24,
    }
    assert [len(cells) for cells in whole["classic"].values()] == [4] * 6
    assert published("study")["DualPI2"][PAIR] == [34.09, 13.04]
    assert published("classic")["PIE"]["Reno with ECN"] == [46.94, 0.78]
    # Two flows and no more than the link has.
    assert all(45 < sum(pair) < 48 for cells in whole["study"].values() for pair in cells.values())


def test_windows_by_the_rules() -> None:
    # Beyond 25 ms: x = 2 (1 + 1/x), so 1 + sqrt(3) marks a round trip.
    assert prague(0.01, 0.05) == pytest.approx(100 * (1 + 3**0.5))
    # At 12.5 ms r is 1/2: x = (2 + 1/x) / 2.
    assert prague(0.01, 0.0125) == pytest.approx(100 * (1 + 3**0.5) / 2)
    # At 20 ms two round trips pass before it falls again.
    assert prague(0.01, 0.02) > 1.2 * prague(0.01, 0.026) * (20 / 26) ** 2
    # With everything marked it is paced below two segments a round trip.
    assert prague(1.0, 0.005) == pytest.approx((0.4 + 0.48**0.5) / 2)
    assert cubic(0.01, 0.02) == pytest.approx(1.5**0.5 / 0.01)
    assert cubic(0.001, 0.1) == pytest.approx(1.054 * 0.1**0.75 / 0.001**1.5)
    even = State(0.02, 0.01, 0.01, 0.05, 0.05, (1.0, 1.0), (3.0, 1.5))
    assert even.ratio == 2 and even.steadiness == 1
    assert by_the_rules(even) == pytest.approx(50 * (1 + 3**0.5) / (1.5**0.5 / 0.01))


def test_prague_beside_cubic_over_dualpi2_is_as_published() -> None:
    result = reproduce("l4s2020", only=["dualpi2", f"pair={PAIR}"], replications=10)
    (table,) = [each for each in result.tables if each.id == "dualpi2"]
    assert [cell.published for cell in table.cells] == [34.09, 13.04]
    assert all(cell.verdict != DIFFERS for cell in table.cells)
    (claim,) = [each for each in result.claims if each.id == "coupling"]
    assert claim.verdict == "holds" and "over 1 pairs" in claim.evidence
