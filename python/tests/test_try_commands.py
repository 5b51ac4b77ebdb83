"""Commands of `aqmlab try` set up the simulated line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from helpers import run_program

from aqmlab import InputError
from aqmlab._core import Scenario
from aqmlab.campaign import Pack
from aqmlab.packs.access_line import LineTrial, pack_of, setup
from aqmlab.packs.access_line import trial as run
from aqmlab.packs.access_line.choice import NOTICEABLE, comparisons, recommended
from aqmlab.packs.access_line.commands import SetupCommands, commands
from aqmlab.packs.access_line.page import set_up
from aqmlab.scenario.access import KINDS, PROFILES, Line
from aqmlab.stats import Interval

QUEUES = ["fq_codel", "cake"]


def header(device: str) -> int:
    """Bytes of a device's header that HTB counts."""
    return 14 if "eth" in device or "wlan" in device else 0


def shaper(root: Sequence[str], group: Sequence[str], device: str) -> dict[str, Any]:
    """The words of an HTB qdisc with its size table, and of its class, as a link's shaper."""
    given = dict(zip(group[::2], group[1::2], strict=True))
    sizes = {key: f"{given[key]}b" for key in ("burst", "cburst")}
    found: dict[str, Any] = {"rate": given["rate"], "stab": True, **sizes}
    table = dict(zip(root[1::2], root[2::2], strict=False)) if root[0] == "stab" else {}
    counted = {"overhead": int(table.get("overhead", 0)) + header(device)}
    counted["mpu"] = int(table.get("mpu", 0))
    found |= {key: f"{number}b" for key, number in counted.items() if number}
    if table.get("linklayer") == "atm":
        found["framing"] = "atm"
    return found


def read(lines: Sequence[str], device: str) -> dict[str, dict[str, Any]]:
    """Queue and shaper of each direction, from the commands."""
    text = "\n".join(lines)
    found = {}
    redirected = re.search(rf"dev {device} parent ffff: matchall .* redirect dev (\S+)", text)
    assert redirected and f"ip link add name {redirected[1]} type ifb" in lines
    for way, name in (("up", device), ("down", redirected[1])):
        root = re.search(rf"^tc qdisc replace dev {name} root (.*)$", text, re.M)
        assert root
        words = root[1].split()
        if words[0] == "cake":
            found[way] = {"queue": root[1]}
            continue
        group = re.search(rf"^tc class replace dev {name} .* htb (.*)$", text, re.M)
        leaf = re.search(rf"^tc qdisc replace dev {name} parent 1:1 handle 11: (.*)$", text, re.M)
        assert group and leaf
        own = shaper(words[2:], group[1].split(), device)
        found[way] = {"queue": of_linux(leaf[1]), "shaper": own}
    return found


def of_linux(words: str) -> str:
    """The queue that Linux makes of these words of tc."""
    kinds = ("codel", "dualpi2", "fq_codel", "fq_pie", "pie")
    return f"{words} variant=linux" if words.split()[0] in kinds else words


def modem(line: Line, pack: Pack, stages: Mapping[str, Any]) -> Pack:
    """The pack of the line with these queues, and the modem as the driver of the router."""
    links = line.links()
    links["down"]["queue"] = {"discipline": "droptail", "limit": line.buffer("down")}
    links["up"] |= {**stages["up"], "driver": {"limit": line.buffer("up")}}
    links["ifb"] = {**setup.PORT, **stages["down"]}
    ways = {"down": ["down", "ifb"], "up": ["up"]}
    assert pack.scenario is not None
    flows = {
        name: flow | {key: ways["down" if "down" in flow[key] else "up"]
                      for key in ("path", "return_path")}
        for name, flow in pack.scenario["flows"].items()
    }  # fmt: skip
    scenario = {**pack.scenario, "links": links, "flows": flows}
    return replace(pack, scenario=scenario, contenders={"printed": {}})


SECONDS = {"dsl": 20, "office": 1.5, "cable": 10, "5g": 20, "satellite": 6, "wifi": 20}
"""Seconds of a run on fast lines: less than `try` itself takes, as the settings that the commands
have are compared exactly below."""


def pack_for(line: Line, queues: Sequence[str]) -> Pack:
    """The pack of a profile's line with ten replications."""
    (name,) = (name for name, each in PROFILES.items() if each.line == line)
    pack = replace(pack_of(line, "home", queues), replications=10)
    if name not in SECONDS:
        return pack
    assert pack.scenario is not None
    seconds = SECONDS[name]
    times = {"duration": f"{seconds}s", "record": {"warmup": f"{seconds / 6:g}s"}}
    return replace(pack, scenario={**pack.scenario, **times})


