"""`aqmlab top`: a view of running emulators."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import COMMAND, PATIENCE, Aqmlab, assert_refused, command, environment, run_program
from real_packets import TRAFFIC

from aqmlab.emulator import view

PORT = 10_000 + os.getpid() % 5_000
NAME = f"top-{PORT}"
pytestmark = pytest.mark.real_packets


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[int]:
    """A path of 20 Mbit/s that is kept full, with another inside; the number of the outer one."""
    client = f"{TRAFFIC} bulk $AQMLAB_FAR {PORT} 60"
    inner = command("shell", "-q", "--down", "rate=1gbit", "--", "sh", "-c", client)
    words = command("shell", "--name", NAME, "--rate", "20mbit", "--queue", "codel", "--far",
                    f"{TRAFFIC} serve {PORT}", "--", *inner)  # fmt: skip
    process = subprocess.Popen(words, cwd=tmp_path, env=environment())
    yield process.pid
    process.kill()
    process.wait()


def once(aqmlab: Aqmlab, pid: int) -> list[dict[str, Any]]:
    for _ in range(20):
        done = aqmlab("top", str(pid), "--once", "--json", "--interval", "1")
        if done.returncode == 0 and json.loads(done.stdout)[0]["links"][1]["rate_bps"] > 1e6:
            return list(json.loads(done.stdout))
        time.sleep(0.2)
    raise AssertionError(done.stderr)


def test_what_links_do_now(aqmlab: Aqmlab, shell: int) -> None:
    (found,) = once(aqmlab, shell)
    assert found["pid"] == shell
    assert "--rate 20mbit" in found["command"]
    down, up = found["links"]
    assert (down["link"], down["direction"], up["link"]) == ("down", "down", "up")
    # One flow with CoDel does not always fill it.
    assert up["rate_bps"] == pytest.approx(20e6, rel=0.15)
    assert up["delivered"] > 800
    assert 0 < up["sojourn_p50_s"] <= up["sojourn_p95_s"] <= up["sojourn_p99_s"] < 0.2
    assert up["backlog_packets"] < 1000
    assert down["marked"] == down["lost"] == 0


def test_a_name_selects_an_emulator(aqmlab: Aqmlab, shell: int) -> None:
    once(aqmlab, shell)
    (found,) = json.loads(aqmlab.ok("top", NAME, "--once", "--json").stdout)
    assert (found["pid"], found["name"]) == (shell, NAME)
    assert_refused(aqmlab("top", "no-such-name"), "NAME: `no-such-name`: unknown emulator", NAME)


def nested(shell: int) -> list[str]:
    """The shell and the one inside it: others may run here."""
    found = [each for each in view.running() if f"serve {PORT}" in each.command
             or f"$AQMLAB_FAR {PORT}" in each.command]  # fmt: skip
    assert len(found) == 2 and found[0].pid == shell
    return [str(each.pid) for each in found]


def test_nested_shells_are_seen_in_a_terminal(aqmlab: Aqmlab, shell: int) -> None:
    once(aqmlab, shell)
    master, slave = pty.openpty()
    words = [COMMAND, "top", *nested(shell), "--interval", "0.5"]
    process = subprocess.Popen(words, stdout=slave, stdin=slave,
                               stderr=slave, env=environment() | {"COLUMNS": "130", "LINES": "50",
                                                                  "TERM": "xterm"})  # fmt: skip
    os.close(slave)
    seen = ""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and "rate=1gbit" not in seen:
        if select.select([master], [], [], 0.2)[0]:
            seen += os.read(master, 65_536).decode(errors="replace")
    assert "--rate 20mbit" in seen
    assert "rate=1gbit" in seen
    assert "Mbit/s" in seen
    # It ends when there is nothing to see any more.
    os.kill(shell, 9)
    with contextlib.suppress(OSError):
        while os.read(master, 65_536):
            pass
    assert process.wait(timeout=PATIENCE) == 0
    os.close(master)


def in_a_terminal(*words: str, interrupt_at: str = "never") -> tuple[str, int]:
    """Runs it in a terminal; returns output and status. Presses Ctrl-C once a text is shown."""
    master, slave = pty.openpty()
    environ = environment() | {"TERM": "xterm"}
    process = subprocess.Popen(command(*words), stdin=slave, stdout=slave, stderr=slave,
                               env=environ, start_new_session=True)  # fmt: skip
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):
        while new := os.read(master, 65_536):
            if interrupt_at.encode() in seen + new and interrupt_at.encode() not in seen:
                os.killpg(process.pid, signal.SIGINT)
            seen += new
    os.close(master)
    return seen.decode(errors="replace"), process.wait(timeout=PATIENCE)


def test_a_view_below_what_the_command_says() -> None:
    client = f"echo begin; {TRAFFIC} bulk $AQMLAB_FAR {PORT} 4 >&2; echo 10%; tty <&1; exit 5"
    rate = ["--rate", "20mbit", "--queue", "codel", "--far", f"{TRAFFIC} serve {PORT}"]
    seen, status = in_a_terminal("shell", "--watch", *rate, "--", "sh", "-c", client)
    assert status == 5
    for text in ("begin\r\n", "Mbit/s", "sojourn time", "10%\r\n", "/dev/pts/", "late by"):
        assert text in seen, text
    # The view is gone at the end.
    assert "sojourn time" not in seen[seen.index("late by") :]
    words = ["sh", "-c", "echo ready; trap 'echo stopped; exit 3' INT; while :; do sleep 0.1; done"]
    seen, status = in_a_terminal("shell", "--watch", "-q", "--", *words, interrupt_at="ready")
    assert status == 3
    assert "stopped" in seen
    assert "Traceback" not in seen


def test_a_view_needs_a_terminal_and_a_command(aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("shell", "--watch", "--", "true"), "--watch", "no terminal", "aqmlab top")
    seen, status = in_a_terminal("shell", "--watch")
    assert status == 2
    assert "a shell needs the terminal" in seen


def test_where_there_is_nothing_to_see(aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("top", str(os.getpid())), "emulator")
    # A user of whom no other test has an emulator.
    script = "import os; os.setuid(64321); import aqmlab.emulator.view as v; print(v.running())"
    if os.geteuid() == 0:
        done = run_program([sys.executable, "-c", script], cwd="/", env=environment())
        assert done.stdout in ("[]\n", ""), done.stdout
