"""Result of a run as tables.

Each table is a polars `DataFrame`. Columns end in their unit: `_s` (seconds), `_bytes`, `_packets`,
`_bps` (bit/s). docs/results.md lists all columns.

Metrics and pages are made of results by higher layers. The methods for them ask `aqmlab.accessors`,
which the package loads at the first use: a subclass in a higher layer would not do, as results are
created in many places below it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import aqmlab
from aqmlab.errors import input_error, unknown
from aqmlab.results.tables import Batch, Gathered, MemoryTables, Tables, check_process

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from aqmlab._core import Scenario
    from aqmlab.report.document import Document
    from aqmlab.report.plot import RunPlot

IDLE, BUSY = 0.2, 0.5
"""Utilisation below which a link is idle, and above which it is busy."""
METRICS = "metrics"
"""Table computed from the others: on request, or when a folder is finished."""


def _with(packages: str, method: Callable[[], Any]) -> Any:
    """The result of a method; `InputError` if its packages are not installed."""
    try:
        return method()
    except ImportError as error:
        problem, hint = f"this needs {packages.replace(' ', ' and ')}", f"pip install {packages}"
        raise input_error(problem, key=method.__name__, hint=hint) from error


class TableAttribute(property):
    """The table with the name of the attribute."""

    def __init__(self, meaning: str) -> None:
        def load(result: TableAttributes) -> pl.DataFrame:
            return result.table(self._name)

        super().__init__(load)
        self.__doc__ = meaning  # that of the class would hide an argument `doc`

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    if TYPE_CHECKING:

        def __get__(self, result: Any, owner: type | None = None, /) -> pl.DataFrame: ...  # type: ignore[override]


class TableAttributes:
    """Tables as attributes; subclasses define `table(name)`."""

    _tables: Tables

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name`."""
        raise NotImplementedError

    @property
    def table_names(self) -> list[str]:
        """Names of the tables."""
        return self._tables.names()

    def columns(self, name: str) -> list[str]:
        """Names of the columns of the table `name` as stored. Raises `InputError` if the name is
        unknown."""
        if name not in self.table_names:
            raise unknown("table", name, self.table_names)
        return self._tables.columns(name)

    def parts(self, name: str, *columns: str) -> Iterator[pl.DataFrame]:
        """Yields a table in frames of some rows, in order, so that it need not fit into memory.

        Parameters
        ----------
        name : str
            Name of the table.
        *columns : str
            Columns to read. Default: all.

        Raises
        ------
        InputError
            If the table or a column is unknown.
        """
        known = self.columns(name)
        for column in columns:
            if column not in known:
                raise unknown("column", column, known, key=name)
        return self._tables.parts(name, list(columns) or known)

    def to_pandas(self, name: str) -> pandas.DataFrame:
        """Returns the table `name` as a pandas data frame.

        Raises `InputError` if pandas or pyarrow is not installed.
        """
        frame: pandas.DataFrame = _with("pandas pyarrow", self.table(name).to_pandas)
        return frame

    def to_arrow(self, name: str) -> pyarrow.Table:
        """Returns the table `name` as an Arrow table.

        Raises `InputError` if pyarrow is not installed.
        """
        table: pyarrow.Table = _with("pyarrow", self.table(name).to_arrow)
        return table

    runs = TableAttribute(
        "One row for each run: replication, seed, end_s, events, delivered_packets."
    )
    links = TableAttribute(
        "One row for each run and link: counts by reason, sojourn times, backlog, utilisation."
    )
    flows = TableAttribute("One row for each run and flow: times, size, goodput, retransmissions.")
    groups = TableAttribute(
        "One row for each run and group of flows: flows or requests started and completed."
    )
    traffic = TableAttribute(
        "One row for each run, group and direction: bytes sent and delivered, packets arrived, "
        "dropped by queues and lost on links."
    )
    times = TableAttribute(
        "One row for each run, group, quantity and direction: completion, start-up and response "
        "times, delays. The worse direction comes first."
    )
    scores = TableAttribute(
        "One row for each run, group, quantity and direction: other numbers of workloads, such as "
        "the MOS. The worse direction comes first."
    )
    excursions = TableAttribute(
        "One row for each run, link and threshold: number and duration of backlogs above it."
    )
    sojourn = TableAttribute(
        "Histogram of sojourn times: upper edge in seconds and count (buckets 0.1 % wide)."
    )
    delays = TableAttribute(
        "Histogram of one-way delays by group and direction: upper edge in seconds and count."
    )
    metrics = TableAttribute(
        "One row for each run, subject (link or group), direction and derived metric: goodput, "
        "Jain's index, delay variation, power, ... (`aqmlab list metrics`). The worse direction "
        "comes first."
    )
    notes = TableAttribute("Notes for the reader of the results: run, subject, id, text.")
    series = TableAttribute(
        "Samples: time_s, subject, quantity, value (levels series and packets)."
    )
    packets = TableAttribute("One row for each packet and link (level packets).")


