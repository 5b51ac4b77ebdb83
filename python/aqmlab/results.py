"""Results of runs and studies as tables.

Each table is a polars `DataFrame`. Columns end in their unit: `_s` (seconds), `_bytes`, `_packets`,
`_bps` (bit/s). docs/results.md lists all columns.

Methods that make pages and metrics load higher layers; `ignore_imports` of import-linter's contract
lists them.
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
"""Utilisation below which a link is idle, and above which it is busy."""


class Batch(Protocol):
    """Finished runs: `_core.Results`, or results received from another process."""

    @property
    def runs(self) -> list[int]:
        """Numbers of the runs."""
        ...

    @property
    def large_rows(self) -> int:
        """Number of rows of the large tables (series and packets)."""
        ...

    @property
    def small_rows(self) -> int:
        """Approximate number of rows of the other tables."""
        ...

    def table(self, name: str) -> Any:
        """Returns the table `name`, for `pl.DataFrame`."""
        ...

    def part(self, name: str, start: int, rows: int) -> Any:
        """Returns at most `rows` rows of a large table, from row `start`."""
        ...


def gather(batches: Iterable[Batch], names: Iterable[str] | None = None) -> dict[str, pl.DataFrame]:
    """Joins the tables of finished runs, sorted by run; all tables, or those in `names`.

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
    """Yields a large table of finished runs in frames of at most `rows` rows."""
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
    """Joins parts, sorted by run, in contiguous memory.

    Categorical texts become plain, because their codes depend on the tables read before.
    """
    return (
        pl.concat([plain_texts(part) for part in parts]).sort("run", maintain_order=True).rechunk()
    )


def in_memory(batches: Sequence[Batch]) -> dict[str, pl.DataFrame]:
    """Joins the tables of finished runs for `MemoryTables`.

    Large tables are made in parts, not copied if the runs are in order, and keep categorical texts.
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
    """Error of a method whose packages are not installed."""
    needed = " and ".join(packages.split())
    return input_error(f"this needs {needed}", key=method, hint=f"pip install {packages}")


class _TableAttributes:
    """Tables as attributes; subclasses define `table(name)`."""

    _tables: Tables

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name`."""
        raise NotImplementedError

    @property
    def table_names(self) -> list[str]:
        """Names of the tables."""
        return self._tables.names()

    def parts(self, name: str, *columns: str) -> Iterator[pl.DataFrame]:
        """Yields a table in frames of some rows, in order, so that it need not fit into memory.

        Parameters
        ----------
        name : str
            Name of the table.
        *columns : str
            Columns to read.

        Raises
        ------
        InputError
            If the name is unknown.
        """
        if name not in self.table_names:
            raise unknown("table", name, self.table_names)
        return self._tables.parts(name, list(columns))

    def to_pandas(self, name: str) -> pandas.DataFrame:
        """Returns the table `name` as a pandas data frame.

        Raises `InputError` if pandas or pyarrow is not installed.
        """
        frame = self.table(name)
        try:
            return frame.to_pandas()
        except ImportError as error:
            raise _missing("to_pandas", "pandas pyarrow") from error

    def to_arrow(self, name: str) -> pyarrow.Table:
        """Returns the table `name` as an Arrow table.

        Raises `InputError` if pyarrow is not installed.
        """
        frame = self.table(name)
        try:
            return frame.to_arrow()
        except ImportError as error:
            raise _missing("to_arrow", "pyarrow") from error

    @property
    def runs(self) -> pl.DataFrame:
        """One row for each run: replication, seed, end_s, events, delivered_packets."""
        return self.table("runs")

    @property
    def links(self) -> pl.DataFrame:
        """One row for each run and link: counts by reason, sojourn times, backlog, utilisation."""
        return self.table("links")

    @property
    def flows(self) -> pl.DataFrame:
        """One row for each run and flow: times, size, goodput, retransmissions."""
        return self.table("flows")

    @property
    def groups(self) -> pl.DataFrame:
        """One row for each run and group of flows: flows or requests started and completed."""
        return self.table("groups")

    @property
    def traffic(self) -> pl.DataFrame:
        """One row for each run, group and direction: bytes sent and delivered, packets arrived,
        dropped by queues and lost on links."""
        return self.table("traffic")

    @property
    def times(self) -> pl.DataFrame:
        """One row for each run, group, quantity and direction: completion, start-up and response
        times, delays. The worse direction comes first."""
        return self.table("times")

    @property
    def scores(self) -> pl.DataFrame:
        """One row for each run, group, quantity and direction: other numbers of workloads, such as
        the MOS. The worse direction comes first."""
        return self.table("scores")

    @property
    def excursions(self) -> pl.DataFrame:
        """One row for each run, link and threshold: number and duration of backlogs above it."""
        return self.table("excursions")

    @property
    def sojourn(self) -> pl.DataFrame:
        """Histogram of sojourn times: upper edge in seconds and count (buckets 0.1 % wide)."""
        return self.table("sojourn")

    @property
    def delays(self) -> pl.DataFrame:
        """Histogram of one-way delays by group and direction: upper edge in seconds and count."""
        return self.table("delays")

    @property
    def metrics(self) -> pl.DataFrame:
        """One row for each run, subject (link or group), direction and derived metric: goodput,
        Jain's index, delay variation, power, ... (`aqmlab list metrics`). The worse direction comes
        first."""
        return self.table("metrics")

    @property
    def notes(self) -> pl.DataFrame:
        """Notes for the reader of the results: run, subject, id, text."""
        return self.table("notes")

    @property
    def series(self) -> pl.DataFrame:
        """Samples: time_s, subject, quantity, value (levels series and packets)."""
        return self.table("series")

    @property
    def packets(self) -> pl.DataFrame:
        """One row for each packet and link (level packets)."""
        return self.table("packets")


