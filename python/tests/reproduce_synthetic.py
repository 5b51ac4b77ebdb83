"""Made-up results of the load-transient study, in the engine's own tables: no simulation."""

from __future__ import annotations

import numpy as np
import polars as pl

from aqmlab.reproduce import Reproduction
from aqmlab.reproduce.published import Published
from aqmlab.results import StudyInfo, StudyResult, resolved
from aqmlab.results.tables import MemoryTables

PACKETS = 500


def reproduction(replications: int = 5, only: str = "") -> Reproduction:
    """A reproduction whose delays follow a made-up law; PIE by default equals DropTail."""
    published = Published.load("jarvinen2014")
    parts = (only,) if only else ()
    kept = published.selection(parts)
    axes = tuple(
        (axis["name"], tuple(kept.get(axis["name"], [each["label"] for each in axis["values"]])))
        for axis in published.parts["study"]["axes"]
    )
    info = StudyInfo("jarvinen2014", "A made-up study", axes, replications, 1, "0" * 64, "0.0.0")
    frames = _frames(info)
    scenarios = [_scenario()] * info.points
    results = {"study": StudyResult(info, MemoryTables(frames), scenarios)}
    return Reproduction(published, results, only=parts)


def _frames(info: StudyInfo) -> dict[str, pl.DataFrame]:
    rows: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("links", "flows", "excursions", "sojourn", "notes")
    }
    loads = dict(info.axes)["flows"]
    queues = dict(info.axes)["queue"]
    for run in range(info.points * info.replications):
        point, replication = divmod(run, info.replications)
        load = loads[point % len(loads)]
        queue = queues[point // len(loads) % len(queues)]
        fifo = queue in ("PIE (default)", "DropTail")
        kind = 99 if fifo else sum(map(ord, queue)) % 7
        rng = np.random.default_rng((kind, int(load[0]), replication))
        scale = 0.2 if fifo else 0.01 + 0.003 * kind + 0.004 * int(load[0])
        delays = np.round(rng.exponential(scale, PACKETS) / 0.006) * 0.006
        values, counts = np.unique(delays, return_counts=True)
        rows["sojourn"] += [
            {"run": run, "link": "down", "sojourn_s": float(v), "count": int(c)}
            for v, c in zip(values, counts, strict=True)
        ]
        largest = float(delays.max())
        rows["links"].append(
            {"run": run, "link": "down", "dropped": 9, "drop_pie": 0, "sojourn_max_s": largest}
        )
        rows["excursions"] += [
            {
                "run": run,
                "link": "down",
                "threshold_bytes": limit,
                "longest_s": 2 * largest,
                "total_s": 3 * largest,
            }
            for limit in (15000, 25000)
        ]
        rows["flows"] += [
            {"run": run, "group": group, "index": 0, "start_s": 0.1, "finish_s": 3 + rng.random()}
            for group in ("first", "second")
        ]
        if queue == "PIE (default)":
            text = "PIE never measured a departure rate: it was inert."
            rows["notes"].append({"run": run, "subject": "down", "id": "pie-inert", "text": text})
    schemas = {
        "notes": {"run": pl.UInt32, "subject": pl.String, "id": pl.String, "text": pl.String}
    }
    return {name: pl.DataFrame(each, schema=schemas.get(name)) for name, each in rows.items()}


def _scenario() -> dict[str, object]:
    """A scenario of the study, for runs with every packet recorded."""
    only = ["rest=11 ms", "queue=CoDel", "flows=6+6"]
    (study,) = Published.load("jarvinen2014").studies(only).values()
    return resolved(study.points[0].scenario.resolved)