@cache
def trial_of(profile: str) -> LineTrial:
    """The queues on the line of a profile."""
    line = PROFILES[profile].line
    return run(pack_for(line, QUEUES), line)


@pytest.fixture(scope="module", params=list(PROFILES))
def trial(request: pytest.FixtureRequest) -> LineTrial:
    return trial_of(request.param)


def missed(trial: LineTrial, queue: str, lines: Sequence[str]) -> list[str]:
    """Measures that differ from the promised ones when these commands are run.

    The modem is a driver here and a link of its own in the trial, so single packets depart at
    other times: the intervals of both may lie apart by what `try` itself takes for no difference.
    """
    line = trial.access
    printed = run(modem(line, pack_for(line, [queue]), read(lines, line.kind.device)), line)
    found = []
    for what in trial.noticed:
        # Without an interval (equal values, rare events) the means are held against each other.
        promised, own = (
            estimate.interval or Interval(estimate.value, estimate.value)
            for estimate in (trial.estimate(what, queue), printed.estimate(what, "printed"))
        )
        apart = max(own.low - promised.high, promised.low - own.high)
        if apart > max(what.least, NOTICEABLE * own.low):
            found.append(what.short)
    return found


def test_the_printed_commands_keep_what_was_promised(trial: LineTrial) -> None:
    for queue in QUEUES:
        lines = set_up(trial, queue).lines
        assert not missed(trial, queue, lines), (queue, lines)


def test_bursts_of_the_shaper_do_not_overflow_a_short_queue() -> None:
    line, queue = PROFILES["office"].line, "pfifo limit 20"
    trial = run(pack_for(line, [queue]), line)
    short = set(missed(trial, queue, set_up(trial, queue).lines))
    # Pages and videos have no interval here: too few in the seconds of a run.
    assert not short & {"game.delay", "upload.goodput", "up.throughput"}


def test_what_is_recommended_is_not_worse_than_the_line_as_it_is(trial: LineTrial) -> None:
    choice = recommended(trial, comparisons(trial))
    if choice is None:
        assert trial.access.access == "lte", "every other profile has something to gain"
        return
    gained = []
    for what in trial.noticed:
        if not what.is_cost:
            own, other = (trial.values(what, each) for each in (choice.queue, setup.BASELINE))
            gain = (other - own if what.direction < 0 else own - other).mean()
            assert gain > -max(what.least, 0.05 * min(own.mean(), other.mean())), what.short
            gained.append(gain)
    assert max(gained) > 0


LINES = {name: each.line for name, each in PROFILES.items()}
LINES |= {kind: Line("20mbit", "5mbit", "30ms", kind) for kind in KINDS}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("queue", QUEUES)
def test_the_printed_commands_have_every_setting(name: str, queue: str) -> None:
    """Read as tc's words, they are the simulated links."""
    line = LINES[name]
    simulated, device = links(line, queue), line.kind.device
    printed = {
        f"links.{setup.PORTS[way]}.{key}": value
        for way, stage in read(commands(simulated, device).lines, device).items()
        for key, value in stage.items()
    }
    assert resolved(line, printed) == simulated


@pytest.mark.parametrize(
    ("queue", "changes"),
    [
        ("cake", {"pppoe-ptm ": "overhead 0 "}),
        (
            "fq_codel",
            {
                "stab overhead 30 linklayer ethernet ": "", "9.353mbit": "9.5mbit",
                "46.769mbit": "47.5mbit",
            },
        ),
    ],
)  # fmt: skip
def test_commands_without_the_framing_would_not_keep_it(
    queue: str, changes: Mapping[str, str]
) -> None:
    trial = trial_of("dsl")
    text = "\n".join(set_up(trial, queue).lines)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    assert {"game.delay", "call.mos"} <= set(missed(trial, queue, text.splitlines()))


