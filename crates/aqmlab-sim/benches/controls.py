"""Instructions for each packet by congestion control: the table in docs/engine.md.

`make bench-controls` measures (with valgrind, on all cores) and writes it. Names after it keep to
some controls and only print: `python crates/aqmlab-sim/benches/controls.py bbr reno`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[3]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = BUILT / "release" / "examples" / "steady"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
LONG = ("links.down.delay=50ms", "links.up.delay=50ms")
# Scenario (d) of `tools/bench`, shorter.
LOADS = {
    "100 flows": (),
    "with RACK": ("transport.recovery=rack",),
    "1000 flows": ("flows.bulk.count=1000",),
    "1 flow, 100 ms": ("flows.bulk.count=1", *LONG),
}
SECONDS = 3


def controls() -> list[str]:
    """The names of the congestion controls, in the catalogue's order."""
    folder = ROOT / "crates" / "aqmlab-tcp" / "src" / "congestion"
    modules = re.findall(r"^    \w+\((\w+)::\w+Params\),$", (folder / "mod.rs").read_text(), re.M)
    names = []
    for module in modules:
        file = folder / f"{module}.rs"
        text = (file if file.exists() else folder / module / "mod.rs").read_text()
        names += re.findall(r'const NAME: &\'static str = "([^"]+)"', text)
    return names


def measure(control: str, load: Sequence[str]) -> tuple[int, list[int]]:
    """Instructions of a run, and its counts: delivered, offered, acknowledgements."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command += [str(PROGRAM), "d", control, f"duration={SECONDS}s", *load]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    instructions = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert instructions, done.stderr
    return int(instructions[1].replace(",", "")), [int(n) for n in re.findall(r"\d+", done.stdout)]


def table(names: Sequence[str]) -> str:
    """The measurements as Markdown."""
    heads = ["congestion control", *LOADS, "sent", "acknowledged"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    cases = [(name, load) for name in names for load in LOADS.values()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = dict(zip(cases, pool.map(lambda case: measure(*case), cases), strict=True))
    for name in names:
        runs = [measured[name, load] for load in LOADS.values()]
        cells = [f"{instructions / counts[0]:,.0f}" for instructions, counts in runs]
        _, (delivered, offered, acknowledgements, _) = runs[0]
        cells += [f"{offered / delivered:.2f}", f"{acknowledgements / delivered:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([f"Measured {date.today()}, {SECONDS} s of each.", "", *lines])


if __name__ == "__main__":
    if chosen := sys.argv[1:]:
        print(table(chosen))
        sys.exit()
    page = ROOT / "docs" / "engine.md"
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n{table(controls())}\n{END}{tail}")
