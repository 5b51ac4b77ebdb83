"""QUIC stacks from Python: what `aqmlab run` and `aqmlab.run` do with them."""

from __future__ import annotations

import sys

import pytest
from helpers import run_program

import aqmlab
from aqmlab.errors import InputError
from aqmlab.report.run_console import flow_cells

LINE = {"rate": "20mbit", "delay": "20ms"}
SCENARIO = {
    "duration": "3s",
    "links": {"down": LINE | {"queue": "fq_codel", "loss": 0.01}, "up": LINE},
    "flows": {
        stack: {
            "path": "down",
            "return_path": "up",
            "endpoint": {"kind": "quic", "stack": stack, "controller": "new_reno"},
        }
        for stack in ("noq", "quinn")
    },
}
PROGRAM = f"""
import aqmlab
for _ in range(5):
    print(aqmlab.run({SCENARIO!r}).flows.write_json())
"""


def test_every_process_computes_the_same() -> None:
    """The stacks hash with keys of the process, another for each table, and seed from the system:
    neither may matter."""
    done = [run_program([sys.executable, "-c", PROGRAM], check=True) for _ in range(4)]
    runs = [line for process in done for line in process.stdout.splitlines()]
    assert len(runs) == 20 and len(set(runs)) == 1
    assert "noq" in runs[0]


def test_tls_is_part_of_the_handshake() -> None:
    web = SCENARIO["flows"]["noq"] | {"workload": "page"}  # type: ignore[index]
    scenario = SCENARIO | {"flows": {"web": web}}
    with pytest.raises(
        InputError, match=r"flows\.web\.workload\.tls: `1`: expected 0: the transport's handshake"
    ):
        aqmlab.run(scenario, set={"flows.web.workload.tls": 1})
    first = aqmlab.run(scenario, set={"flows.web.workload.tls": 0})
    assert aqmlab.run(scenario).times.equals(first.times)


def test_the_state_of_a_stack_is_sampled() -> None:
    series = aqmlab.run(SCENARIO, record="series").series
    for stack in ("noq", "quinn"):
        quantities = set(series.filter(subject=f"{stack}.0")["quantity"])
        assert {"cwnd_bytes", "smoothed_rtt_s", "goodput_bps"} <= quantities
    [flow] = aqmlab.run(SCENARIO).flows.filter(group="noq").rows(named=True)
    # The square-root formula gives 3.5 Mbit/s for this loss and round-trip time.
    assert 1e6 < flow["goodput_bps"] < 5e6
    assert 0 < flow["retransmissions"] < flow["segments_sent"]


def test_timeouts_that_a_stack_does_not_count_are_not_shown_as_zero() -> None:
    tcp = {"path": "down", "return_path": "up", "start": "1s"}
    flows = aqmlab.run(SCENARIO, set={"flows.tcp": tcp}).flows.rows(named=True)
    bulk = {"workload": {"kind": "bulk"}}
    shown = {row["group"]: flow_cells(row, bulk)["timeouts"][0] for row in flows}
    assert shown == {"noq": None, "quinn": None, "tcp": 0}


def test_an_unknown_stack_names_the_known() -> None:
    with pytest.raises(InputError, match=r"flows.noq.endpoint.stack.*expected one of noq, quinn"):
        aqmlab.run(SCENARIO, set={"flows.noq.endpoint.stack": "quic"})
