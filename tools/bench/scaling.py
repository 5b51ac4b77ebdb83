"""How a study gets faster with workers of a cluster: `python -m tools.bench.scaling [CHART]`.

Runs studies of short, middle and long runs on one thread of this process, then on clusters of 1, 2,
... workers on this machine, as many as it has processors, with scheduler and command beside them.
Prints runs per second, and draws them beside those of one thread.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import aqmlab
from aqmlab import libraries
from aqmlab.report.document import charts
from aqmlab.report.document.colours import by_label
from aqmlab.report.document.figure import Figure

LINK = {"rate": "100mbit", "delay": "5ms"}
SCENARIO = {
    "links": {"down": LINK, "up": LINK},
    "transport": {"profile": "rfc"},
    "flows": {"bulk": {"path": "down", "return_path": "up"}},
}
LENGTHS = {"0.1s": 4000, "1s": 1200, "10s": 160}
"""By simulated duration of a run, how many runs."""


def study(duration: str, runs: int) -> aqmlab.Study:
    """So many replications of one flow over 100 Mbit/s."""
    return aqmlab.Study({"scenario": SCENARIO | {"duration": duration}, "replications": runs})


def local(duration: str, runs: int) -> float:
    """Runs per second of one thread of this process."""
    began = time.monotonic()
    study(duration, runs).run(threads=1)
    return runs / (time.monotonic() - began)


def on_cluster(client: Any, duration: str, runs: int) -> float:
    """Runs per second of a cluster."""
    began = time.monotonic()
    study(duration, runs).run(executor=client.get_executor(pure=False))
    return runs / (time.monotonic() - began)


def measured() -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """Runs per second by duration: of one thread here, and by the number of workers."""
    alone = {duration: local(duration, runs) for duration, runs in LENGTHS.items()}
    found = {}
    for workers in range(1, (os.cpu_count() or 1) + 1):
        cluster = libraries.distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, libraries.distributed.Client(cluster) as client:
            on_cluster(client, "0.1s", 100 * workers)  # each loads aqmlab
            found[workers] = {
                duration: on_cluster(client, duration, runs) for duration, runs in LENGTHS.items()
            }
    return alone, found


def chart(alone: dict[str, float], found: dict[int, dict[str, float]]) -> Figure:
    """Runs per second against the number of workers; one thread without a cluster is 1."""
    ideal = "as many times as workers"
    places = {count: f"{count} worker{'s' * (count > 1)}" for count in found}
    points = {(ideal, place): float(count) for count, place in places.items()}
    for duration, rate in alone.items():
        name = f"runs of {1e3 / rate:.1f} ms"
        points |= {(name, places[count]): found[count][duration] / rate for count in found}
    return Figure(
        id="scaling",
        title="A study on workers of one machine",
        message="Runs per second, one thread without a cluster is 1",
        caption="The diamonds: as many times one thread's as there are workers.",
        spec=charts.lines(
            points,
            by_label(list(dict.fromkeys(name for name, _ in points))),
            "runs per second, one thread = 1",
            "workers",
            emphasised=ideal,
        ),
    )


def main(paths: list[str]) -> None:
    """Prints a line by length of a run, and writes the chart if a path is given."""
    alone, found = measured()
    print(f"{'run':>8} {'here':>8} " + " ".join(f"{count:>3} workers" for count in found))
    for duration in LENGTHS:
        rates = " ".join(f"{found[count][duration]:11.0f}" for count in found)
        print(f"{1e3 / alone[duration]:5.1f} ms {alone[duration]:8.0f} {rates}")
    for path in paths:
        chart(alone, found).save(Path(path))


if __name__ == "__main__":
    main(sys.argv[1:])
