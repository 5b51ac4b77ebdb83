"""How much memory a study takes, by its number of runs: `python -m aqmlab.benchmarks.memory`.

Each study is made in a process of its own, from the first run to the final tables; what is
printed is the most memory that this process ever held, and how long the final tables took.
Arguments: RUNSxFLOWS, as in `50000x4`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aqmlab.benchmarks.measure import peak_rss

SIZES = ("5000x4", "50000x4", "200000x4", "30000x64")
ALONE = "--alone"


def study(runs: int, flows: int) -> dict[str, Any]:
    """A study of many short runs: two points, flows of one packet and more."""
    link = {"rate": "10mbit", "delay": "1ms"}
    group = {"count": flows, "path": ["down"], "return_path": ["up"], "size": "3000b"}
    return {
        "name": "memory",
        "replications": runs // 2,
        "scenario": {
            "duration": "100ms",
            "links": {"down": link, "up": link},
            "flows": {"first": group},
        },
        "axes": [{"key": "queue", "values": ["codel", "pie"]}],
    }


def measure(runs: int, flows: int, folder: Path) -> dict[str, float]:
    """Makes the study in this process."""
    from aqmlab.folder import ResultsFolder
    from aqmlab.study import Study

    spent = {"finish": 0.0}
    finish = ResultsFolder.finish

    def timed(results: ResultsFolder) -> None:
        spent["before"] = peak_rss()
        began = time.monotonic()
        finish(results)
        spent["finish"] += time.monotonic() - began

    ResultsFolder.finish = timed  # type: ignore[assignment, method-assign]
    began = time.monotonic()
    plan = Study(study(runs, flows))
    plan.run(folder)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "finish_seconds": round(spent["finish"], 1),
        "peak_mb_before_finish": round(spent["before"] / 1e6),
        "peak_mb": round(peak_rss() / 1e6),
    }


def main(words: list[str]) -> None:
    """Prints a line a size; with `--alone` the measurement of one, as JSON."""
    if words[:1] == [ALONE]:
        print(json.dumps(measure(int(words[1]), int(words[2]), Path(words[3]))))
        return
    print(f"{'runs':>9} {'flows':>6} {'peak MB':>8} {'before the end':>15} {'end, s':>7} {'s':>7}")
    for size in words or SIZES:
        runs, flows = (int(part) for part in size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, "-m", __spec__.name, ALONE, f"{runs}", f"{flows}", folder]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        print(
            f"{runs:9,} {flows:6} {found['peak_mb']:8} {found['peak_mb_before_finish']:15} "
            f"{found['finish_seconds']:7} {found['seconds']:7}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
