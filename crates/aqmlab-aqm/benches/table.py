"""The table in the crate's README, from what `cargo bench -p aqmlab-aqm` measured last.

`make bench-disciplines` measures and writes it.
"""

from __future__ import annotations

import json
import platform
import re
from datetime import date
from pathlib import Path

CRATE = Path(__file__).parents[1]
MEASURED = CRATE.parents[1] / "target" / "criterion"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
LOADS = ("1 flow", "1000 flows")


def nanoseconds(load: str, name: str) -> float:
    """The mean of one benchmark."""
    file = MEASURED / load / name / "new" / "estimates.json"
    return float(json.loads(file.read_text())["mean"]["point_estimate"])


def processor() -> str:
    """What the machine calls its processor."""
    found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def table() -> str:
    """The measurements as Markdown."""
    catalogue = (CRATE / "src" / "disciplines" / "mod.rs").read_text()
    names = re.findall(r"^    \w+\((\w+)::\w+\),$", catalogue, re.MULTILINE)
    lines = [f"| discipline | {' | '.join(LOADS)} |", "|---|---:|---:|"]
    for name in names:
        values = [f"{nanoseconds(load, name):.0f}" for load in LOADS]
        lines.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join([f"Measured {date.today()} on one core of {processor()}.", "", *lines])


if __name__ == "__main__":
    page = CRATE / "README.md"
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")
