"""The measurements of a study, point by point.

A point is chosen by its labels: `measured.maxima(queue="CoDel", flows="1+1", rest="11 ms")`.
Per-run quantities are arrays with one value a replication, in the order of the replications.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np
import polars as pl

from aqmlab.campaign import Replicated
from aqmlab.campaign.rule import picks
from aqmlab.metrics.samples import Floats, Histograms, weighted_quantile
from aqmlab.metrics.values import values
from aqmlab.reproduce.model import Warning
from aqmlab.reproduce.schema import printed
from aqmlab.results import StudyResult
from aqmlab.stats import POSITIVE, Interval, interval

Key = tuple[Any, ...]


class Measurements(Replicated):
    """Quick access to the results of a study at the queue of the link called `link`.

    A reproduction may consist of several studies: `parts` has all that were run, by name.
    Views of the same results have other replications (`drawn`) or other labels (`relabelled`);
    what is computed from the tables is kept with the results.
    """

    def __init__(
        self,
        result: StudyResult,
        link: str,
        parts: dict[str, Measurements] | None = None,
        *,
        root: Measurements | None = None,
        number: int | None = None,
        renamed: Mapping[str, Mapping[str, str]] | None = None,
        added: Mapping[str, Sequence[str]] | None = None,
        paper: Mapping[str, Any] | None = None,
        looks: int = 1,
    ) -> None:
        self.result = result
        self.link = link
        self.parts = {} if parts is None else parts
        self._axes = dict(result.info.axes)
        self._added = added or {}
        self.paper = paper or {}
        """Content of `published.toml`."""
        self.axes = {
            name: [label for label in labels if label not in self._added.get(name, ())]
            for name, labels in self._axes.items()
        }
        """Labels by axis, without those beside the study's own (`aqmlab.reproduce.additions`)."""
        self.replications = result.info.replications
        self.looks = looks
        self._root = root or self
        self._number = number
        self._renamed = renamed or {}
        self._picked: Any = slice(None) if number is None else picks(self.replications)[number]
        self._kept: dict[Key, Any] = {}

    def _view(self, number: int | None, renamed: Mapping[str, Mapping[str, str]]) -> Measurements:
        root = self._root
        return Measurements(
            root.result, root.link, root.parts, root=root, number=number, renamed=renamed,
            added=root._added, paper=root.paper,
            looks=root.looks,
        )  # fmt: skip

    def drawn(self, number: int) -> Measurements:
        """The same points for one draw of the replications."""
        return self._view(number, self._renamed)

    def relabelled(self, axis: str, names: Mapping[str, str]) -> Measurements:
        """The same results in a world in which the points labelled with a key of `names` gave what
        those with its value gave, in the parts that have such points."""
        return self._view(self._number, {**self._renamed, axis: names})

    def part(self, name: str) -> Measurements | None:
        """The measurements of a part of the reproduction, None if it was not run.

        The part in `study.toml` is called `study`.
        """
        found = self.parts.get(name)
        if found is None or self is self._root:
            return found
        if self._renamed:
            return found._view(self._number, self._renamed)
        assert self._number is not None
        return found.draws[self._number]

    def printed(self, table: str, row: str) -> list[float]:
        """The numbers that the paper prints in a row of a table, in the order of its columns."""
        return printed(self.paper, table, row)

    def has(self, **labels: str) -> bool:
        """Whether the study has a point with these labels (it may be a subset)."""
        return all(label in self.axes.get(axis, ()) for axis, label in labels.items())

    def point(self, **labels: str) -> int:
        """The index of the point with these labels, one for each axis.

        Raises `KeyError` if an axis is missing or has no such label.
        """
        index = 0
        for axis, known in self._axes.items():
            label = labels[axis]
            other = self._renamed.get(axis, {}).get(label, label)
            label = other if other in known else label
            if label not in known:
                raise KeyError(f"{axis}={label}")
            index = index * len(known) + known.index(label)
        return index

    def labels(self, point: int) -> dict[str, str]:
        """The labels of the point with this index."""
        found: dict[str, str] = {}
        for axis, known in reversed(self._axes.items()):
            point, place = divmod(point, len(known))
            found[axis] = known[place]
        return found

    def each(self, key: Key, compute: Callable[[Measurements, int], Any], **labels: str) -> Any:
        """What `compute` makes of all replications of a point, of which the first dimension is the
        replications; it is computed once."""
        point, root = self.point(**labels), self._root
        if (*key, point) not in root._kept:
            root._kept[*key, point] = compute(root, point)
        return root._kept[*key, point][self._picked]

    def histograms(self, **labels: str) -> Histograms:
        """Queuing delays of all packets, one histogram a replication."""
        whole = self._root._histograms(self.point(**labels))
        if self._number is None:
            return whole
        return Histograms(whole.values, whole.counts[self._picked])

    def delay_quantile(self, share: float, **labels: str) -> float:
        """The quantile of the queuing delay of all packets of all replications, seconds."""
        point = self.point(**labels)
        if self._number is not None:
            return float(self._root._drawn_quantiles(share, point)[self._number])
        key = ("quantile", share, point)
        if key not in self._kept:
            self._kept[key] = self._root._histograms(point).quantile(share)
        return float(self._kept[key])

    def delay_quantile_interval(self, share: float, **labels: str) -> Interval | None:
        """Its 95 % interval, if it has one."""
        key = ("interval", share, self.point(**labels))
        if key not in self._kept:
            found = interval(self.histograms(**labels), f"p{100 * share:.6g}", bounds=POSITIVE)
            self._kept[key] = found
        kept: Interval | None = self._kept[key]
        return kept

    def maxima(self, **labels: str) -> Floats:
        """The largest queuing delay of each run, seconds."""
        return self._of(self._root._maxima, labels)

    def spikes(self, threshold_bytes: int, **labels: str) -> Floats:
        """The longest time for which the backlog of each run was above the threshold, seconds."""
        return self._of(self._root._excursions[threshold_bytes], labels)

    def responses(self, group: str, **labels: str) -> Floats:
        """The response time of a group in each run: from its start to the last
        acknowledgement of its last flow, seconds."""
        return self._of(self._root._responses[group], labels)

    def count(self, column: str, **labels: str) -> Floats:
        """A count of the table `links` (`dropped`, `drop_pie`, ...) in each run."""
        return self._of(self._root._grid_of(("links", column)), labels)

    def times(self, group: str, quantity: str, column: str, **labels: str) -> Floats:
        """A column of the table `times` in each run: of a group's `completion`, `response`, ...;
        of two directions that of the worse."""
        return self._of(self._root._grid_of(("times", group, quantity, column)), labels)

    def metric(self, name: str, subject: str, **labels: str) -> Floats:
        """A metric of the registry (`goodput`, `sojourn_p95`) in each run, of a link or group."""
        return self._of(self._root._grid_of(("metric", name, subject)), labels)

    def series(
        self, quantity: str, subject: str | None = None, *, replication: int = 0, **labels: str
    ) -> tuple[Floats, Floats]:
        """Times and values of a sampled quantity in one run (the link's, without `subject`)."""
        times, rows = self.curves(quantity, subject, **labels)
        known = ~np.isnan(rows[replication])
        return times[known], rows[replication][known]

    def curves(
        self, quantity: str, subject: str | None = None, **labels: str
    ) -> tuple[Floats, Floats]:
        """Times of a sampled quantity, and its values: a row a replication, NaN without a sample
        (the link's, without `subject`)."""
        subject = subject or self.link
        point = self.point(**labels)
        times, rows = self._root._sampled(quantity, subject, point)
        return times, rows[self._picked]

    def largest(self, of: int = 0, **labels: str) -> float:
        """The largest queuing delay of `of` replications (all, if it is 0 or there are fewer), the
        mean over all choices of so many, seconds: it does not grow with the replications.

        Raises `ArithmeticError` for a draw of fewer than twice as many replications: samples of
        them do not show how far a maximum of all may go."""
        delays = np.sort(self.maxima(**labels))
        count = delays.size
        if self._number is not None and not 0 < 2 * of <= count:
            raise ArithmeticError(f"the largest of {of} of {count} replications has no interval")
        if not 0 < of < count:
            return float(delays[-1])
        weights, left = np.zeros(count), 1.0
        for place in range(count - 1, of - 2, -1):  # the largest chosen one has this place
            weights[place] = left * of / (place + 1)
            left -= weights[place]
        return float(weights @ delays)

    def largest_interval(self, of: int, **labels: str) -> Interval | None:
        """Where the largest queuing delay of `of` further replications lies, seconds: above its
        lower end in 97.5 % of cases. It has no upper end: with fewer than 39 times as many
        replications here, even their largest may be below it."""
        delays = np.sort(self.maxima(**labels))[::-1]
        below = 1.0
        for place in range(delays.size):
            # The largest `place` + 1 of these and the further ones together are all of these.
            below *= (delays.size - place) / (delays.size + of - place)
            if below <= 0.025:
                return Interval(float(delays[place]), float("inf"))
        return None

    @cached_property
    def warnings(self) -> list[Warning]:
        """What the engine noted, once for each note, with the points that it concerns."""
        notes = self.result.pooled_notes.filter(pl.col("subject") == self.link)
        found = []
        for (ident,), rows in notes.group_by("id", maintain_order=True):
            text = rows["text"][0]
            where = []
            for axis, labels in self._axes.items():
                seen = rows[axis].cast(pl.String).unique().to_list()
                if len(seen) < len(labels):
                    where.append(f"{axis}: {', '.join(each for each in labels if each in seen)}")
            runs = rows["run"].n_unique()
            found.append(Warning(str(ident), str(text), "; ".join(where) or "all points", runs))
        return found

    def _of(self, values: Floats, labels: dict[str, str]) -> Floats:
        row: Floats = values[self.point(**labels)][self._picked]
        return row

    def _grid(self, frame: pl.DataFrame, column: str) -> Floats:
        """A column with one row a run, as an array of shape (points, replications)."""
        grid = np.full(self.result.info.points * self.replications, np.nan)
        grid[frame["run"].to_numpy()] = frame[column].to_numpy()
        return grid.reshape(-1, self.replications)

    def _grid_of(self, key: tuple[str, ...]) -> Floats:
        """A grid of the tables: computed once, with the results."""
        if key not in self._kept:
            self._kept[key] = self._grid(*self._column(*key))
        found: Floats = self._kept[key]
        return found

    def _column(self, table: str, *key: str) -> tuple[pl.DataFrame, str]:
        if table == "links":
            return self._links, key[0]
        if table == "metric":
            return values(self.result, key[0]).filter(pl.col("subject") == key[1]), "value"
        group, quantity, column = key
        rows = self.result.raw("times")
        rows = rows.filter((pl.col("group") == group) & (pl.col("quantity") == quantity))
        return rows.unique("run", keep="first", maintain_order=True), column

    def _sampled(self, quantity: str, subject: str, point: int) -> tuple[Floats, Floats]:
        key = ("series", quantity, subject)
        if key not in self._kept:
            rows = self.result.raw("series").filter(
                (pl.col("quantity") == quantity) & (pl.col("subject") == subject)
            )
            rows = rows.with_columns(point=pl.col("run") // self.replications)
            self._kept[key] = rows.partition_by("point", as_dict=True)
        if (*key, point) not in self._kept:
            part = self._kept[key].get((point,))
            times, grid = np.empty(0), np.empty((self.replications, 0))
            if part is not None:
                times, place = np.unique(part["time_s"].to_numpy(), return_inverse=True)
                grid = np.full((self.replications, times.size), np.nan)
                grid[part["run"].to_numpy() - point * self.replications, place] = part["value"]
            self._kept[*key, point] = times, grid
        found: tuple[Floats, Floats] = self._kept[*key, point]
        return found

    def _drawn_quantiles(self, share: float, point: int) -> Floats:
        """The quantile for each draw of the replications, all in one multiplication."""
        key = ("quantiles", share, point)
        if key not in self._kept:
            whole = self._histograms(point)
            weights = [
                np.bincount(each, minlength=self.replications) for each in picks(self.replications)
            ]
            sums = np.array(weights, dtype=np.float64) @ whole.counts.astype(np.float64)
            self._kept[key] = np.array(
                [weighted_quantile(whole.values, np.rint(each), share) for each in sums]
            )
        found: Floats = self._kept[key]
        return found

    def _histograms(self, point: int) -> Histograms:
        if ("histograms", point) not in self._kept:
            run, value, count = self._sojourn
            first = point * self.replications
            start, end = np.searchsorted(run, [first, first + self.replications])
            part = slice(int(start), int(end))
            self._kept["histograms", point] = Histograms.from_columns(
                run[part] - first, value[part], count[part], self.replications
            )
        found: Histograms = self._kept["histograms", point]
        return found

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


def per_run(function: Callable[..., Floats]) -> Callable[..., Floats]:
    """Makes a function of all replications of a point, `f(measured, ..., **labels)` with a row for
    each, one that also works for draws of the replications: it is computed once."""

    @wraps(function)
    def wrapped(measured: Measurements, *args: Any, **labels: str) -> Floats:
        def compute(root: Measurements, point: int) -> Floats:
            return function(root, *args, **root.labels(point))

        found: Floats = measured.each((function, *args), compute, **labels)
        return found

    return wrapped
