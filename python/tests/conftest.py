"""A scenario, a study, and the installed command line for all tests."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import SCENARIO, SCENARIO_TEXT, Aqmlab, command, environment, write_study
from real_packets import missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real packets need a machine that lets us, and keep the time of a machine that others use.

    What such a test finds depends on what else the machine does, so it may try four times: a
    fault is there each time. What a test's mark `needs` names has to be installed (`.ci/packages`
    lists what CI installs).
    """
    for item in items:
        for mark in item.iter_markers("needs"):
            absent = [name for name in mark.args if not shutil.which(name)]
            reason = f"not installed: {', '.join(absent)}"
            item.add_marker(pytest.mark.skipif(bool(absent), reason=reason))
        if item.get_closest_marker("real_packets"):
            lacks = missing()
            item.add_marker(pytest.mark.skipif(bool(lacks), reason=f"no emulated path: {lacks}"))
            # Where other guests take the processors, they do so for seconds.
            item.add_marker(pytest.mark.flaky(reruns=3, reruns_delay=10))


@pytest.fixture
def aqmlab(tmp_path: Path) -> Aqmlab:
    """Runs the installed command in an empty folder and returns what it said."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("cwd", tmp_path)
        options.setdefault("timeout", 120)
        return subprocess.run(
            command(*arguments),
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            **options,
        )

    return run


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """The path of a good scenario file."""
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO_TEXT)
    return path


@pytest.fixture
def study(scenario: Path) -> Path:
    """The path of a good study file of 12 runs."""
    return write_study(scenario.parent, replications=2)


@pytest.fixture
def mapping() -> dict[str, Any]:
    """A good scenario as a mapping, to be spoilt."""
    return copy.deepcopy(SCENARIO)
