"""Lines of `aqmlab shell` about links in the terminal."""

from __future__ import annotations

from aqmlab import _core
from aqmlab.report.run_console import busy_links


def results(down: str, up: str, workload: str = "bulk") -> _core.Results:
    scenario = {
        "duration": "5s",
        "bottleneck": "down",
        "links": {
            "down": {"rate": down, "delay": "10ms", "queue": "codel"},
            "up": {"rate": up, "delay": "10ms", "queue": "codel"},
        },
        "flows": {"upload": {"path": "up", "return_path": "down", "workload": workload}},
    }
    runner = _core.Runner([(0, _core.Scenario(scenario), 0)], threads=1)
    while (found := runner.poll(0.1)) is None:
        pass
    return found


def test_an_upload_is_told_at_its_link_and_not_at_the_idle_one() -> None:
    line, *notes = busy_links(results("20mbit", "2mbit"))
    assert line.startswith("up: 9") and "% busy" in line
    assert not any("busy, in the queue" in note for note in notes)
    assert "dropped (" in line and "codel)" in line and "(p95)" in line


def test_both_directions_are_told_where_both_are_busy() -> None:
    told = [
        line for line in busy_links(results("40kbit", "2mbit")) if "% busy, in the queue" in line
    ]
    assert [line.split(":")[0] for line in told] == ["down", "up"]


def test_idle_links_are_not_told() -> None:
    assert not any("% busy, in" in line for line in busy_links(results("20mbit", "20mbit", "voip")))
