"""Several hosts that share links: files with hosts and links, and a command for each host.

A *topology file* has links as in a scenario, each with the nodes `from` and `to` that it joins,
and hosts, each with the command that runs there, if any:

    [links.up]
    from = "client"
    to = "router"
    rate = "5mbit"

    [hosts.client]
    [hosts.server]
    command = "iperf3 -s"

Nodes that are no hosts are routers. Packets go by the fewest links, through no other host. A
*scenario* is a topology too: each group of flows has two hosts, named by its `source` and
`destination` or after the group, and its own paths.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab import _core
from aqmlab.emulator import shell_unless
from aqmlab.errors import input_error, unknown
from aqmlab.scenario.settings import (
    check_form,
    check_keys,
    parse_toml,
    read_text,
    words_of,
)

HOST_KEYS = ("command",)
ENDS = ("from", "to")


@dataclass(frozen=True)
class Topology:
    """Hosts, and the links from one to another."""

    scenario: _core.Scenario
    commands: dict[str, list[str]]
    """Host to the command that runs there; nothing runs where it is empty."""
    ways: dict[tuple[str, str], list[str]]
    """Pair of hosts to the names of the links between them, in order."""


def load(file: Path, settings: Mapping[str, Any]) -> Topology:
    """The topology in a file; `settings` are dotted keys of its scenario.

    Raises `InputError` for whatever is wrong in it.
    """
    name = str(file)
    table = parse_toml(read_text(file), name)
    if "links" not in table:
        check_form(table, "topology", name)
    given = table.pop("hosts", {})
    if not isinstance(given, Mapping):
        raise input_error("expected tables [hosts.NAME]", file=name, key="hosts", given=given)
    commands = {host: _command(entry, host, name) for host, entry in given.items()}
    make = _of_flows if "flows" in table else _of_nodes
    return make(table, commands, file, settings)


def _command(entry: Any, host: str, file: str) -> list[str]:
    if not isinstance(entry, Mapping):
        raise input_error("expected a table", file=file, key=f"hosts.{host}", given=entry)
    check_keys(entry, HOST_KEYS, file, f"hosts.{host}")
    text = entry.get("command", "")
    if not isinstance(text, str):
        key = f"hosts.{host}.command"
        raise input_error("expected a command line", file=file, key=key, given=text)
    return words_of(text, f"hosts.{host}.command", file)


def _scenario(table: Mapping[str, Any], file: Path, settings: Mapping[str, Any]) -> _core.Scenario:
    return _core.Scenario(
        table, file=str(file), settings=dict(settings), folders=[str(file.parent)]
    )


def _of_flows(
    table: dict[str, Any], commands: dict[str, list[str]], file: Path, settings: Mapping[str, Any]
) -> Topology:
    """A scenario: its groups of flows define the hosts, and the links between them."""
    scenario = _scenario(table, file, settings)
    ways: dict[tuple[str, str], list[str]] = {}
    for group, flow in json.loads(scenario.resolved)["flows"].items():
        ends = [flow.get(key) for key in ("source", "destination")]
        sender, receiver = (
            end if isinstance(end, str) and end != "none" else f"{group}-{word}"
            for end, word in zip(ends, ("sender", "receiver"), strict=True)
        )
        for pair, links in (
            ((sender, receiver), flow["path"]),
            ((receiver, sender), flow["return_path"]),
        ):
            if ways.setdefault(pair, links) != links:
                problem = f"there is another way from {pair[0]} to {pair[1]} already"
                hint = "give this group's flows another `source` or `destination`"
                raise input_error(problem, file=str(file), key=f"flows.{group}", hint=hint)
            commands.setdefault(pair[0], [])
    for host in commands:
        if not any(host in pair for pair in ways):
            raise unknown("host", host, sorted({end for pair in ways for end in pair}),
                          file=str(file), key="hosts")  # fmt: skip
    return Topology(scenario, commands, ways)


def _of_nodes(
    table: dict[str, Any], commands: dict[str, list[str]], file: Path, settings: Mapping[str, Any]
) -> Topology:
    """Links between nodes."""
    name = str(file)
    if len(commands) < 2:
        raise input_error("expected at least two hosts: [hosts.NAME]", file=name, key="hosts")
    ends: dict[str, tuple[str, str]] = {}
    links: dict[str, Any] = {}
    joined = table.get("links", {})
    if not isinstance(joined, Mapping):
        raise input_error("expected tables [links.NAME]", file=name, key="links", given=joined)
    for link, given in joined.items():
        entry = dict(given) if isinstance(given, Mapping) else {}
        first, last = (entry.pop(key, None) for key in ENDS)
        if not isinstance(first, str) or not isinstance(last, str):
            key = f"links.{link}"
            hint = 'from = "client" and to = "router"'
            problem = "a link must name the nodes it joins"
            raise input_error(problem, file=name, key=key, hint=hint)
        ends[link] = (first, last)
        links[link] = entry
    nodes = {node for pair in ends.values() for node in pair}
    for host in commands:
        if host not in nodes:
            raise unknown("node", host, sorted(nodes), file=name, key="hosts")
    ways = {
        (sender, receiver): way
        for sender in commands
        for receiver in commands
        if sender != receiver and (way := _shortest(sender, receiver, ends, commands))
    }
    flows = {
        f"{a}-{b}": {"path": ways[a, b], "return_path": ways[b, a]}
        for a in commands
        for b in commands
        if a < b and (a, b) in ways and (b, a) in ways
    }
    if not flows:
        problem = "no host can reach another"
        raise input_error(problem, file=name, key="links")
    used = {"simultaneous": "departures-first"} | table | {"links": links, "flows": flows}
    return Topology(_scenario(used, file, settings), commands, ways)


def _shortest(
    start: str, goal: str, ends: Mapping[str, tuple[str, str]], hosts: Mapping[str, Any]
) -> list[str]:
    """The fewest links from one host to another, the first ones of the file if there are
    several ways; nothing if there is none."""
    ways: dict[str, list[str]] = {start: []}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if node == goal:
            return ways[node]
        if node in hosts and node != start:
            continue
        for link, (first, last) in ends.items():
            if first == node and last not in ways:
                ways[last] = [*ways[node], link]
                waiting.append(last)
    return []


def run(
    topology: Topology,
    command: Sequence[str] = (),
    *,
    at: str | None = None,
    commands: Mapping[str, str] | None = None,
    **options: Any,
) -> _core.Emulation:
    """Runs `command` at the host `at` (default: the first) and the others' own commands in
    theirs; all ends when `command` does. `commands` replace those in the file; `options` are
    `settings`, `logs` and `capture` of `_core.emulate`.

    Raises `InputError` for a host that there is not, and as `emulate`.
    """
    words = dict(topology.commands)
    for host, text in (commands or {}).items():
        if host not in words:
            raise unknown("host", host, topology.commands, key="commands")
        words[host] = words_of(text, f"commands.{host}")
    main = next(iter(words)) if at is None else at
    if main not in words:
        raise unknown("host", main, topology.commands, key="at")
    words[main] = shell_unless(list(command) or words[main])
    place = {host: number for number, host in enumerate(words)}
    return _core.emulate_hosts(
        topology.scenario,
        list(words.items()),
        [(place[a], place[b], links) for (a, b), links in topology.ways.items()],
        main=place[main],
        environment=list(os.environ.items()),
        **options,
    )
