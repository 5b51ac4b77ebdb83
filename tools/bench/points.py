"""`python -m tools.bench.points [POINTS ...]`: what a study costs as its points grow in number.

Each point is one run of 20 ms, on one thread and in a fresh process. The columns are CPU
milliseconds a point and, last, the peak of the process's memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import aqmlab
from tools.bench.measure import peak_rss

POINTS = (1_000, 10_000, 100_000)
COLUMNS = ("plan", "runs", "report", "page", "MB")
ACROSS = 10
"""Length of the second axis."""
ALONE = os.environ | {
    "POLARS_MAX_THREADS": "1",
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
}
"""One thread also for tables, whose allocator returns memory at once: otherwise the peak depends on
the load of the machine."""


def study(points: int) -> aqmlab.Study:
    """A study of so many points, a multiple of `ACROSS`."""
    link = {"rate": "10mbit", "delay": "1ms"}
    flow = {"path": ["down"], "return_path": ["up"]}
    rates = [f"{number + 10}mbit" for number in range(points // ACROSS)]
    delays = [f"{number + 1}ms" for number in range(ACROSS)]
    scenario = {
        "duration": "20ms",
        "bottleneck": "down",
        "links": {"down": link, "up": link},
        "flows": {"bulk": flow},
    }
    axes = [
        {"name": "rate", "key": "links.down.rate", "values": rates},
        {"name": "delay", "key": "links.down.delay", "values": delays},
    ]
    return aqmlab.Study({"scenario": scenario, "axes": axes})


def measured(points: int) -> dict[str, float]:
    """The columns, of a study in this process."""
    times = [time.process_time()]
    plan = study(points)
    times.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        result = plan.run(Path(folder) / "results", threads=1)
        times.append(time.process_time())
        report = result.report()
        times.append(time.process_time())
        report.to_html()
        times.append(time.process_time())
    spent = [1e3 * (end - start) / points for start, end in pairwise(times)]
    peak = peak_rss() / 2**20
    return dict(zip(COLUMNS, [*spent, peak], strict=True))


def in_child(points: int) -> dict[str, float]:
    """The columns, of a study in a process of its own."""
    words = [sys.executable, "-m", "tools.bench.points", "--here", str(points)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=ALONE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(words: list[str]) -> None:
    """Prints a row for each number of points."""
    if words[:1] == ["--here"]:
        print(json.dumps(measured(int(words[1]))))
        return
    print(f"{'points':>8}" + "".join(f"{name:>10}" for name in COLUMNS))
    for points in map(int, words or POINTS):
        row = in_child(points)
        print(f"{points:>8}" + "".join(f"{row[name]:>10.3f}" for name in COLUMNS), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
