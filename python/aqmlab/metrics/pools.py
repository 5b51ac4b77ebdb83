"""Groups of flows taken together: the tables of runs with one row where several groups had one.

Counts add up, and so do histograms of one-way delays, from which percentiles follow. Of other
times there is no histogram: several groups have a mean (weighted by their counts) and no
percentiles. Every metric of the registry can be computed from the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from aqmlab.metrics.formulas import is_alike, is_endless
from aqmlab.metrics.runs import Runs
from aqmlab.metrics.table import computed
from aqmlab.results import groups_of

SHARES = {"p50_s": 0.5, "p75_s": 0.75, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99, "p999_s": 0.999}
FORWARD, BOTH = ("forward",), ("forward", "reverse")


class Pools:
    """The tables of runs whose groups are taken together by `name`, a function from the name of a
    group to that of its pool. What has a direction is counted in `directions`, together."""

    def __init__(
        self, runs: Runs, name: Callable[[str], str], directions: Sequence[str] = FORWARD
    ) -> None:
        groups = {group for scenario in runs.scenarios for group in groups_of(scenario)}
        self._runs = runs
        self._names = {group: name(group) for group in groups}
        self._directions = list(directions)
        self._made: dict[str, pl.DataFrame] = {}
        self.runs = Runs(self.table, [self._scenario(s) for s in runs.scenarios], runs.replications)
        """Observations from which metrics are computed."""

    def _scenario(self, scenario: Mapping[str, Any]) -> dict[str, Any]:
        """The scenario with one group a pool: the one that is least like endless bulk flows."""
        flows: dict[str, Any] = {}
        for group, keys in groups_of(scenario).items():
            there = flows.setdefault(self._names[group], keys)
            if _rank(keys) < _rank(there):
                flows[self._names[group]] = keys
        return {**scenario, "flows": flows, "changes": []}

    def load(self, name: str, columns: list[str]) -> pl.DataFrame:
        """Columns of the table called `name`."""
        return self.table(name).select(columns)

    def table(self, name: str) -> pl.DataFrame:
        """The table called `name`."""
        if name not in self._made:
            make = {
                "traffic": self._traffic,
                "times": self._times,
                "delays": self._delays,
                "scores": self._scores,
                "flows": lambda: self._rows("flows"),
                "metrics": self._metrics,
            }.get(name)
            self._made[name] = make() if make else self._runs.table(name)
        return self._made[name]

    def _metrics(self) -> pl.DataFrame:
        return computed(self.load, self.runs.scenarios, self.runs.replications)

    def _rows(self, name: str) -> pl.DataFrame:
        """The rows of some directions, of all where there are none."""
        frame = self._runs.table(name)
        group = pl.col("group").cast(pl.String).replace_strict(self._names)
        direction = pl.col("direction").cast(pl.String)
        return frame.with_columns(group=group).filter(
            direction.is_null() | direction.is_in(self._directions)
        )

    def _traffic(self) -> pl.DataFrame:
        rows = self._rows("traffic").drop("direction")
        sums = rows.group_by("run", "group", maintain_order=True).sum()
        return sums.with_columns(direction=pl.lit(self._directions[0]))

    def _scores(self) -> pl.DataFrame:
        # Of two directions the worse is first.
        group = pl.col("group").cast(pl.String)
        rows = self._runs.table("scores").with_columns(
            group.replace_strict(self._names), member=group
        )
        keys = ["run", "group", "quantity"]
        rows = rows.unique([*keys, "member"], keep="first", maintain_order=True)
        return rows.group_by(keys, maintain_order=True).agg(
            pl.col("direction").first(), pl.col("value").mean()
        )

    def _delays(self) -> pl.DataFrame:
        keys = ["run", "group", "delay_s"]
        rows = self._rows("delays").group_by(keys, maintain_order=True).agg(pl.col("count").sum())
        return rows.with_columns(direction=pl.lit(self._directions[0]))

    def _times(self) -> pl.DataFrame:
        keys = ["run", "group", "quantity"]
        rows = self._rows("times").with_columns(pl.col("quantity").cast(pl.String))
        weight = pl.col("count") / pl.col("count").sum()
        alone = pl.len() == 1
        kept = [pl.when(alone).then(pl.col(each).first()).alias(each) for each in SHARES]
        pooled = rows.group_by(keys, maintain_order=True).agg(
            pl.col("direction").first(),
            pl.col("count").sum(),
            (pl.col("mean_s") * weight).sum(),
            *kept,
            pl.col("min_s").min(),
            pl.col("max_s").max(),
            members=pl.len(),
        )
        several = pooled.filter(pl.col("members") > 1, pl.col("quantity") == "delay")
        if several.height:
            pooled = pooled.join(
                self._quantiles(several), on=keys, how="left", maintain_order="left"
            )
            pooled = pooled.with_columns(
                pl.coalesce(each, f"{each}_pooled").alias(each) for each in SHARES
            )
        return pooled.select(self._runs.table("times").columns)

    def _quantiles(self, of: pl.DataFrame) -> pl.DataFrame:
        """Percentiles of the one-way delays of all packets, from the groups' histograms."""
        keys = ["run", "group"]
        rows = self.table("delays").join(of.select(keys), on=keys, how="semi").sort("delay_s")
        upto, all_of_them = pl.col("count").cum_sum(), pl.col("count").sum()
        found = rows.group_by(keys).agg(
            pl.col("delay_s")
            .filter(upto >= (share * all_of_them * (1 - 1e-9)).ceil().clip(1))
            .first()
            .alias(f"{each}_pooled")
            for each, share in SHARES.items()
        )
        return found.with_columns(quantity=pl.lit("delay"))


def _rank(group: Mapping[str, Any]) -> tuple[bool, bool]:
    return is_alike(group), is_endless(group)
