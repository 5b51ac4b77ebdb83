"""`aqmlab parity`: a scenario in the simulator and in the emulator, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab.cli.common import (
    EXAMPLES,
    Figures,
    Json,
    Log,
    Out,
    Pcap,
    PcapAt,
    PcapRing,
    Seed,
    Set,
    command_line,
    console,
    default_folder,
    print_json,
    reported,
)
from aqmlab.emulator.keep import Reserved
from aqmlab.emulator.play import parity as run_both
from aqmlab.emulator.recordings import recordings
from aqmlab.scenario.settings import parse_settings

EXAMPLE = EXAMPLES.format(
    "aqmlab parity examples/scenario.toml\n\n"
    "aqmlab parity scenario.toml --set queue=fq_codel --control bbr --duration 10s --repeat 5"
)


@reported
def parity(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML).", metavar="SCENARIO")],
    set_: Set = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Duration of each run, such as 10s."),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option("--repeat", min=1, metavar="N", help="Number of simulated and of real runs."),
    ] = 1,
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="NAME",
            help="cubic, reno or bbr, for all flows; default: the scenario's, or cubic.",
        ),
    ] = None,
    seed: Seed = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", metavar="HOW", help="low-cpu, balanced (default) or exact."),
    ] = None,
    out: Out = None,
    pcap: Pcap = None,
    pcap_ring: PcapRing = None,
    pcap_at: PcapAt = None,
    log: Log = None,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Run a scenario with simulated senders and with the kernel's own, and compare.

    Both ends run in their own namespaces; links and queues are the same code. The real run takes
    the scenario's duration. Tables, report.html and figures go to results/parity-SCENARIO or
    --out. --pcap and --log record the real packets; with --repeat each run has its own files.
    """
    settings = parse_settings(set_ or [])
    if duration is not None:
        settings["duration"] = duration
    if seed is not None:
        settings["seed"] = seed
    changes = [*(set_ or []), *([control] if control else [])]
    numbers = {"r": repeat if repeat > 1 else None, "s": seed}
    folder = out or _free(default_folder("parity", [file.stem, *changes], **numbers))
    with Reserved(folder):
        pass  # It is new, and can be written to.
    emulator: dict[str, Any] = {} if precision is None else {"precision": precision}
    found = run_both(
        file,
        settings=settings,
        control=control,
        repeat=repeat,
        out=folder,
        emulator=emulator,
        told=lambda number, total: print(
            f"aqmlab: real packets, run {number + 1} of {total}", file=sys.stderr
        ),
        recorded=recordings(pcap, pcap_ring, log or [], pcap_at),
    )
    if json:
        print_json(found.to_json())
        return
    screen = console()
    found.print(screen)
    report = found.write_report(folder, figures=figures, command=command_line())
    screen.print(f"Report: {report}", soft_wrap=True)


def _free(folder: Path) -> Path:
    """The folder, or the first of its name with a number that is not there: real time is
    never twice the same, and nothing is written over."""
    number, found = 2, folder
    while found.exists():
        found = folder.with_name(f"{folder.name}-{number}")
        number += 1
    return found
