"""Tunes RED for the load transients of Järvinen and Kojo (2014), and compares it with their HRED.

    python examples/search/load_transient.py [FOLDER]

The study is that of `aqmlab reproduce jarvinen2014`, with its short path. The search begins with
RED as ns-2 has it, and knows nothing of HRED. HRED's delays are those of the paper's Table II; its
response times are measured, as the paper shows them in a figure only.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import aqmlab
from aqmlab.metrics import values

KEYS = {
    "queue.min_threshold": "1p..20p,log",
    "queue.max_threshold": "4p..60p,log",
    "queue.max_p": "0.02..1,log",
    "queue.weight": "0.002..0.2,log",
}
FOLDER = "results/tune-load-transient"
CHECKOUT = Path(__file__).resolve().parents[2]
STUDY = CHECKOUT / "studies" / "aqmlab_studies" / "jarvinen2014" / "study.toml"
GOALS = ["min:sojourn_p95", "min:completion_max@second"]
TABLE_II = {"1+1": 0.120, "2+2": 0.126, "4+4": 0.132, "6+6": 0.132}
HRED = {
    "discipline": "hred", "wait": True, "mean_packet": "1000b", "min_threshold": "3000b",
    "max_threshold": "40000b", "by_size": True, "limit": "100p",
}  # fmt: skip


def study() -> dict[str, Any]:
    """The published study with RED instead of its queues."""
    table = tomllib.loads(STUDY.read_text())
    table["axes"] = [axis for axis in table["axes"] if axis["name"] == "flows"]
    table["scenario"]["links"]["down"]["queue"] = {"discipline": "red", "limit": "100p"}
    return table


def measured(queue: dict[str, Any], replications: int) -> tuple[dict[str, float], float]:
    """The 95th percentile of the delay by load, pooled over replications, and the mean response
    time of the second group; with fresh seeds."""
    table = study()
    table["scenario"]["links"]["down"]["queue"] = queue
    result = aqmlab.study(table, replications=replications, seed=2)
    delays = {}
    for load in TABLE_II:
        rows = result.table("sojourn").filter(flows=load).sort("sojourn_s")
        share = rows["count"].cum_sum() / rows["count"].sum()
        delays[load] = float(rows["sojourn_s"].filter(share >= 0.95)[0])
    times = values(result, "completion_max").filter(subject="second")["value"]
    return delays, sum(times) / len(times)


def main(folder: str, trials: int = 96) -> None:
    """Searches, and prints the trials of the front beside HRED."""
    found = aqmlab.search.tune(study(), KEYS, GOALS, trials=trials, replications=5, out=folder)
    print(*found.statements, sep="\n")
    found.write_report()
    delays, response = measured(HRED, 100)
    print("HRED", delays, f"{response:.2f} s")
    for trial in found.best:
        settings = {key.removeprefix("queue."): value for key, value in trial.settings.items()}
        queue = {"discipline": "red", "limit": "100p", **settings}
        own, time = measured(queue, 100)
        worst = max(own[load] / TABLE_II[load] for load in TABLE_II)
        print(trial.number, settings, own, f"{time:.2f} s: delay at most {worst:.3f} of Table II, "
              f"response {time / response:.3f} of HRED's")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else FOLDER)
