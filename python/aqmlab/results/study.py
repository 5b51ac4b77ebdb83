"""Results of a study as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import aqmlab
from aqmlab.errors import input_error
from aqmlab.numbers import count
from aqmlab.results.run import RunResult, TableAttributes, in_place_of, load, sizes, use_of
from aqmlab.results.scenarios import Scenarios
from aqmlab.results.tables import MemoryTables, Tables, copied_points
from aqmlab.scenario.quantity import numbers

if TYPE_CHECKING:
    import xarray

    from aqmlab.report.document import Document
    from aqmlab.report.plot import StudyPlot
    from aqmlab.study.precision import Precision

VALUE = "_value"
"""Suffix of the column with the values of a numeric axis."""


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
        return prod(len(labels) for _, labels in self.axes)


COPIES = (
    "all {} replications are identical: nothing in the scenario is random, or its flows move in "
    'lockstep. Start flows at random times, start = {{ each = ["0s", "1s"] }}, or give the links '
    "jitter. One replication gives the same information"
)
"""The note `replications-identical`."""


class StudyResult(TableAttributes):
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
        self.scenarios = scenarios
        """The scenario of each point with every default."""
        self._tables = tables
        self._joined: dict[str, pl.DataFrame] = {}

    def __repr__(self) -> str:
        axes = " × ".join(f"{name} ({len(labels)})" for name, labels in self.info.axes)
        what = f"{axes or 'one point'}, {count(self.info.replications, 'replication')}"
        return f"<StudyResult {self.info.name!r}: {what}: {sizes(self)}>"

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
            coordinates), `replication`, and `link` or `group` (`subject` of metrics of both).

        Raises
        ------
        InputError
            If a metric is unknown or xarray is not installed.
        """
        return aqmlab.accessors.values.to_xarray(self, names)

    @staticmethod
    def open(folder: str | Path) -> StudyResult:
        """Opens a folder with the results of a finished study, and verifies its checksums.

        Raises `FolderError` if the folder has no finished results, or damaged ones.
        """
        return aqmlab.accessors.folder.open_results(Path(folder))

    @property
    def stored(self) -> Tables:
        """The tables as stored, of which columns and runs can be read alone."""
        return self._tables

    def raw(self, name: str) -> pl.DataFrame:
        """Returns the table `name` as stored: `run` and its own columns; `notes` with those about
        all replications of a point."""
        found = load(self._tables, name, self.scenarios, self.info.replications)
        return self._with_copies(found) if name == "notes" else found

    @cached_property
    def copied(self) -> list[int]:
        """Points whose replications are copies of one run."""
        return copied_points(self._tables, self.info.points, self.info.replications)

    def _with_copies(self, notes: pl.DataFrame) -> pl.DataFrame:
        count = self.info.replications
        runs = [point * count + each for point in self.copied for each in range(count)]
        if not runs:
            return notes
        text = COPIES.format(count)
        rows = {"run": runs, "subject": "study", "id": "replications-identical", "text": text}
        own = pl.DataFrame(rows).cast(notes.schema)
        others = notes.filter(pl.col("id") != rows["id"])
        return pl.concat([others, own]).sort("run", maintain_order=True)

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table `name`, joined with the points.

        Raises `InputError` if the name is unknown.
        """
        if name not in self._joined:
            self._joined[name] = self._join(self.raw(name))
        return self._joined[name]

    def detach(self) -> None:
        """Reads all tables into memory, so that their folder can go."""
        tables, self.folder = self._tables, None
        self._tables = MemoryTables({name: tables.load(name) for name in tables.names()})

    def single(self) -> RunResult:
        """Returns the `RunResult` of a study with one run; raises `InputError` for others."""
        if self.info.points * self.info.replications != 1:
            raise input_error("this study has more than one run", key="single")
        return RunResult(self._tables, self.scenarios[0])

    @property
    def plot(self) -> StudyPlot:
        """Figures: `plot.against("sojourn_p95")`, `cdf()`, `tradeoff()`, `grid("jain")`,
        `over_time("backlog_packets")`."""
        return aqmlab.accessors.plot.StudyPlot(self)

    def report(self) -> Document:
        """Returns the report as a document (`to_html()`, `to_markdown()`, `tables`, `figures`)."""
        return aqmlab.accessors.study_page.document(self)

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
        InputError
            If the results are in memory and `folder` is missing.
        """
        place = folder or self.folder
        if place is None:
            problem = "these results are in memory: pass the folder for the report"
            raise input_error(problem, key="folder")
        page = aqmlab.accessors.study_page.document(self, command, Path(place))
        return aqmlab.accessors.document.save(page, Path(place), figures=figures)

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
        links = self._tables.load("links", ["run", "link", "utilisation", "sojourn_mean_s"])
        names, use = [each["bottleneck"] for each in self._heads], use_of(links)
        runs = links.group_by(pl.col("link").cast(pl.String)).agg(pl.col("run").n_unique())
        common = set(runs.filter(run=self.info.points * self.info.replications)["link"])
        use = {link: own for link, own in use.items() if link in common}
        if len(set(names)) > 1:
            most = max(sorted(use), key=lambda link: use[link], default="")
            return [most] * len(names) if most else names
        return [in_place_of(names[0], use)] * len(names)

    @property
    def named_bottlenecks(self) -> set[str]:
        """Bottlenecks that the scenarios name."""
        return {each["bottleneck"] for each in self._heads}

    @cached_property
    def group_names(self) -> list[str]:
        """Groups of flows of all points, in the order in which they first appear."""
        groups = self._tables.load("groups", ["group"])["group"]
        return groups.unique(maintain_order=True).cast(pl.String).to_list()

    @property
    def seeds(self) -> set[int]:
        """Seeds of the points: one, unless the points have seeds of their own."""
        return {int(each["seed"]) for each in self._heads}

    @cached_property
    def _heads(self) -> Sequence[Mapping[str, Any]]:
        """The scenario of each point up to its links."""
        own = self.scenarios
        return own.heads() if isinstance(own, Scenarios) else own

    @property
    def bottleneck(self) -> pl.DataFrame:
        """Rows of `links` of the bottleneck of each point."""
        keys = ["point", "link"]
        return self.links.join(self.of_bottlenecks("link"), on=keys, maintain_order="left")

    def of_bottlenecks(self, column: str) -> pl.DataFrame:
        """Index of each point, and its bottleneck as `column`."""
        return self._at_points.rename({"link": column})

    @cached_property
    def _at_points(self) -> pl.DataFrame:
        names = self.bottlenecks
        return pl.DataFrame({"point": range(len(names)), "link": names}).cast({"point": pl.UInt32})

    @property
    def point_of_run(self) -> pl.Expr:
        """The column `point`, from the column `run`."""
        return (pl.col("run") // self.info.replications).cast(pl.UInt32).alias("point")

    @property
    def tradeoff(self) -> pl.DataFrame:
        """One row for each run: mean sojourn time at the bottleneck, and goodput of the flows over
        it (RFC 7928, section 2.7)."""
        return aqmlab.accessors.overview.tradeoff_runs(self)

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
            self.point_of_run,
            (run % self.info.replications).cast(pl.UInt32).alias("replication"),
        ).with_columns(self._labels())
        first = ["run", "point", "replication", *names]
        return keyed.select(*first, *(each for each in frame.columns if each not in first))


def run_of(result: StudyResult, run: int) -> RunResult:
    """One run of a study. Raises `InputError` for a number that none has."""
    runs = result.info.points * result.info.replications
    if not 0 <= run < runs:
        problem = f"expected a number below {runs}, the number of runs"
        raise input_error(problem, key="run", given=run)
    scenario = result.scenarios[run // result.info.replications]
    return RunResult(result._tables.of_runs(range(run, run + 1)), scenario)
