"""What a characterisation measured, as one long table: a row a run, subject and measure.

Subjects are classes of flows (`bulk`, `web`), links (`down`), and with a slash a phase of
either (`down/low`). Rates are bits a second, times seconds, shares of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import polars as pl

from aqmlab.characterize.case import Case, class_of
from aqmlab.metrics import find, windows
from aqmlab.metrics.pools import BOTH, Pools
from aqmlab.metrics.runs import Runs
from aqmlab.metrics.samples import Floats
from aqmlab.metrics.values import runs_of
from aqmlab.results import StudyResult
from aqmlab.stats import interval

COLUMNS = ["run", "subject", "measure", "value"]
OF_LINKS = {
    "queue_delay": "sojourn_mean",
    "queue_delay_p95": "sojourn_p95",
    "queue_delay_p99": "sojourn_p99",
    "queue_delay_max": "sojourn_max",
    "backlog": "queue_length",
    "utilisation": "utilisation",
    "throughput": "throughput",
    "loss_interval": "loss_interval_mean",
    "loss_events": "loss_events",
    "loss_synchronisation": "loss_synchronisation",
    "drop_share": "drop_share",
    "mark_share": "mark_share",
    "drops_from_queue": "queued_drop_share",
}
"""Measure of a link under test (RFC 7928, section 4.2) to metric of the registry."""
OF_CLASSES = {
    "goodput": "goodput",
    "jain": "jain",
    "loss_share": "loss_share",
    "delay": "delay_mean",
    "delay_p99": "delay_p99",
    "delay_variation": "delay_variation",
    "delay_variation_p95": "delay_variation_p95",
}
"""Measure of a class of flows, along its path, to metric of the registry."""
COUNTS = ("dropped", "dropped_acks", "dropped_syns")
SAMPLED = ("goodput_bps", "throughput_bps", "sojourn_mean_s", "sojourn_max_s")
ALL = "all"
CATEGORIES = (("cat1", "cat2"), ("small", "large"))
"""Classes that are categories I and II of RFC 7928, sections 6.3 and 4.4."""


class Measures:
    """The measures of a characterisation, by section, case and discipline."""

    def __init__(self, result: StudyResult, cases: Sequence[Case], points: Sequence[int]) -> None:
        self.result, self.cases, self.points = result, cases, points
        self.replications = result.info.replications
        self._index = {
            (case.section, case.name, case.contender): (point, case)
            for case, point in zip(cases, points, strict=True)
        }
        self._of_point = dict(zip(points, cases, strict=True))
        """A case of each point; all cases of a point have the same scenario."""

    @cached_property
    def frame(self) -> pl.DataFrame:
        """section, case, discipline, replication, subject, measure, value."""
        parts = [*self._links(), *self._classes(), *self._times(), self._all_acks()]
        parts += [self._waiting(), self._scores(), self._counts(), *self._phases()]
        long = pl.concat([part.select(COLUMNS) for part in parts if part.height])
        # Losses of a flow that sent nothing after the warm-up are a share of nothing.
        long = long.filter(pl.col("value").is_finite())
        names = pl.DataFrame(
            {
                "point": self.points,
                "place": range(len(self.cases)),
                "section": [case.section for case in self.cases],
                "case": [case.name for case in self.cases],
                "discipline": [case.contender for case in self.cases],
            },
            schema_overrides={"point": pl.UInt32},
        )
        return (
            long.with_columns(point=self._point(), replication=pl.col("run") % self.replications)
            .join(names, on="point", maintain_order="left")
            .sort("place", "subject", "measure", "run", maintain_order=True)
            .select(
                "section", "case", "discipline", "replication", "subject", "measure", "value"
            )
        )  # fmt: skip

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Mean and median over the replications, with the 95 % interval of the median."""
        keys = ["section", "case", "discipline", "subject", "measure"]
        rows = []
        for key, part in self.frame.group_by(keys, maintain_order=True):
            values = part["value"].to_numpy()
            found = interval(values, "median")
            low, high = (found.low, found.high) if found else (None, None)
            rows.append((*key, float(values.mean()), float(np.median(values)), low, high))
        numbers = dict.fromkeys(("mean", "median", "low", "high"), pl.Float64)
        schema = {**dict.fromkeys(keys, pl.String), **numbers}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def each(self, section: str, case: str, discipline: str, subject: str, measure: str) -> Floats:
        """The value of each replication, NaN for those without."""
        found = self._each.get((section, case, discipline, subject, measure))
        return np.full(self.replications, np.nan) if found is None else found

    @cached_property
    def _each(self) -> dict[tuple[object, ...], Floats]:
        keys = ["section", "case", "discipline", "subject", "measure"]
        found = {}
        for key, part in self.frame.partition_by(keys, as_dict=True, maintain_order=True).items():
            values = np.full(self.replications, np.nan)
            values[part["replication"].to_numpy()] = part["value"].to_numpy()
            found[key] = values
        return found

    def runs(self, section: str, case: str, discipline: str, subject: str, measure: str) -> Floats:
        """The value of each replication that has one; empty if none has."""
        values = self.each(section, case, discipline, subject, measure)
        return values[~np.isnan(values)]

    def mean(self, section: str, case: str, discipline: str, subject: str, measure: str) -> float:
        """The mean over the replications; NaN without."""
        values = self.runs(section, case, discipline, subject, measure)
        return float(values.mean()) if values.size else float("nan")

    def names(self, section: str, discipline: str) -> list[str]:
        """The names of a section's cases."""
        return [
            case.name
            for case in self.cases
            if (case.section, case.contender) == (section, discipline)
        ]

    def case(self, section: str, name: str, discipline: str) -> Case:
        """A case by its names."""
        return self._index[section, name, discipline][1]

    def subjects(self, section: str, case: str, discipline: str, measure: str) -> list[str]:
        """The subjects that have a measure in a case."""
        rows = self.frame.filter(section=section, case=case, discipline=discipline, measure=measure)
        return rows["subject"].unique(maintain_order=True).to_list()

    # How each table of the results becomes rows.

    def _point(self) -> pl.Expr:
        return (pl.col("run") // self.replications).cast(pl.UInt32)

    @cached_property
    def _runs(self) -> Runs:
        return runs_of(self.result)

    @cached_property
    def _pools(self) -> Runs:
        """The runs with one group a class, along its path."""
        return Pools(self._runs, class_of).runs

    @cached_property
    def _both_ways(self) -> Runs:
        return Pools(self._runs, class_of, BOTH).runs

    def _metric(self, runs: Runs, name: str, measure: str) -> pl.DataFrame:
        metric, statistic = find(name)
        return metric.values(runs, statistic).with_columns(measure=pl.lit(measure))

    def _of(self, name: str, values: Callable[[Case], Iterable[tuple[str, float]]]) -> pl.DataFrame:
        """A number for each point and subject."""
        rows = [(n, *pair) for n, case in self._of_point.items() for pair in values(case)]
        schema = {"point": pl.UInt32, "subject": pl.String, name: pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def _watched(self) -> pl.DataFrame:
        links = self._of("watched", lambda case: ((link, 1.0) for link in case.links))
        return links.select("point", "subject")

    def _is_watched(self, rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.with_columns(point=self._point())
        return rows.join(self._watched, on=["point", "subject"], how="semi", maintain_order="left")

    def _links(self) -> Iterator[pl.DataFrame]:
        for measure, name in OF_LINKS.items():
            yield self._is_watched(self._metric(self._runs, name, measure))
        yield self._is_watched(windows.swing(self._runs)).with_columns(measure=pl.lit("swing"))

    def _classes(self) -> Iterator[pl.DataFrame]:
        """Metrics of each class, the goodput of all, and the ratios of two categories."""
        named = [self._metric(self._pools, name, measure) for measure, name in OF_CLASSES.items()]
        goodput = named[0]
        yield from (each.filter(pl.col("subject") != ALL) for each in named)
        total = goodput.group_by("run", maintain_order=True).agg(pl.col("value").sum())
        yield total.with_columns(subject=pl.lit(ALL), measure=pl.lit("goodput"))
        for first, second in CATEGORIES:
            # goodput_Cat_II / goodput_Cat_I (RFC 7928, section 6.3), of the runs that have both.
            one, two = (goodput.filter(subject=name) for name in (first, second))
            both = two.join(one, on="run", suffix="_first", maintain_order="left")
            ratio = pl.col("value") / pl.col("value_first")
            yield both.with_columns(value=ratio, measure=pl.lit("goodput_ratio"))

    def _waiting(self) -> pl.DataFrame:
        """Mean one-way delay less the delay without queues."""
        base = self._of("base", lambda case: case.base.items())
        rows = self._metric(self._pools, "delay_mean", "waiting").with_columns(point=self._point())
        rows = rows.join(base, on=["point", "subject"], maintain_order="left")
        return rows.with_columns(value=pl.col("value") - pl.col("base"))

    def _times(self) -> Iterator[pl.DataFrame]:
        """Mean and 95th percentile of the other times of a class."""
        rows = self._pools.table("times").filter(pl.col("count") > 0)
        rows = rows.filter(pl.col("quantity") != "delay").rename({"group": "subject"})
        for suffix, column in (("", "mean_s"), ("_p95", "p95_s")):
            yield rows.select(
                "run", "subject", measure=pl.col("quantity") + suffix, value=column
            ).drop_nulls()

    def _scores(self) -> pl.DataFrame:
        rows = self._pools.table("scores")
        return rows.select(
            "run", pl.col("value"), subject="group", measure=pl.col("quantity").cast(pl.String)
        )

    def _counts(self) -> pl.DataFrame:
        rows = self._both_ways.table("traffic").rename({"group": "subject"})
        rows = rows.select("run", "subject", pl.col(COUNTS).cast(pl.Float64))
        return rows.unpivot(index=["run", "subject"], variable_name="measure")

    def _all_acks(self) -> pl.DataFrame:
        """The share of acknowledgements that did not arrive, of cases with bulk flows alone and
        a queue under test in each direction."""
        both = [
            n
            for n, case in self._of_point.items()
            if set(case.links) == {"down", "up"}
            and not any("workload" in group for group in case.scenario["flows"].values())
        ]
        runs = Pools(self._runs, lambda group: ALL, BOTH).runs
        return self._metric(runs, "ack_loss_share", "ack_loss").filter(self._point().is_in(both))

    @cached_property
    def _series(self) -> pl.DataFrame:
        """The samples after the warm-up, with `since`: the seconds since its end."""
        return windows.samples(self._runs, *SAMPLED).with_columns(point=self._point())

    def _phases(self) -> Iterator[pl.DataFrame]:
        """Delay and goodput in each phase of the cases that have some (sections 8.2.5, 8.2.6)."""
        for number, case in self._of_point.items():
            part = self._is_watched(self._series.filter(point=number)) if case.phases else None
            for phase in case.phases:
                assert part is not None
                inside = windows.between(part, phase.begin, phase.end, case.period)
                found = windows.of_links(part.filter(inside)).rename(
                    {"sojourn_mean": "queue_delay", "sojourn_max": "queue_delay_max"}
                )
                found = found.with_columns(subject=pl.col("subject") + "/" + phase.name)
                yield found.unpivot(index=["run", "subject"], variable_name="measure")

    def series(
        self, section: str, case: str, discipline: str, subject: str, quantity: str
    ) -> tuple[Floats, Floats]:
        """Times since the warm-up and the median over the replications of a series."""
        number, _ = self._index[section, case, discipline]
        rows = self._series.filter(point=number, subject=subject, quantity=quantity)
        middle = rows.group_by(pl.col("since").round(6)).agg(pl.col("value").median()).sort("since")
        return middle["since"].to_numpy(), middle["value"].to_numpy()

    def histogram(self, section: str, case: str, discipline: str) -> tuple[Floats, Floats]:
        """Sojourn times at the bottleneck over all replications: values, and the share of
        packets that is not above each."""
        number, _ = self._index[section, case, discipline]
        rows = self._sojourn.filter(point=number).group_by("sojourn_s").agg(pl.col("count").sum())
        rows = rows.sort("sojourn_s")
        counts = rows["count"].to_numpy().astype(float)
        return rows["sojourn_s"].to_numpy(), np.cumsum(counts) / max(counts.sum(), 1.0)

    @cached_property
    def _sojourn(self) -> pl.DataFrame:
        return self.result.raw("sojourn").with_columns(point=self._point())

    def goodput_samples(self, section: str, case: str, discipline: str) -> tuple[Floats, Floats]:
        """The goodput of all flows together over K round-trip times each: values ascending,
        and the share of samples that is not above each."""
        number, _ = self._index[section, case, discipline]
        rows = self._series.filter(point=number, quantity="goodput_bps")
        rows = rows.join(self._forward, on=["run", "subject"], how="semi")
        sums = rows.group_by("run", "since").agg(pl.col("value").sum())["value"].sort().to_numpy()
        return sums, np.arange(1, sums.size + 1) / max(sums.size, 1)

    @cached_property
    def _forward(self) -> pl.DataFrame:
        """Flows whose samples are along their group's path (RFC 7928, section 2.5)."""
        name = pl.format("{}.{}", pl.col("group").cast(pl.String), pl.col("index"))
        return self.result.raw("flows").filter(direction="forward").select("run", subject=name)