class RunResult(TableAttributes):
    """Result of one run of a scenario: tables as attributes, without the column `run`."""

    def __repr__(self) -> str:
        return f"<RunResult of {self.bottleneck!r}: {sizes(self)}>"

    def __init__(self, tables: Tables, scenario: Mapping[str, Any] | Scenario) -> None:
        # The engine's form is read when it is asked for: a loop of short runs seldom does.
        self._tables, self._given = tables, scenario

    def __getstate__(self) -> dict[str, Any]:
        """The state for a copy: engine's scenarios with a queue in Python cannot be pickled."""
        return {**self.__dict__, "_given": self.scenario}

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The scenario with every default."""
        own = self._given
        return dict(own) if isinstance(own, Mapping) else resolved(own.resolved)

    @staticmethod
    def of(batches: Sequence[Batch], scenario: Scenario) -> RunResult:
        """The result in memory of a run that has ended.

        Raises `ForkError` where tables cannot be computed: a pool would wait for ever for a worker
        that fails while it sends its result.
        """
        check_process(computes=False)
        return RunResult(MemoryTables(Gathered(batches)), scenario)

    @property
    def bottleneck(self) -> str:
        """Name of the link that the results are about."""
        return str(self.scenario["bottleneck"])

    @cached_property
    def shown(self) -> str:
        """Link that pages show: the bottleneck, or the busiest link if that was idle."""
        return in_place_of(self.bottleneck, use_of(self.raw("links")))

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name` without the column `run`.

        Raises `InputError` if the name is unknown.
        """
        frame = self.raw(name).clone()
        frame.drop_in_place("run")  # `drop` starts threads
        return frame

    def raw(self, name: str) -> pl.DataFrame:
        """Returns the table `name` as stored, with the column `run`."""
        return load(self._tables, name, [self.scenario] if name == METRICS else [], 1)

    @property
    def plot(self) -> RunPlot:
        """Figures: `plot.over_time("cwnd_bytes", "backlog_packets")`, `cdf()`, `heatmap()`."""
        return aqmlab.accessors.plot.RunPlot(self)

    def report(self, title: str = "A run") -> Document:
        """Returns the report as a document (`to_html()`, `to_markdown()`, `tables`, `figures`).

        It has time series if they were recorded (`record="series"`).
        """
        return aqmlab.accessors.run_page.document(self, title)

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
        page = aqmlab.accessors.run_page.document(self, title, command, Path(folder))
        return aqmlab.accessors.document.save(page, Path(folder), figures=figures)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Returns the tables as lists of dicts, except `sojourn`, `delays`, `series`, `packets`."""
        apart = ("sojourn", "delays", "series", "packets", METRICS)
        names = [*(name for name in self.table_names if name not in apart), METRICS]
        return {name: self.table(name).to_dicts() for name in names}


Use = Mapping[str, tuple[float, float]]
"""Mean utilisation and mean sojourn time of each link."""


def use_of(links: pl.DataFrame) -> Use:
    """Mean utilisation and sojourn time of each link."""
    rows = links.group_by(pl.col("link").cast(pl.String)).agg(
        pl.col("utilisation").mean(), pl.col("sojourn_mean_s").fill_nan(None).mean()
    )
    return {link: (busy or 0.0, wait or 0.0) for link, busy, wait in rows.iter_rows()}


def in_place_of(link: str, use: Use) -> str:
    """The busiest of the links if packets waited there and `link` was idle; else `link`."""
    most = max(sorted(use), key=lambda each: use[each], default=link)
    own = use.get(link, (0.0, 0.0))
    is_idle = own[0] < IDLE and use.get(most, own)[0] > BUSY and use[most][1] > own[1]
    return most if is_idle else link


def sizes(result: TableAttributes) -> str:
    """Tables with their numbers of rows, as text."""
    rows = {name: sum(part.height for part in result.parts(name, "run"))
            for name in result.table_names}  # fmt: skip
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


def load(
    tables: Tables, name: str, scenarios: Sequence[Mapping[str, Any]], replications: int
) -> pl.DataFrame:
    """The table called `name`, computed if it is that of the metrics.

    Raises `InputError` if there is none of that name.
    """
    if name == METRICS:
        return aqmlab.accessors.values.table(tables, scenarios, replications)
    if name not in tables.names():
        raise unknown("table", name, dict.fromkeys([*tables.names(), METRICS]))
    return tables.load(name)


def resolved(text: str) -> dict[str, Any]:
    """The mapping behind `Scenario.resolved`."""
    table: dict[str, Any] = json.loads(text)
    return table
