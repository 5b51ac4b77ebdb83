"""Runs a command behind links in a process of its own: `python tools/bench/emulated.py`.

The argument is a JSON object: `link` (of each direction, as in a scenario), `far`, `command`,
`logs`, and `report`, the file to which goes what the emulator took and how late it was.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(task: dict[str, Any]) -> int:
    """The command's exit status."""
    from aqmlab.emulator import emulate
    from aqmlab.emulator.links import from_tables

    path = from_tables({"up": task["link"], "down": task["link"]}, ["down"], ["up"], {})
    logs = [(link, file, ["a benchmark"]) for link, file in task["logs"].items()]
    done = emulate(path, task["command"], far=task["far"], logs=logs)
    from aqmlab.results import RunResult

    result = RunResult.of([done.results], path.scenario)
    taken = {row["quantity"]: row["value"] for row in result.scores.iter_rows(named=True)}
    found = {
        "processor_s": taken["processor_s"],
        "bytes": result.links["delivered_bytes"].max(),
        "remarks": done.remarks,
        "not_read": taken["packets_not_read_in_time"],
        "input": done.input_lateness,
    } | done.lateness
    Path(task["report"]).write_text(json.dumps(found))
    return done.status


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))
