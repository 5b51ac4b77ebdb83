"""Queues and shapers in words, the same everywhere; the words are tested in the engine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, assert_refused, run_program

from aqmlab._core import (
    InputError,
    parse_queue,
    parse_shaper,
    queue_in_tc,
    queue_in_words,
    shaper_in_tc,
)
from aqmlab.study.single import load

LINKS = """
    [links.down]
    rate = "20mbit"
    {down}
    [links.up]
    rate = "10mbit"
    {up}
    [flows.bulk]
    path = ["down"]
    return_path = ["up"]
    size = "100kb"
"""


def queue_of(file: Path, settings: dict[str, Any], link: str = "down") -> dict[str, Any]:
    return dict(load(file, settings).table["links"][link]["queue"])


@pytest.fixture
def line(tmp_path: Path) -> Path:
    file = tmp_path / "line.toml"
    file.write_text(LINKS.format(down='queue = "fq_codel limit 500 target=3ms"', up=""))
    return file


def test_words_are_read_in_files_and_settings(line: Path) -> None:
    found = queue_of(line, {})
    assert (found["limit"], found["target"]) == ("500p", "3ms")
    by_words = queue_of(line, {"queue": "cake bandwidth 18mbit pppoe-ptm nat ack-filter"})
    table = {"discipline": "cake", "bandwidth": "18mbit", "link_layer": "pppoe-ptm",
             "ack_filter": "conservative"}  # fmt: skip
    assert by_words == queue_of(line, {"queue": table}) == parse_queue(table)
    # A limit alone is one of the default queue.
    assert queue_of(line, {"up.queue.limit": "7p"}, "up")["limit"] == "7p"


def test_an_axis_may_be_a_key_of_the_default_queue(aqmlab: Aqmlab, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    scenario = LINKS.format(down="", up="").replace("[links", "[scenario.links")
    scenario = scenario.replace("[flows", "[scenario.flows")
    study.write_text(
        f'name = "limits"\nreplications = 1\n{scenario}\n'
        '[[axes]]\nname = "limit"\nkey = "queue.limit"\nvalues = ["5p", "50p"]\n'
        '[[axes]]\nname = "up"\nkey = "up.queue"\nvalues = ["pfifo limit 9", "codel target 2ms"]\n'
    )
    aqmlab.ok("study", study, "--no-report", "--out", tmp_path / "out")
    wrong = aqmlab("study", study, "--set", "down.queue=fq_codel targte 2ms")
    assert_refused(wrong, "--set at limit=5p", ": down.queue: `targte`", "did you mean `target`?")


def test_an_error_names_the_option_that_was_used(aqmlab: Aqmlab, line: Path) -> None:
    words = "fq_codel targte 2ms"
    for options in (
        ("run", line, "--set", f"queue={words}"),
        ("run", line, "--set", f"up.queue={words}"),
        ("shell", "--set", f"up.queue={words}", "--", "true"),
        ("shell", "--set", f"links.down.queue={words}", "--", "true"),
    ):
        wrong = aqmlab(*options)
        assert_refused(wrong, "--set: ", "`targte`", "did you mean `target`?")
        assert "--queue" not in wrong.stderr
    wrong = aqmlab("shell", "--queue", "fq_codel target soon", "--", "true")
    assert_refused(wrong, "--queue", "`soon`", "a time with its unit")
    wrong = aqmlab("shell", "--down", "rate=1mbit queue='codel tagret 1ms'", "--", "true")
    assert_refused(wrong, "--down (queue)", "`tagret`")
    wrong = aqmlab("run", line, "--set", "queue.traget=2ms")
    assert_refused(wrong, "--set: queue.traget", "did you mean `target`?")


def test_a_run_is_the_same_by_words_and_by_keys(aqmlab: Aqmlab, line: Path) -> None:
    by_tc = aqmlab("run", line, "--set", "queue=fq_codel target 2ms limit 600 noecn", "--json")
    words = ("queue=fq_codel", "queue.target=2ms", "queue.limit=600p", "queue.ecn=false")
    by_key = aqmlab("run", line, "--json", *(each for word in words for each in ("--set", word)))
    assert by_tc.returncode == 0, by_tc.stderr
    assert by_tc.stdout == by_key.stdout
    assert json.loads(by_tc.stdout)


def test_python_reads_and_prints_words() -> None:
    assert queue_in_tc({"discipline": "pie", "alpha": 0.25}) == ("pie alpha 4", [])
    assert queue_in_tc("codel limit=30kb target=2ms") == ("codel target 2ms", ["limit = 30720b"])
    assert queue_in_tc("pi2") is None
    found = queue_in_tc("red_linux", "5mbit")
    assert found is not None and found[0].endswith("bandwidth 5mbit")
    assert queue_in_words("pi2 target 5ms") == "pi2 target=5ms"
    shaper = {"rate": "9500kbit", "link_layer": "docsis"}
    assert shaper_in_tc(shaper) == ("htb rate 9.5mbit overhead 18 mpu 64", [])
    assert shaper_in_tc("rate 5mbit link_layer=pppoe-ptm") == (
        "htb rate 5mbit overhead 30", ["framing = ptm"]
    )  # fmt: skip
    assert parse_shaper("htb rate 5mbit")["ceil"] == "none"
    with pytest.raises(InputError, match=r"shaper.cel|`cel`"):
        parse_shaper("htb rate 5mbit cel 5mbit")


def test_explain_shows_the_command_and_the_words(aqmlab: Aqmlab) -> None:
    assert "Not modelled: fwmark." in aqmlab("explain", "cake").stdout
    for word, expected in {
        "cake.pppoe-ptm": "pppoe-ptm: link_layer = pppoe-ptm.",
        "cake.rtt": "the word of tc for interval",
        "cake.nat": "nat: no effect; hosts are those of the flows",
        "sfq.redflowlimit": "redflowlimit ...: not modelled; SFQ has no RED",
        "shaper.maxburst": "the word of tc for burst",
    }.items():
        assert expected in aqmlab("explain", word).stdout
    assert "tc qdisc replace dev eth0 root fq_codel" in aqmlab("explain", "fq_codel").stdout
    assert "tc qdisc" not in aqmlab("explain", "pi2").stdout


OF_LINUX = (
    "pfifo limit 100",
    "bfifo limit 64k",
    "pfifo_head_drop limit 10",
    "codel limit 100 target 2500us interval 30ms ecn ce_threshold 1ms",
    "fq_codel limit 1000 flows 64 quantum 300 memory_limit 4Mb drop_batch 8 noecn target 1.5ms",
    "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3",
    "pie limit 100 target 20ms tupdate 30ms alpha 3 beta 10 ecn bytemode dq_rate_estimator",
    "fq_pie flows 64 quantum 300 ecn ecn_prob 20 bytemode",
    "sfq limit 300 perturb 10 quantum 3000 divisor 2048 flows 200 depth 50 headdrop",
    "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn harddrop nodrop adaptive",
    "red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.1 bandwidth 5mbit wlog=7",
    "choke limit 500 min 20 max 60 burst 40 ecn",
    "sfb rehash 30000 db 5000 max 30 target 25 increment 0.01 penalty_rate 20 penalty_burst 30",
    "cake bandwidth 9500kbit autorate-ingress diffserv4 dual-srchost wash ingress "
    "ack-filter-aggressive regional pppoe-ptm ether-vlan mpu 64 memlimit 4Mb",
    "cake besteffort flowblind rtt 55ms overhead -4 atm ack-filter",
    "cake precedence hosts satellite docsis no-ack-filter",
)


@pytest.mark.needs("tc", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a namespace of its own")
@pytest.mark.parametrize("queue", OF_LINUX)
def test_tc_takes_the_command(queue: str) -> None:
    """In a namespace of its own; a kernel without the discipline has still had tc read it."""
    found = queue_in_tc(queue, "10mbit")
    assert found is not None and not found[1]
    words = ["tc", "qdisc", "replace", "dev", "lo", "root", *found[0].split()]
    done = run_program(["unshare", "--net", *words])
    lacks = ("kind is unknown", "not supported", "not permitted", "unshare")
    assert done.returncode == 0 or any(each in done.stderr for each in lacks), done.stderr
