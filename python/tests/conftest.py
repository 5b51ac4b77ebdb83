"""A scenario, a study, and the command line for all tests."""

from __future__ import annotations

import copy
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from browser import CHROMIUM, LAB, Browser, browser
from helpers import (
    SCENARIO,
    SCENARIO_TEXT,
    Aqmlab,
    command,
    environment,
    in_process,
    is_open,
    wait_until,
    write_study,
)
from real_packets import PORT, TRAFFIC, missing

from aqmlab.cli import main
from aqmlab.metrics.registry import _REGISTRY
from aqmlab.report import own
from aqmlab.study import Study, sources

# Below nohup, the programs that tests start would ignore it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

MOST_RERUNS = 1
"""Retries of tests with real packets in a whole run of the tests: more are a fault, or a machine on
which they say nothing."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails if tests were retried too often."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    again = [each.nodeid for each in reporter.stats.get("rerun", [])] if reporter else []
    if len(again) > MOST_RERUNS:
        reporter.write_line(f"{len(again)} retries, at most {MOST_RERUNS}: {', '.join(again)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
def aqmlab(request: pytest.FixtureRequest, tmp_path: Path, aqmlab_process: Aqmlab) -> Aqmlab:
    """Runs the command in this process, in an empty folder, and returns its output.

    Where real packets are sent, it is a process of its own: the emulator copies its process, which
    must have one thread.
    """
    if request.node.get_closest_marker("real_packets"):
        return aqmlab_process

    def run(*arguments: object, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        with (
            mock.patch.dict(_REGISTRY),
            mock.patch.dict(own._CHARTS),
            mock.patch.dict(sources._metrics),
        ):
            return in_process(main, *arguments, cwd=cwd)

    return Aqmlab(run)


@pytest.fixture
def aqmlab_process(tmp_path: Path) -> Aqmlab:
    """Runs the installed command as a process of its own."""

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

    return Aqmlab(run)


@pytest.fixture
def client(aqmlab: Aqmlab) -> Callable[..., Any]:
    """Runs a client behind a path with a server at its far end: what the client found."""

    def run(*options: object, do: str, far: str = "$AQMLAB_FAR") -> Any:
        mode, _, rest = do.partition(" ")
        words = ["sh", "-c", f"{TRAFFIC} {mode} {far} {PORT} {rest}"]
        done = aqmlab.ok("shell", *options, "--far", f"{TRAFFIC} serve {PORT}", "--", *words)
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    """A server of traffic.py on this machine."""
    with subprocess.Popen([*TRAFFIC.split(), "serve", str(PORT)]) as process:
        wait_until(lambda: is_open(PORT), process)
        yield
        process.kill()


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


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a finished study of 12 runs, which no test changes."""
    folder = tmp_path_factory.mktemp("finished")
    Study(write_study(folder, replications=2)).run(folder / "out")
    return folder / "out"


@pytest.fixture
def done(study: Path, finished: Path) -> Path:
    """The finished results folder of the study `study`."""
    return Path(shutil.copytree(finished, study.parent / "out"))


@pytest.fixture
def mapping() -> dict[str, Any]:
    """A good scenario as a mapping, to be spoilt."""
    return copy.deepcopy(SCENARIO)


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    """A page of Chromium."""
    if not CHROMIUM:
        pytest.skip("there is no chromium")
    with browser() as found:
        yield found


@pytest.fixture
def opened(page: Browser) -> Browser:
    """The live lab in a page, without a tour."""
    page.problems.clear()
    page.look(1200, 900)
    page.open("about:blank")
    page.open(f"{LAB.as_uri()}#free")
    page.wait_for("window.meter && meter.ready")
    return page
