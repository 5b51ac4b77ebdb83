"""`aqmlab shell`: a command behind an emulated path."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab._core import parse_value
from aqmlab.cli import options
from aqmlab.cli.common import (
    OF_RECORDINGS,
    command_line,
    naming,
    print_json,
    say,
    settings_of_real_packets,
)
from aqmlab.cli.options import argument, flag, host_option, link_option, option
from aqmlab.cli.watch import watching
from aqmlab.emulator import emulate
from aqmlab.emulator import topology as hosts
from aqmlab.emulator.keep import Reserved, recordings
from aqmlab.emulator.links import from_options, from_scenario
from aqmlab.errors import input_error
from aqmlab.numbers import is_none, seconds
from aqmlab.report.run_console import busy_links

if TYPE_CHECKING:
    from aqmlab._core import Emulation
    from aqmlab.emulator.links import EmulatedPath

EXAMPLE = (
    "aqmlab shell --rate 12mbit --delay 20ms --queue codel\n\n"
    "aqmlab shell --profile dsl --queue cake -- ./client\n\n"
    "aqmlab shell --delay 20ms --down 'rate=50mbit queue=fq_codel' --up rate=5mbit -- "
    "sh -c 'ping -c 3 $AQMLAB_FAR'\n\n"
    "aqmlab shell --scenario scenario.toml --out results/real --watch -- ./client\n\n"
    "aqmlab shell --topology examples/topology.toml -- ping -c 5 server"
)


OF_LINKS = ("rate", "trace", "delay", "queue", "loss", "jitter", "slot", "duplicate",
            "reordering", "overhead")  # fmt: skip
"""Options that are keys of links, or their short forms."""
OF_EMULATOR = ("precision", "mtu", "cpu", "priority", "drain", "name", "keep_capabilities")
"""Options that are keys of the section `emulator`."""

NAMED = (*OF_LINKS, *OF_EMULATOR, "profile", "down", "up", "far", "at")


@naming(**OF_RECORDINGS, **{key: f"--{key.replace('_', '-')}" for key in NAMED}, commands="--host")
def shell(
    command: list[str] | None = argument(
        "[-- COMMAND [ARGUMENT]...]", "Command to run; default: $SHELL.", default=None
    ),
    profile: str | None = options.PROFILE,
    rate: str | None = options.RATE,
    trace: Path | None = link_option("FILE", "Delivery opportunities in mahimahi's format."),
    delay: str | None = options.DELAY,
    queue: str | None = options.QUEUE,
    loss: str | None = options.LOSS,
    jitter: str | None = link_option(
        "TIME", "Spread of the delay: 2ms, or netem's `2ms 25% pareto`."
    ),
    slot: str | None = link_option(
        "TIMES", "Deliver packets in bursts, as netem's `2ms 8ms packets 16`."
    ),
    duplicate: str | None = link_option("SHARE", "Duplication; same form as --loss."),
    reordering: bool = flag("--reordering", "Let jitter reorder packets.", rich_help_panel="Links"),
    overhead: str | None = link_option("BYTES", "Bytes that the link adds to each packet."),
    down: list[str] | None = link_option(
        "SETTINGS",
        "A link to the command: `rate=50mbit queue=codel`; repeat for "
        "more in a row. With --scenario: its name.",
    ),
    up: list[str] | None = link_option("SETTINGS", "A link from the command; same form as --down."),
    scenario: Path | None = link_option(
        "FILE", "Links of a scenario: the path of its first flow group leads to the command."
    ),
    topology: Path | None = host_option(
        "FILE", "Several hosts: a file with hosts and links, or a scenario."
    ),
    at: str | None = host_option("HOST", "Host that runs COMMAND; default: the first."),
    host: list[str] | None = host_option(
        "NAME=COMMAND", "Command to run on another host. May be repeated."
    ),
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
    far: str = option("COMMAND", "Command to run at the far end.", default=""),
    nat: bool = flag("--nat", "Let the command reach other networks, including DNS."),
    precision: str | None = options.PRECISION,
    mtu: str | None = option("BYTES", "Largest packet; default: 1500b."),
    cpu: int | None = option("N", "Pin the emulator to this processor.", min=0),
    priority: int | None = option("N", "Real-time priority; 0 for none.", min=0),
    drain: str | None = option(
        "TIME",
        "Time for packets in flight to arrive after COMMAND has ended: 2s; 0s discards them.",
    ),
    keep_capabilities: bool = flag(
        "--keep-capabilities", "Let a command in a user namespace change the network there."
    ),
    name: str | None = options.NAME,
    out: Path | None = options.NEW_FOLDER,
    pcap: Path | None = options.PCAP,
    pcap_ring: str | None = options.PCAP_RING,
    pcap_at: str | None = options.PCAP_AT,
    log: list[str] | None = options.LOG,
    watch: bool = flag("--watch", "Show the links below the output of COMMAND."),
    quiet: bool = flag("--quiet", "-q", "Print no summary of the links at the end."),
    json: bool = flag(
        "--json", "Print only JSON on stdout: the tables. COMMAND's output goes to stderr."
    ),
) -> None:
    """Run a command behind a path of links with the simulator's queues, in real time.

    The other end of the path is $AQMLAB_FAR: as root, this machine. The exit status is the
    command's. See docs/emulator.md.
    """
    given = {key: value for key, value in locals().items() if not (value is None or value is False)}
    common = {key: _value(key, given[key]) for key in OF_LINKS if key in given}
    emulator = {key: given[key] for key in OF_EMULATOR if key in given}
    settings = settings_of_real_packets(set_, seed, out)
    recorded = recordings(pcap, pcap_ring, log or [], pcap_at)
    output = _output_to_stderr() if json else contextlib.nullcontext()
    view = watching(command or []) if watch else contextlib.nullcontext()
    of_links = dict.fromkeys(common, True)  # a value may be 0
    place: EmulatedPath | hosts.Topology
    run: Callable[..., Emulation]
    if topology is not None:
        on_path = {"profile": profile, "scenario": scenario, "down": down, "up": up}
        _refuse(
            {**of_links, **on_path},
            "the links are those of --topology; change them with --set",
        )
        _refuse(
            {"far": far, "nat": nat},
            "not with --topology, where --host NAME=COMMAND runs a command on a host",
        )
        commands = _commands(host or [])
        place = hosts.load(topology, settings)
        run = partial(hosts.run, place, at=at, commands=commands)
    else:
        _refuse({"at": at, "host": host}, "this option needs --topology")
        if scenario is None:
            place = from_options(common, down or [], up or [], settings, profile)
        else:
            problem = "the links are those of --scenario; change them with --set"
            _refuse({"profile": profile, **of_links}, problem)
            place = from_scenario(scenario, down or [], up or [], settings)
        run = partial(emulate, place, far=far, nat=nat)
    with Reserved(out) as kept, output, view:
        done = run(command or [], settings=emulator, **recorded.of_run(1, place.scenario))
    kept.keep(done, command_line())
    if json:
        print_json(_as_json(done))
    if kept.problem or not (quiet or json):
        _tell(done, kept)
    raise SystemExit(done.status or bool(kept.problem))


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Redirects stdout of processes started meanwhile to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _known(values: dict[str, float]) -> dict[str, float | None]:
    """The values; null without packets."""
    return {key: None if is_none(value) else value for key, value in values.items()}


def _as_json(done: Emulation) -> dict[str, Any]:
    """Output of `--json`: tables as in `run --json`, status and timing."""
    from aqmlab.results import RunResult  # with a library that starts threads

    return {
        "status": done.status,
        "remarks": done.remarks,
        "lateness": _known(done.lateness),
        "input_lateness": _known(done.input_lateness),
        "changes": done.scenario.table.get("changes", []),
        **RunResult.of([done.results], done.scenario).to_json(),
    }


def _commands(texts: list[str]) -> dict[str, str]:
    """The commands of `--host`, by host."""
    commands = {}
    for text in texts:
        name, equals, words = text.partition("=")
        if not equals:
            raise input_error("expected NAME=COMMAND", key="--host", given=text)
        commands[name] = words
    return commands


def _refuse(options: dict[str, Any], problem: str) -> None:
    """Refuses options that are given where they mean nothing."""
    for name, value in options.items():
        if value:
            raise input_error(problem, key=f"--{name}")


def _value(key: str, text: Any) -> Any:
    """An option's text as a value; tables are TOML, as in `--set`."""
    if key in ("rate", "delay", "overhead", "loss", "duplicate") and not str(text).endswith("%"):
        return parse_value(str(text))
    return str(text) if key == "trace" else text


def _tell(done: Emulation, kept: Reserved) -> None:
    """Some lines on stderr: stdout is the command's."""
    say(*done.remarks, *busy_links(done.results))
    late = done.lateness
    if late["count"]:
        p50, p99, most = (seconds(late[f"{key}_s"]) for key in ("p50", "p99", "max"))
        by = f"late by {p50} (median), {p99} (p99), {most} (max)"
        waited = seconds(done.input_lateness["max_s"])
        say(f"{late['count']:,.0f} packets, {by}; waited to be read: {waited} (max)")
    say(*kept.told())
    if kept.problem:
        say(f"the command ended with status {done.status}")
