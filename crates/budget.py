"""Instructions per packet and peak heap of the engine against budgets: `make budget`.

Both are counts, not times: cachegrind counts the instructions of `examples/steady.rs`, DHAT its
heap. The instructions are the difference of two durations, in which the fixed cost of a run
cancels. Another compiler gives other counts, so budgets name theirs. A value more than TOLERANCE
above its budget fails, and so does one as far below: then lower the budget. `--write` replaces
the budgets. They are of the engine that `make` builds, so that little is compiled for them;
`--release` shows what a wheel's engine costs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
RELEASE = "--release" in sys.argv[1:]
FOLDER = "release" if RELEASE else "debug"
PROGRAM = BUILT / FOLDER / "examples" / "steady"
BUDGETS = ROOT / "crates" / "budget.toml"
TOLERANCE = 0.01


@dataclass(frozen=True)
class Scenario:
    """Arguments of `steady`, and the durations in seconds whose difference counts."""

    arguments: tuple[str, ...]
    seconds: tuple[int, int]


SCENARIOS = {
    "droptail": Scenario(("d", "reno"), (1, 2)),
    "codel": Scenario(("c", "reno"), (4, 12)),
    "fq-codel-linux": Scenario(
        ("c", "cubic", "transport.profile=linux-6.1", "links.down.queue=fq_codel"), (4, 12)
    ),
}


def valgrind(tool: str, pattern: str, scenario: Scenario, seconds: int) -> tuple[int, int]:
    """What a tool counts in a run, and the packets that the bottleneck delivers."""
    command = ["valgrind", *tool.split(), str(PROGRAM), *scenario.arguments, f"duration={seconds}s"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(pattern, done.stderr)
    if found is None:
        raise SystemExit(f"unexpected output of {' '.join(command)}:\n{done.stderr}")
    return int(found[1].replace(",", "")), int(done.stdout.split()[0])


def instructions(scenario: Scenario) -> float:
    """Instructions per delivered packet."""
    tool = "--tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null"
    short, long = (
        valgrind(tool, r"I\s+refs:\s+([\d,]+)", scenario, seconds) for seconds in scenario.seconds
    )
    return round((long[0] - short[0]) / (long[1] - short[1]), 1)


def heap(scenario: Scenario) -> float:
    """Peak of the allocated memory in kB."""
    tool = "--tool=dhat --dhat-out-file=/dev/null"
    peak, _ = valgrind(tool, r"At t-gmax:\s+([\d,]+) bytes", scenario, scenario.seconds[0])
    return round(peak / 1000, 1)


MEASURES = {"instructions_per_packet": instructions, "peak_heap_kb": heap}


def compiler() -> str:
    """The release of rustc: `1.95.0`."""
    done = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def verdict(measured: float, budget: float) -> str:
    """The judgement of a value: empty if it is within the budget."""
    if measured > budget * (1 + TOLERANCE):
        return "over budget"
    return "lower the budget" if measured < budget * (1 - TOLERANCE) else ""


def main() -> None:
    """Measures all scenarios and compares."""
    if shutil.which("valgrind") is None:
        print("BUDGETS NOT CHECKED: valgrind is not installed")
        return
    budgets = tomllib.loads(BUDGETS.read_text())
    writes = "--write" in sys.argv[1:] and not RELEASE
    if budgets["rustc"] != compiler() and not writes and not RELEASE:
        print(f"BUDGETS NOT CHECKED: they are of rustc {budgets['rustc']}, this is {compiler()}")
        return
    # With `aqmlab-py`, as its libraries then have the features with which they are compiled already.
    build = "cargo build --quiet -p aqmlab-py -p aqmlab-sim --example steady".split()
    subprocess.run(build + ["--release"] * RELEASE, check=True, cwd=ROOT)
    cases = [(measure, name) for measure in MEASURES for name in SCENARIOS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        values = pool.map(lambda case: MEASURES[case[0]](SCENARIOS[case[1]]), cases)
        measured = dict(zip(cases, values, strict=True))
    if writes:
        write(measured)
        return
    judged = {case: verdict(value, budgets[case[0]][case[1]]) for case, value in measured.items()}
    for (measure, name), value in measured.items():
        beside = f"  budget {budgets[measure][name]:>10,.1f}  {judged[measure, name]}"
        print(f"{measure:24} {name:16} {value:>10,.1f}{'' if RELEASE else beside}")
    if any(judged.values()) and not RELEASE:
        sys.exit("budgets differ: lower the cost, or run `python crates/budget.py --write`")


def write(measured: dict[tuple[str, str], float]) -> None:
    """Replaces the budgets, and keeps the comment above them."""
    comment = "".join(f"{line}\n" for line in BUDGETS.read_text().splitlines() if line[:1] == "#")
    tables = []
    for measure in MEASURES:
        lines = [f"{name} = {measured[measure, name]}" for name in SCENARIOS]
        tables.append("\n".join([f"[{measure}]", *lines]) + "\n")
    BUDGETS.write_text("\n".join([comment, f'rustc = "{compiler()}"\n', *tables]))


if __name__ == "__main__":
    main()
