"""The state machine of TCP senders: refused or chosen by `stack`, and named in the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab, assert_refused

import aqmlab

LINK = {"rate": "5mbit", "delay": "10ms"}
PATH = {"path": ["down"], "return_path": ["up"]}
FLOWS: dict[str, dict[str, Any]] = {
    "cubic": {},
    "prague": {"transport": {"congestion_control": "prague"}},
    "own": {"transport": {"prr": False}},
    "web": {"workload": {"kind": "requests", "response": "20000b", "gap": "200ms"}},
    "call": {"workload": "voip"},
    "rate": {"endpoint": "tfrc"},
}
MACHINES = {
    "cubic": "linux-6.12",
    "prague": "linux-6.12",
    "own": "rfc",
    "web": "linux-6.12",
    "call": None,
    "rate": None,
}


def scenario(profile: str, flows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "duration": "2s",
        "links": {"down": LINK, "up": LINK},
        "transport": {"profile": profile},
        "flows": {name: PATH | flow for name, flow in flows.items()},
    }


def test_each_flow_and_group_names_the_state_machine_that_ran(tmp_path: Path) -> None:
    result = aqmlab.run(scenario("linux-6", FLOWS) | {"record": {"level": "series"}})
    groups = {row["group"]: row["tcp_stack"] for row in result.groups.to_dicts()}
    assert groups == MACHINES
    flows = result.flows.select("group", "tcp_stack").unique().to_dicts()
    assert {row["group"]: row["tcp_stack"] for row in flows} == MACHINES
    assert "cubic, stack rfc" in result.write_report(tmp_path, figures=False).read_text()


@pytest.mark.parametrize("stack", ["rfc", "linux-5.4", "linux-6.1", "linux-6.12"])
def test_a_stack_that_is_named_is_the_one_that_runs(stack: str) -> None:
    table = scenario("linux-6", {"bulk": {}})
    result = aqmlab.run(table, set={"transport.stack": stack})
    assert result.flows["tcp_stack"].to_list() == [stack]


def test_settings_that_a_kernel_lacks_are_refused(aqmlab: Aqmlab, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    text = 'duration = "1s"\n[links.down]\nrate = "5mbit"\n[links.up]\nrate = "5mbit"\n'
    text += '[transport]\nprofile = "linux-6.1"\n[flows.a]\npath = ["down"]\n'
    file.write_text(text + 'return_path = ["up"]\n')
    no_prr = ("--set", "transport.prr=false")
    refused = aqmlab("run", file, *no_prr)
    words = ("transport.prr", "`false`", "expected true", '"linux-6.1"', 'stack = "auto"')
    assert_refused(refused, *words)
    auto = (*no_prr, "--set", "transport.stack=auto")
    done = aqmlab("run", file, *auto)
    assert "TCP: cubic, stack rfc (a)" in done.stdout
    change = '[[changes]]\nat = "500ms"\nvalue = "reno"\n'
    change += 'key = "flows.a{}.transport.congestion_control"\n'
    for one, later in (("", "reno from 500ms"), (".0", "reno from 500ms (a.0)")):
        (tmp_path / "changed.toml").write_text(file.read_text() + change.format(one))
        done = aqmlab("run", "changed.toml", *auto)
        assert f"TCP: cubic, {later}, stack rfc (a)" in done.stdout
    refused = aqmlab("run", file, *auto, "--set", "transport.retransmission_timer=linux")
    words = ("transport.retransmission_timer", "prr = false", "auto, rfc6298 or ns-2", "linux-6.12")
    assert_refused(refused, *words)
    rows = aqmlab.json("run", file, "--json")
    assert [row["tcp_stack"] for row in (*rows["flows"], *rows["groups"])] == ["linux-6.1"] * 2
