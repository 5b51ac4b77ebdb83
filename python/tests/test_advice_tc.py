"""The `tc` command for a queue."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from aqmlab.advice import tc


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("droptail", "pfifo limit 1000"),
        ({"discipline": "droptail", "limit": "30000b"}, "bfifo limit 30000"),
        ("codel", "codel"),
        (
            {"discipline": "fq_codel", "target": "2ms", "limit": "600p", "ecn": False},
            "fq_codel limit 600 target 2ms noecn",
        ),
        (
            {"discipline": "cake", "bandwidth": "9500kbit", "diffserv": "besteffort"},
            "cake bandwidth 9.5mbit besteffort",
        ),
        ({"discipline": "pie", "alpha": 0.25, "delay": "rate"}, "pie alpha 4 dq_rate_estimator"),
        ({"discipline": "sfq", "perturb": "10s"}, "sfq perturb 10"),
        (
            {"discipline": "red_linux", "ecn": True},
            "red min 30000 max 90000 limit 400000 probability 0.02 avpkt 1000 ecn",
        ),
    ],
)
def test_a_queue_in_the_words_of_tc(queue: Any, words: str) -> None:
    line = tc.line(queue)
    assert line is not None
    assert (line.words, line.left_out) == (words, ())


def test_linux_does_not_have_them_all() -> None:
    assert tc.line("pi2") is None
    assert tc.line("hred") is None


def test_what_tc_cannot_say_is_named() -> None:
    line = tc.line({"discipline": "codel", "limit": "30000b", "target": "2ms"})
    assert line is not None
    assert line.words == "codel target 2ms"
    assert line.left_out == ("limit = 30000b",)


@pytest.mark.needs("tc", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a namespace of its own")
@pytest.mark.parametrize("name", sorted(tc.DISCIPLINES))
def test_tc_takes_the_command(name: str) -> None:
    """In a namespace of its own; a kernel without the discipline has still had tc read it."""
    line = tc.line(name)
    assert line is not None
    words = ["tc", "qdisc", "replace", "dev", "lo", "root", *line.words.split()]
    done = subprocess.run(["unshare", "--net", *words], capture_output=True, text=True, check=False)
    lacks = ("kind is unknown", "not supported", "not permitted", "unshare")
    assert done.returncode == 0 or any(each in done.stderr for each in lacks), done.stderr
