"""The table in the crate's README, and the costs in the reports of `aqmlab characterize`, from
what `cargo bench -p aqmlab-aqm` measured last.

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
COSTS = CRATE.parents[1] / "python" / "aqmlab" / "packs" / "rfc7928" / "costs.json"


def nanoseconds(load: str, name: str) -> float:
    """The mean of one benchmark."""
    file = MEASURED / load / name / "new" / "estimates.json"
    return float(json.loads(file.read_text())["mean"]["point_estimate"])


def processor() -> str:
    """What the machine calls its processor."""
    found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def costs() -> dict[str, list[int]]:
    """Nanoseconds for a packet by discipline, for each load."""
    catalogue = (CRATE / "src" / "disciplines" / "mod.rs").read_text()
    names = re.findall(r"^    \w+\((\w+)::\w+\),$", catalogue, re.MULTILINE)
    return {name: [round(nanoseconds(load, name)) for load in LOADS] for name in names}


def table(found: dict[str, list[int]]) -> str:
    """The measurements as Markdown."""
    lines = [f"| discipline | {' | '.join(LOADS)} |", "|---|---:|---:|"]
    lines += [f"| {name} | {' | '.join(map(str, values))} |" for name, values in found.items()]
    return "\n".join([f"Measured {date.today()} on one core of {processor()}.", "", *lines])


if __name__ == "__main__":
    page = CRATE / "README.md"
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    measured = costs()
    page.write_text(f"{head}{BEGIN}\n{table(measured)}\n{END}{tail}")
    form = {"measured": str(date.today()), "machine": processor(), "nanoseconds": measured}
    COSTS.write_text(json.dumps(form, indent=1) + "\n")
