"""What a study of many points keeps of each, and what its report reads."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aqmlab import _core
from aqmlab.metrics import headlines
from aqmlab.report import measures
from aqmlab.report.overview import overview
from aqmlab.report.study_page import SHOWN_POINTS
from aqmlab.results import Scenarios, StudyResult, scenarios
from aqmlab.results.scenarios import BLOCK
from tools.bench.points import ACROSS, study


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


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """A study with more points than its report shows."""
    found: StudyResult = study(SHOWN_POINTS + 100).run(tmp_path_factory.mktemp("large") / "study")
    return found


def test_a_report_parses_only_the_scenarios_that_it_shows(
    large: StudyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []

    def loads(text: str) -> Any:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr(scenarios, "json", SimpleNamespace(loads=loads))
    large.report()
    heads = [text for text in parsed if "links" not in text]
    assert len(heads) == 1, "all points have one duration, seed and bottleneck"
    assert len(parsed) - len(heads) <= SHOWN_POINTS


def test_an_overview_estimates_only_the_points_that_it_draws(
    large: StudyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, drawn = headlines(large), large.info.points // ACROSS
    asked = []

    def estimates(*given: Any) -> Any:
        asked.append(own := real(*given))
        return own

    real = measures.estimates
    monkeypatch.setattr(measures, "estimates", estimates)
    overview(large, found)
    assert [len(each) for each in asked] == [drawn] * len(found)
