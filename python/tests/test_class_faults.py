"""Queues and congestion controls written in Python that are wrong: one clear message each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import (
    Aqmlab,
    assert_ends_with_ctrl_c,
    assert_refused,
    command,
    environment,
    run_program,
)

import aqmlab as package

QUEUE, CONTROL = "queue", "transport.congestion_control"
GOOD = {
    QUEUE: """
from collections import deque

class Mine:
    def __init__(self, link, target="5ms"):
        self.fifo = deque()
        self.first = None

    def enqueue(self, packet, cx):
        self.first = self.first or packet
        self.fifo.append(packet)

    def dequeue(self, cx):
        return self.fifo.popleft() if self.fifo else None

def helper(packet):
    raise RuntimeError("helpless")
""",
    CONTROL: """
class Mine:
    def __init__(self, setup, share="10p"):
        self.window = setup.initial_window

    def on_ack(self, ack):
        self.window += ack.acked

    def on_congestion(self, event):
        self.window //= 2
""",
}
WRONG_QUEUES = {
    "no dequeue": ("def dequeue", "def deque", ["mine.py:Mine", "has no method `dequeue`"]),
    "no link": ('(self, link, target="5ms")', "(self)", ["must take `link`"]),
    "no default": ('target="5ms"', "target", ["`target`", "needs a default"]),
    "a list": ('target="5ms"', "target=()", ["`target`", "text, a number or a bool"]),
    "any keyword": ('target="5ms"', "**target", ["`**target`", "names and defaults"]),
    "reserved": ('target="5ms"', "code=3", ["may not be called `code`"]),
    "no class": ("class Mine", "class Main", ["mine.py", "known: Main", "did you mean `Main`?"]),
    "not Python": ("def enqueue(", "def enqueue(:", ["mine.py, line 9: SyntaxError"]),
    "wrong import": ("import deque", "import dequeue", ["mine.py, line 2: ImportError", "dequeue"]),
    "no on_wakeup": ("def enqueue", "def next_wakeup(self): return 1\n    def enqueue",
                     ["`next_wakeup`, but no `on_wakeup`"]),
}  # fmt: skip
WRONG_CONTROLS = {
    "no on_ack": ("def on_ack", "def on_nack", ["has no method `on_ack`", "congestion control"]),
    "a queue": ("def on_congestion", "def enqueue", ["no method `on_congestion`"]),
    "no window": (GOOD[CONTROL], GOOD[CONTROL].replace("window", "cwnd"), ["sets no `window`"]),
    "no setup": ('(self, setup, share="10p")', "(self)", ["must take `setup`"]),
    "reserved": ('share="10p"', "algorithm=3", ["may not be called `algorithm`"]),
    "of the link": ('share="10p"', 'share="2bdp"', ["share: `2bdp`", "packets (10p) or bytes"]),
}  # fmt: skip
WRONG = {QUEUE: WRONG_QUEUES, CONTROL: WRONG_CONTROLS}
FAULTS_QUEUES = {
    "exception": ("self.fifo.append(packet)", "self.fifo.append(1 / 0)",
                  ["line 11", "Mine.enqueue at 0.", "ZeroDivisionError: division by zero"]),
    "exception below": ("self.fifo.append(packet)", "helper(packet)",
                        ["line 17", "Mine.enqueue", "RuntimeError: helpless"]),
    "constructor": ("self.first = None", "self.first = link.speed",
                    ["line 7", "Mine.__init__", "AttributeError", "speed"]),
    "wrong arguments": ("enqueue(self, packet, cx)", "enqueue(self, packet)",
                        ["line 9", "Mine.enqueue", "TypeError"]),
    "lost at once": ("self.first = self.first or packet\n        self.fifo.append(packet)", "pass",
                     ["line 9", "Mine.enqueue", "a packet was lost"]),
    "lost later": ("self.first = self.first or packet", "self.fifo.clear()",
                   ["line 9", "Mine.enqueue", "a packet was lost"]),
    "held back": ("if self.fifo else None", "if False else None",
                  ["line 13", "Mine.dequeue", "returned None, but the queue holds 1 packets"]),
    "twice": ("self.fifo.popleft() if self.fifo else None", "self.first",
              ["line 13", "Mine.dequeue", "this packet was sent before"]),
    "dropped before": ("self.fifo.append(packet)", "cx.drop(packet); self.fifo.append(packet)",
                       ["line 13", "Mine.dequeue", "this packet was dropped before"]),
    "foreign": ("self.fifo.popleft() if", "'a packet' if",
                ["line 13", "Mine.dequeue", "returned 'a packet', not a packet or None"]),
    "dropped twice": ("self.fifo.append(packet)", "cx.drop(packet); cx.drop(packet)",
                      ["line 11", "Mine.enqueue", "this packet was dropped before"]),
    "marked": ("self.fifo.append(packet)", "cx.mark(packet)",
               ["line 11", "Mine.enqueue", "not ECN-capable"]),
    "no such reason": ("self.fifo.append(packet)", "cx.drop(packet, 'tired')",
                       ["line 11", "Mine.enqueue", "unknown reason `tired`", "overlimit"]),
    "not nanoseconds": ("def enqueue", "def next_wakeup(self): return 0.5\n    def on_wakeup"
                        "(self, cx): pass\n    def enqueue", ["returned 0.5, not whole nanose"]),
    "a timer that stays": ("def enqueue", "def next_wakeup(self): return 7\n    def on_wakeup"
                           "(self, cx): pass\n    def enqueue", ["Mine.on_wakeup", "not advance"]),
}  # fmt: skip
FAULTS_CONTROLS = {
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
FAULTS = {QUEUE: FAULTS_QUEUES, CONTROL: FAULTS_CONTROLS}
"""By kind of class: changes to the good one, and words of the message."""


def refuse(aqmlab: Aqmlab, scenario: Path, key: str, change: tuple[str, str], *words: str) -> None:
    """The good class, spoilt by a change, ends a run that has it at `key`."""
    before, after = change
    assert before in GOOD[key]
    (scenario.parent / "mine.py").write_text(GOOD[key].replace(before, after, 1))
    level = "series" if key == QUEUE else "summary"
    settings = ["--set", f"{key}=mine.py:Mine", "--set", f"record.level={level}"]
    assert_refused(aqmlab("run", scenario, *settings), *words)


@pytest.mark.parametrize(("key", "case"), [(key, case) for key in WRONG for case in WRONG[key]])
def test_a_wrong_class_is_refused(key: str, case: str, scenario: Path, aqmlab: Aqmlab) -> None:
    good, bad, words = WRONG[key][case]
    refuse(aqmlab, scenario, key, (good, bad), "--set", key, *words)


@pytest.mark.parametrize(("key", "case"), [(key, case) for key in FAULTS for case in FAULTS[key]])
def test_a_fault_ends_the_run_with_one_message(
    key: str, case: str, scenario: Path, aqmlab: Aqmlab
) -> None:
    good, bad, words = FAULTS[key][case]
    refuse(aqmlab, scenario, key, (good, bad), "mine.py", *words)


SETTINGS = {
    "queue=mina.py:Mine": ["--set: queue", "there is no file", "did you mean `mine.py`?"],
    "queue=folder.py:Mine": ["--set: queue", "folder.py is a folder, not a file"],
    "queue=no_such.module:Mine": ["--set: queue", "no_such", "a file is named with its ending"],
    "queue=mine.py": ["--set: queue", "expected FILE:CLASS"],
    "queue=mine.py:helper": ["--set: queue", "unknown class", "known: Mine"],
    "queue.targt=2ms": ["queue.targt", "did you mean `target`?"],
    "queue.target=2": ["queue.target", "`2`", "a time with its unit"],
    "queue.code=abc": ["queue.code", "the code has changed"],
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_wrong_setting_is_refused(setting: str, scenario: Path, aqmlab: Aqmlab) -> None:
    (scenario.parent / "mine.py").write_text(GOOD[QUEUE])
    (scenario.parent / "folder.py").mkdir()
    done = aqmlab("run", scenario, "--set", "queue=mine.py:Mine", "--set", setting)
    assert_refused(done, *SETTINGS[setting])


def test_a_packet_of_another_queue_is_refused(mapping: dict[str, Any]) -> None:
    class Shared(package.Queue):
        fifo: list[Any] = []  # noqa: RUF012

        def enqueue(self, packet: Any, cx: Any) -> None:
            self.fifo.append(packet)

        def dequeue(self, cx: Any) -> Any:
            return self.fifo.pop(0) if self.fifo else None

    with pytest.raises(package.QueueError, match="this packet belongs to another queue"):
        package.run(mapping, set={"links.down.queue": Shared, "links.up.queue": Shared})


TIRED = """
    def enqueue(self, packet, cx):
        if cx.now > 2_000_000_000:
            raise RuntimeError("tired")
