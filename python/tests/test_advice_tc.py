"""The `tc` command for a queue."""

from __future__ import annotations

import os
import subprocess

import pytest

from aqmlab.advice import tc

QUEUES = (
    "pfifo limit 100",
    "bfifo limit 64k",
    "pfifo_head_drop limit 10",
    "codel limit 100 target 2500us interval 30ms ecn ce_threshold 1ms",
    "fq_codel limit 1000 flows 64 quantum 300 memory_limit 4Mb drop_batch 8 noecn target 1.5ms",
    "pie limit 100 target 20ms tupdate 30ms alpha 3 beta 10 ecn bytemode dq_rate_estimator",
    "fq_pie flows 64 quantum 300 ecn ecn_prob 20 bytemode",
    "sfq limit 300 perturb 10 quantum 3000 divisor 2048 flows 200 depth 50 headdrop",
    "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn harddrop adaptive",
    "red limit 400000 min 30000 max 90000 avpkt 1000 probability 0.1 bandwidth 5mbit wlog=7",
    "choke limit 500 min 20 max 60 burst 40 ecn",
    "sfb rehash 30000 db 5000 max 30 target 25 increment 0.01 penalty_rate 20 penalty_burst 30",
    "cake bandwidth 9500kbit autorate-ingress diffserv4 dual-srchost wash ingress "
    "ack-filter-aggressive regional pppoe-ptm ether-vlan mpu 64 memlimit 4Mb",
    "cake besteffort flowblind rtt 55ms overhead -4 atm ack-filter",
    "cake precedence hosts satellite docsis no-ack-filter",
)


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
@pytest.mark.parametrize("queue", QUEUES)
def test_tc_takes_the_command(queue: str) -> None:
    """In a namespace of its own; a kernel without the discipline has still had tc read it."""
    line = tc.line(queue, "10mbit")
    assert line is not None and not line.left_out
    words = ["tc", "qdisc", "replace", "dev", "lo", "root", *line.words.split()]
    done = subprocess.run(["unshare", "--net", *words], capture_output=True, text=True, check=False)
    lacks = ("kind is unknown", "not supported", "not permitted", "unshare")
    assert done.returncode == 0 or any(each in done.stderr for each in lacks), done.stderr
