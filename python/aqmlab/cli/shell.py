"""`aqmlab shell`: a command behind an emulated path."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Log,
    Pcap,
    PcapAt,
    PcapRing,
    Seed,
    Set,
    command_line,
    print_json,
    reported,
)
from aqmlab.cli.path_options import (
    Delay,
    Down,
    Loss,
    Name,
    NewFolder,
    Profile,
    Queue,
    Rate,
    Up,
    link_option,
)
from aqmlab.document.numbers import is_none, seconds

if TYPE_CHECKING:
    from aqmlab._core import Emulation
    from aqmlab.emulate.links import EmulatedPath
    from aqmlab.emulate.recordings import Recordings

EXAMPLE = EXAMPLES.format(
    "aqmlab shell --rate 12mbit --delay 20ms --queue codel\n\n"
    "aqmlab shell --profile dsl --queue cake -- ./client\n\n"
    "aqmlab shell --delay 20ms --down 'rate=50mbit queue=fq_codel' --up rate=5mbit -- "
    "sh -c 'ping -c 3 $AQMLAB_FAR'\n\n"
    "aqmlab shell --scenario scenario.toml --out results/real --watch -- ./client\n\n"
    "aqmlab shell --topology examples/topology.toml -- ping -c 5 server"
)


@reported
def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND [ARGUMENT]...]", help="Command to run; default: $SHELL."
        ),
    ] = None,
    profile: Profile = None,
    rate: Rate = None,
    trace: Annotated[
        Path | None, link_option("--trace", "FILE", "Delivery opportunities in mahimahi's format.")
    ] = None,
    delay: Delay = None,
    queue: Queue = None,
    loss: Loss = None,
    jitter: Annotated[
        str | None,
        link_option("--jitter", "TIME", "Spread of the delay: 2ms, or netem's `2ms 25% pareto`."),
    ] = None,
    slot: Annotated[
        str | None,
        link_option(
            "--slot", "TIMES", "Deliver packets in bursts, as netem's `2ms 8ms packets 16`."
        ),
    ] = None,
    duplicate: Annotated[
        str | None, link_option("--duplicate", "SHARE", "Duplication; same form as --loss.")
    ] = None,
    reordering: Annotated[
        bool,
        typer.Option("--reordering", help="Let jitter reorder packets.", rich_help_panel="Links"),
    ] = False,
    overhead: Annotated[
        str | None, link_option("--overhead", "BYTES", "Bytes that the link adds to each packet.")
    ] = None,
    down: Down = None,
    up: Up = None,
    scenario: Annotated[
        Path | None,
        link_option(
            "--scenario",
            "FILE",
            "Links of a scenario: the path of its first flow group leads to the command.",
        ),
    ] = None,
    topology: Annotated[
        Path | None,
        typer.Option(
            "--topology",
            metavar="FILE",
            help="Several hosts: a file with hosts and links, or a scenario.",
            rich_help_panel="Hosts",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="HOST",
            help="Host that runs COMMAND; default: the first.",
            rich_help_panel="Hosts",
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME=COMMAND",
            help="Command to run on another host. May be repeated.",
            rich_help_panel="Hosts",
        ),
    ] = None,
    set_: Set = None,
    seed: Seed = None,
    far: Annotated[
        str, typer.Option("--far", metavar="COMMAND", help="Command to run at the far end.")
    ] = "",
    nat: Annotated[
        bool, typer.Option("--nat", help="Let the command reach other networks, including DNS.")
    ] = False,
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="HOW", help="low-cpu, balanced (default) or exact."),
    ] = None,
    mtu: Annotated[
        str | None, typer.Option("--mtu", metavar="BYTES", help="Largest packet; default: 1500b.")
    ] = None,
    cpu: Annotated[
        int | None,
        typer.Option("--cpu", min=0, metavar="N", help="Pin the emulator to this processor."),
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option("--priority", min=0, metavar="N", help="Real-time priority; 0 for none."),
    ] = None,
    drain: Annotated[
        str | None,
        typer.Option(
            "--drain",
            metavar="TIME",
            help="How long packets in flight may still arrive when COMMAND has ended: 2s; "
            "0s discards them.",
        ),
    ] = None,
    keep_capabilities: Annotated[
        bool,
        typer.Option(
            "--keep-capabilities",
            help="Let a command in a user namespace change the network there.",
        ),
    ] = False,
    name: Name = None,
    out: NewFolder = None,
    pcap: Pcap = None,
    pcap_ring: PcapRing = None,
    pcap_at: PcapAt = None,
    log: Log = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Show the links below the output of COMMAND."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no summary of the links at the end.")
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print only JSON on stdout: the tables. COMMAND's output goes to stderr."
        ),
    ] = False,
) -> None:
    """Run a command behind a path of links with the simulator's queues, in real time.

    The other end of the path is $AQMLAB_FAR: as root, this machine. The exit status is the
    command's. See docs/emulator.md.
    """
    from aqmlab.cli.watch import watching
    from aqmlab.emulate import emulate
    from aqmlab.emulate.keep import check_folder, keep
    from aqmlab.emulate.recordings import recordings

    given = {
        "rate": rate,
        "trace": str(trace) if trace else None,
        "delay": delay,
        "queue": queue,
        "loss": loss,
        "jitter": jitter,
        "slot": slot,
        "duplicate": duplicate,
        "reordering": reordering or None,
        "overhead": overhead,
    }
    common = {key: _value(key, text) for key, text in given.items() if text is not None}
    settings = _settings(set_, seed, out)
    emulator = {
        "precision": precision,
        "mtu": mtu,
        "cpu": cpu,
        "priority": priority,
        "drain": drain,
        "name": name,
        "keep_capabilities": keep_capabilities or None,
    }
    emulator_settings = {key: value for key, value in emulator.items() if value is not None}
    if out is not None:
        check_folder(out)
    recorded = recordings(pcap, pcap_ring, log or [], pcap_at)
    view = watching(command or []) if watch else contextlib.nullcontext()
    output = _output_to_stderr() if json else contextlib.nullcontext()
    if topology is not None:
        others = {
            **common,
            "profile": profile,
            "scenario": scenario,
            "down": down,
            "up": up,
            "far": far,
            "nat": nat,
        }
        _refuse(others, "the links are those of --topology; change them with --set")
        with output, view:
            done = _in_hosts(
                topology, command or [], at, host or [], settings, emulator_settings, recorded
            )
    else:
        _refuse({"at": at, "host": host}, "this option needs --topology")
        path = _path(scenario, common, down or [], up or [], settings, profile)
        with output, view:
            done = emulate(
                path,
                command or [],
                far=far,
                nat=nat,
                settings=emulator_settings,
                **recorded.of_run(1, path.scenario),
            )
    if out is not None:
        keep(done, out, command_line())
    if json:
        print_json(_as_json(done))
    elif not quiet:
        _tell(done, out)
    raise SystemExit(done.status)


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Has what is started meanwhile write to stderr what it writes to stdout."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _known(values: dict[str, float]) -> dict[str, float | None]:
    """The values, null where there is none: no packet has passed."""
    return {key: None if is_none(value) else value for key, value in values.items()}


def _as_json(done: Emulation) -> dict[str, Any]:
    """What `--json` prints: the tables as those of `run --json`, and how it went."""
    from aqmlab.emulate.keep import result_of

    return {
        "status": done.status,
        "remarks": done.remarks,
        "lateness": _known(done.lateness),
        "input_lateness": _known(done.input_lateness),
        "changes": done.scenario.table.get("changes", []),
        **result_of(done.results, done.scenario).to_json(),
    }


def _in_hosts(
    file: Path,
    command: list[str],
    at: str | None,
    host: list[str],
    settings: dict[str, Any],
    emulator: dict[str, Any],
    recorded: Recordings,
) -> Emulation:
    """Runs the command in a topology."""
    from aqmlab.emulate import topology
    from aqmlab.errors import input_error

    commands = {}
    for text in host:
        name, equals, words = text.partition("=")
        if not equals:
            raise input_error("expected NAME=COMMAND", key="--host", given=text)
        commands[name] = words
    found = topology.load(file, settings)
    recordings = recorded.of_run(1, found.scenario)
    return topology.run(found, command, at=at, commands=commands, settings=emulator, **recordings)


def _refuse(options: dict[str, Any], problem: str) -> None:
    """Refuses options that are given where they mean nothing."""
    from aqmlab.errors import input_error

    for name, value in options.items():
        if value:
            raise input_error(problem, key=f"--{name}")


def _value(key: str, text: Any) -> Any:
    """An option's text as a value; tables are TOML, as in `--set`."""
    from aqmlab._core import parse_value

    if key in ("rate", "delay", "overhead", "loss", "duplicate") and not str(text).endswith("%"):
        return parse_value(str(text))
    return text


