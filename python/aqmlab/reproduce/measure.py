"""The measurements of a study, point by point.

A point is chosen by its labels: `measured.maxima(queue="CoDel", flows="1+1", rest="11 ms")`.
Per-run quantities are arrays with one value a replication, in the order of the replications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, wraps
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from aqmlab.campaign import Asked, NotRun, Replicated, Rule, asked
from aqmlab.campaign.readings import Kept, grid_of
from aqmlab.campaign.rule import often, picks
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
        added: Mapping[str, Sequence[str]] = MappingProxyType({}),
        paper: Mapping[str, Any] = MappingProxyType({}),
        looks: int = 1,
    ) -> None:
        self.result = result
        self.link = link
        self.parts = {} if parts is None else parts
        self._axes = dict(result.info.axes)
        self._places = {
            axis: {label: place for place, label in enumerate(labels)}
            for axis, labels in result.info.axes
        }
        self.paper = paper
        """Content of `published.toml`."""
        self.axes = {
            name: [label for label in labels if label not in added.get(name, ())]
            for name, labels in self._axes.items()
        }
        """Labels by axis, without those beside the study's own (`aqmlab.reproduce.additions`)."""
        self.replications = result.info.replications
        self.looks = looks
        self._root = self
        self._number: int | None = None
        self._renamed: Mapping[str, Mapping[str, str]] = {}
        self._picked: Any = slice(None)
        self._kept = Kept()

    def _view(self, number: int | None, renamed: Mapping[str, Mapping[str, str]]) -> Measurements:
        view = copy(self._root)
        view.__dict__.pop("draws", None)
        view._number, view._renamed, view._kept = number, renamed, Kept()
        if number is not None:
            view._picked = picks(self.replications)[number]
        return view

    def drawn(self, number: int) -> Measurements:
        """The same points for one draw of the replications."""
        return self._view(number, self._renamed)

    def relabelled(self, axis: str, names: Mapping[str, str]) -> Measurements:
        """The same results in a world in which the points labelled with a key of `names` gave what
        those with its value gave, in the parts that have such points."""
        return self._view(self._number, {**self._renamed, axis: names})

    def part(self, name: str) -> Measurements:
        """The measurements of a part of the reproduction; that in `study.toml` is called `study`.

        Raises `NotRun` if it was not run.
        """
        if name not in self.parts:
            raise NotRun(name)
        found = self.parts[name]
        if self is self._root:
            return found
        if self._renamed:
            return found._view(self._number, self._renamed)
        assert self._number is not None
        return found.draws[self._number]

    def asked(self, **rules: Iterable[Rule[Measurements, Any]]) -> list[Asked]:
        """Returns the answers of rules, given by part; parts that were not run are left out."""
        run = [name for name in rules if name in self.parts]
        return [each for name in run for each in asked(rules[name], self.part(name))]

    def printed(self, table: str, row: str) -> list[float]:
        """The numbers that the paper prints in a row of a table, in the order of its columns."""
        return printed(self.paper, table, row)

    def has(self, **labels: str) -> bool:
        """Whether the study has a point with these labels (it may be a subset)."""
        return all(label in self.axes.get(axis, ()) for axis, label in labels.items())

    def require(self, **labels: Iterable[str]) -> None:
        """Raises `NotRun` unless the study has points with all of these labels of its axes."""
        for axis, names in labels.items():
            if missing := set(names).difference(self.axes[axis]):
                raise NotRun(f"{axis}={min(missing)}")

    def point(self, **labels: str) -> int:
        """The index of the point with these labels, one for each axis.

        Raises `NotRun` if an axis has no such label.
        """
        index = 0
        for axis, known in self._places.items():
            label = labels[axis]
            if self._renamed:
                other = self._renamed.get(axis, {}).get(label, label)
                label = other if other in known else label
            if label not in known:
                raise NotRun(f"{axis}={label}")
            index = index * len(known) + known[label]
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
        return root._kept.once((*key, point), lambda: compute(root, point))[self._picked]

    def median(self, values: Callable[..., Floats], **labels: str) -> float:
        """The median over the replications. `values(measured, **labels)` has a value for each; the
        medians of all draws are computed at once."""
        point, root = self.point(**labels), self._root

        def whole() -> Floats:
            return values(root, **root.labels(point))

        def of_draws() -> Floats:
            return np.asarray(np.median(whole()[picks(self.replications)], axis=1))

        if self._number is None:
            return root._kept.once(("median", values, point), lambda: float(np.median(whole())))
        return float(root._kept.once(("medians", values, point), of_draws)[self._number])

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
        whole = self._root._histograms(point)
        return float(self._kept.once(("quantile", share, point), lambda: whole.quantile(share)))

    def delay_quantile_interval(self, share: float, **labels: str) -> Interval | None:
        """Its 95 % interval, if it has one."""
        return self._kept.once(
            ("interval", share, self.point(**labels)),
            lambda: interval(self.histograms(**labels), f"p{100 * share:.6g}", bounds=POSITIVE),
        )

    def maxima(self, **labels: str) -> Floats:
        """The largest queuing delay of each run, seconds."""
        return self.count("sojourn_max_s", **labels)

    def spikes(self, threshold_bytes: int, **labels: str) -> Floats:
        """The longest time for which the backlog of each run was above the threshold, seconds."""
        return self._of(labels, "excursions", threshold_bytes)

    def responses(self, group: str, **labels: str) -> Floats:
        """The response time of a group in each run: from its start to the last
        acknowledgement of its last flow, seconds."""
        return self._of(labels, "flows", group)

    def count(self, column: str, **labels: str) -> Floats:
        """A count of the table `links` (`dropped`, `drop_pie`, ...) in each run."""
        return self._of(labels, "links", column)

    def times(self, group: str, quantity: str, column: str, **labels: str) -> Floats:
        """A column of the table `times` in each run: of a group's `completion`, `response`, ...;
        of two directions that of the worse."""
        return self._of(labels, "times", group, quantity, column)

    def metric(self, name: str, subject: str, **labels: str) -> Floats:
        """A metric of the registry (`goodput`, `sojourn_p95`) in each run, of a link or group."""
        return self._of(labels, "metric", name, subject)

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

    def rows(self, table: str, **labels: str) -> pl.DataFrame:
        """The rows of a table of the engine that are about a point, by its replications (`run`)."""
        first = self.point(**labels) * self.replications
        rows = self.raw(table)
        rows = rows.filter(pl.col("run").is_between(first, first + self.replications - 1))
        return rows.with_columns(run=pl.col("run") - first)

    def raw(self, table: str) -> pl.DataFrame:
        """A table of the engine, which is read once."""
        return self._root._kept.once(("raw", table), lambda: self.result.raw(table))

    def _of(self, labels: dict[str, str], *key: Any) -> Floats:
        """The values of a point, one a run; those of all points are computed once."""

        def compute() -> Floats:
            frame, column = self._root._column(*key)
            return grid_of(frame["run"], frame[column], self.result.info)

        row: Floats = self._root._kept.once(key, compute)[self.point(**labels)][self._picked]
        return row

    def _column(self, table: str, *key: Any) -> tuple[pl.DataFrame, str]:
        """Rows, one a run at most, and the column of their values."""
        if table == "metric":
            return values(self.result, key[0]).filter(pl.col("subject") == key[1]), "value"
        rows = self.raw(table)
        if table == "links":
            return rows.filter(link=self.link), key[0]
        if table == "excursions":
            return rows.filter(link=self.link, threshold_bytes=key[0]), "longest_s"
        if table == "times":
            group, quantity, column = key
            rows = rows.filter(group=group, quantity=quantity)
            return rows.unique("run", keep="first", maintain_order=True), column
        # A flow that never finished makes its group's response time NaN, not shorter.
        end = pl.col("finish_s").fill_null(float("nan")).max()
        runs = rows.filter(pl.col("group") == key[0]).group_by("run", maintain_order=True)
        return runs.agg(response_s=end - pl.col("start_s").min()), "response_s"

    def _sampled(self, quantity: str, subject: str, point: int) -> tuple[Floats, Floats]:
        key = ("series", quantity, subject)

        def by_point() -> dict[tuple[object, ...], pl.DataFrame]:
            rows = self.raw("series").filter(quantity=quantity, subject=subject)
            rows = rows.with_columns(point=pl.col("run") // self.replications)
            return rows.partition_by("point", as_dict=True)

        def sampled() -> tuple[Floats, Floats]:
            part = self._kept.once(key, by_point).get((point,))
            if part is None:
                return np.empty(0), np.empty((self.replications, 0))
            times, place = np.unique(part["time_s"].to_numpy(), return_inverse=True)
            grid = np.full((self.replications, times.size), np.nan)
            grid[part["run"].to_numpy() - point * self.replications, place] = part["value"]
            return times, grid

        return self._kept.once((*key, point), sampled)

    def _drawn_quantiles(self, share: float, point: int) -> Floats:
        """The quantile for each draw of the replications, all in one multiplication."""

        def compute() -> Floats:
            whole = self._histograms(point)
            sums = often(self.replications) @ whole.counts.astype(np.float64)
            return np.array(
                [weighted_quantile(whole.values, np.rint(each), share) for each in sums]
            )

        return self._kept.once(("quantiles", share, point), compute)

    def _histograms(self, point: int) -> Histograms:
        return self._kept.once(
            ("histograms", point),
            lambda: Histograms.of_point(*self._sojourn, point, self.replications),
        )

    @cached_property
    def _sojourn(self) -> tuple[Any, Any, Any]:
        frame = self.result.raw("sojourn").filter(pl.col("link") == self.link).sort("run")
        run = frame["run"].cast(pl.Int64).to_numpy()
        return run, frame["sojourn_s"].to_numpy(), frame["count"].cast(pl.Int64).to_numpy()


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
