"""Kinds of figures for questions, declared for all contenders alike.

A figure is called with a campaign and returns None if no case of it was run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from aqmlab import stats
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure
from aqmlab.report.document import panels as charts

if TYPE_CHECKING:
    from aqmlab.campaign.plan import Campaign, Filled
    from aqmlab.report.document.vega import Colours, Spec

ELLIPSE = (
    "A small dot is a run, the circle the mean, the line the 1σ ellipse of the most likely "
    "normal distribution (RFC 7928, section 2.7). Left and up is better."
)
MEDIANS = "Points are medians over the runs, lines go from the lower to the upper quartile."
MEANS = "Means over the runs and their 95 % intervals, if any."
FULL, WIDE = 700, 315
WIDTHS = {1: FULL, 2: WIDE}
"""Widths of one panel, and of two side by side."""
TAIL = (*np.linspace(0.0, 0.95, 20).round(2).tolist(), 0.98, 0.99, 0.995, 0.998, 0.999)
"""Quantiles of a distribution of delays, up to p99.9."""
EVEN = np.linspace(0.0, 1.0, 21)
"""Quantiles of a distribution of goodput."""


class AxisMeasure(NamedTuple):
    """A number of a figure, in the unit of its axis."""

    metric: str
    subject: str
    title: str
    """Title of the axis, with the unit."""
    factor: float = 1.0

    def of(self, filled: Filled, case: str) -> Floats:
        """The values of the runs, NaN for those without."""
        return self.factor * filled.values(case, self.metric, self.subject)


QUEUE = AxisMeasure("sojourn_mean_s", "down", "queuing delay (ms)", 1e3)
THROUGHPUT = AxisMeasure("throughput_bps", "down", "throughput (Mbit/s)", 1e-6)
"""Sampled quantities of the bottleneck."""


@dataclass(frozen=True, eq=False)
class Drawing(ABC):
    """A figure before it is drawn."""

    id: str
    title: str
    message: str

    def __call__(self, campaign: Campaign) -> Figure | None:
        """The figure, None if nothing of it was run."""
        palette = charts.colours(list(campaign.plan.contenders))
        caption, spec = self._drawn(campaign, palette)
        drawn = Figure(self.id, self.title, self.message, caption, spec)
        return drawn if spec["concat"] else None

    @abstractmethod
    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        """The caption and the chart, with the colours of the contenders."""


def _everyone(campaign: Campaign, question: str) -> Iterator[tuple[str, Filled]]:
    for name in campaign.plan.contenders:
        yield name, campaign.at(question, name)


class PanelPlace(NamedTuple):
    """A panel with two measures of one case."""

    question: str
    case: str
    x: AxisMeasure
    y: AxisMeasure


@dataclass(frozen=True, eq=False)
class Tradeoffs(Drawing):
    """One measure against another: a point a run, with means and ellipses; a panel a case."""

    panels: Mapping[str, PanelPlace]
    columns: int = charts.COLUMNS

    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        drawn = {}
        for title, (question, case, *axes) in self.panels.items():
            points = {}
            for name, filled in _everyone(campaign, question):
                x, y = (each.of(filled, case) for each in axes)
                kept = np.isfinite(x) & np.isfinite(y)
                if kept.any():
                    points[name] = x[kept], y[kept]
            if points:
                drawn[title] = points
        _, _, x_axis, y_axis = next(iter(self.panels.values()))
        spec = charts.tradeoff(drawn, palette, x_axis.title, y_axis.title)
        return ELLIPSE, spec | {"columns": self.columns}


class Cells(NamedTuple):
    """A measure at some cases of a question."""

    measure: AxisMeasure
    question: str
    cases: Mapping[str, str] | str = ""
    """Cases with their labels; one label for all cases together; nothing: each case with its name,
    of those without a place on the axis."""


@dataclass(frozen=True, eq=False)
class Ranges(Drawing):
    """Medians and quartiles of the runs, a panel a measure."""

    panels: Mapping[str, tuple[Cells, ...]]
    columns: int = charts.COLUMNS
    width: int = 0
    """Width of a panel; 0: that of the number of columns."""
    alone: bool = False
    """True if only the first contender is drawn."""

    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        drawn: dict[str, dict[tuple[str, str], Floats]] = {}
        for title, panel in self.panels.items():
            cells = dict(pair for each in panel for pair in self._cells(campaign, each))
            if any(values.size for values in cells.values()):
                drawn[title] = cells
        titles = {title: panel[0].measure.title for title, panel in self.panels.items()}
        if self.alone:
            palette = dict(list(palette.items())[:1])
        width = self.width or WIDTHS.get(self.columns, charts.WIDTH)
        spec = charts.ranges(drawn, palette, titles, columns=self.columns, width=width)
        return MEDIANS, spec

    def _cells(self, campaign: Campaign, of: Cells) -> Iterator[tuple[tuple[str, str], Floats]]:
        for name, filled in list(_everyone(campaign, of.question))[: 1 if self.alone else None]:
            labels: dict[str, list[str]] = {}
            if isinstance(of.cases, Mapping):
                labels = {label: [case] for case, label in of.cases.items()}
            elif of.cases:
                labels = {of.cases: list(filled)}
            else:
                places = filled.places()
                labels = {case: [case] for case in filled if case not in places}
            for label, cases in labels.items():
                runs = [of.measure.of(filled, case) for case in cases] or [np.empty(0)]
                values = np.concatenate(runs)
                yield (name, label), values[np.isfinite(values)]


class Along(NamedTuple):
    """A panel with the cases of a question along its axis."""

    question: str
    x: AxisMeasure | str
    """The measure on the x axis, or the title of the axis of places."""
    y: AxisMeasure
    factor: float = 1.0
    """Labels of the places."""
    log: bool = True
    zero: bool = True
    also: tuple[str, str, float] | None = None
    """Question, case and place of one more point."""


@dataclass(frozen=True, eq=False)
class Curves(Drawing):
    """Means of the cases along the axis of their question, a panel each."""

    panels: Mapping[str, Along]
    caption: str = MEANS

    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        drawn = {}
        for title, panel in self.panels.items():
            points, spans = {}, {}
            for name, filled in _everyone(campaign, panel.question):
                rows = sorted(_along(filled, panel))
                if rows:
                    _, x, y, low, high = np.array(rows).T
                    points[name], spans[name] = (x, y), (low, high)
            x_title, ticks = panel.x, sorted({float(x) for xs, _ in points.values() for x in xs})
            if isinstance(x_title, AxisMeasure):
                x_title, ticks = x_title.title, []
            if points:
                drawn[title] = charts.Panel(
                    points, x_title, panel.y.title, dots=True, spans=spans, ticks=ticks,
                    log_x=panel.log, zero=panel.zero,
                )  # fmt: skip
        spec = charts.curves(drawn, palette, columns=2, width=WIDE)
        return self.caption, spec


def _along(filled: Filled, panel: Along) -> Iterator[tuple[float, ...]]:
    """Place, x, y and the ends of its interval of each point."""
    at = [(filled, case, place) for case, place in filled.places().items()]
    if panel.also:
        question, case, place = panel.also
        at.append((filled.of(question), case, place))
    for each, case, place in at:
        y = panel.y.factor * each.mean(case, panel.y.metric, panel.y.subject)
        x = panel.factor * place
        if isinstance(panel.x, AxisMeasure):
            x = panel.x.factor * each.mean(case, panel.x.metric, panel.x.subject)
        if np.isfinite(y):
            values = panel.y.of(each, case)
            within = stats.interval(values[np.isfinite(values)], bounds=stats.POSITIVE)
            yield place, x, y, *((within.low, within.high) if within else (np.nan, np.nan))


@dataclass(frozen=True, eq=False)
class Timelines(Drawing):
    """Medians over the runs of sampled quantities of the bottleneck, over time."""

    question: str
    case: str
    end: float = float("inf")
    """Seconds after the warm-up that are drawn."""

    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        drawn = {}
        for title, of in {"queue": QUEUE, "throughput": THROUGHPUT}.items():
            points = {}
            for name, filled in _everyone(campaign, self.question):
                if self.case in filled:
                    rows = filled[self.case].sampled(of.metric).filter(subject=of.subject)
                    rows = rows.group_by(pl.col("since").round(6)).agg(pl.col("value").median())
                    rows = rows.filter(pl.col("since") <= self.end).sort("since")
                    points[name] = (
                        rows["since"].to_numpy(), of.factor * rows["value"].to_numpy()
                    )  # fmt: skip
            if points:
                drawn[title] = charts.Panel(points, "time (s)", of.title)
        spec = charts.curves(drawn, palette, columns=1, width=FULL)
        return "Medians over the runs.", spec


@dataclass(frozen=True, eq=False)
class Distributions(Drawing):
    """Distributions of delay, with its tail, and of goodput in each case of a question."""

    question: str

    def _drawn(self, campaign: Campaign, palette: Colours) -> tuple[str, Spec]:
        everyone = list(_everyone(campaign, self.question))
        drawn: dict[str, charts.Panel] = {}
        for case in dict.fromkeys(case for _, filled in everyone for case in filled):
            own = [(name, filled[case]) for name, filled in everyone if case in filled]
            head = f"{case}: " if case else ""
            delays = {}
            for name, at in own:
                times, counts = at.histogram()
                x, shares = _at(1e3 * times, counts, np.array(TAIL))
                delays[name] = x, 1.0 - shares
            drawn[f"{head}delay"] = charts.Panel(
                delays, "queuing delay (ms)", "packets that wait longer", tail=True
            )
            goodput = {}
            for name, at in own:
                samples = 1e-6 * np.sort(at.goodput_samples())
                goodput[name] = _at(samples, np.ones(samples.size), EVEN)
            drawn[f"{head}goodput"] = charts.Panel(
                goodput, "goodput (Mbit/s)", "samples not above", share=True, zero=False
            )
        caption = (
            "Delay: the share of all packets of all runs that wait longer, to p99.9. Goodput of "
            "all flows together, in the samples of all runs: the share that is not above."
        )
        return caption, charts.curves(drawn, palette, columns=2, width=WIDE)


def _at(values: Floats, counts: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """The smallest of the ascending values up to which these shares of all observations lie."""
    if not values.size:
        return values, values
    places = np.searchsorted(np.cumsum(counts) / counts.sum(), shares - 1e-12)
    return values[places.clip(max=values.size - 1)], shares
