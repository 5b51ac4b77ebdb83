"""`aqmlab top` and `aqmlab set`: running emulators are seen and changed, with real packets."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import (
    COMMAND,
    PATIENCE,
    Aqmlab,
    assert_refused,
    command,
    environment,
    run_program,
    wait_until,
)
from real_packets import NOBODY, PORT, TRAFFIC

from aqmlab.emulator import view
from aqmlab.emulator.change import change
from aqmlab.errors import InputError
from aqmlab.scenario.quantity import Rate, quantity
from aqmlab.study.folder import open_results

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


def test_what_the_links_of_a_number_or_name_do_now(aqmlab: Aqmlab, shell: int) -> None:
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
    (found,) = aqmlab.json("top", NAME, "--once", "--json")
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
    words = ("top", *nested(shell), "--interval", "0.5")
    # It ends when there is nothing to see any more.
    seen, status = in_a_terminal(*words, at="rate=1gbit", then=lambda _: os.kill(shell, 9))
    assert status == 0
    for text in ("--rate 20mbit", "rate=1gbit", "Mbit/s"):
        assert text in seen, text


def test_a_shell_does_not_see_its_own_emulator(aqmlab: Aqmlab) -> None:
    done = aqmlab("shell", "-q", "--", *command("top", "--once"))
    assert_refused(done, "run this outside of the shell")


def test_a_pipe_gets_each_table_at_once(aqmlab: Aqmlab, shell: int) -> None:
    once(aqmlab, shell)
    words = command("top", str(shell), "--interval", "0.5")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), text=True)
    assert process.stdout is not None
    seen = [process.stdout.readline() for _ in range(20)]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 0
    assert sum("up" in line and "Mbit/s" in line for line in seen) >= 2, seen


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Presses Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


def in_a_terminal(
    *words: str, at: str = "never", then: Callable[[Any], object] = interrupt
) -> tuple[str, int]:
    """Runs it in a terminal, and does something once a text is shown; returns output and status."""
    master, slave = pty.openpty()
    environ = environment() | {"TERM": "xterm", "LINES": "50"}
    process = subprocess.Popen(command(*words), stdin=slave, stdout=slave, stderr=slave,
                               env=environ, start_new_session=True)  # fmt: skip
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):
        while new := os.read(master, 65_536):
            if at.encode() in seen + new and at.encode() not in seen:
                then(process)
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
    seen, status = in_a_terminal("shell", "--watch", "-q", "--", *words, at="ready")
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


Start = Callable[..., subprocess.Popen[str]]


def arrived() -> int:
    """Packets that have arrived at the link `up` of the emulator of our name."""
    for each in view.running():
        if each.name == NAME:
            links = (each.look() or {"links": []})["links"]
            return sum(link["arrived"] for link in links if link["link"] == "up")
    return 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a shell of our name, into which 10 Mbit/s of datagrams are sent until it ends, and
    waits until 1000 have arrived, after 0.8 s."""
    started = []

    def run(*options: str) -> subprocess.Popen[str]:
        flood = f"{TRAFFIC} flood $AQMLAB_FAR {PORT} 60 10"
        words = command("shell", "--name", NAME, *options, "--drain", "0s", "--out", "out", "--far",
                        f"{TRAFFIC} serve {PORT}", "--", "sh", "-c", f"exec {flood}")  # fmt: skip
        process = subprocess.Popen(words, cwd=tmp_path, env=environment(), text=True,
                                   stderr=subprocess.PIPE)  # fmt: skip
        started.append(process)
        wait_until(lambda: arrived() >= 1000, process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def finish(process: subprocess.Popen[str], folder: Path) -> tuple[dict[str, Any], Any]:
    """Ends it: the row of its link `up`, and its results."""
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE)
    assert (folder / "out" / "links.parquet").exists(), said
    result = open_results(folder / "out").single()
    (up,) = result.links.filter(pl.col("link") == "up").to_dicts()
    return up, result


def test_a_rate_changes_and_the_results_know_when(
    aqmlab: Aqmlab, start: Start, tmp_path: Path
) -> None:
    process = start("--up", "rate=8mbit delay=5ms queue=codel")
    found = aqmlab.json("set", NAME, "up.rate=2mbit", "--json")
    made = {"key": "links.up.rate", "before": "8mbit", "after": "2mbit"}
    assert found["changes"] == [made]
    time.sleep(1.2)
    up, result = finish(process, tmp_path)
    (kept,) = result.scenario["changes"]
    at = quantity(kept["at"], "delay", "at")
    assert (kept["key"], kept["value"], at) == (made["key"], "2mbit", found["time_s"])
    rates = result.series.filter(subject="up", quantity="throughput_bps")
    before = rates.filter((pl.col("time_s") > at - 0.45) & (pl.col("time_s") < at))["value"]
    after = rates.filter(pl.col("time_s") > at + 0.25)["value"]
    assert before.median() == pytest.approx(8e6, rel=0.05)
    assert after.median() == pytest.approx(2e6, rel=0.05)
    # What the link offered counts each rate for its time, the new one from the end of the
    # transmission in progress: a packet takes at most 1.6 ms.
    end = float(result.runs["end_s"][0])
    offered = (at * 8e6 + (end - at) * 2e6) / 8
    assert offered - 1 <= up["capacity_bytes"] <= offered + 1.6e-3 * (8e6 - 2e6) / 8
    page = (tmp_path / "out/report.html").read_text()
    assert re.search(r"\d\.\d{3} s<.*links.up.rate", page)


