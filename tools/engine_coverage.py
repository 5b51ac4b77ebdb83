"""Coverage of the intervals on runs of the engine.

    python -m tools.engine_coverage            # simulates 4 x 3,000 runs (2 minutes)
    python -m tools.engine_coverage --table    # the table of docs/statistics.md, from the data

The data are the values of every run of four small scenarios, rounded to a small part of their
spread. The mean of all runs of a scenario is taken for the true mean; samples of 5, 10 and 20 runs
are drawn from them, and their intervals are held against it. `test_engine_coverage` does the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from aqmlab.stats import estimate_means

DATA = Path(__file__).parents[1] / "python" / "tests" / "data" / "engine_runs.parquet"
RUNS = 3000
COUNTS = (5, 10, 20)
STEPS = 50
"""The spread is at least as many steps of rounding."""

DOWN = {"path": "down", "return_path": "up"}
SOON = {"uniform": ["0s", "1s"]}
SHALLOW = {"discipline": "droptail", "limit": "40p"}
WORLDS: dict[str, tuple[Any, bool]] = {
    "CoDel": ("codel", True),
    "FQ-CoDel": ("fq_codel", True),
    "DropTail": (SHALLOW, True),
    "light": (SHALLOW, False),
}
"""Queue, and whether there are two endless downloads."""
KEPT = (
    "time in the queue, 95th percentile", "time in the queue, mean", "link busy", "dropped",
    "loss events", "bulk: goodput", "bulk: lost", "bulk: Jain's index", "bulk: start-up time, mean",
    "web: page load time, mean", "web: page load time, p95", "web: lost", "call: MOS",
    "call: one-way delay, p95", "call: lost", "call: late packets", "video: stalls",
    "short: completion time, mean", "short: completion time, p95", "short: start-up time, mean",
    "short: start-up time, p95",
)  # fmt: skip
"""Measures, by the titles that reports give them."""


@dataclass(frozen=True)
class Series:
    """The values of a measure in all runs of one scenario."""

    world: str
    title: str
    unit: str
    bounds: tuple[float, float]
    event: float
    values: NDArray[np.float64]


def scenario(queue: Any, bulk: bool) -> dict[str, Any]:
    """A household behind 10 Mbit/s down and 2 Mbit/s up: pages, a call, a video, transfers."""
    link = {"delay": "20ms", "queue": queue}
    flows = {
        "bulk": DOWN | {"count": 2, "start": {"each": ["0s", "1s"]}},
        "web": DOWN | {"start": SOON, "workload": {"kind": "page", "think": "exponential(1s)"}},
        "call": DOWN | {"start": SOON, "workload": "voip"},
        "video": DOWN | {"start": SOON, "workload": "dash"},
        "short": DOWN | {"start": SOON, "workload": "transfers"},
    }
    if not bulk:
        del flows["bulk"]
    links = {"down": link | {"rate": "10mbit"}, "up": link | {"rate": "2mbit"}}
    return {"duration": "20s", "bottleneck": "down", "links": links, "flows": flows}


def simulated() -> Iterator[Series]:
    """The series of all scenarios."""
    import aqmlab
    from aqmlab.metrics import everything

    for world, (queue, bulk) in WORLDS.items():
        study = {"name": "coverage", "seed": 1, "scenario": scenario(queue, bulk)}
        result = aqmlab.study({**study, "replications": RUNS})
        for shown in everything(result):
            if shown.title in KEPT:
                values = np.full(RUNS, np.nan)
                values[shown.values["run"].to_numpy()] = shown.values["value"].to_numpy()
                yield Series(world, shown.title, shown.unit, shown.bounds, shown.event(0), values)


def write(series: list[Series], path: Path) -> None:
    """Writes the values as whole numbers of steps; columns are named after their contents."""
    columns = {}
    for each in series:
        quartiles = np.nanpercentile(each.values, [25, 75])
        spread = float(np.ptp(quartiles)) or float(np.nanstd(each.values)) or 1.0
        step = 10.0 ** np.floor(np.log10(spread / STEPS))
        about = [each.world, each.title, each.unit, each.bounds, each.event, step]
        whole = pl.Series(np.round(each.values / step)).fill_nan(None).cast(pl.Int32)
        columns[json.dumps(about)] = whole
    path.parent.mkdir(exist_ok=True)
    pl.DataFrame(columns).write_parquet(path, compression="zstd", compression_level=19)


def read(path: Path = DATA) -> list[Series]:
    """The series of the data."""
    found = []
    for column in pl.read_parquet(path):
        world, title, unit, (low, high), event, step = json.loads(column.name)
        values = column.drop_nulls().to_numpy() * step
        found.append(Series(world, title, unit, (low, high), event, values))
    return found


@dataclass(frozen=True)
class Coverage:
    """The intervals of many samples of one size."""

    given: float
    """Share of the samples with an interval."""
    covered: float
    """Returns the share of the intervals that contain the true mean; NaN without any."""
    missed: float
    """Share of all samples whose interval does not contain it."""
    width: float
    """Median length over that of Student's t with the true standard deviation; NaN without any."""
    why: str
    """The most frequent reason for no interval."""


def coverage(series: Series, count: int, samples: int, seed: int = 1) -> Coverage:
    """The intervals of `samples` samples of `count` runs, without replacement in each."""
    rng = np.random.default_rng([seed, count])
    truth, spread = float(series.values.mean()), float(series.values.std())
    lengths, covered, reasons = [], [], []
    size = series.values.size
    drawn = [series.values[rng.choice(size, count, replace=False)] for _ in range(samples)]
    events = [series.event] * samples
    for found in estimate_means(drawn, bounds=series.bounds, events=events):
        if found.interval is None:
            reasons.append(found.why.lstrip("0123456789 "))
        else:
            lengths.append(found.interval.high - found.interval.low)
            slack = 1e-9 * abs(truth)
            covered.append(found.interval.low - slack <= truth <= found.interval.high + slack)
    ideal = -2 * float(special.stdtrit(count - 1, 0.025)) * spread / count**0.5
    return Coverage(
        len(covered) / samples,
        float(np.mean(covered)) if covered else float("nan"),
        (len(covered) - sum(covered)) / samples,
        float(np.median(lengths)) / ideal if lengths and ideal else float("nan"),
        max(set(reasons), key=reasons.count) if reasons else "",
    )


def table(series: list[Series], samples: int) -> str:
    """The table of docs/statistics.md: a row a measure, a column a scenario."""
    cells = {
        (each.title, each.world): ", ".join(
            _cell(coverage(each, count, samples)) for count in COUNTS
        )
        for each in series
    }
    lines = [f"| measure | {' | '.join(WORLDS)} |", "|---" * (len(WORLDS) + 1) + "|"]
    for title in KEPT:
        row = [cells.get((title, world), "") for world in WORLDS]
        lines.append(f"| {title} | {' | '.join(row)} |")
    return "\n".join(lines)


def _cell(found: Coverage) -> str:
    if found.given < 0.005:
        return "–"
    covered = f"{found.covered:.3f}".lstrip("0")
    share = "" if found.given > 0.995 else f" ({found.given:.2f})".replace("0.", ".")
    return covered + share


def main() -> None:
    """Records the data, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the table of the document")
    parser.add_argument("--samples", type=int, default=4000, help="samples a cell of the table")
    options = parser.parse_args()
    if options.table:
        sys.stdout.write(table(read(), options.samples) + "\n")
    else:
        write(list(simulated()), DATA)
        sys.stdout.write(f"{DATA}: {DATA.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
