"""Results as tables: of a single run, and of a study.

Every table is a polars `DataFrame`; `frame.to_pandas()` makes a pandas one of it
(which needs pandas and pyarrow beside aqmlab). Columns are named after what they
are, with their unit: `_s` seconds, `_bytes`, `_packets`, `_bps` bits per second.
docs/results.md lists them all.

A result makes its own pages and metrics: the methods that do load the layers above this one, and
nothing else here does (`ignore_imports` of import-linter's contract lists them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from aqmlab._core import Results
from aqmlab.errors import InputError, input_error, unknown
from aqmlab.plan.precision import Precision
from aqmlab.scenario.quantity import numbers
from aqmlab.tables import PART, Tables, plain_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas
    import pyarrow
    import xarray

    from aqmlab.document import Document


VALUE = "_value"
"""Suffix of the column with the values of a numeric axis."""
IDLE, BUSY = 0.2, 0.5
"""Links that are used less, and more, are idle and busy."""


class Batch(Protocol):
    """Finished runs: `_core.Results`, or what came from another process."""

    @property
    def runs(self) -> list[int]:
        """Their numbers."""
        ...

    @property
    def large_rows(self) -> int:
        """How many rows the large tables (series and packets) have together."""
        ...

    @property
    def small_rows(self) -> int:
        """How many rows the other tables have, roughly."""
        ...

    def table(self, name: str) -> Any:
        """The table called `name`, for `pl.DataFrame`."""
        ...

    def part(self, name: str, start: int, rows: int) -> Any:
        """Rows of a large table from row `start` on, `rows` at most."""
        ...


def gather(batches: Iterable[Batch], names: Iterable[str] | None = None) -> dict[str, pl.DataFrame]:
    """The tables of finished runs put together, rows sorted by run; all, or those of `names`.

    Within a run the rows keep the engine's order, so the result does not depend
    on the order in which the runs finished.
    """
    batches = list(batches)
    frames = {}
    for name in Results.table_names() if names is None else names:
        parts = [pl.DataFrame(batch.table(name)) for batch in batches]
        frames[name] = by_run(parts)
    return frames


def in_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    """A large table of finished runs, in frames of `rows` rows, the last of what is left."""
    for part in _engine_parts(batch, name, rows):
        yield by_run([part])


def _engine_parts(batch: Batch, name: str, rows: int) -> Iterator[pl.DataFrame]:
    start, height = 0, rows
    while height == rows:
        frame = pl.DataFrame(batch.part(name, start, rows))
        height = frame.height
        start += height
        yield frame


def by_run(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all `parts`, sorted by run, in one piece of memory.

    Texts become plain: the codes of categorical ones depend on what was read before.
    """
    return (
        pl.concat([plain_texts(part) for part in parts]).sort("run", maintain_order=True).rechunk()
    )


def in_memory(batches: Sequence[Batch]) -> dict[str, pl.DataFrame]:
    """The tables of finished runs for `MemoryTables`: as `gather` puts them together, but large
    ones are made in parts and never copied while runs are in order, and their texts stay codes.
    """
    large = Results.large_tables()
    frames = gather(batches, [name for name in Results.table_names() if name not in large])
    for name in large:
        parts = [part for batch in batches for part in _engine_parts(batch, name, PART)]
        whole = pl.concat(parts)
        is_sorted = whole["run"].is_sorted()
        frames[name] = whole if is_sorted else whole.sort("run", maintain_order=True)
    return {name: frames[name] for name in Results.table_names()}


def _missing(method: str, packages: str) -> InputError:
    """What a method says without the packages that it needs."""
    needed = " and ".join(packages.split())
    return input_error(f"this needs {needed}", key=method, hint=f"pip install {packages}")