def test_queues_follow_each_other_and_packets_are_conserved(
    aqmlab: Aqmlab, start: Start, tmp_path: Path
) -> None:
    process = start("--up", "rate=1mbit queue={discipline='droptail',limit='300p'}")
    # 10 Mbit/s into 1 Mbit/s: it is full by now. A smaller queue drops the rest of it.
    whole = change(NAME, {"up.queue": "codel limit=20p", "up.queue.target": "20ms"})
    assert [each.key for each in whole.changes] == ["links.up.queue", "links.up.queue.target"]
    assert whole.changes[0].before["limit"] == "300p"
    assert whole.changes[1].after == "20ms"
    time.sleep(0.2)
    done = aqmlab("set", NAME, "up.queue=fq_codel limit 50")
    assert "up.queue: codel target 20ms limit 20 -> fq_codel limit 50 at" in done.stdout
    change(NAME, {"up.loss": "20%", "up.delay": "30ms", "down.rate": Rate("3mbit")})
    time.sleep(0.4)
    up, result = finish(process, tmp_path)
    assert up["dropped"] == sum(up[key] for key in up if key.startswith("drop_"))
    assert up["drop_overlimit"] >= 280
    left = up["arrived"] - up["delivered"] - up["dropped"]
    assert 0 <= left <= 50 and up["lost"] > 0
    assert len(result.scenario["changes"]) == 6


def test_a_parameter_changes_in_the_running_queue(
    aqmlab: Aqmlab, start: Start, tmp_path: Path
) -> None:
    process = start("--up", "rate=2mbit queue={discipline='codel',limit='40p'}")
    same = change(NAME, {"up.rate": "2mbit", "up.queue.target": "5ms"})
    assert [(each.before, each.after) for each in same.changes] == [("2mbit",) * 2, ("5ms",) * 2]
    assert_refused(aqmlab("set", NAME, "up.loss=200%"), "error: up.loss: `200%`")
    assert_refused(aqmlab("set", NAME, "up.queue.variant=linux"), "up.queue.variant", "`replace`")
    aqmlab.ok("set", NAME, "up.queue.variant=linux", "--replace")
    change(NAME, {"up.queue.limit": "30p"})
    with pytest.raises(InputError, match="only a queue can be replaced"):
        change(NAME, {"up.rate": "1mbit"}, replace=True)
    _, result = finish(process, tmp_path)
    kept = [(each["key"], each.get("replace")) for each in result.scenario["changes"]]
    assert kept == [("links.up.queue", "true"), ("links.up.queue", None)], "equal values are none"


def test_what_cannot_change_is_refused_and_nothing_changes(
    aqmlab: Aqmlab, start: Start, tmp_path: Path
) -> None:
    process = start("--up", "rate=8mbit queue=codel")
    refused = aqmlab("set", NAME, "down.rate=1mbit", "up.rate=fast")
    assert_refused(refused, "up.rate: `fast`", "such as 10mbit")
    refused = aqmlab("set", NAME, "up.queue=fq_codel targte 5ms")
    assert_refused(refused, "up.queue", "`targte`", "did you mean `target`?")
    for settings, expected in (
        ({"up.rat": "1mbit"}, "up.rat: unknown key; known: rate, delay, loss, queue"),
        ({"upp.rate": "1mbit"}, "upp.rate: `upp`: unknown link; known: down, up"),
        ({"up.rate": "1mbit", "up.queue.tagret": "1ms"}, "up.queue.tagret: unknown key"),
        ({"rate": "1mbit"}, "rate: `rate`: unknown link"),
        ({"up.loss": 2}, "up.loss: `2`"),
        ({"up.rate": "1mbit", "there.rate": "1mbit"}, "unknown link"),
    ):
        with pytest.raises(InputError, match=re.escape(expected)):
            change(NAME, settings)
    with pytest.raises(InputError, match=f"did you mean `{NAME}`"):
        change(f"{NAME}x", {"up.rate": "1mbit"})
    assert_refused(aqmlab("lab", "--shell", f"{NAME}x"), "--shell", f"did you mean `{NAME}`")
    assert view.named(NAME, key="--shell") == view.named(str(process.pid), key="NAME")
    if os.geteuid() == 0:
        words = [*NOBODY, COMMAND, "set", NAME, "up.rate=1mbit"]
        other = subprocess.run(words, check=False, cwd="/", env=environment())
        assert other.returncode != 0
    _, result = finish(process, tmp_path)
    assert "changes" not in result.scenario


def test_a_scenario_changes_while_packets_pass(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """Changes of the file occur at their times, as in the simulator."""
    (tmp_path / "s.toml").write_text(
        '[links.down]\nrate = "8mbit"\n[links.up]\nrate = "100mbit"\n'
        '[flows.bulk]\npath = ["down"]\nreturn_path = ["up"]\n'
        '[[changes]]\nat = "300ms"\nkey = "links.down.rate"\nvalue = "2mbit"\n'
    )
    found = aqmlab.json("shell", "--scenario", "s.toml", "--json", "--", "sleep", "0.6")
    (down,) = (row for row in found["links"] if row["link"] == "down")
    end = found["runs"][0]["end_s"]
    assert down["capacity_bytes"] == pytest.approx((0.3 * 8e6 + (end - 0.3) * 2e6) / 8, rel=1e-6)
    assert found["changes"][0]["at"] == "300ms"
    of_flows = '[[changes]]\nat = "1s"\nkey = "flows.bulk.active"\nvalue = false\n'
    with (tmp_path / "s.toml").open("a") as file:
        file.write(of_flows)
    refused = aqmlab("shell", "--scenario", "s.toml", "--", "true")
    assert_refused(refused, "changes.flows.bulk.active", "simulation only")


def test_names_that_are_none_are_refused(aqmlab: Aqmlab) -> None:
    for wrong in ("4711", "", "a/b"):
        assert_refused(
            aqmlab("shell", "--name", wrong, "--", "true"), "name", f"`{wrong}`", "letters"
        )
