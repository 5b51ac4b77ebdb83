"""Metrics of a time window, from sampled series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqmlab import libraries

if TYPE_CHECKING:
    import polars as pl

    from aqmlab.metrics.runs import Runs


def samples(runs: Runs, *quantities: str) -> pl.DataFrame:
    """Samples after the warm-up: `run`, `subject`, `quantity`, `time_s`, `value`, and `since`, the
    seconds since the end of the warm-up. A sample is about the time since the one before."""
    pl = libraries.polars
    begin = runs.table("runs").select("run", "warmup_s")
    rows = runs.table("series").with_columns(pl.col("subject", "quantity").cast(pl.String))
    rows = rows.filter(pl.col("quantity").is_in(quantities))
    rows = rows.join(begin, on="run", maintain_order="left")
    since = pl.col("time_s") - pl.col("warmup_s")
    return rows.with_columns(since=since).filter(pl.col("since") > 1e-9).drop("warmup_s")


def between(rows: pl.DataFrame, begin: float, end: float, period: float | None = None) -> pl.Expr:
    """Whether a sample is about the time from `begin` to `end`, seconds after the warm-up; with
    `period` of each period."""
    pl = libraries.polars
    place = pl.col("since") - 1e-6
    place = place % period if period else place
    return (place >= begin) & (place < end)


def of_links(rows: pl.DataFrame) -> pl.DataFrame:
    """Metrics of links in a window: `sojourn_mean` (each sample weighted by the packets that it is
    about, as far as throughput tells), `sojourn_max`, `throughput`; a row a run and subject."""
    pl = libraries.polars
    wide = rows.pivot("quantity", index=["run", "subject", "since"], values="value")
    carried = pl.col("throughput_bps")
    delay = pl.col("sojourn_mean_s").fill_null(0.0)
    return wide.group_by("run", "subject", maintain_order=True).agg(
        sojourn_mean=(delay * carried).sum() / carried.sum(),
        sojourn_max=pl.col("sojourn_max_s").max(),
        throughput=carried.mean(),
    )
