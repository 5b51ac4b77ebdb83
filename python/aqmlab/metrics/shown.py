"""Selection and order of the numbers of a study: those that answer are first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import polars as pl

from aqmlab.errors import input_error, unknown
from aqmlab.metrics.registry import Metric, find, registered
from aqmlab.metrics.values import runs_of
from aqmlab.results import BUSY as LINK_BUSY

if TYPE_CHECKING:
    from aqmlab.metrics.runs import Runs
    from aqmlab.results import StudyResult

QUEUE, BUSY = "sojourn", "utilisation"
WORDS = {"p50": "median", "p95": "p95", "p99": "p99", "mean": "mean", "max": "largest"}
SCALES = {
    "bit/s": ("Mbit/s", 1e-6),
    "bit/s²": ("Mbit/s²", 1e-6),
    "share": ("%", 100.0),
    "ratio": ("", 1.0),
}
BARE = ("number", "1 to 4.5")
"""Units that do not follow a number."""
EventOfPoint = Callable[[int], float]
"""Possible change of a value by one rare event in runs of a point."""
MOST_BESIDE = 3
"""Other links whose delay is shown first."""


@dataclass(frozen=True)
class Shown:
    """The values of a metric of one subject, in the unit in which people read them."""

    metric: Metric
    statistic: str
    subject: str
    """The link or group; empty for the bottleneck of each point."""
    unit: str
    factor: float
    values: pl.DataFrame
    """`run` and `value`, in `unit`; a run without a value has no row."""
    event: EventOfPoint = lambda _: 0.0
    """By how much one rare event can change a value of a point, in `unit`: see `event_of`."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest possible value, in `unit`."""
        least, most = self.metric.bounds
        return least * self.factor, most * self.factor

    @property
    def direction(self) -> int:
        """`LESS`, `MORE` or `NEITHER`."""
        return self.metric.direction

    def number(self, value: float | None) -> str:
        """A value without its unit, with three digits."""
        if value is None or isnan(value):
            return "–"
        whole = abs(value) >= 1000 or value == 0
        return f"{value:,.0f}" if whole else f"{value:#.3g}".removesuffix(".")

    def text(self, value: float | None) -> str:
        """Text of a value for tables and sentences."""
        number = self.number(value)
        if number == "–":
            return number
        unit = "%" if self.unit.startswith("%") else self.unit
        return f"{number} {unit}" if unit in ("%", "ms", "s", "Mbit/s") else number

    @property
    def title(self) -> str:
        """Name in tables and sentences."""
        of = f"{self.subject}: " if self.subject else ""
        if self.metric.name == QUEUE and self.statistic == "p95":
            return f"{of}{self.metric.title}, 95th percentile"
        which = f", {WORDS.get(self.statistic, self.statistic)}" if self.statistic else ""
        return f"{of}{self.metric.title}{which}"


def scale(unit: str, largest: object = None) -> tuple[str, float]:
    """The unit in which people read numbers of a unit, and the factor to it; `largest` is the
    largest of them."""
    if unit == "s":
        slow = isinstance(largest, float) and largest >= 1.0
        return ("s", 1.0) if slow else ("ms", 1e3)
    return SCALES.get(unit, (unit, 1.0))


def with_unit(numbers: str, unit: str) -> str:
    """Numbers in a unit of `scale`, as sentences have them."""
    return numbers if unit in BARE else f"{numbers} {unit}".strip()


def headlines(result: StudyResult) -> list[Shown]:
    """Delay and use of the bottleneck, the delay of other busy links, then of each group of flows
    its goodput if it is endless, its first score and its first time; then the metrics of one's
    own."""
    runs = runs_of(result)
    found: list[Shown] = []
    for metric, statistic in (find(QUEUE), find(BUSY)):
        found += _bottleneck(result, metric, statistic, metric.values(runs, statistic))
    queue, p95 = find(QUEUE)
    for link in _beside(result):
        rows = queue.values(runs, p95).filter(pl.col("subject") == link)
        found.append(_shown(queue, p95, link, rows))
    for group in result.group_names:
        found += _of_group(result, runs, group)
    for each in registered():
        if each.own:
            found += _each_subject(runs, each, "", each.values(runs))
    return [each for each in found if each.values.height]


def pick(result: StudyResult, name: str, subject: str = "") -> list[Shown]:
    """The metric `name` (`sojourn_p95`) of a link or group; without a subject of the bottleneck, or
    of every subject if it is none of links.

    Raises `InputError` if the name is unknown or nothing has a value.
    """
    metric, statistic = find(name)
    runs = runs_of(result)
    rows = metric.values(runs, statistic)
    found = []
    if not subject and "link" in metric.of:
        found = _bottleneck(result, metric, statistic, rows)
    own = rows if not subject else rows.filter(pl.col("subject") == subject)
    found = found or list(_each_subject(runs, metric, statistic, own))
    if not found and rows.height:
        raise unknown("link or group", subject, sorted(rows["subject"].unique()), key=name)
    if not found:
        raise input_error("no run has a value of this metric", key=name)
    return found


