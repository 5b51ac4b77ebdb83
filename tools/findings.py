"""Pictures of the findings in `examples/findings`: each with and without its settings.

python -m tools.findings docs/images/findings
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

import aqmlab
from aqmlab.report.document import Figure, charts
from aqmlab.search import Attack

FOLDER = Path("examples/findings")
STEP = 0.25
"""Seconds of a point."""
COLOURS = {"without": "#8a8f98", "with": "#d55e00"}


def curve(path: Path, settings: dict[str, object], measure: str) -> pl.DataFrame:
    """`x` (s) and `y`: Mbit/s of the group at the bottleneck, or its longest wait there (ms)."""
    result = aqmlab.run(path, set=settings, record="packets")
    group = measure.partition("@")[2]
    own = result.raw("packets").filter(
        pl.col("link").cast(pl.String) == result.bottleneck,
        pl.col("flow").cast(pl.String).str.starts_with(f"{group}."),
        pl.col("verdict").cast(pl.String) == "delivered",
    )
    rate = pl.col("size_bytes").sum() * 8e-6 / STEP
    wait = (pl.col("end_s") - pl.col("arrival_s")).max() * 1e3
    bins = own.group_by(x=(pl.col("end_s") / STEP).floor() * STEP)
    found = bins.agg(y=rate if measure.startswith("goodput") else wait)
    times = pl.DataFrame(
        {"x": [n * STEP for n in range(int(own["end_s"].to_numpy().max() / STEP))]}
    )
    return times.join(found, on="x", how="left").fill_null(0.0).sort("x")


def picture(path: Path) -> Figure:
    """A finding beside its undone form."""
    found = Attack.read(path)
    measure = found.measure.text
    curves = {}
    for name, settings in (("without", dict(found.undo)), ("with", {})):
        frame = curve(path, settings, measure)
        curves[name] = (frame["x"].to_numpy(), frame["y"].to_numpy())
    is_rate = measure.startswith("goodput")
    y = "throughput (Mbit/s)" if is_rate else "longest wait in the queue (ms)"
    told = f"{found.measure.shown(found.value)} instead of {found.measure.shown(found.start)}"
    chart = charts.series(curves, COLOURS, "time (s)", y)
    return Figure(path.stem, f"{path.stem}: {measure}", f"{told}.", "", chart)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} FOLDER")
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for each in sorted(FOLDER.glob("*.toml")):
        picture(each).save(Path(sys.argv[1]) / f"{each.stem}.svg")
