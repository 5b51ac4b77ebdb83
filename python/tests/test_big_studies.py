"""What a study of many points keeps of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from aqmlab import _core
from aqmlab.results import Scenarios
from aqmlab.results.scenarios import BLOCK


def test_scenarios_are_those_that_went_in() -> None:
    texts = [f'{{"seed": {number}, "name": "ä\\n"}}' for number in range(2 * BLOCK + 3)]
    found = Scenarios(iter(texts))
    assert len(found) == len(texts)
    assert list(found.texts()) == texts
    assert found[BLOCK]["seed"] == BLOCK and found[-1]["seed"] == len(texts) - 1
    assert [each["seed"] for each in found[BLOCK - 1 : BLOCK + 1]] == [BLOCK - 1, BLOCK]
    with pytest.raises(IndexError):
        found[len(texts)]
    assert not Scenarios([])


def test_a_scenario_that_is_gone_leaves_nothing() -> None:
    def resident() -> int:
        with Path("/proc/self/statm").open() as file:
            return int(file.read().split()[1]) * 4096

    def build(count: int) -> None:
        links = {"down": {"rate": "10mbit", "delay": "1ms"}}
        flows = {"bulk": {"path": ["down"], "return_path": ["down"]}}
        for _ in range(count):
            _core.Scenario({"links": links, "flows": flows, "duration": "1s"})

    build(2_000)
    before = resident()
    build(10_000)
    # Joined comments of parameters were 1.1 kB a scenario.
    assert resident() - before < 2e6