def resolved(line: Line, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The links of a line with these settings, every default filled in."""
    flows = {"f": {"path": setup.PATHS["down"], "return_path": setup.PATHS["up"]}}
    table = {"duration": "1s", "links": setup.links(line), "flows": flows}
    return dict(json.loads(Scenario(table, overrides=overrides).resolved)["links"])


def links(line: Line, words: str, share: float | None = None) -> dict[str, Any]:
    """The links of a queue."""
    return resolved(line, setup.settings(words, line, share))


DSL = PROFILES["dsl"].line


def test_each_direction_has_its_own_queue() -> None:
    found = commands(links(DSL, "up: cake ack-filter down: fq_codel target 3ms"), "pppoe-wan")
    assert found.up == (
        "tc qdisc replace dev pppoe-wan root cake bandwidth 9.5mbit ack-filter pppoe-ptm nat",
    )
    assert found.down[4].endswith("parent 1:1 handle 11: fq_codel target 3ms")
    up = commands(links(DSL, "up: cake bandwidth 9mbit"), "pppoe-wan")
    assert up.lines == ["tc qdisc replace dev pppoe-wan root cake bandwidth 9mbit pppoe-ptm nat"]
    assert up.undo == ("tc qdisc del dev pppoe-wan root",)


def test_rates_are_those_of_the_line_and_its_framing() -> None:
    # 0.95 of 10 Mbit/s; HTB does not know that 64 bytes take 65.
    assert links(DSL, "cake")["egress"]["queue"]["bandwidth"] == "9.5mbit"
    assert links(DSL, "codel")["egress"]["shaper"]["rate"] == "9.353mbit"
    assert links(DSL, "codel", 0.5)["ingress"]["shaper"]["rate"] == "24.615mbit"
    # The rates of Wi-Fi are PHY rates, which contention divides.
    wifi = PROFILES["wifi"].line
    assert 0.2 * 144e6 < wifi.rate("up") < 0.5 * 144e6
    rate = json.loads(Scenario({**SINGLE, "links": wifi.links()}).resolved)["links"]["up"]["rate"]
    assert rate["phy"] == "144mbit"


SINGLE = {"duration": "1s", "flows": {"f": {"path": "down", "return_path": "up"}}}


def test_the_size_table_leaves_out_the_header_that_the_kernel_counts() -> None:
    table = links(Line("50mbit", "10mbit", "20ms", "docsis"), "codel")
    assert (
        "stab mtu 2047 tsize 2048 mpu 64 overhead 4 linklayer ethernet htb"
        in (commands(table, "eth0").up[0])
    )
    assert "mpu 64 overhead 18 linklayer" in commands(table, "ppp0").up[0]
    table = links(Line("16mbit", "1mbit", "30ms", "adsl"), "codel")
    assert "mpu 0 overhead 40 linklayer atm htb" in commands(table, "pppoe-wan").up[0]
    assert "stab" not in commands(links(PROFILES["lte"].line, "codel"), "wwan0").up[0]


def test_a_user_s_own_framing_is_kept() -> None:
    # A VLAN tag more, in PTM's coding all the same.
    own = links(DSL, "cake overhead 34")["egress"]["queue"]
    assert (own["overhead"], own["link_layer"]) == ("34b", "pppoe-ptm")
    for words in ("cake pppoe-ptm", "tc qdisc replace dev eth0 root cake nat pppoe-ptm"):
        assert links(DSL, words) == links(DSL, "cake"), "keywords add up in tc"
    assert links(DSL, "cake docsis ether-vlan")["egress"]["queue"]["overhead"] == "22b"
    # Without a keyword cake would count the header of an Ethernet device.
    assert "overhead 0 nat" in commands(links(PROFILES["geo"].line, "cake"), "eth0").up[0]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("pi2", "Linux has no pi2."),
        ("up: pie down: blue", "Linux has no blue."),
        ("codel limit=3000b", "tc has no words for limit = 3000b."),
    ],
)
def test_what_tc_cannot_set_up_has_no_commands(words: str, problem: str) -> None:
    table = links(DSL, words.partition(" limit=")[0])
    if "limit=" in words:
        table["egress"]["queue"]["limit"] = "3000b"
    assert commands(table, "eth0") == SetupCommands(problem=problem)


def test_one_bandwidth_is_for_equal_rates() -> None:
    assert setup.settings("cake bandwidth 9mbit", Line("10mbit", "10mbit", "20ms"))
    with pytest.raises(InputError, match="two directions"):
        setup.settings("cake bandwidth 9500kbit", DSL)


@pytest.mark.needs("tc", "ip", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a namespace of its own")
@pytest.mark.parametrize("kind", KINDS)
def test_tc_takes_the_commands(kind: str) -> None:
    """In a namespace of its own; a kernel that lacks something has still had tc read it."""
    line = Line("20mbit", "5mbit", "30ms", kind)
    lacks = ("kind is unknown", "not supported", "classifier not found", "talking to the kernel")
    for words in ("pfifo limit 100", "cake"):
        made = ["ip link add name eth0 type ifb", *commands(links(line, words), "eth0").lines]
        inside = ["unshare", "--net", "sh", "-c", "\n".join(made)]
        done = run_program(inside)
        told = done.stderr.splitlines()
        assert all(any(lack in each for lack in lacks) for each in told), (made, told)
