"""`aqmlab parity`: a scenario in the simulator and in the emulator, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from aqmlab.cli import options
from aqmlab.cli.common import default_folder, finish, settings_of_real_packets
from aqmlab.cli.options import argument, option
from aqmlab.emulator.keep import Reserved
from aqmlab.emulator.recordings import recordings
from aqmlab.files import free
from aqmlab.packs.parity import parity as run_both

EXAMPLE = (
    "aqmlab parity examples/scenario.toml\n\n"
    "aqmlab parity scenario.toml --set queue=fq_codel --control bbr --duration 10s --repeat 5"
)


def parity(
    file: Annotated[Path, argument("SCENARIO", "A scenario file (TOML).")],
    set_: options.Set = None,
    duration: Annotated[str | None, option("TIME", "Duration of each run, such as 10s.")] = None,
    repeat: Annotated[int, option("N", "Number of simulated and of real runs.", min=1)] = 1,
    control: Annotated[
        str | None,
        option("NAME", "cubic, reno or bbr, for all flows; default: the scenario's, or cubic."),
    ] = None,
    seed: options.Seed = None,
    precision: options.Precision = None,
    out: options.Out = None,
    pcap: options.Pcap = None,
    pcap_ring: options.PcapRing = None,
    pcap_at: options.PcapAt = None,
    log: options.Log = None,
    figures: options.Figures = False,
    json: options.Json = False,
) -> None:
    """Run a scenario with simulated senders and with the kernel's own, and compare.

    Both ends run in their own namespaces; links and queues are the same code. The real run takes
    the scenario's duration. Tables, report.html and figures go to results/parity-SCENARIO or
    --out. --pcap and --log record the real packets; with --repeat each run has its own files.
    """
    settings = settings_of_real_packets(set_, seed, None)
    if duration is not None:
        settings["duration"] = duration
    changes = [*(set_ or []), *([control] if control else [])]
    numbers = {"r": repeat if repeat > 1 else None, "s": seed}
    # Real time is never twice the same, and nothing is written over.
    folder = out or free(default_folder("parity", [file.stem, *changes], **numbers))
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
    finish(found, folder, json=json, figures=figures)
