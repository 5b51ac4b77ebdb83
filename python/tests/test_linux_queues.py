"""Queues in the words of tc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, assert_refused

from aqmlab.advice import tc
from aqmlab.scenarios.linux_queues import is_line, read

LINES: dict[str, dict[str, Any]] = {
    "fq_codel target 5ms limit 1024": {
        "discipline": "fq_codel", "target": "5ms", "limit": "1024p",
    },
    # As `tc qdisc show` prints it.
    "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms "
    "interval 100ms memory_limit 32Mb ecn drop_batch 64": {
        "discipline": "fq_codel", "limit": "10240p", "flows": 1024, "quantum": "1514b",
        "target": "5ms", "interval": "100ms", "memory_limit": "33554432b", "ecn": True,
        "drop_batch": 64,
    },
    "tc qdisc replace dev eth0 root handle 1: pie limit 100 target 20000 alpha 2 bytemode": {
        "discipline": "pie", "limit": "100p", "target": "20000us", "alpha": 0.125, "by_size": True,
    },
    "cake bandwidth 20Mbit besteffort dual-srchost nat wash regional overhead 18": {
        "discipline": "cake", "bandwidth": "20mbit", "diffserv": "besteffort",
        "isolation": "dual-src-host", "wash": True, "interval": "30ms", "overhead": "18b",
    },
    "bfifo limit 64k": {"discipline": "droptail", "limit": "65536b"},
    "red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.02 ecn": {
        "discipline": "red_linux", "limit": "400000b", "min_threshold": "30000b",
        "max_threshold": "90000b", "mean_packet": "1000b", "max_p": 0.02, "ecn": True,
    },
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_tc_is_read(line: str) -> None:
    assert is_line(line)
    assert read(line) == LINES[line]
    assert tc.line(read(line)) is not None, "it is a queue"


@pytest.mark.parametrize("name", sorted(tc.DISCIPLINES))
def test_what_is_written_reads_back(name: str) -> None:
    if name == "sfb":
        pytest.skip("sfb is only written")
    line = tc.line(name)
    assert line is not None
    again = tc.line(read(line.words))
    assert again == line


def test_other_texts_are_none() -> None:
    for text in ("codel", "fq_codel target=5ms", "my_queue.py:MyQueue", "2bdp of something"):
        assert not is_line(text)


def test_settings_and_shell_take_tc(aqmlab: Aqmlab, scenario: Path) -> None:
    by_tc = aqmlab("run", scenario, "--set", "queue=fq_codel target 2ms limit 600 noecn", "--json")
    words = ("queue=fq_codel", "queue.target=2ms", "queue.limit=600p", "queue.ecn=false")
    by_key = aqmlab(
        "run", scenario, "--json", *(each for word in words for each in ("--set", word))
    )
    assert by_tc.returncode == 0, by_tc.stderr
    assert by_tc.stdout == by_key.stdout
    wrong = aqmlab("run", scenario, "--set", "queue=fq_codel targte 2ms")
    assert_refused(wrong, "`targte`", "did you mean `target`?")
    wrong = aqmlab("shell", "--queue", "fq_codel target soon", "--", "true")
    assert_refused(wrong, "`target soon`", "--queue")


def test_explain_shows_the_command(aqmlab: Aqmlab) -> None:
    assert "tc qdisc replace dev eth0 root fq_codel" in aqmlab("explain", "fq_codel").stdout
    assert "tc qdisc" not in aqmlab("explain", "pi2").stdout
