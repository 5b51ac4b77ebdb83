"""`aqmlab parity`: a scenario in the simulator and in the emulator, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aqmlab.cli import options
from aqmlab.cli.common import (
    OF_RECORDINGS,
    default_folder,
    finish,
    naming,
    say,
    settings_of_real_packets,
)
from aqmlab.cli.options import argument, option
from aqmlab.emulator.keep import Reserved, recordings
from aqmlab.files import free
from aqmlab.packs.parity import parity as run_both

EXAMPLE = (
    "aqmlab parity examples/scenario.toml\n\n"
    "aqmlab parity scenario.toml --set queue=fq_codel --control bbr --duration 10s --repeat 5"
)


def parity(
    file: Path = argument("SCENARIO", "A scenario file (TOML)."),
    set_: list[str] | None = options.SET,
    duration: str | None = option("TIME", "Duration of each run, such as 10s."),
    repeat: int = option("N", "Number of simulated and of real runs.", min=1, default=1),
    control: str | None = option(
        "NAME", "cubic, reno or bbr, for all flows; default: the scenario's, or cubic."
    ),
    seed: int | None = options.SEED,
    precision: str | None = options.PRECISION,
    out: Path | None = options.OUT,
    pcap: Path | None = options.PCAP,
    pcap_ring: str | None = options.PCAP_RING,
    pcap_at: str | None = options.PCAP_AT,
    log: list[str] | None = options.LOG,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
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
    with naming(control="--control", **OF_RECORDINGS):
        found = run_both(
            file,
            settings=settings,
            control=control,
            repeat=repeat,
            out=folder,
            emulator=emulator,
            told=lambda number, total: say(f"real packets, run {number + 1} of {total}"),
            recorded=recordings(pcap, pcap_ring, log or [], pcap_at),
        )
    place = found.result.folder or folder
    finish(found, place, json=json, figures=figures)
    raise SystemExit(int(place != folder))