class _TableAttributes:
    """The tables as attributes; `table(name)` is what differs."""

    _tables: Tables

    def table(self, name: str) -> pl.DataFrame:
        """The table called `name`."""
        raise NotImplementedError

    @property
    def table_names(self) -> list[str]:
        """The tables there are."""
        return self._tables.names()

    def parts(self, name: str, *columns: str) -> Iterator[pl.DataFrame]:
        """Columns of the table called `name` in frames of some rows, in order: of a large table
        in a folder only one such frame is in memory.

        Raises `InputError` if there is no table of that name.
        """
        if name not in self.table_names:
            raise unknown("table", name, self.table_names)
        return self._tables.parts(name, list(columns))

    def to_pandas(self, name: str) -> pandas.DataFrame:
        """The table called `name` for pandas.

        Raises `InputError` if pandas or pyarrow is not installed.
        """
        frame = self.table(name)
        try:
            return frame.to_pandas()
        except ImportError as error:
            raise _missing("to_pandas", "pandas pyarrow") from error

    def to_arrow(self, name: str) -> pyarrow.Table:
        """The table called `name` for Arrow.

        Raises `InputError` if pyarrow is not installed.
        """
        frame = self.table(name)
        try:
            return frame.to_arrow()
        except ImportError as error:
            raise _missing("to_arrow", "pyarrow") from error

    @property
    def runs(self) -> pl.DataFrame:
        """One row a run: replication, seed, end_s, events, delivered_packets."""
        return self.table("runs")

    @property
    def links(self) -> pl.DataFrame:
        """One row a run and link: counts by reason, sojourn times, backlog, utilisation."""
        return self.table("links")

    @property
    def flows(self) -> pl.DataFrame:
        """One row a run and flow: times, size, goodput, retransmissions."""
        return self.table("flows")

    @property
    def groups(self) -> pl.DataFrame:
        """One row a run and group of flows: what was started and completed."""
        return self.table("groups")

    @property
    def traffic(self) -> pl.DataFrame:
        """One row a run, group of flows and direction: bytes sent and delivered, packets that
        arrived, were dropped by queues and were lost on links."""
        return self.table("traffic")

    @property
    def times(self) -> pl.DataFrame:
        """One row a run, group, quantity and direction: completion, start-up and response times,
        delays; of two directions the worse first."""
        return self.table("times")

    @property
    def scores(self) -> pl.DataFrame:
        """One row a run, group, quantity and direction: other numbers of workloads, such as the
        MOS; of two directions the worse first."""
        return self.table("scores")

    @property
    def excursions(self) -> pl.DataFrame:
        """One row a run, link and threshold: how often and how long the backlog was above."""
        return self.table("excursions")

    @property
    def sojourn(self) -> pl.DataFrame:
        """The histogram of sojourn times: upper edge in seconds and count (0.1 % wide)."""
        return self.table("sojourn")

    @property
    def delays(self) -> pl.DataFrame:
        """The histogram of one-way delays of a group, by direction: upper edge in seconds and
        count."""
        return self.table("delays")

    @property
    def metrics(self) -> pl.DataFrame:
        """One row a run, subject (link or group), direction and metric that is computed from the
        others: goodput, Jain's index, delay variation, power, ... (`aqmlab list metrics`); of two
        directions the worse first."""
        return self.table("metrics")

    @property
    def notes(self) -> pl.DataFrame:
        """What a reader has to know: run, subject, id, text."""
        return self.table("notes")

    @property
    def series(self) -> pl.DataFrame:
        """Sampled values: time_s, subject, quantity, value (levels series and packets)."""
        return self.table("series")

    @property
    def packets(self) -> pl.DataFrame:
        """One row a packet and link (level packets)."""
        return self.table("packets")


class RunResult(_TableAttributes):
    """The result of one run of a scenario."""

    def __repr__(self) -> str:
        return f"<RunResult of {self.bottleneck!r}: {_sizes(self)}>"

    def __init__(self, tables: Tables, scenario: Mapping[str, Any]) -> None:
        self._tables = tables
        self.scenario = dict(scenario)
        """The scenario with every default filled in."""

    @property
    def bottleneck(self) -> str:
        """The name of the link that the questions are about."""
        return str(self.scenario["bottleneck"])

    @cached_property
    def shown(self) -> str:
        """The link that pages are about: the bottleneck, or the busy one where that was idle."""
        return _in_place_of(self.bottleneck, _use(self.raw("links")))

    def table(self, name: str) -> pl.DataFrame:
        """The table called `name`, without the column `run`.

        Raises `InputError` if there is none of that name.
        """
        return self.raw(name).drop("run")

    def raw(self, name: str) -> pl.DataFrame:
        """The table called `name` as the engine gave it: `run` and its own columns."""
        return _load(self._tables, name, [self.scenario], 1)

    def report(self, title: str = "A run") -> Document:
        """The run as a document: `to_html()`, `to_markdown()`, `print(console)`, `tables`, ...

        What happened over time is in it if it was recorded (`record="series"`).
        """
        from aqmlab.report.run_page import document

        return document(self, title)

    def write_report(
        self,
        folder: str | Path,
        title: str = "A run",
        *,
        command: str = "",
        figures: bool = True,
    ) -> Path:
        """Writes `report.html` into `folder`, and with `figures` its pictures (SVG, PNG, PDF)
        into `figures/` there; the path of the report.

        `command` is what made the results. Raises `StorageError` if a file cannot be written.
        """
        from aqmlab.report.run_page import write

        return write(self, Path(folder), title, command, figures=figures)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """The tables as lists of objects, without `sojourn`, `delays`, `series` and `packets`."""
        apart = ("sojourn", "delays", "series", "packets", METRICS)
        names = [*(name for name in self.table_names if name not in apart), METRICS]
        return {name: self.table(name).to_dicts() for name in names}


