"""Figures of results: `result.plot`.

    run = aqmlab.run("scenario.toml", record="series")
    run.plot.over_time("cwnd_bytes", "backlog_packets").save("window.svg")

    study = aqmlab.study("study.toml")
    study.plot.against("sojourn_p95", "utilisation").save("delay.svg")

Reports of runs and studies draw with the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from aqmlab.errors import InputError, input_error, renamed, unknown
from aqmlab.metrics import pick
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import capital, listed
from aqmlab.report.document import Figure, charts, panels
from aqmlab.report.document.colours import by_label
from aqmlab.report.measures import Layout
from aqmlab.report.overview import overview, sojourn, tradeoff
from aqmlab.results import RunResult, StudyResult, run_of
from aqmlab.study import single
from aqmlab.study.sweep import label_of

Curves = dict[str, tuple[Floats, Floats]]
Part = tuple[str, Curves, Mapping[str, str]]
"""A panel: title of its axis, curves, colours."""
OF_LINKS = (
    "backlog_packets", "backlog_bytes", "dropped", "marked", "ingress_bps", "throughput_bps",
    "delivered_bytes", "sojourn_mean_s", "sojourn_max_s", "capacity_bps",
)  # fmt: skip
"""Series that every link has, apart from the state of its discipline."""
MOST_SAMPLES = 600
"""A curve over time has at most about so many points; each is the mean of the samples there, or of
maxima the largest."""
MOST_CURVES = 8
BINS = (90, 36)
"""Columns and rows of a heatmap."""
COUNTED = ("dropped", "marked")
"""Series that count packets since the start: their growth is drawn."""
UNITS = {"_bps": ("Mbit/s", 1e-6), "_bytes": ("kB", 1e-3), "_packets": ("packets", 1.0),
         "_s": ("ms", 1e3)}  # fmt: skip
NAMES = {"sojourn_mean": "mean time in queue", "sojourn_max": "longest time in queue",
         "cwnd": "window", "smoothed_rtt": "smoothed RTT"}  # fmt: skip
UNLIMITED = 2.0**40
"""A flow whose window reaches so many bytes has a control without one, such as `cbr`."""
TOGETHER = ("goodput", "in flight")
"""Series of flows that are added up over a group; of others it is the mean."""


class RunPlot:
    """Figures of a run."""

    def __init__(self, result: RunResult) -> None:
        self._result = result

    def over_time(self, *quantities: str | Sequence[str]) -> Figure:
        """Draws sampled quantities (table `series`) over time, a panel each.

        Parameters
        ----------
        *quantities : str or sequence of str
            Such as `"backlog_packets"`, `"cwnd_bytes"`, or `("capacity_bps", "throughput_bps")` for
            one panel. Those of links are of the bottleneck; those of flows of each flow, or if
            there are more than eight of each of the first eight groups.

        Returns
        -------
        Figure

        Raises
        ------
        InputError
            If a quantity was not sampled, or those of one panel have different units.
        """
        return _over_time({"": self._result}, quantities)

    def cdf(self) -> Figure:
        """Draws the cumulative distribution of the time in the bottleneck's queue.

        Raises `InputError` if no packet passed.
        """
        from aqmlab.report.run_page import sojourn_figure

        return _made(next(sojourn_figure(self._result), None))

    def heatmap(self) -> Figure:
        """Draws how many packets waited how long at the bottleneck, over time.

        Raises `InputError` if packets were not recorded (`record="packets"`).
        """
        link = self._result.shown
        rows = self._result.packets.filter(link=link, verdict="delivered")
        if not rows.height:
            raise input_error("no packets were recorded", key="heatmap", hint='record="packets"')
        waits = (rows["end_s"] - rows["arrival_s"]).to_numpy() * 1e3
        counts, times, delays = np.histogram2d(rows["end_s"].to_numpy(), waits, bins=BINS)
        spec = panels.heatmap(counts, times, delays, "time (s)", "time in the queue (ms)")
        message = f"Packets that left the queue of {link}, by time and delay."
        return Figure("heatmap", "Delay of all packets", message, "", spec)


class StudyPlot:
    """Figures of a study: a colour for each label of one axis."""

    def __init__(self, result: StudyResult) -> None:
        self._result = result

    def over_time(self, *quantities: str | Sequence[str]) -> Figure:
        """Draws sampled quantities of the first replication of each point that has them, of the
        first eight points; see `RunPlot.over_time`."""
        result, runs = self._result, {}
        names = [name for name, _ in result.info.axes]
        for row in result.points.to_dicts()[:MOST_CURVES]:
            label = ", ".join(str(row[name]) for name in names)
            runs[label] = run_of(result, row["point"] * result.info.replications)
        drawn = _over_time(runs, quantities)
        if result.info.points <= MOST_CURVES:
            return drawn
        few = f" The first {MOST_CURVES} of {result.info.points} points are drawn."
        return replace(drawn, message=drawn.message + few)

    def cdf(self, **where: Any) -> Figure:
        """Draws the cumulative distribution of the time in the bottleneck's queue.

        `where` selects labels (or values) of the axes without colours, by default the last.

        Raises `InputError` for an unknown axis or label.
        """
        axes = dict(self._result.info.axes)
        labels = {}
        for name, value in where.items():
            if name not in axes:
                raise unknown("axis", name, axes)
            numbers = self._result.numeric_axes.get(name, ([], ""))[0]
            own = axes[name][numbers.index(value)] if value in numbers else label_of(value)
            if own not in axes[name]:
                raise unknown("label", own, axes[name], key=name)
            labels[name] = own
        layout = Layout.of(self._result.info.axes)
        return _made(next(sojourn(self._result, layout, labels), None))

    def against(self, *metrics: str, of: str = "") -> Figure:
        """Draws means of metrics and their intervals against the axes, a panel each.

        Parameters
        ----------
        *metrics : str
            Such as `"sojourn_p95"` or `"completion_mean"` (`aqmlab list metrics`).
        of : str, optional
            Link or group. Default: the bottleneck, or every group that has the metric.

        Returns
        -------
        Figure

        Raises
        ------
        InputError
            If a metric is unknown or has no values.
        """
        found = self._measures(metrics, of)
        drawn = overview(self._result, found)
        if len(drawn.spec["concat"]) == 1:
            del drawn.spec["concat"][0]["title"]
        return replace(drawn, id="against", title=capital(listed([each.title for each in found])))

    def grid(self, metric: str, of: str = "", middle: float | None = None) -> Figure:
        """Draws the mean of a metric as a table of colours over the last two axes; a panel for
        each label of the others. `middle` is the value in the middle of two colours.

        Raises `InputError` as `against`, and if the study has fewer than two axes.
        """
        info = self._result.info
        if len(info.axes) < 2:
            raise input_error("a grid needs a study with two axes", key="grid")
        measure = self._measures([metric], of)[0]
        values = measure.values.group_by(point=pl.col("run") // info.replications)
        rows = self._result.points.join(values.agg(pl.col("value").mean()), on="point")
        *others, (y, y_labels), (x, x_labels) = info.axes
        cells: dict[str, list[tuple[str, str, float]]] = {}
        for row in rows.sort("point").to_dicts():
            panel = ", ".join(f"{name} {row[name]}" for name, _ in others)
            cells.setdefault(panel, []).append((str(row[x]), str(row[y]), row["value"]))
        title = f"{measure.title} ({measure.unit})" if measure.unit else measure.title
        axes = {"x": (x.replace("_", " "), x_labels), "y": (y.replace("_", " "), y_labels[::-1])}
        spec = panels.grid(cells, axes["x"], axes["y"], measure.unit, middle)
        message = f"Mean over {info.replications} replications."
        return Figure("grid", capital(title), message, "", spec)

    def tradeoff(self) -> Figure:
        """Draws delay against goodput with 1-sigma ellipses (RFC 7928, section 2.7)."""
        return tradeoff(self._result)

    def _measures(self, metrics: Sequence[str], group: str) -> list[Any]:
        if not metrics:
            raise input_error("expected at least one metric", key="against")
        return [each for name in metrics for each in pick(self._result, name, group)]


def _made(figure: Figure | None) -> Figure:
    if figure is None:
        raise input_error("no packet passed the bottleneck", key="cdf")
    return figure


def _over_time(runs: Mapping[str, RunResult], quantities: Sequence[str | Sequence[str]]) -> Figure:
    parts: list[Any] = []
    names: list[str] = []
    if not quantities or not all(quantities):
        raise input_error(
            "expected at least one quantity, such as backlog_packets", key="over_time"
        )
    for each in quantities:
        together = (each,) if isinstance(each, str) else tuple(each)
        if len({words(one)[1] for one in together}) > 1:
            problem = "quantities of different units need panels of their own"
            raise input_error(problem, key="over_time", given=", ".join(together))
        curves: Curves = {}
        # Disciplines have states of their own: runs without the quantity have no curve.
        able = {one: [run for run in runs.values() if one in run.series["quantity"]]
                or list(runs.values()) for one in together}  # fmt: skip
        for label, run in runs.items():
            for quantity in (one for one in together if run in able[one]):
                found = course(run, quantity, [run.shown])
                for name, curve in found.items():
                    kinds = (
                        label,
                        words(quantity)[0] if len(together) > 1 else "",
                        name if len(found) > 1 else "",
                    )
                    curves[", ".join(filter(None, kinds)) or name] = curve
        name, unit, _ = words(together[0])
        title = unit if len(together) > 1 else f"{name} ({unit})" if unit else name
        parts.append((title, curves, by_label(list(curves))))
        names += [words(one)[0] for one in together]
    end = max(float(run.runs["end_s"][0]) for run in runs.values())
    link = next(iter(runs.values())).shown
    every = next(iter(runs.values())).scenario["record"]["interval"]
    spec = charts.panels(parts, "time (s)", x_domain=(0.0, end), height=150)
    title = f"{capital(listed(names))} over time"
    return Figure("course", title, f"Bottleneck {link}; a sample every {every}.", "", spec)


def words(quantity: str) -> tuple[str, str, float]:
    """Name of a sampled quantity, unit in which it is drawn, and factor to it."""
    if quantity in COUNTED:
        return quantity, "packets/s", 1.0
    for end, (unit, factor) in UNITS.items():
        if quantity.endswith(end):
            name = quantity.removesuffix(end)
            return NAMES.get(name, name.replace("_", " ")), unit, factor
    return quantity.replace("_", " "), "", 1.0


def course(result: RunResult, quantity: str, links: Sequence[str]) -> Curves:
    """A sampled quantity over time: of these links, or of the flows.

    Raises `InputError` if it was not sampled.
    """
    series = result.series
    rows = series.filter(quantity=quantity).drop_nulls().drop_nans()
    if not rows.height:
        known = sorted(series["quantity"].unique())
        if known:
            raise unknown("sampled quantity", quantity, known)
        hint = 'record="series", or record.level = "series" in the scenario'
        raise input_error("nothing was sampled", key=quantity, hint=hint)
    name, _, factor = words(quantity)
    if quantity == "cwnd_bytes":
        rows = rows.filter((pl.col("value") < UNLIMITED).all().over("subject"))
    if set(rows["subject"].unique()) <= set(result.scenario["links"]):
        rows = rows.with_columns(name="subject").filter(pl.col("name").is_in(list(links)))
    else:
        rows = _of_flows(result, rows, together=name in TOGETHER)
    if quantity in COUNTED:
        step = pl.col("time_s").diff().over("name")
        rows = rows.with_columns(pl.col("value").diff().over("name") / step).drop_nulls()
    return {
        str(label): _thinned(
            own["time_s"].to_numpy(),
            factor * own["value"].to_numpy(),
            is_maximum=quantity.endswith("_max_s"),
        )
        for (label,), own in rows.group_by("name", maintain_order=True)
    }


def _of_flows(result: RunResult, rows: pl.DataFrame, *, together: bool) -> pl.DataFrame:
    """Samples by flow, or of more than a few flows by group and direction; the first names. A flow
    that has ended has no state such as a window, and its rates are 0."""
    group, direction = pl.col("group").cast(pl.String), pl.col("direction").cast(pl.String)
    flows = result.flows.select(
        "finish_s",
        subject=pl.format("{}.{}", group, pl.col("index")), group=group, direction=direction,
    )  # fmt: skip
    if rows["subject"].n_unique() <= MOST_CURVES:
        alone = pl.col("subject").count().over("group") == 1
        named = pl.when(alone).then(group).otherwise("subject")
        rows = rows.join(flows.with_columns(name=named), on="subject", maintain_order="left")
    else:
        both = pl.col("direction").n_unique().over("group") > 1
        named = pl.when(both).then(pl.format("{} ({})", group, direction)).otherwise(group)
        rows = rows.join(flows.with_columns(name=named), on="subject", maintain_order="left")
    if not together:
        rows = rows.filter(pl.col("finish_s").is_null() | (pl.col("time_s") <= pl.col("finish_s")))
    value = pl.col("value").sum() if together else pl.col("value").mean()
    order = {name: number for number, name in enumerate(dict.fromkeys(flows["group"]))}
    found = rows.group_by("name", "time_s").agg(value, pl.col("group").first()).sort("time_s")
    names = found.unique("name").select("name", place=pl.col("group").replace_strict(order))
    chosen = names.sort("place", "name").head(MOST_CURVES).select("name")
    return chosen.join(found, on="name", maintain_order="left_right")


def drawn_together(samples: int) -> int:
    """Number of samples that are one point of a curve with so many."""
    return max(1, -(-(samples - 1) // MOST_SAMPLES))  # an interval lies between two samples


def _thinned(times: Floats, values: Floats, *, is_maximum: bool) -> tuple[Floats, Floats]:
    every = drawn_together(times.size)
    if every == 1:
        return times, values
    edges = np.arange(0, times.size, every)
    if is_maximum:
        return times[edges], np.maximum.reduceat(values, edges)
    lengths = np.diff(np.append(edges, times.size))
    return times[edges], np.add.reduceat(values, edges) / lengths


def delays(result: RunResult) -> Part:
    """The panel of the time in the queue: mean and longest."""
    curves = {
        word: course(result, f"sojourn_{key}_s", [result.shown])[result.shown]
        for word, key in (("longest", "max"), ("mean", "mean"))
    }
    return "time in queue (ms)", curves, {"longest": "#56b4e9", "mean": "#0072b2"}


def signals(result: RunResult) -> Iterator[Part]:
    """Yields the panel of drops and marks, if any."""
    found = {name: course(result, name, [result.shown]).get(result.shown) for name in COUNTED}
    curves = {name: curve for name, curve in found.items() if curve and curve[1].any()}
    if curves:
        name = next(iter(curves)) if len(curves) == 1 else "signals"
        yield f"{name} (packets/s)", curves, {"dropped": "#d55e00", "marked": "#cc79a7"}


def state(result: RunResult) -> Part:
    """The panel of the first state that the discipline names, or of the backlog."""
    rows = result.series.filter(subject=result.shown)
    names = rows["quantity"].unique(maintain_order=True).to_list()
    name = next((each for each in names if each not in OF_LINKS), "backlog_packets")
    text, unit, _ = words(name)
    if name == "average_queue":
        unit = _unit_of_average(result.scenario["links"][result.shown]["queue"])
    curves = course(result, name, [result.shown])
    return f"{text} ({unit})" if unit else text, curves, dict.fromkeys(curves, "#009e73")


def _unit_of_average(queue: Mapping[str, str]) -> str:
    """Unit in which RED and its relatives average the queue: that of the thresholds."""
    threshold = queue["min_threshold"]
    if threshold == "auto":
        return queue["auto_unit"]
    return "bytes" if threshold.endswith("b") else "packets"


BESIDE = "mean time in queue (ms)"
"""Title of the panel of other links than the one that the page is about."""


def shown_panels(result: RunResult, beside: Sequence[str]) -> Iterator[Part]:
    """Panels of a run's report: delay, also at other busy links, goodput, windows, backlog, drops
    and marks."""
    sampled = set(result.series["quantity"].unique())
    link = [result.shown]
    if "sojourn_mean_s" not in sampled or not course(result, "sojourn_mean_s", link):
        return
    yield delays(result)
    others = course(result, "sojourn_mean_s", beside)
    if others:
        yield BESIDE, others, by_label(list(others))
    rate = "goodput" if "goodput_bps" in sampled else "throughput"
    rates = course(result, f"{rate}_bps", link)
    colours = by_label(list(rates))
    yield f"{rate} (Mbit/s)", rates, colours
    if "cwnd_bytes" in sampled:
        windows = course(result, "cwnd_bytes", link)
        if windows:
            yield "window (kB)", windows, by_label(list(windows)) | colours
    queue = course(result, "backlog_packets", link)
    yield "queue (packets)", queue, dict.fromkeys(queue, "#009e73")
    yield from signals(result)


# How a queue discipline answers to a step of load.

STEP = 20.0
"""Seconds at which the load grows."""
INTERVAL = "250ms"
LINK = {"delay": "20ms"}
PATH = {"path": ["down"], "return_path": ["up"]}
SCENARIO: dict[str, Any] = {
    "duration": f"{2 * STEP:g}s",
    "links": {"down": LINK | {"rate": "10mbit"}, "up": LINK | {"rate": "100mbit"}},
    "transport": {"profile": "rfc"},
    "flows": {
        "first": PATH | {"count": 2},
        "joining": PATH | {"count": 8, "start": f"{STEP:g}s"},
    },
    "record": {"level": "series", "interval": INTERVAL},
}


def behaviour(name: str, settings: Mapping[str, Any] | None = None) -> Figure:
    """How the discipline or preset `name`, with other `settings` than its own, answers to a step of
    load, as one picture.

    Two bulk flows fill a link of 10 Mbit/s (40 ms there and back without queues); at half time
    eight more join. From top to bottom: the delay of the packets, the discipline's signals, and
    the first of the states that it names.

    Raises `InputError` for an unknown name or a setting that is not allowed.
    """
    queue = {"discipline": name} | dict(settings or {})
    try:
        result = single.run(SCENARIO, set={"queue": queue})
    except InputError as error:
        part = error.key.removeprefix("queue").removesuffix(".discipline")
        raise renamed(error, f"{name}{part}" if part else "") from None
    text = ", ".join(f"{key} = {value}" for key, value in (settings or {}).items())
    return Figure(
        name,
        f"{name} under a step of load" + (f" ({text})" if text else ""),
        f"10 Mbit/s, 40 ms round trip; two Reno flows, and from {STEP:g} s eight more. "
        f"Values over {INTERVAL} each.",
        "",
        charts.panels(
            [delays(result), *signals(result), state(result)], "time (s)", x_domain=(0, 2 * STEP)
        ),
    )
