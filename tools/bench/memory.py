"""Memory of studies: `python -m tools.bench.memory`.

Each study is made in a process of its own, from the first run to the final tables; what is
printed is the most memory that this process ever held, and how long the final tables took.
With packets, another process makes the report of the run afterwards, and one more does the
same run in memory (`aqmlab.run`) and looks at the packets.
Arguments: RUNSxFLOWS or RUNSxFLOWSxLINKS, as in `50000x4`, with that many idle links besides;
or PACKETSp, as in `4000000p`, for one run at level `packets` with about as many rows there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.bench.measure import peak_rss

SIZES = ("5000x4", "50000x4", "200000x4", "30000x64", "100000p", "4000000p")
ALONE, REPORT, HELD = "--alone", "--report", "--held"
ROWS_PER_SECOND = 125_000
"""Run at level `packets`: packets of 1500 bytes at 1 Gbit/s, and acknowledgements of
every second."""


def study_of(size: str) -> dict[str, Any]:
    """The study that an argument stands for."""
    if size.endswith("p"):
        return packets_study(int(size[:-1]))
    return runs_study(*(int(part) for part in size.split("x")))


def packets_study(rows: int) -> dict[str, Any]:
    """A study of one run that records every packet, `rows` of them."""
    link = {"rate": "1gbit", "delay": "1ms"}
    group = {"count": 4, "path": ["down"], "return_path": ["up"]}
    return {
        "name": "memory",
        "scenario": {
            "duration": f"{round(1000 * rows / ROWS_PER_SECOND)}ms",
            "bottleneck": "down",
            "links": {"down": link | {"queue": "codel"}, "up": link},
            "transport": {"profile": "rfc"},
            "flows": {"first": group},
            "record": {"level": "packets", "interval": "1s"},
        },
    }


def runs_study(runs: int, flows: int, idle: int = 0) -> dict[str, Any]:
    """A study of many short runs: two points, flows of one packet and more, links without any."""
    link = {"rate": "10mbit", "delay": "1ms"}
    group = {"count": flows, "path": ["down"], "return_path": ["up"], "size": "3000b"}
    return {
        "name": "memory",
        "replications": runs // 2,
        "scenario": {
            "duration": "100ms",
            "bottleneck": "down",
            "links": {"down": link, "up": link} | {f"idle{it}": link for it in range(idle)},
            "transport": {"profile": "rfc"},
            "flows": {"first": group},
        },
        "axes": [{"key": "queue", "values": ["codel", "pie"]}],
    }


def measure(size: str, folder: Path) -> dict[str, float]:
    """Makes the study in this process."""
    from aqmlab.study import Study
    from aqmlab.study.folder import ResultsFolder

    spent = {"finish": 0.0}
    finish = ResultsFolder.finish

    def timed(results: ResultsFolder) -> None:
        spent["before"] = peak_rss()
        began = time.monotonic()
        finish(results)
        spent["finish"] += time.monotonic() - began

    ResultsFolder.finish = timed  # type: ignore[assignment, method-assign]
    began = time.monotonic()
    plan = Study(study_of(size))
    plan.run(folder)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "finish_seconds": round(spent["finish"], 1),
        "peak_mb_before_finish": round(spent["before"] / 1e6),
        "peak_mb": round(peak_rss() / 1e6),
    }


def report(folder: Path) -> dict[str, float]:
    """Makes the report of the run in `folder` in this process."""
    from aqmlab.results import StudyResult

    began = time.monotonic()
    StudyResult.open(folder).single().write_report(folder, figures=False)
    return {
        "report_seconds": round(time.monotonic() - began, 1),
        "report_peak_mb": round(peak_rss() / 1e6),
    }


def held(size: str) -> dict[str, float]:
    """Runs in memory what `size` stands for, and looks at the packets."""
    import aqmlab

    result = aqmlab.run(packets_study(int(size[:-1]))["scenario"])
    before = peak_rss()
    return {
        "rows": result.packets.height,
        "run_peak_mb": round(before / 1e6),
        "held_peak_mb": round(peak_rss() / 1e6),
    }


def in_child(words: list[str], environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """What a process of its own measured that has these arguments."""
    line = [sys.executable, "-m", __spec__.name, *words]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(words: list[str]) -> None:
    """Prints a line a size; with `--alone` and its like one measurement, as JSON."""
    alone = {
        ALONE: lambda: measure(words[1], Path(words[2])),
        REPORT: lambda: report(Path(words[1])),
        HELD: lambda: held(words[1]),
    }
    if words and words[0] in alone:
        print(json.dumps(alone[words[0]]()))
        return
    print(
        f"{'size':>12} {'peak MB':>8} {'before the end':>15} {'end, s':>7} {'s':>7} "
        f"{'report':>7} {'run':>7} {'packets':>7}"
    )
    for size in words or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            found = in_child([ALONE, size, folder])
            if size.endswith("p"):
                found |= in_child([REPORT, folder]) | in_child([HELD, size])
        more = ("report_peak_mb", "run_peak_mb", "held_peak_mb")
        print(
            f"{size:>12} {found['peak_mb']:8} {found['peak_mb_before_finish']:15} "
            f"{found['finish_seconds']:7} {found['seconds']:7} "
            + " ".join(f"{found.get(key, ''):>7}" for key in more),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
