"""Packs the recordings' numbers into `recorded.json`.

python -m tools.linux2026_pack FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from aqmlab_studies.linux2026.recorded import FILE, SHARES


def packed(lines: str) -> dict[str, list[dict[str, Any]]]:
    """The runs of each case, in the order of their starts, from one line of JSON a run."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for line in lines.splitlines():
        run = json.loads(line)
        delays = [run["sojourn_s"][str(share)] for share in SHARES]
        kept = {
            "goodput": [round(each, 4) for each in run["goodput_mbit"]],
            "seconds": run["per_second_mbit"],
            "delays": [round(1e3 * each, 4) for each in (*delays, run["sojourn_mean_s"])],
            "drops": run["dropped_in_all"],
        }
        if run.get("back"):  # drops of acknowledgements
            kept["back"] = run["back"][0]["drops"]
        cases.setdefault(run["case"], []).append(kept)
    return cases


def main(folder: Path) -> None:
    """Writes `recorded.json`, one line a run."""
    files = ("runs.jsonl", "cake.jsonl")
    cases = packed("".join((folder / each).read_text(encoding="utf-8") for each in files))
    lines = [
        f'"{case}": [\n' + ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs) + "]"
        for case, runs in cases.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
