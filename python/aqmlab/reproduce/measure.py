"""The measurements of a study, point by point.

A point is chosen by its labels: `measured.maxima(queue="CoDel", flows="1+1", rest="11 ms")`.
Per-run quantities are arrays with one value a replication, in the order of the replications.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats, Histograms
from aqmlab.metrics.values import values
from aqmlab.reproduce.model import Warning
from aqmlab.results import StudyResult
from aqmlab.stats import POSITIVE, Interval, interval


class Measurements:
    """Quick access to the results of a study at the queue of the link called `link`.

    A reproduction may consist of several studies: `parts` has all that were run, by name.
    """

    def __init__(
        self, result: StudyResult, link: str, parts: dict[str, Measurements] | None = None
    ) -> None:
        self.result = result
        self.link = link
        self.parts = {} if parts is None else parts
        self.axes = dict(result.info.axes)
        self.replications = result.info.replications
        self._intervals: dict[tuple[int, float], Interval | None] = {}
        self._histograms: dict[int, Histograms] = {}
        self._counts: dict[str, Floats] = {}
        self._times: dict[tuple[str, str, str], Floats] = {}
        self._series: dict[tuple[str, str], pl.DataFrame] = {}

    def part(self, name: str) -> Measurements | None:
        """The measurements of a part of the reproduction, None if it was not run.

        The part in `study.toml` is called `study`.
        """
        return self.parts.get(name)

    def has(self, **labels: str) -> bool:
        """Whether the study has a point with these labels (it may be a subset)."""
        return all(label in self.axes.get(axis, ()) for axis, label in labels.items())

    def point(self, **labels: str) -> int:
        """The index of the point with these labels, one for each axis.

        Raises `KeyError` if an axis is missing or has no such label.
        """
        index = 0
        for axis, known in self.axes.items():
            if labels[axis] not in known:
                raise KeyError(f"{axis}={labels[axis]}")
            index = index * len(known) + known.index(labels[axis])
        return index

    def histograms(self, **labels: str) -> Histograms:
        """Queuing delays of all packets, one histogram a replication."""
        point = self.point(**labels)
        if point not in self._histograms:
            run, value, count = self._sojourn
            first = point * self.replications
            start, end = np.searchsorted(run, [first, first + self.replications])
            part = slice(int(start), int(end))
            self._histograms[point] = Histograms.from_columns(
                run[part] - first, value[part], count[part], self.replications
            )
        return self._histograms[point]

    def delay_quantile(self, share: float, **labels: str) -> float:
        """The quantile of the queuing delay of all packets of all replications, seconds."""
        return self.histograms(**labels).quantile(share)

    def delay_quantile_interval(self, share: float, **labels: str) -> Interval | None:
        """Its 95 % interval, if it has one."""
        key = (self.point(**labels), share)
        if key not in self._intervals:
            self._intervals[key] = interval(
                self.histograms(**labels), f"p{100 * share:.6g}", bounds=POSITIVE
            )
        return self._intervals[key]

    def maxima(self, **labels: str) -> Floats:
        """The largest queuing delay of each run, seconds."""
        return self._of(self._maxima, labels)

    def spikes(self, threshold_bytes: int, **labels: str) -> Floats:
        """The longest time for which the backlog of each run was above the threshold, seconds."""
        return self._of(self._excursions[threshold_bytes], labels)

    def responses(self, group: str, **labels: str) -> Floats:
        """The response time of a group in each run: from its start to the last
        acknowledgement of its last flow, seconds."""
        return self._of(self._responses[group], labels)

    def count(self, column: str, **labels: str) -> Floats:
        """A count of the table `links` (`dropped`, `drop_pie`, ...) in each run."""
        if column not in self._counts:
            self._counts[column] = self._grid(self._links, column)
        return self._of(self._counts[column], labels)

    def times(self, group: str, quantity: str, column: str, **labels: str) -> Floats:
        """A column of the table `times` in each run: of a group's `completion`, `response`, ...;
        of two directions that of the worse."""
        key = (group, quantity, column)
        if key not in self._times:
            rows = self.result.raw("times")
            rows = rows.filter((pl.col("group") == group) & (pl.col("quantity") == quantity))
            rows = rows.unique("run", keep="first", maintain_order=True)
            self._times[key] = self._grid(rows, column)
        return self._of(self._times[key], labels)

    def metric(self, name: str, subject: str, **labels: str) -> Floats:
        """A metric of the registry (`goodput`, `sojourn_p95`) in each run, of a link or group."""
        key = ("metric", name, subject)
        if key not in self._times:
            rows = values(self.result, name).filter(pl.col("subject") == subject)
            self._times[key] = self._grid(rows, "value")
        return self._of(self._times[key], labels)

    def series(
        self, quantity: str, subject: str | None = None, *, replication: int = 0, **labels: str
    ) -> tuple[Floats, Floats]:
        """Times and values of a sampled quantity in one run (the link's, without `subject`)."""
        run = self.point(**labels) * self.replications + replication
        key = (quantity, subject or self.link)
        if key not in self._series:
            rows = self.result.raw("series").filter(
                (pl.col("quantity") == quantity) & (pl.col("subject") == key[1])
            )
            self._series[key] = rows.select("run", "time_s", "value").sort("run", "time_s")
        rows = self._series[key].filter(pl.col("run") == run)
        return rows["time_s"].to_numpy(), rows["value"].to_numpy()

    @cached_property
    def warnings(self) -> list[Warning]:
        """What the engine noted, once for each note, with the points that it concerns."""
        notes = self.result.pooled_notes.filter(pl.col("subject") == self.link)
        found = []
        for (ident,), rows in notes.group_by("id", maintain_order=True):
            text = rows["text"][0]
            where = []
            for axis, labels in self.axes.items():
                seen = rows[axis].cast(pl.String).unique().to_list()
                if len(seen) < len(labels):
                    where.append(f"{axis}: {', '.join(each for each in labels if each in seen)}")
            runs = rows["run"].n_unique()
            found.append(Warning(str(ident), str(text), "; ".join(where) or "all points", runs))
        return found

    def _of(self, values: Floats, labels: dict[str, str]) -> Floats:
        row: Floats = values[self.point(**labels)]
        return row

    def _grid(self, frame: pl.DataFrame, column: str) -> Floats:
        """A column with one row a run, as an array of shape (points, replications)."""
        grid = np.full(self.result.info.points * self.replications, np.nan)
        grid[frame["run"].to_numpy()] = frame[column].to_numpy()
        return grid.reshape(-1, self.replications)

    @cached_property
    def _sojourn(self) -> tuple[Any, Any, Any]:
        frame = self.result.raw("sojourn").filter(pl.col("link") == self.link).sort("run")
        run = frame["run"].cast(pl.Int64).to_numpy()
        return run, frame["sojourn_s"].to_numpy(), frame["count"].cast(pl.Int64).to_numpy()

    @cached_property
    def _links(self) -> pl.DataFrame:
        return self.result.raw("links").filter(pl.col("link") == self.link)

    @cached_property
    def _maxima(self) -> Floats:
        return self._grid(self._links, "sojourn_max_s")

    @cached_property
    def _excursions(self) -> dict[int, Floats]:
        rows = self.result.raw("excursions").filter(pl.col("link") == self.link)
        parts = rows.partition_by("threshold_bytes", as_dict=True)
        return {int(key[0]): self._grid(part, "longest_s") for key, part in parts.items()}

    @cached_property
    def _responses(self) -> dict[str, Floats]:
        # A flow that never finished makes its group's response time NaN, not shorter.
        times = (pl.col("finish_s").fill_null(float("nan")).max() - pl.col("start_s").min()).alias(
            "response_s"
        )
        rows = self.result.raw("flows").group_by("group", "run", maintain_order=True).agg(times)
        parts = rows.partition_by("group", as_dict=True)
        return {str(key[0]): self._grid(part, "response_s") for key, part in parts.items()}