def everything(result: StudyResult, first: int | None = None) -> list[Shown]:
    """Every metric that has values, with every statistic: of the bottleneck, of the other links,
    and of all groups; with `first` at so many points."""
    runs, found = runs_of(result, first), []
    bottlenecks = sorted(set(result.bottlenecks))
    for metric in registered():
        if metric.compute is None:
            continue
        for statistic in metric.statistics or ("",):
            rows = metric.values(runs, statistic)
            if "link" in metric.of:
                found += _bottleneck(result, metric, statistic, rows)
            others = rows.filter(~pl.col("subject").is_in(bottlenecks))
            found += _each_subject(runs, metric, statistic, others)
    return found


def _beside(result: StudyResult) -> list[str]:
    """Other links that were busy at some point: the other direction, mostly."""
    links = result.stored.load("links", ["run", "link", "utilisation"])
    rows = links.select(result.point_of_run, pl.col("link").cast(pl.String), "utilisation")
    busy = rows.group_by("point", "link").agg(pl.col("utilisation").mean())
    named = set(busy.filter(pl.col("utilisation") > LINK_BUSY)["link"]) - set(result.bottlenecks)
    return sorted(named)[:MOST_BESIDE]


def _bottleneck(
    result: StudyResult, metric: Metric, statistic: str, rows: pl.DataFrame
) -> list[Shown]:
    """The values of the bottleneck of each point, if any run has one."""
    which, keys = result.of_bottlenecks("subject"), ["point", "subject"]
    own = rows.with_columns(result.point_of_run).join(which, on=keys, maintain_order="left")
    return [_shown(metric, statistic, "", own)] if own.height else []


def _of_group(result: StudyResult, runs: Runs, group: str) -> Iterator[Shown]:
    """The first score that the group has, or its goodput if that is what it is for; and its first
    time."""
    times = list(_first(runs, "times", group))
    if group in set(result.stored.load("scores", ["group"])["group"].cast(pl.String)):
        yield from _first(runs, "scores", group)
    elif all(each.metric.name == "delay" for each in times):
        flows = result.stored.load("flows", ["group", "size_bytes"])
        flows = flows.filter(pl.col("group").cast(pl.String) == group)
        if flows.height and flows["size_bytes"].is_null().all():
            goodput, _ = find("goodput")
            own = goodput.values(runs).filter(pl.col("subject") == group)
            yield _shown(goodput, "", group, own)
    yield from times


def _first(runs: Runs, table: str, group: str) -> Iterator[Shown]:
    ranked = [each for each in registered() if each.needs == (table,) and each.rank]
    for metric in sorted(ranked, key=lambda each: each.rank):
        statistic = _telling(runs, metric, group)
        rows = metric.values(runs, statistic).filter(pl.col("subject") == group)
        if rows.height:
            yield _shown(metric, statistic, group, rows, event_of(runs, metric, statistic, group))
            return


def _telling(runs: Runs, metric: Metric, group: str) -> str:
    """The metric's first statistic that is not the largest of a few values in each run."""
    for statistic in metric.statistics:
        if event_of(runs, metric, statistic, group)(0) < float("inf"):
            return statistic
    return metric.statistics[0] if metric.statistics else ""


def event_of(runs: Runs, metric: Metric, statistic: str, subject: str) -> EventOfPoint:
    """Possible change of the value of a run of each point by one rare event, in the metric's unit;
    from the number of observations that runs usually have."""
    count = 1.0
    if metric.observations:
        kind, group = pl.col("quantity").cast(pl.String), pl.col("group").cast(pl.String)
        rows = runs.table("times").filter(kind == metric.observations, group == subject)
        counts = rows.filter(pl.col("count") > 0)["count"]
        if not counts.len():
            return lambda _: 0.0
        count = float(counts.to_numpy().mean())
    if not callable(metric.event):
        always = metric.of_event(metric.event, statistic, count)
        return lambda _: always
    event, scenarios = metric.event, runs.scenarios  # without `runs`, which holds tables
    return lambda point: metric.of_event(event(scenarios[point], subject), statistic, count)


def _each_subject(
    runs: Runs, metric: Metric, statistic: str, rows: pl.DataFrame
) -> Iterator[Shown]:
    for (subject,), own in rows.group_by("subject", maintain_order=True):
        event = event_of(runs, metric, statistic, str(subject))
        yield _shown(metric, statistic, str(subject), own, event)


def _shown(
    metric: Metric,
    statistic: str,
    subject: str,
    rows: pl.DataFrame,
    event: EventOfPoint = lambda _: 0.0,
) -> Shown:
    unit, factor = scale(metric.unit, None if metric.name == QUEUE else rows["value"].max())
    scaled = rows.select("run", pl.col("value") * factor)
    unit = metric.shown_unit or unit
    of_point = event if factor == 1.0 else lambda point: factor * event(point)
    return Shown(metric, statistic, subject, unit, factor, scaled, of_point)