def _settings(set_: list[str] | None, seed: int | None, out: Path | None) -> dict[str, Any]:
    from aqmlab.scenarios.settings import parse_settings

    settings = parse_settings(set_ or [])
    if seed is not None:
        settings["seed"] = seed
    if out is not None:
        settings.setdefault("record.level", "series")
    return settings


def _path(
    scenario: Path | None,
    common: dict[str, Any],
    down: list[str],
    up: list[str],
    settings: dict[str, Any],
    profile: str | None,
) -> EmulatedPath:
    from aqmlab.emulate.links import from_options, from_scenario
    from aqmlab.errors import input_error

    if scenario is None:
        return from_options(common, down, up, settings, profile)
    if profile is not None:
        common = {"profile": profile, **common}
    if common:
        problem = "the links are those of --scenario; change them with --set"
        raise input_error(problem, key=f"--{next(iter(common))}")
    return from_scenario(scenario, down, up, settings)


def _tell(done: Emulation, out: Path | None) -> None:
    """Some lines on stderr: stdout is the command's."""
    from aqmlab.emulate.told import lines

    for line in (*done.remarks, *lines(done.results)):
        print(f"aqmlab: {line}", file=sys.stderr)
    late = done.lateness
    if late["count"]:
        p50, p99, most = (seconds(late[f"{key}_s"]) for key in ("p50", "p99", "max"))
        by = f"late by {p50} (median), {p99} (p99), {most} (max)"
        waited = seconds(done.input_lateness["max_s"])
        text = f"{late['count']:,.0f} packets, {by}; waited to be read: {waited} (max)"
        print(f"aqmlab: {text}", file=sys.stderr)
    if out is not None:
        print(f"aqmlab: results: {out}; report: {out}/report.html", file=sys.stderr)
