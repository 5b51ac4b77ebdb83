"""The table `metrics`: what is computed from the tables of the engine, a row a run, subject and
metric. `aqmlab.metrics.catalogue` says what each metric is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aqmlab.metrics.formulas import (
    ALL,
    GROUP,
    LINK,
    WORSE_FIRST,
    WORST_WITHOUT,
    beside_first,
    bulk_flows,
    is_alike,
    other_packets,
    own_base_delays,
)
from aqmlab.metrics.registry import find
from aqmlab.metrics.samples import Floats, Whole, jain_indices
from aqmlab.results import groups_of

if TYPE_CHECKING:
    from aqmlab.metrics.formulas import Formula

COLUMNS = {
    "run": pl.UInt32, "subject": pl.String, "direction": pl.String, "metric": pl.String,
    "value": pl.Float64,
}  # fmt: skip
LINK_COLUMNS = (
    "link", "delivered_bytes", "capacity_bytes", "dropped", "arrived", "marked", "loss_event_flows",
    "loss_event_bulk_flows",
)  # fmt: skip
TRAFFIC_COLUMNS = (
    "group", "direction", "delivered_bytes", "sent_bytes", "arrived", "dropped", "lost"
)  # fmt: skip
FLOW_COLUMNS = ("group", "goodput_bps")
DELAY_COLUMNS = ("group", "quantity", "direction", "count", "mean_s", "p95_s", "p999_s", "min_s")
KEYS = ["run", "group"]
NAMES = ("link", "group", "direction")
"""Columns that are read as plain text."""


Load = Callable[[str, list[str]], pl.DataFrame]
"""Returns columns of a table of runs."""


def computed(
    load: Load, scenarios: Sequence[Mapping[str, Any]], replications: int, first: int = 0
) -> pl.DataFrame:
    """The metrics of all runs; run `r` is of scenario `r // replications - first`. Of a run the
    links come first, then the groups, then all flows together."""
    points = [groups_of(scenario) for scenario in scenarios]
    ends = load("runs", ["run", "end_s", "warmup_s"]).select(
        "run",
        (pl.col("end_s") - pl.col("warmup_s")).alias("lasted_s"),
        (pl.col("run") // replications - first).cast(pl.UInt32).alias("point"),
    )
    flows = _of_runs(load, "flows", FLOW_COLUMNS, ends)
    alike = _alike(flows, points)
    parts = [
        _links(_of_runs(load, "links", LINK_COLUMNS, ends), points),
        _groups(
            _of_runs(load, "traffic", TRAFFIC_COLUMNS, ends), _delays(load, ends, points), alike
        ),
        _all_flows(alike),
    ]
    return pl.concat(parts).sort("run", maintain_order=True)


Facts = Mapping[str, Any]


def _of_runs(load: Load, name: str, columns: Sequence[str], ends: pl.DataFrame) -> pl.DataFrame:
    """Columns of a table, with the point of each row's run and the time that counts; names as
    plain texts."""
    frame = load(name, ["run", *columns])
    plain = [pl.col(each).cast(pl.String) for each in NAMES if each in columns]
    return frame.with_columns(plain).join(ends, on="run", maintain_order="left")


def _long(frame: pl.DataFrame, subject: str, values: Mapping[str, Floats]) -> pl.DataFrame:
    """A row for each row of `frame` and each of `values` that is finite."""
    numbers = np.column_stack(list(values.values()))
    row, column = np.nonzero(np.isfinite(numbers))
    rows = frame.select("run", subject=subject, direction=pl.lit(None, pl.String))[row]
    named = rows.with_columns(
        metric=pl.Series(list(values), dtype=pl.String)[column],
        value=pl.Series(numbers[row, column], dtype=pl.Float64),
    )
    return named.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _column(frame: pl.DataFrame, name: str) -> Floats:
    """A column as numbers, NaN where there is none."""
    return frame[name].cast(pl.Float64).to_numpy()


def evaluated(frame: pl.DataFrame, formulas: Mapping[str, Formula]) -> dict[str, Floats]:
    """The values of formulas, a number a row; not finite where there is nothing to share.

    By numpy: polars multiplies by the reciprocal where a column has one value throughout, so
    that the last bit of a quotient would depend on what else is in the table.
    """
    numeric = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    columns = {name: _column(frame, name) for name in numeric}
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: formula(columns) for name, formula in formulas.items()}


# Links


def _links(links: pl.DataFrame, points: Sequence[Facts]) -> pl.DataFrame:
    schema = {"point": pl.UInt32, "link": pl.String, "bulk_flows": pl.Int64}
    counts = ((point, *each) for point, flows in enumerate(points) for each in bulk_flows(flows))
    bulk = pl.DataFrame(counts, schema=schema, orient="row")
    rows = links.join(bulk, on=["point", "link"], how="left", maintain_order="left")
    # Of real flows only the scenario is known.
    known, active = pl.col("bulk_flows").is_not_null(), pl.col("loss_event_bulk_flows")
    rows = rows.with_columns(
        bulk_flows=pl.when(known & (active > 0)).then(active).otherwise("bulk_flows")
    )
    return _long(rows, "link", evaluated(rows, LINK))


# Groups


def _groups(traffic: pl.DataFrame, delays: pl.DataFrame, alike: pl.DataFrame) -> pl.DataFrame:
    """Metrics of groups: those of each direction, then those of all flows of the group."""
    total = pl.col("delivered_bytes").sum().over("run").alias("total_bytes")
    rows = traffic.with_row_index("first").with_columns(total, pl.col("first").min().over(KEYS))
    keys = [*KEYS, "direction"]
    rows = rows.join(delays, on=keys, how="left", maintain_order="left")
    values = evaluated(rows, GROUP)
    worse = {name: -find(name)[0].direction for name in WORSE_FIRST}
    parts = [
        rows.select(
            "run", "first", "direction", subject="group", metric=pl.lit(name),
            sent="sent_bytes", place=pl.lit(place),
            value=pl.Series(np.where(np.isfinite(value), value, np.nan)),
            worse=pl.Series(worse.get(name, 0.0) * value),
        )
        for place, (name, value) in enumerate(values.items())
    ]  # fmt: skip
    directed = pl.concat(parts).with_columns(pl.col("value", "worse").fill_nan(None))
    is_there = pl.col("value").is_not_null()
    is_worst = pl.col("metric").is_in(WORST_WITHOUT) & (pl.col("sent").fill_null(1) > 0)
    is_worst &= is_there.any().over("run", "subject", "metric")
    directed = directed.filter(is_there | is_worst)
    of_all = traffic.select(KEYS).unique(maintain_order=True)
    heads = rows.select(*KEYS, "first").unique(maintain_order=True)
    fairness = of_all.join(_fairness(alike), on=KEYS, how="left", maintain_order="left")
    names = ("jain", "rtt_fairness")
    undirected = _long(fairness, "group", {name: _column(fairness, name) for name in names})
    undirected = undirected.join(
        heads, left_on=["run", "subject"], right_on=KEYS, maintain_order="left"
    ).with_columns(place=pl.lit(len(values)), worse=pl.lit(0.0))
    columns = [*COLUMNS, "first", "place", "worse"]
    every = pl.concat([directed.select(columns), undirected.select(columns)])
    order = every.sort(
        "first", "place", "worse", "direction", descending=[False, False, True, False],
        nulls_last=[False, False, False, False], maintain_order=True,
    )  # fmt: skip
    return order.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _delays(load: Load, ends: pl.DataFrame, points: Sequence[Facts]) -> pl.DataFrame:
    """One-way delays, where any were measured: a row a run, group and direction. The mean is
    infinite where nothing arrived; there is none if they are not those of the group's data. A group
    has no minimum if its flows have base delays of their own: it would be that of one flow (RFC
    5481, section 4.2, has one stream)."""
    times = _of_runs(load, "times", DELAY_COLUMNS, ends)
    delays = times.filter(pl.col("quantity").cast(pl.String) == "delay")
    for mark, of in (("several", own_base_delays), ("others", other_packets)):
        marked = pl.DataFrame(
            ((point, name) for point, flows in enumerate(points) for name in of(flows)),
            schema={"point": pl.UInt32, "group": pl.String}, orient="row",
        ).with_columns(pl.lit(True).alias(mark))  # fmt: skip
        delays = delays.join(marked, on=["point", "group"], how="left", maintain_order="left")
    nothing = pl.col("count") == 0
    is_one = ~nothing & pl.col("several").is_null()
    measured = [pl.when(is_one).then(pl.col(name)) for name in ("p95_s", "p999_s", "min_s")]
    mean = pl.when(nothing).then(float("inf")).otherwise(pl.col("mean_s"))
    mean = pl.when(pl.col("others").is_null()).then(mean).alias("mean_s")
    return delays.select(*KEYS, "direction", mean, *measured)


def _alike(flows: pl.DataFrame, points: Sequence[Facts]) -> pl.DataFrame:
    """The goodputs of flows that may be compared, by run and place of the group in the
    scenario; with whether the group is the first of endless flows, or shares a link with it, and
    whether all endless flows share one."""
    schema = {
        "point": pl.UInt32, "group": pl.String, "place": pl.UInt32, "is_first": pl.Boolean,
        "is_beside": pl.Boolean, "is_of_all": pl.Boolean,
    }  # fmt: skip
    places = pl.DataFrame(_places(points), schema=schema, orient="row")
    measured = flows.select(*KEYS, "point", "goodput_bps").filter(
        pl.col("goodput_bps").is_not_nan()
    )
    return measured.join(places, on=["point", "group"], maintain_order="left").sort(
        "run", "place", maintain_order=True
    )


def _places(points: Sequence[Facts]) -> Iterator[tuple[int, str, int, bool, bool, bool]]:
    for point, flows in enumerate(points):
        first, others, together = beside_first(flows)
        for place, (name, group) in enumerate(flows.items()):
            if is_alike(group):
                is_of_all = together and name in (first, *others)
                yield point, name, place, name == first, name in others, is_of_all


def _fairness(alike: pl.DataFrame) -> pl.DataFrame:
    """Jain's index of the flows of a group, and their mean goodput over that of the first
    group of endless ones if they share a link with it (RFC 7928, section 6.3); a row a run and
    group."""
    heads = alike.group_by("run", "group", maintain_order=True).agg(
        pl.len(), pl.col("is_first", "is_beside").first()
    )
    jain, mean = _by_rows(alike["goodput_bps"].to_numpy(), heads["len"].cast(pl.Int64).to_numpy())
    rows = heads.with_columns(
        pl.when(pl.col("len") > 1).then(pl.Series(jain)).alias("jain"), mean=pl.Series(mean)
    )
    first = rows.filter("is_first").select("run", first_mean="mean")
    rows = rows.join(first, on="run", how="left", maintain_order="left")
    ratio = pl.Series(evaluated(rows, {"": lambda t: t["mean"] / t["first_mean"]})[""])
    return rows.select(*KEYS, "jain", pl.when("is_beside").then(ratio).alias("rtt_fairness"))


def _all_flows(alike: pl.DataFrame) -> pl.DataFrame:
    """Jain's index of all endless flows, where they are of several groups and share a link."""
    rows = alike.filter("is_of_all")
    heads = rows.group_by("run", maintain_order=True).agg(pl.len())
    jain, _ = _by_rows(rows["goodput_bps"].to_numpy(), heads["len"].cast(pl.Int64).to_numpy())
    named = heads.with_columns(pl.lit(ALL).alias("subject"))
    return _long(named, "subject", {"jain": jain})


def _by_rows(values: Floats, lengths: Whole) -> tuple[Floats, Floats]:
    """Jain's index and the mean of each of the stretches that `values` consist of.

    Stretches of one length are computed together, each in the order of its own values: the
    result does not depend on what else is computed.
    """
    starts = np.cumsum(lengths) - lengths
    jain, mean = np.full(len(lengths), np.nan), np.full(len(lengths), np.nan)
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        rows = values[starts[which, None] + np.arange(length)]
        jain[which], mean[which] = jain_indices(rows), rows.mean(axis=1)
    return jain, mean