"""


def test_the_other_runs_are_kept(study: Path, aqmlab: Aqmlab) -> None:
    tired = GOOD[QUEUE].replace("\n    def enqueue(self, packet, cx):", TIRED)
    (study.parent / "mine.py").write_text(tired)
    text = study.read_text().replace('queue = { discipline = "droptail", limit = "60p" }',
                                     'queue = "mine.py:Mine"')  # fmt: skip
    study.write_text(text)
    done = aqmlab("study", study, "--out", study.parent / "out", "--threads", "1", cwd="/")
    assert_refused(done, "mine.py, line 11", "RuntimeError: tired", "queue=DropTail, flows=1",
                   "replication 0", "6 of 12 runs are kept in")  # fmt: skip
    (study.parent / "mine.py").write_text(GOOD[QUEUE])
    assert_refused(aqmlab("study", study, "--out", "out"), "another scenario")


def test_the_cause_is_kept_and_the_user_gets_the_traceback(
    mapping: dict[str, Any], scenario: Path
) -> None:
    (scenario.parent / "mine.py").write_text(GOOD[CONTROL].replace("ack.acked", "ack.nothing"))
    name = f"{scenario.parent}/mine.py:Mine"
    with pytest.raises(package.ControlError, match=r"Mine\.on_ack at 0") as caught:
        package.run(mapping, set={"transport.congestion_control": name})
    assert isinstance(caught.value.__cause__, AttributeError)
    assert isinstance(caught.value, package.CustomError) and caught.value.run == 0
    done = run_program(
        command("run", scenario, "--set", f"transport.congestion_control={name}"),
        env=environment() | {"AQMLAB_TRACEBACK": "1"},
    )
    assert "in on_ack\n    self.window += ack.nothing" in done.stderr
    assert done.returncode == 2


def test_a_window_of_nothing_is_one_segment(mapping: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD[CONTROL].replace("+= ack.acked", "= 0"))
    mapping["transport"] = {"congestion_control": f"{tmp_path}/mine.py:Mine"}
    result = package.run(mapping)
    assert result.flows["segments_sent"].min() > 10


@pytest.mark.parametrize(
    ("key", "line", "body"),
    [
        (QUEUE, "self.fifo.append(packet)", "time.sleep(0.002); self.fifo.append(packet)"),
        (QUEUE, "self.fifo.append(packet)", "exec('while True: pass')"),
        (CONTROL, "self.window += ack.acked", "exec('while True: pass')"),
    ],
    ids=["slow queue", "endless queue", "endless control"],
)
def test_ctrl_c_ends_a_run_in_python(key: str, line: str, body: str, scenario: Path) -> None:
    begun = scenario.parent / "begun"
    text = GOOD[key].replace(line, f"open({str(begun)!r}, 'w').close(); {body}")
    (scenario.parent / "mine.py").write_text(f"import time\n{text}")
    assert_ends_with_ctrl_c("run", scenario, "--set", f"{key}=mine.py:Mine", begun=begun)
