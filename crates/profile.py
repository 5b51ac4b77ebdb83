"""Where the CPU time of the engine goes, by part, as the table of docs/engine.md: `make profile`.

Samples `examples/steady.rs` with `perf` in a release build with line tables. A sample counts for
the innermost inlined function of this repository at its address (`addr2line -i`); units and times
of aqmlab-core count for who uses them.
"""

from __future__ import annotations

import collections
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "profile"
PROGRAM = TARGET / "release" / "examples" / "steady"
FREQUENCY = 20_000
"""Samples a second of CPU time."""

RUNS = {
    "(c) 100 Mbit/s, CoDel": ("c", "reno", "duration=400s"),
    "(d) 1 Gbit/s, drop-tail": ("d", "reno", "duration=60s"),
}
MEASURING = "measuring: probe, histogram, series"
PARTS = {
    "crates/aqmlab-sim/src/network/histogram.rs": MEASURING,
    "crates/aqmlab-sim/src/network/link/result.rs": MEASURING,
    "crates/aqmlab-sim/src/network/probe.rs": MEASURING,
    "crates/aqmlab-sim/src/network/records.rs": MEASURING,
    "crates/aqmlab-sim/src/network/series.rs": MEASURING,
    "crates/aqmlab-sim/src/network/": "network: events, transmitters, pipes, routes",
    "crates/aqmlab-sim/src/rate/": "network: events, transmitters, pipes, routes",
    "crates/aqmlab-tcp/src/receiver": "receiver",
    "crates/aqmlab-tcp/": "sender",
    "crates/aqmlab-aqm/": "queue: discipline, its storage and counts",
    "crates/aqmlab-sim/src/run/": "loop of the run",
    "crates/aqmlab-sim/src/endpoints/": "endpoints: packets from and to segments",
}
"""Beginnings of paths; the first that fits counts."""
OTHERS = "library, kernel"

LOADED = 0x5555_5555_4000
"""Load address of a program without randomisation (`setarch -R`)."""


def part(frames: list[str]) -> str:
    """Part of a sample, from the source files of its inlined functions, innermost first."""
    for file in frames:
        for beginning, name in PARTS.items():
            if f"/{beginning}" in file:
                return name
    return OTHERS


def parts_of(addresses: list[str]) -> dict[str, str]:
    """The part of each address of the program."""
    told = subprocess.run(
        ["addr2line", "-a", "-i", "-e", str(PROGRAM)],
        input="\n".join(addresses),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    frames: dict[str, list[str]] = {}
    address = ""
    for line in told:
        if line.startswith("0x"):
            address = hex(int(line, 16))
            frames[address] = []
        else:
            frames[address].append(line)
    return {each: part(files) for each, files in frames.items()}


def counted(addresses: collections.Counter[str]) -> dict[str, float]:
    """The share of each part, of samples by address; `` are those outside the program."""
    where = parts_of([each for each in addresses if each])
    total: collections.Counter[str] = collections.Counter()
    for address, count in addresses.items():
        total[where.get(address, OTHERS)] += count
    return {name: count / addresses.total() for name, count in total.items()}


def shares(arguments: tuple[str, ...]) -> dict[str, float]:
    """The share of each part in the samples of a run."""
    data = TARGET / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", str(data)]
    run = [*record, "setarch", "-R", str(PROGRAM), *arguments]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    script = ["perf", "script", "-i", str(data), "-F", "ip,dso"]
    told = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    addresses: collections.Counter[str] = collections.Counter()
    for line in told.splitlines():
        address, _, file = line.strip().partition(" ")
        inside = PROGRAM.name in file
        addresses[hex(int(address, 16) - LOADED) if inside else ""] += 1
    return counted(addresses)


def main() -> None:
    """Builds, samples and prints the table."""
    environment = {**os.environ, "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only"}
    build = ["cargo", "build", "--release", "--quiet", "-p", "aqmlab-sim", "--example", "steady"]
    command = [*build, "--target-dir", str(TARGET)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    columns = [shares(arguments) for arguments in RUNS.values()]
    names = sorted({*PARTS.values(), OTHERS}, key=lambda name: -columns[0].get(name, 0))
    print("| part |", " | ".join(RUNS), "|")
    print("|---|", "|".join("---:" for _ in RUNS), "|", sep="")
    for name in names:
        print(
            "|",
            name,
            "|",
            " | ".join(f"{each.get(name, 0):.1%}".replace("%", " %") for each in columns),
            "|",
        )


if __name__ == "__main__":
    main()