@dataclass(frozen=True)
class StudyInfo:
    """What a results folder says of the study in it."""

    name: str
    title: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    """Names of the axes, each with its labels in order."""
    replications: int
    seed: int
    digest: str
    version: str
    precision: Precision | None = None
    """What the number of replications was chosen for, if it was."""

    @property
    def points(self) -> int:
        """The number of points: the product of the lengths of the axes."""
        count = 1
        for _, labels in self.axes:
            count *= len(labels)
        return count


class StudyResult(_TableAttributes):
    """The results of a study.

    In every table each row has the columns `run`, `point`, `replication` and the label on each
    axis (as an ordered `Enum`) before its own; of a numeric axis `rate` also the column
    `rate_value` (see `numeric_axes`).
    """

    def __init__(
        self,
        info: StudyInfo,
        tables: Tables,
        scenarios: Sequence[Mapping[str, Any]],
        *,
        folder: Path | None = None,
        computed: int = 0,
    ) -> None:
        self.info = info
        self.folder = folder
        self.computed = computed
        """How many runs were computed just now; the others had been before."""
        self.scenarios = list(scenarios)
        """The scenario of every point, with every default filled in."""
        self._tables = tables
        self._joined: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        axes = " × ".join(f"{name} ({len(labels)})" for name, labels in self.info.axes)
        what = f"{axes or 'one point'}, {self.info.replications} replications"
        return f"<StudyResult {self.info.name!r}: {what}: {_sizes(self)}>"

    def to_xarray(self, *names: str) -> xarray.Dataset:
        """Metrics of the registry (`sojourn_p95`, `goodput`; without names those of the table
        `metrics`) as a dataset with a dimension for each axis, `replication` and `subject` (the
        link or group).

        Needs xarray. Raises `InputError` for an unknown metric.
        """
        from aqmlab.metrics.grid import to_xarray

        return to_xarray(self, names)

    @staticmethod
    def open(folder: str | Path) -> StudyResult:
        """Opens the results of a finished study, whatever computed them.

        Raises `FolderError` if `folder` holds none, or unfinished ones.
        """
        from aqmlab.study.folder import open_results

        return open_results(Path(folder))

    def raw(self, name: str) -> pl.DataFrame:
        """The table called `name` as the engine gave it: `run` and its own columns."""
        return _load(self._tables, name, self.scenarios, self.info.replications)

    def table(self, name: str) -> pl.DataFrame:
        """The table called `name`, joined with the points.

        Raises `InputError` if there is none of that name.
        """
        if name not in self._joined:
            self._joined[name] = self._join(self.raw(name))
        return self._joined[name]

    def single(self) -> RunResult:
        """The result as that of a single run, for a study that has only one."""
        if self.info.points * self.info.replications != 1:
            raise ValueError("this study has more than one run")
        return RunResult(self._tables, self.scenarios[0])

    def report(self) -> Document:
        """The study as a document: `to_html()`, `to_markdown()`, `print(console)`, `tables`, ..."""
        from aqmlab.report.study_page import document

        return document(self)

    def write_report(
        self, folder: str | Path | None = None, *, command: str = "", figures: bool = True
    ) -> Path:
        """Writes `report.html` into `folder`, or beside the tables, and with `figures` its
        pictures (SVG, PNG, PDF) into `figures/` there; the path of the report.

        `command` is what made the results. Raises `StorageError` if a file cannot be written.
        """
        place = folder or self.folder
        if place is None:
            raise ValueError("these results are in no folder: say where the report goes")
        from aqmlab.report.study_page import write

        return write(self, Path(place), command, figures=figures)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    @property
    def pooled_notes(self) -> pl.DataFrame:
        """The notes that still hold where replications are taken together: one run may
        have too few packets for its percentiles, many have not."""
        if self.info.replications == 1:
            return self.notes
        return self.notes.filter(pl.col("id") != "few-packets")

    @cached_property
    def bottlenecks(self) -> list[str]:
        """The link of each point that the numbers are about: the scenario's bottleneck. One that
        was idle at all points gives way to a busy one, and links of several names to the busiest
        that all points have: points are compared by the same link."""
        names = [str(scenario["bottleneck"]) for scenario in self.scenarios]
        common = set(self.scenarios[0]["links"])
        for scenario in self.scenarios:
            common &= set(scenario["links"])
        use = {link: own for link, own in _use(self.raw("links")).items() if link in common}
        if len(set(names)) > 1:
            most = max(sorted(use), key=lambda link: use[link], default="")
            return [most] * len(names) if most else names
        return [_in_place_of(names[0], use)] * len(names)

    @property
    def bottleneck(self) -> pl.DataFrame:
        """The rows of `links` that are about the bottleneck of their point."""
        names = self.bottlenecks
        which = pl.DataFrame({"point": range(len(names)), "link": names})
        keys = ["point", "link"]
        return self.links.join(which.cast({"point": pl.UInt32}), on=keys, maintain_order="left")

    @property
    def tradeoff(self) -> pl.DataFrame:
        """One row a run: mean time in the queue of the bottleneck and goodput of those who pass
        it, for a plot of RFC 7928, section 2.7 (`aqmlab.report.tradeoff.figure` draws it)."""
        from aqmlab.report.tradeoff import runs

        return runs(self)

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row a point: its index and its label on each axis."""
        point = pl.DataFrame({"point": pl.arange(0, self.info.points, dtype=pl.UInt32, eager=True)})
        return point.with_columns(self._labels())

    @cached_property
    def numeric_axes(self) -> dict[str, tuple[list[float], str]]:
        """Values and unit of each axis whose labels are quantities of one kind.

        Times are in seconds, rates in bit/s, sizes in bytes, limits in packets or BDPs.
        """
        found = {name: numbers(labels) for name, labels in self.info.axes}
        return {name: each for name, each in found.items() if each is not None}

    def _labels(self) -> list[pl.Expr]:
        """The label on each axis, computed from the column `point`; of numeric axes the value."""
        columns, repeat = [], self.info.points
        for name, labels in self.info.axes:
            repeat //= len(labels)
            index = (pl.col("point") // repeat) % len(labels)
            columns.append(index.cat.to(pl.Enum(labels)).alias(name))
            if name in self.numeric_axes:
                values = pl.lit(pl.Series(self.numeric_axes[name][0], dtype=pl.Float64))
                columns.append(values.gather(index).alias(f"{name}{VALUE}"))
        return columns

    def _join(self, frame: pl.DataFrame) -> pl.DataFrame:
        names = [each.meta.output_name() for each in self._labels()]
        run = pl.col("run")
        keyed = frame.with_columns(
            (run // self.info.replications).cast(pl.UInt32).alias("point"),
            (run % self.info.replications).cast(pl.UInt32).alias("replication"),
        ).with_columns(self._labels())
        first = ["run", "point", "replication", *names]
        return keyed.select(*first, *(each for each in frame.columns if each not in first))


Use = Mapping[str, tuple[float, float]]
"""Of each link how busy it was, and how long packets waited there, on average."""


def _use(links: pl.DataFrame) -> Use:
    rows = links.group_by(pl.col("link").cast(pl.String)).agg(
        pl.col("utilisation").mean(), pl.col("sojourn_mean_s").fill_nan(None).mean()
    )
    return {link: (busy or 0.0, wait or 0.0) for link, busy, wait in rows.iter_rows()}


def _in_place_of(link: str, use: Use) -> str:
    """The busiest of the links if packets waited there and `link` was idle; else `link`."""
    most = max(sorted(use), key=lambda each: use[each], default=link)
    own = use.get(link, (0.0, 0.0))
    is_idle = own[0] < IDLE and use.get(most, own)[0] > BUSY and use[most][1] > own[1]
    return most if is_idle else link


def _sizes(result: RunResult | StudyResult) -> str:
    """The tables and how many rows each has."""
    rows = {name: sum(part.height for part in result.parts(name, "run"))
            for name in result.table_names}  # fmt: skip
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


METRICS = "metrics"
"""The table that is computed from the others: when it is asked for, or when a folder is
finished (older ones do not have it)."""


def _load(
    tables: Tables, name: str, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    names = tables.names()
    if name != METRICS:
        if name not in names:
            raise unknown("table", name, dict.fromkeys([*names, METRICS]))
        return tables.load(name)
    from aqmlab.metrics.table import metrics
    from aqmlab.metrics.values import add_own

    there = METRICS in names
    computed = tables.load(name) if there else metrics(tables, scenarios, replications)
    return add_own(computed, tables, scenarios, replications)


def resolved(text: str) -> dict[str, Any]:
    """The mapping behind `Scenario.resolved`."""
    table: dict[str, Any] = json.loads(text)
    return table