class RunResult(_TableAttributes):
    """Result of one run of a scenario: tables as attributes, without the column `run`."""

    def __repr__(self) -> str:
        return f"<RunResult of {self.bottleneck!r}: {_sizes(self)}>"

    def __init__(self, tables: Tables, scenario: Mapping[str, Any]) -> None:
        self._tables = tables
        self.scenario = dict(scenario)
        """The scenario with every default."""

    @property
    def bottleneck(self) -> str:
        """Name of the link that the results are about."""
        return str(self.scenario["bottleneck"])

    @cached_property
    def shown(self) -> str:
        """Link that pages show: the bottleneck, or the busiest link if that was idle."""
        return _in_place_of(self.bottleneck, _use(self.raw("links")))

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name` without the column `run`.

        Raises `InputError` if the name is unknown.
        """
        return self.raw(name).drop("run")

    def raw(self, name: str) -> pl.DataFrame:
        """Returns the table `name` as stored, with the column `run`."""
        return _load(self._tables, name, [self.scenario], 1)

    def report(self, title: str = "A run") -> Document:
        """Returns the report as a document (`to_html()`, `to_markdown()`, `tables`, `figures`).

        It has time series if they were recorded (`record="series"`).
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
        """Writes the report and returns its path.

        Parameters
        ----------
        folder : path
            Folder for `report.html`.
        title : str
            Title of the page.
        command : str, optional
            Command line that the page shows as its origin.
        figures : bool, default True
            Also writes the figures as SVG, PNG and PDF into `figures/`.

        Raises
        ------
        StorageError
            If a file cannot be written.
        """
        from aqmlab.report.run_page import write

        return write(self, Path(folder), title, command, figures=figures)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Returns the tables as lists of dicts, except `sojourn`, `delays`, `series`, `packets`."""
        apart = ("sojourn", "delays", "series", "packets", METRICS)
        names = [*(name for name in self.table_names if name not in apart), METRICS]
        return {name: self.table(name).to_dicts() for name in names}


@dataclass(frozen=True)
class StudyInfo:
    """Description of the study in a results folder."""

    name: str
    title: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    """Names of the axes, each with its labels in order."""
    replications: int
    seed: int
    digest: str
    version: str
    precision: Precision | None = None
    """Precision for which the number of replications was chosen, if any."""

    @property
    def points(self) -> int:
        """Number of points: the product of the lengths of the axes."""
        count = 1
        for _, labels in self.axes:
            count *= len(labels)
        return count


class StudyResult(_TableAttributes):
    """Results of a study: tables as attributes.

    Each table begins with `run`, `point`, `replication` and the label on each axis (an ordered
    `Enum`). A numeric axis `rate` also has the column `rate_value` (`numeric_axes`).
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
        """Name, title, axes, replications, seed, digest and version."""
        self.folder = folder
        """Results folder; None in memory."""
        self.computed = computed
        """Number of runs computed by this call; the others were in the folder."""
        self.scenarios = list(scenarios)
        """The scenario of each point with every default."""
        self._tables = tables
        self._joined: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        axes = " × ".join(f"{name} ({len(labels)})" for name, labels in self.info.axes)
        what = f"{axes or 'one point'}, {self.info.replications} replications"
        return f"<StudyResult {self.info.name!r}: {what}: {_sizes(self)}>"

    def to_xarray(self, *names: str) -> xarray.Dataset:
        """Returns metrics as arrays with labelled dimensions.

        Parameters
        ----------
        *names : str
            Metrics (`aqmlab list metrics`), such as `sojourn_p95` and `goodput`. Default: those of
            the table `metrics`.

        Returns
        -------
        xarray.Dataset
            A variable for each metric, with a dimension for each axis (numeric axes have numbers as
            coordinates), `replication`, and `link` or `group`.

        Raises
        ------
        InputError
            If a metric is unknown or xarray is not installed.
        """
        from aqmlab.metrics.grid import to_xarray

        return to_xarray(self, names)

    @staticmethod
    def open(folder: str | Path) -> StudyResult:
        """Opens a folder with the results of a finished study, and verifies its checksums.

        Raises `FolderError` if the folder has no finished results, or damaged ones.
        """
        from aqmlab.study.folder import open_results

        return open_results(Path(folder))

    def raw(self, name: str) -> pl.DataFrame:
        """Returns the table `name` as stored: `run` and its own columns."""
        return _load(self._tables, name, self.scenarios, self.info.replications)

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name`, joined with the points.

        Raises `InputError` if the name is unknown.
        """
        if name not in self._joined:
            self._joined[name] = self._join(self.raw(name))
        return self._joined[name]

    def single(self) -> RunResult:
        """Returns the `RunResult` of a study with one run; raises `ValueError` for others."""
        if self.info.points * self.info.replications != 1:
            raise ValueError("this study has more than one run")
        return RunResult(self._tables, self.scenarios[0])

    def report(self) -> Document:
        """Returns the report as a document (`to_html()`, `to_markdown()`, `tables`, `figures`)."""
        from aqmlab.report.study_page import document

        return document(self)

    def write_report(
        self, folder: str | Path | None = None, *, command: str = "", figures: bool = True
    ) -> Path:
        """Writes the report and returns its path.

        Parameters
        ----------
        folder : path, optional
            Folder for `report.html`. Default: the results folder.
        command : str, optional
            Command line that the page shows as its origin.
        figures : bool, default True
            Also writes the figures as SVG, PNG and PDF into `figures/`.

        Raises
        ------
        StorageError
            If a file cannot be written.
        ValueError
            If the results are in memory and `folder` is missing.
        """
        place = folder or self.folder
        if place is None:
            raise ValueError("these results are in memory: pass the folder for the report")
        from aqmlab.report.study_page import write

        return write(self, Path(place), command, figures=figures)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    @property
    def pooled_notes(self) -> pl.DataFrame:
        """Notes that still hold for pooled replications, which have enough packets."""
        if self.info.replications == 1:
            return self.notes
        return self.notes.filter(pl.col("id") != "few-packets")

    @cached_property
    def bottlenecks(self) -> list[str]:
        """Link of each point that results are about, by default the scenario's bottleneck.

        If that was idle at all points, it is the busiest link. If the points have different
        bottlenecks, it is the busiest link that all points have, so that they are comparable.
        """
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
        """Rows of `links` of the bottleneck of each point."""
        names = self.bottlenecks
        which = pl.DataFrame({"point": range(len(names)), "link": names})
        keys = ["point", "link"]
        return self.links.join(which.cast({"point": pl.UInt32}), on=keys, maintain_order="left")

    @property
    def tradeoff(self) -> pl.DataFrame:
        """One row for each run: mean sojourn time at the bottleneck, and goodput of the flows over
        it (RFC 7928, section 2.7)."""
        from aqmlab.report.tradeoff import runs

        return runs(self)

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row for each point: its index and its label on each axis."""
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
"""Mean utilisation and mean sojourn time of each link."""


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
    """Tables with their numbers of rows, as text."""
    rows = {name: sum(part.height for part in result.parts(name, "run"))
            for name in result.table_names}  # fmt: skip
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


METRICS = "metrics"
"""Table computed from the others, on access or when a folder is completed."""


def _load(
    tables: Tables, name: str, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    names = tables.names()
    if name != METRICS:
        if name not in names:
            raise unknown("table", name, dict.fromkeys([*names, METRICS]))
        return tables.load(name)
    from aqmlab.metrics.table import computed
    from aqmlab.metrics.values import add_own

    there = METRICS in names
    rows = tables.load(name) if there else computed(tables, scenarios, replications)
    return add_own(rows, tables, scenarios, replications)


def resolved(text: str) -> dict[str, Any]:
    """The mapping behind `Scenario.resolved`."""
    table: dict[str, Any] = json.loads(text)
    return table
