"""What a characterisation measured, as one long table: a row a run, subject and measure.

Subjects are classes of flows (`bulk`, `web`), links (`down`), and with a slash a phase of
either (`down/low`). Rates are bits a second, times seconds, shares of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import polars as pl

from aqmlab.characterize.case import Case
from aqmlab.metrics.samples import Floats, jain_index
from aqmlab.metrics.tradeoff import power
from aqmlab.results import StudyResult
from aqmlab.stats import interval

COLUMNS = ["run", "subject", "measure", "value"]
LINK_MEASURES = {
    "queue_delay": "sojourn_mean_s",
    "queue_delay_p95": "sojourn_p95_s",
    "queue_delay_p99": "sojourn_p99_s",
    "queue_delay_max": "sojourn_max_s",
    "backlog": "backlog_mean_packets",
    "utilisation": "utilisation",
    "loss_interval": "loss_interval_mean_s",
    "loss_events": "loss_events",
}
CATEGORIES = (("cat1", "cat2"), ("small", "large"))
"""Classes that are categories I and II of RFC 7928, sections 6.3 and 4.4."""
ONE_WAY = ("mean_s", "p95_s", "p99_s", "p999_s", "min_s", "max_s")


class Measures:
    """The measures of a characterisation, by section, case and discipline."""

    def __init__(self, result: StudyResult, cases: Sequence[Case]) -> None:
        self.result, self.cases = result, cases
        self.replications = result.info.replications
        self._index: dict[tuple[str, str, str], int] = {
            (case.section, case.name, case.contender): number for number, case in enumerate(cases)
        }

    @cached_property
    def frame(self) -> pl.DataFrame:
        """section, case, discipline, replication, subject, measure, value."""
        parts = [
            self._links(),
            self._link_series(),
            self._goodput(),
            self._flows(),
            self._times(),
            self._scores(),
            self._group_losses(),
            self._acks(),
            *self._phases(),
        ]
        long = pl.concat([part.select(COLUMNS) for part in parts if part.height])
        # Losses of a flow that sent nothing after the warm-up are a share of nothing.
        long = long.filter(pl.col("value").is_finite())
        names = pl.DataFrame(
            {
                "point": range(len(self.cases)),
                "section": [case.section for case in self.cases],
                "case": [case.name for case in self.cases],
                "discipline": [case.contender for case in self.cases],
            },
            schema_overrides={"point": pl.UInt32},
        )
        return (
            long.with_columns(point=self._point(), replication=pl.col("run") % self.replications)
            .join(names, on="point", maintain_order="left")
            .sort("point", "subject", "measure", "run", maintain_order=True)
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
        return self.cases[self._index[section, name, discipline]]

    def subjects(self, section: str, case: str, discipline: str, measure: str) -> list[str]:
        """The subjects that have a measure in a case."""
        rows = self.frame.filter(section=section, case=case, discipline=discipline, measure=measure)
        return rows["subject"].unique(maintain_order=True).to_list()

    # How each table of the results becomes rows.

    def _point(self) -> pl.Expr:
        return (pl.col("run") // self.replications).cast(pl.UInt32)

    def _per_case(self, values: Mapping[int, float], name: str) -> pl.DataFrame:
        return pl.DataFrame(
            {"point": list(values), name: list(values.values())},
            schema={"point": pl.UInt32, name: pl.Float64},
        )

    @cached_property
    def _watched(self) -> pl.DataFrame:
        pairs = [(n, link) for n, case in enumerate(self.cases) for link in case.links]
        schema = {"point": pl.UInt32, "subject": pl.String}
        return pl.DataFrame(pairs, schema=schema, orient="row")

    def _links(self) -> pl.DataFrame:
        """Queue-level metrics (RFC 7928, section 4.2) of the links under test."""
        links = self.result.raw("links").rename({"link": "subject"}).with_columns(
            point=self._point()
        ).join(self._watched, on=["point", "subject"], maintain_order="left")  # fmt: skip
        flows = [
            (n, link, _senders(case, link))
            for n, case in enumerate(self.cases)
            for link in case.links
        ]
        schema = {"point": pl.UInt32, "subject": pl.String, "flows": pl.Float64}
        senders = pl.DataFrame(flows, schema=schema, orient="row")
        shares = {
            "drop_share": pl.col("dropped") / pl.col("arrived"),
            "mark_share": pl.col("marked") / pl.col("arrived"),
            "loss_synchronisation": pl.col("loss_event_flows") / pl.col("flows"),
            "drops_from_queue": pl.col("dropped_queued") / pl.col("dropped"),
        }
        plain = {name: pl.col(column).cast(pl.Float64) for name, column in LINK_MEASURES.items()}
        wide = links.join(senders, on=["point", "subject"], maintain_order="left")
        wide = wide.select("run", "subject", **plain, **shares)
        return wide.unpivot(index=["run", "subject"], variable_name="measure")

    @cached_property
    def _series(self) -> pl.DataFrame:
        """The samples after the warm-up, with `since`: the seconds since its end."""
        kept = ("goodput_bps", "throughput_bps", "sojourn_mean_s", "sojourn_max_s")
        warmup = {n: case.warmup for n, case in enumerate(self.cases)}
        rows = (
            self.result.raw("series")
            .filter(pl.col("quantity").is_in(kept))
            .with_columns(point=self._point())
            .join(self._per_case(warmup, "warmup"), on="point", maintain_order="left")
            .with_columns(since=pl.col("time_s") - pl.col("warmup"))
        )
        return rows.filter(pl.col("since") > 1e-9)

    def _of_links(self) -> pl.DataFrame:
        return self._series.join(self._watched, on=["point", "subject"], maintain_order="left")

    @cached_property
    def _samples(self) -> pl.DataFrame:
        """The number of samples after the warm-up, by run."""
        own = self._series.filter(subject="down", quantity="throughput_bps")
        return own.group_by("run", maintain_order=True).agg(samples=pl.len())

    def _link_series(self) -> pl.DataFrame:
        """Throughput, and the swing of the queue: the standard deviation of the samples of its
        mean delay over their mean."""
        wide = self._of_links().pivot(
            "quantity", index=["run", "point", "subject", "since"], values="value"
        )
        sums = wide.group_by("run", "subject", maintain_order=True).agg(
            throughput=pl.col("throughput_bps").mean(),
            swing=pl.col("sojourn_mean_s").std() / pl.col("sojourn_mean_s").mean(),
        )
        return sums.unpivot(index=["run", "subject"], variable_name="measure")

    @cached_property
    def flow_goodput(self) -> pl.DataFrame:
        """Samples of the goodput of flows to their destination, along their group's path (RFC
        7928, section 2.5): run, point, since, flow, class, value."""
        forward = self.result.raw("flows").filter(direction="forward").select(
            "run", flow=pl.format("{}.{}", pl.col("group").cast(pl.String), pl.col("index"))
        )  # fmt: skip
        rows = self._series.filter(quantity="goodput_bps").rename({"subject": "flow"})
        rows = rows.join(forward, on=["run", "flow"], how="semi")
        return rows.with_columns(_class("flow"))

    def _goodput(self) -> pl.DataFrame:
        """Of each class: goodput of all, of each as Jain's index, and over K round-trip times."""
        rows = self.flow_goodput.join(self._samples, on="run", maintain_order="left")
        whole = rows.group_by("run", "class", maintain_order=True).agg(
            value=pl.col("value").sum() / pl.col("samples").first()
        )
        flows = rows.group_by("run", "class", "flow", maintain_order=True).agg(
            pl.col("value").mean()
        )
        fair = flows.group_by("run", "class", maintain_order=True).agg(
            value=pl.col("value").map_batches(
                lambda each: jain_index(each.to_numpy()),
                return_dtype=pl.Float64,
                returns_scalar=True,
            )
        )
        total = whole.group_by("run", maintain_order=True).agg(pl.col("value").sum())
        parts = [
            *(self._ratio(whole, *pair) for pair in CATEGORIES),
            whole.with_columns(measure=pl.lit("goodput")),
            fair.with_columns(measure=pl.lit("jain")),
            total.with_columns(measure=pl.lit("goodput"), **{"class": pl.lit("all")}),
        ]
        return pl.concat([part.rename({"class": "subject"}).select(COLUMNS) for part in parts])

    def _ratio(self, goodput: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
        """goodput_Cat_II / goodput_Cat_I (RFC 7928, section 6.3), of the runs that have both."""
        one, two = (goodput.filter(pl.col("class") == name) for name in (first, second))
        both = two.join(one, on="run", suffix="_first", maintain_order="left")
        ratio = pl.col("value") / pl.col("value_first")
        return both.select("run", "class", value=ratio, measure=pl.lit("goodput_ratio"))

    def _flows(self) -> pl.DataFrame:
        """Losses of a class along its path: of the packets that arrived, were dropped or were
        lost after the warm-up, the share that did not arrive."""
        rows = self._traffic.filter(direction="forward")
        lost = pl.col("dropped").sum() + pl.col("lost").sum()
        return rows.group_by("run", "class", maintain_order=True).agg(
            measure=pl.lit("loss_share").first(),
            value=lost / (lost + pl.col("arrived").sum()),
        ).rename({"class": "subject"})  # fmt: skip

    @cached_property
    def _traffic(self) -> pl.DataFrame:
        return self.result.raw("traffic").with_columns(_class("group"))

    def _group_losses(self) -> pl.DataFrame:
        sums = [
            pl.col(name).sum().cast(pl.Float64)
            for name in ("dropped", "dropped_acks", "dropped_syns")
        ]
        wide = self._traffic.group_by("run", "class", maintain_order=True).agg(*sums)
        return wide.rename({"class": "subject"}).unpivot(
            index=["run", "subject"], variable_name="measure"
        )

    def _acks(self) -> pl.DataFrame:
        """The share of acknowledgements that did not arrive, of cases with bulk flows alone and
        a queue under test in each direction."""
        both = [
            n
            for n, case in enumerate(self.cases)
            if set(case.links) == {"down", "up"}
            and not any("workload" in group for group in case.scenario["flows"].values())
        ]
        chosen = self._point().is_in(both)
        lost = pl.col("dropped_acks").sum() + pl.col("lost_acks").sum()
        share = lost / (lost + pl.col("arrived_acks").sum())
        shares = self._traffic.filter(chosen).group_by("run", maintain_order=True).agg(value=share)
        return shares.with_columns(subject=pl.lit("all"), measure=pl.lit("ack_loss"))

    def _times(self) -> pl.DataFrame:
        """Times of classes; of one-way delays, along the path, also the waiting and variation."""
        rows = self.result.raw("times").with_columns(_class("group"), point=self._point())
        rows = rows.filter(pl.col("direction").is_null() | (pl.col("direction") == "forward"))
        weight = pl.col("count") / pl.col("count").sum()
        means = {name: (pl.col(name) * weight).sum() for name in ONE_WAY}
        wide = rows.group_by("run", "point", "class", "quantity", maintain_order=True).agg(**means)
        base = [
            (n, name, base) for n, case in enumerate(self.cases) for name, base in case.base.items()
        ]
        schema = {"point": pl.UInt32, "class": pl.String, "base": pl.Float64}
        delays = wide.filter(quantity="delay").join(
            pl.DataFrame(base, schema=schema, orient="row"),
            on=["point", "class"],
            how="left",
            maintain_order="left",
        )
        own = delays.select(
            "run",
            subject="class",
            delay=pl.col("mean_s"),
            delay_p99=pl.col("p99_s"),
            waiting=pl.col("mean_s") - pl.col("base"),
            delay_variation=pl.col("p999_s") - pl.col("min_s"),
            delay_variation_p95=pl.col("p95_s") - pl.col("min_s"),
        ).unpivot(index=["run", "subject"], variable_name="measure")  # fmt: skip
        others = wide.filter(pl.col("quantity") != "delay")
        named = [
            others.select("run", subject="class", measure=pl.col("quantity") + suffix, value=column)
            for suffix, column in (("", "mean_s"), ("_p95", "p95_s"))
        ]
        return pl.concat([own, *named])

    def _scores(self) -> pl.DataFrame:
        rows = self.result.raw("scores").with_columns(_class("group"))
        # Of two directions the worse is first.
        rows = rows.unique(["run", "group", "quantity"], keep="first", maintain_order=True)
        return rows.group_by("run", "class", "quantity", maintain_order=True).agg(
            pl.col("value").mean()
        ).rename({"class": "subject", "quantity": "measure"})  # fmt: skip

    def _phases(self) -> list[pl.DataFrame]:
        """Delay and goodput in each phase of the cases that have some (sections 8.2.5, 8.2.6)."""
        found = []
        for number, case in enumerate(self.cases):
            if not case.phases:
                continue
            part = self._of_links().filter(point=number)
            # A sample is of the time up to it.
            place = (pl.col("since") - 1e-6) % case.period
            wide = part.pivot("quantity", index=["run", "subject", "since"], values="value")
            for phase in case.phases:
                rows = wide.filter((place >= phase.begin) & (place < phase.end))
                carried = pl.col("throughput_bps")
                delay = pl.col("sojourn_mean_s").fill_null(0.0)
                sums = rows.group_by("run", "subject", maintain_order=True).agg(
                    queue_delay=(delay * carried).sum() / carried.sum(),
                    queue_delay_max=pl.col("sojourn_max_s").max(),
                    throughput=carried.mean(),
                )
                sums = sums.with_columns(subject=pl.col("subject") + "/" + phase.name)
                found.append(sums.unpivot(index=["run", "subject"], variable_name="measure"))
        return found

    def series(
        self, section: str, case: str, discipline: str, subject: str, quantity: str
    ) -> tuple[Floats, Floats]:
        """Times since the warm-up and the median over the replications of a series."""
        number = self._index[section, case, discipline]
        rows = self._series.filter(point=number, subject=subject, quantity=quantity)
        middle = rows.group_by(pl.col("since").round(6)).agg(pl.col("value").median()).sort("since")
        return middle["since"].to_numpy(), middle["value"].to_numpy()

    def histogram(self, section: str, case: str, discipline: str) -> tuple[Floats, Floats]:
        """Sojourn times at the bottleneck over all replications: values, and the share of
        packets that is not above each."""
        number = self._index[section, case, discipline]
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
        number = self._index[section, case, discipline]
        rows = self.flow_goodput.filter(point=number)
        sums = rows.group_by("run", "since").agg(pl.col("value").sum())["value"].sort().to_numpy()
        return sums, np.arange(1, sums.size + 1) / max(sums.size, 1)

    def power(self, section: str, case: str, discipline: str, rtt: float) -> float:
        """Goodput over round-trip time with the queue (Kleinrock's power)."""
        goodput = self.mean(section, case, discipline, "all", "goodput")
        return power(goodput, rtt + self.mean(section, case, discipline, "down", "queue_delay"))


def _senders(case: Case, link: str) -> float:
    """The number of flows whose data pass a link."""
    groups = case.scenario["flows"].values()
    return float(sum(group.get("count", 1) for group in groups if link in group["path"]))


def _class(column: str) -> pl.Expr:
    """The class of a flow or group: what stands before the first dot or underscore."""
    return pl.col(column).cast(pl.String).str.extract(r"^([^._]+)").alias("class")
