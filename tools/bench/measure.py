"""Times one scenario in a process of its own: `python tools/bench/measure.py`.

Nothing but the engine is loaded here, so CPU seconds and peak memory are the
engine's (and the bare interpreter's). Prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from aqmlab import _core

ENOUGH_SECONDS = 1.0
"""Short scenarios are repeated until they took so much CPU time together."""
MOST_REPEATS = 50


def measure(text: str, file: str, overrides: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Runs a scenario at least `repeat` times; the time is the median's."""
    scenario = _core.Scenario(text, file=file, overrides=overrides)
    times: list[float] = []
    while len(times) < repeat or (sum(times) < ENOUGH_SECONDS and len(times) < MOST_REPEATS):
        began = time.process_time()
        result = run(scenario)
        times.append(time.process_time() - began)
    cpu = statistics.median(times)
    return {
        "delivered_packets": result.delivered_packets,
        "events": result.events,
        "cpu_seconds": round(cpu, 6),
        "packets_per_cpu_second": round(result.delivered_packets / max(cpu, 1e-9)),
        "peak_rss_bytes": peak_rss(),
    }


def run(scenario: _core.Scenario) -> _core.Results:
    """One run, on one thread."""
    runner = _core.Runner([(0, scenario, 0)], threads=1)
    while True:
        result = runner.poll(60.0)
        if result is not None:
            return result


def peak_rss() -> int:
    """The most memory that this process ever held, in bytes.

    Linux' own record is used where there is one: `ru_maxrss` also counts what the
    parent held when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Reads {"file", "set", "repeat"} from the command line and prints the measurement."""
    task = json.loads(sys.argv[1])
    text = Path(task["file"]).read_text(encoding="utf-8")
    try:
        measured = measure(text, Path(task["file"]).name, task["set"], task["repeat"])
    except _core.InputError as error:
        measured = {"error": str(error)}
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
