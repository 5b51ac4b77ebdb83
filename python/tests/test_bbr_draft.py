"""The pack of the BBR draft's test cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab.campaign import FAILS, HOLDS, Plan
from aqmlab.campaign.packfile import load
from aqmlab.packs.bbr_draft import CASES as APPENDIX

OWN = f"{Path(__file__).parents[2] / 'examples' / 'my_control.py'}:MyControl"
CASES = ("A.1", "A.7", "A.10", "A.20")


def test_every_case_of_the_appendix_is_there() -> None:
    pack = load("bbr-draft")
    assert [each.id for each in pack.questions] == [f"A.{number}" for number in range(1, 23)]
    assert all(each.source.endswith(each.id) for each in pack.questions)
    assert list(pack.contenders) == ["bbr3", "noq:bbr3", "linux"]
    # The engine takes every scenario.
    plan = Plan(pack, {"quinn": "quinn:bbr", "own": OWN})
    assert len(plan.points) == 2 * len(APPENDIX)
    assert len(plan.study(1, 1).points) == len(set(plan.points.values()))


@pytest.fixture(scope="module")
def words() -> dict[tuple[str, str, str], str]:
    """(case, contender, rule) to the verdict."""
    pack = load("bbr-draft")
    chosen = replace(pack, questions=tuple(q for q in pack.questions if q.id in CASES))
    contenders = {"bbr3": "bbr3", "noq": "noq:bbr3", "reno": "reno", "own": OWN}
    found = Plan(chosen, contenders).run()
    return {
        (case, name, each.id): each.verdict
        for (case, name), answers in found.answers.items()
        for each in answers
    }


def test_bbr_behaves_as_the_draft_says(words: dict[tuple[str, str, str], str]) -> None:
    assert {each for (_, name, _), each in words.items() if name == "bbr3"} == {HOLDS}
    assert words["A.1", "noq", "estimate"] == words["A.20", "noq", "state"] == HOLDS


def test_other_controls_do_not(words: dict[tuple[str, str, str], str]) -> None:
    """Reno fills the buffer and has no gain, which is not asked of it."""
    for name in ("reno", "own"):
        assert words["A.1", name, "queue"] == FAILS
        assert words["A.10", name, "enters"] == FAILS
        assert not [key for key in words if key[1] == name and key[2] == "state"]
