"""Input of metrics: the tables of runs and their scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab import libraries

if TYPE_CHECKING:
    import polars as pl

    from aqmlab.metrics.formulas import Formula


class Runs:
    """Tables of one or more runs, from which metrics are computed.

    Parameters
    ----------
    table : callable
        Returns the table of a name (`links`, `groups`, `times`, ...) with the column `run`.
    scenarios : sequence of mapping
        The scenario of each point with every default.
    replications : int, default 1
        Runs of each point.
    columns : callable, optional
        Returns some columns of a table. Default: of the whole table.
    """

    def __init__(
        self,
        table: Callable[[str], pl.DataFrame],
        scenarios: Sequence[Mapping[str, Any]],
        replications: int = 1,
        columns: Callable[[str, list[str]], pl.DataFrame] | None = None,
    ) -> None:
        self.columns = columns or (lambda name, names: table(name).select(names))
        self.table = table
        """The table called so: `links`, `groups`, `times`, `packets`, ..."""
        self.scenarios = scenarios
        """The scenario of every point, with every default filled in."""
        self.replications = replications

    def scenario(self, run: int) -> Mapping[str, Any]:
        """The scenario of a run."""
        return self.scenarios[run // self.replications]


OF_GROUP = " (group)"
"""Ending of the name of a group where a link has the same name and metric."""


def of_rows(
    table: str, subject: str, column: str, name: str = "", key: str = "quantity"
) -> Callable[[Runs, str], pl.DataFrame]:
    """The values of a column; with `name` only those of the rows whose `key` is this: of two
    directions those of the worse, which comes first. `{}` in both names is the statistic."""

    def compute(runs: Runs, statistic: str) -> pl.DataFrame:
        pl = libraries.polars
        value = column.format(statistic)
        # The table with the most columns, for the metrics that pages ask for first.
        of_links = table == "links"
        rows = runs.columns(table, ["run", subject, value]) if of_links else runs.table(table)
        if name:
            rows = rows.filter(pl.col(key).cast(pl.String) == name.format(statistic).rstrip("_"))
            rows = _apart(rows) if key == "metric" else rows
            rows = rows.unique(["run", subject], keep="first", maintain_order=True)
        if table == "times":
            rows = rows.filter(pl.col("count") > 0)
        return _told(rows.select("run", subject, value))

    return compute


def _apart(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of one metric, with groups called `NAME (group)` that have the name of a link: rows of
    links have no direction."""
    pl = libraries.polars
    is_link = pl.col("direction").is_null()
    both = ~is_link & is_link.any().over("run", "subject")
    name = pl.col("subject").cast(pl.String)
    return rows.with_columns(pl.when(both).then(name + OF_GROUP).otherwise(name).alias("subject"))


def of_formula(table: str, subject: str, formula: Formula) -> Callable[[Runs, str], pl.DataFrame]:
    """The values of a formula over the columns of a table, both directions together."""

    def compute(runs: Runs, statistic: str) -> pl.DataFrame:
        from aqmlab.metrics.table import evaluated

        pl = libraries.polars
        numbers = pl.selectors.numeric() - pl.selectors.by_name("run")
        rows = runs.table(table).group_by("run", subject, maintain_order=True).agg(numbers.sum())
        values = pl.Series(evaluated(rows, {"": formula})[""])
        return _told(rows.select("run", subject, values.alias("value")))

    return compute


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    pl = libraries.polars
    columns = pl.Schema({"run": pl.UInt32, "subject": pl.String, "value": pl.Float64})
    found = rows.rename(dict(zip(rows.columns, columns, strict=True))).cast(columns)
    return found.drop_nulls().drop_nans()
