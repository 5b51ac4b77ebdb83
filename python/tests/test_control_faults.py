"""Congestion controls written in Python that are wrong: one clear message each."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, assert_class_refused, assert_ends_with_ctrl_c, command, environment

import aqmlab as package

KEY = "transport.congestion_control"
GOOD = """
class Mine:
    def __init__(self, setup, share="10p"):
        self.window = setup.initial_window

    def on_ack(self, ack):
        self.window += ack.acked

    def on_congestion(self, event):
        self.window //= 2
"""

WRONG = {
    "no on_ack": ("def on_ack", "def on_nack", ["has no method `on_ack`", "congestion control"]),
    "a queue": ("def on_congestion", "def enqueue", ["no method `on_congestion`"]),
    "no window": (GOOD, GOOD.replace("window", "cwnd"), ["sets no `window`"]),
    "no setup": ('(self, setup, share="10p")', "(self)", ["must take `setup`"]),
    "reserved": ('share="10p"', "algorithm=3", ["may not be called `algorithm`"]),
    "of the link": ('share="10p"', 'share="2bdp"', ["share: `2bdp`", "packets (10p) or bytes"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_class_is_refused(case: str, scenario: Path, aqmlab: Aqmlab) -> None:
    good, bad, words = WRONG[case]
    assert_class_refused(aqmlab, scenario, GOOD, (good, bad), KEY, "--set", KEY, *words)


FAULTS = {
    "in the constructor": ("setup.initial_window", "setup.window",
                           ["line 4", "Mine.__init__", "AttributeError"]),
    "an exception": ("self.window += ack.acked", "self.window /= 0",
                     ["line 7", "Mine.on_ack at ", "ZeroDivisionError"]),
    "a fraction": ("self.window += ack.acked", "self.window += ack.acked / 3",
                   ["line 6", "Mine.on_ack", "window is 1", "not whole bytes"]),
    "less than nothing": ("self.window += ack.acked", "self.window = -1",
                          ["Mine.on_ack", "window is -1, not whole bytes"]),
    "no rate": ("self.window += ack.acked", "self.pacing_rate = 0",
                ["AttributeError", "pacing_rate"]),
    "a rate of nothing": ("self.window = setup.initial_window",
                          "self.window = setup.initial_window; self.pacing_rate = 0",
                          ["Mine.__init__", "pacing_rate is 0, not whole bits per second"]),
    "neither yes nor no": ("def on_ack", "needs_rate_samples = 3\n    def on_ack",
                           ["needs_rate_samples is 3, not True or False"]),
    "wrong arguments": ("on_congestion(self, event)", "on_congestion(self)",
                        ["line 9", "Mine.on_congestion", "TypeError"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_ends_the_run_with_one_message(case: str, scenario: Path, aqmlab: Aqmlab) -> None:
    good, bad, words = FAULTS[case]
    assert_class_refused(aqmlab, scenario, GOOD, (good, bad), KEY, "mine.py", *words)


def test_the_cause_is_kept_and_the_user_gets_the_traceback(
    mapping: dict[str, Any], scenario: Path
) -> None:
    (scenario.parent / "mine.py").write_text(GOOD.replace("ack.acked", "ack.nothing"))
    name = f"{scenario.parent}/mine.py:Mine"
    with pytest.raises(package.ControlError, match=r"Mine\.on_ack at 0") as caught:
        package.run(mapping, set={"transport.congestion_control": name})
    assert isinstance(caught.value.__cause__, AttributeError)
    assert isinstance(caught.value, package.CustomError)
    done = subprocess.run(
        command("run", scenario, "--set", f"transport.congestion_control={name}"),
        capture_output=True,
        text=True,
        env=environment() | {"AQMLAB_TRACEBACK": "1"},
    )
    assert "in on_ack\n    self.window += ack.nothing" in done.stderr
    assert done.returncode == 2


def test_a_window_of_nothing_is_one_segment(mapping: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("+= ack.acked", "= 0"))
    mapping["transport"] = {"congestion_control": f"{tmp_path}/mine.py:Mine"}
    result = package.run(mapping)
    assert result.flows["segments_sent"].min() > 10


def test_ctrl_c_ends_a_control_that_does_not_end(scenario: Path) -> None:
    endless = GOOD.replace("self.window += ack.acked", "exec('while True: pass')")
    (scenario.parent / "mine.py").write_text(endless)
    assert_ends_with_ctrl_c("run", scenario, "--set", "transport.congestion_control=mine.py:Mine")
