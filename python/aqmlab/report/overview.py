"""All points of a study at a glance, the distribution of the time in the queue, and delay against
goodput (RFC 7928, section 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import polars as pl

from aqmlab.errors import input_error
from aqmlab.metrics import Shown, scale
from aqmlab.metrics.samples import Floats, Histograms
from aqmlab.numbers import count, seconds
from aqmlab.report.document import Estimate, Figure, charts, panels
from aqmlab.report.document.colours import FEWEST_ORDERED, by_label
from aqmlab.report.document.panels import COLUMNS, WIDE, Panel, Points, curves, ranges
from aqmlab.report.measures import Layout, cells
from aqmlab.results import StudyResult, groups_of
from aqmlab.scenario.quantity import numbers
from aqmlab.stats import LEVEL

NARROW = 184
CROWDED = 14
"""More bars than these need the whole width."""
MOST_CURVES = 12
"""Largest number of distributions in one picture."""
UNEVEN = 4
"""Numbers whose widest gap is this many times the narrowest are on a logarithmic axis."""


def overview(result: StudyResult, found: Sequence[Shown]) -> Figure:
    """Means of the measures and their intervals at all points, a panel a measure."""
    axes = dict(result.info.axes)
    layout = Layout.of(result.info.axes)
    labels = axes.get(layout.colour or "", ("",))
    palette = by_label(labels)
    legend = layout.colour and layout.colour.replace("_", " ")
    facets = layout.split(axes)
    count = result.info.replications
    of: dict[str, Shown] = {}
    shown: dict[str, dict[tuple[str, str], Estimate]] = {}
    for each, (name, own) in product(found, facets.items()):
        title = ", ".join(filter(None, (each.title, name)))
        of[title] = each
        means = cells(result, each, own)
        shown[title] = {key: Estimate.of(own, count) for key, own in means.items()}
    across = next(iter(facets.values())).across
    places = list(dict.fromkeys(place for table in shown.values() for _, place in table))
    at = _numbers(places) if len(places) >= FEWEST_ORDERED else None
    width, columns = NARROW, 3
    if at is None and len(places) * len(labels) > CROWDED:
        width, columns = WIDE, 1
    elif len(shown) in (1, 2):
        width, columns = WIDE // len(shown), 2
    elif len(facets) in (2, 4):
        columns = 2
    x_title = " · ".join(across).replace("_", " ")
    if at is not None:
        x_title += f" ({at[1]})" if at[1] else ""
        drawn = dict(_lines(shown, of, at[0], x_title, list(palette)))
        spec = curves(drawn, palette, columns=columns, width=width, legend=legend)
    else:
        units = {title: each.unit for title, each in of.items()}
        alike = {title: each.title for title, each in of.items()} if len(facets) > 1 else None
        spec = ranges(
            shown, palette, units, columns=columns, width=width, x_title=x_title or None,
            alike=alike, legend=legend,
        )  # fmt: skip
    only = ", ".join(f"{name} = {label}" for name, label in layout.left_out.items())
    told = f"means over the replications; lines through them: {100 * LEVEL:g} % intervals, if any"
    return Figure(
        "overview",
        "All points at a glance",
        f"Points: {'one run each' if count == 1 else told}.",
        f"Drawn for {only}; the table below has all points." if only else "",
        spec,
    )


def _numbers(places: Sequence[str]) -> tuple[dict[str, float], str] | None:
    """The number of each place, and their unit; None if they are no numbers."""
    found = numbers(places)
    if found is None or len(set(found[0])) < len(places):
        return None
    values, unit = found
    shown, factor = scale(unit, max(values))
    return {place: factor * value for place, value in zip(places, values, strict=True)}, shown


def _lines(
    shown: Mapping[str, Mapping[tuple[str, str], Estimate]],
    of: Mapping[str, Shown],
    at: Mapping[str, float],
    x_title: str,
    names: Sequence[str],
) -> Iterator[tuple[str, Panel]]:
    """The panels with lines over numbers; those of one measure have one scale."""
    gaps = np.diff(sorted(at.values()))
    log = min(at.values()) > 0 and bool(gaps.max() >= UNEVEN * gaps.min())
    most: dict[str, float] = {}
    for title, table in shown.items():
        highest = max((each.high or each.value for each in table.values()), default=0.0)
        most[of[title].title] = max(most.get(of[title].title, 0.0), highest)
    for title, table in shown.items():
        points: dict[str, tuple[Floats, Floats]] = {}
        spans: dict[str, tuple[Floats, Floats]] = {}
        for name in names:
            own = sorted(
                (at[p], e.value, e.low, e.high) for (n, p), e in table.items() if n == name
            )
            if own:
                x, y, low, high = np.array(own, dtype=float).T
                points[name], spans[name] = (x, y), (low, high)
        each = of[title]
        yield title, Panel(
            points, x_title, each.unit, dots=True, spans=spans, ticks=sorted(at.values()),
            log_x=log, most=most[each.title],
        )  # fmt: skip


def sojourn(
    result: StudyResult, layout: Layout, where: Mapping[str, str] | None = None
) -> Iterator[Figure]:
    """The distribution at the labels `where`, or else at the last place of the x axis: mostly the
    heaviest load. There is a curve for each colour, or for each label of the axis that the page
    compares."""
    axes = dict(result.info.axes)
    drawn = layout.colour
    if drawn is None and len(axes.get(layout.compared or "", ())) <= MOST_CURVES:
        drawn = layout.compared
    chosen = {name: labels[-1] for name, labels in axes.items() if name != drawn}
    chosen |= where or {}
    points = result.points
    for name, label in chosen.items():
        points = points.filter(pl.col(name).cast(pl.String) == label)
    found, late = {}, {}
    rows = result.stored.load("sojourn", ["run", "sojourn_s", "count"])
    run, value, count = (column.to_numpy() for column in rows)
    for row in points.to_dicts():
        name = str(row[drawn]) if drawn else "all"
        histogram = Histograms.of_point(run, value, count, row["point"], result.info.replications)
        if histogram.observations:
            values, shares = histogram.cdf()
            found[name] = (1e3 * values, shares)
            late[name] = histogram.quantile(0.95)
    if not found:
        return
    least, most = min(late, key=lambda name: late[name]), max(late, key=lambda name: late[name])
    short, long = seconds(late[least]), seconds(late[most])
    message = f"One packet in twenty waits for {short} or longer"
    if long != short:
        message += f" with {least}, for {long} or longer with {most}"
    place = ", ".join(f"{name} {label}" for name, label in chosen.items())
    yield Figure(
        "sojourn",
        "Time in the queue" + (f": {place}" if place else ""),
        f"{message}.",
        "Cumulative share of the packets, pooled over all replications.",
        charts.cdf(found, by_label(tuple(found)), "time in the queue (ms)", legend=drawn),
    )


QUEUE_AXIS = "queue"
"""The axis that colours stand for; without one of this name it is the first."""
MAX_PANELS = 60


def tradeoff_runs(result: StudyResult) -> pl.DataFrame:
    """A row a run: the axes, `queue_delay_s` (mean sojourn time at the bottleneck) and
    `goodput_bps` (of all data that pass it)."""
    passing = [
        (point, name, direction)
        for point, scenario in enumerate(result.scenarios)
        for name, group in groups_of(scenario).items()
        for direction, path in (("forward", "path"), ("reverse", "return_path"))
        if scenario["bottleneck"] in group[path]
    ]
    schema = {"point": pl.UInt32, "subject": pl.String, "direction": pl.String}
    groups = pl.DataFrame(passing, schema=schema, orient="row")
    goodput = (
        result.metrics.filter(metric="goodput")
        .join(groups, on=["point", "subject", "direction"], how="semi")
        .group_by("run")
        .agg(goodput_bps=pl.col("value").sum())
    )
    names = [name for name, _ in result.info.axes]
    delays = result.bottleneck.select(
        "run", "point", "replication", *names, queue_delay_s="sojourn_mean_s"
    )
    return delays.join(goodput, on="run", maintain_order="left")


def tradeoff(result: StudyResult) -> Figure:
    """The runs, their means and 1-sigma ellipses: a colour a queue, a panel a point else.

    Raises `InputError` if there would be more than `MAX_PANELS` panels.
    """
    axes = dict(result.info.axes)
    coloured = QUEUE_AXIS if QUEUE_AXIS in axes else next(iter(axes), None)
    labels = axes.pop(coloured) if coloured else (result.info.name,)
    rows = tradeoff_runs(result).drop_nulls()
    cases = list(product(*axes.values()))
    if len(cases) > MAX_PANELS:
        problem = f"more than {MAX_PANELS} panels: draw only a part of the study"
        raise input_error(problem, given=str(len(cases)), hint="`only` (`--only AXIS=LABEL`)")
    drawn: dict[str, Points] = {}
    for case in cases:
        of_case = rows.filter(**dict(zip(axes, case, strict=True)))
        parts = {each: of_case.filter(**({coloured: each} if coloured else {})) for each in labels}
        drawn[", ".join(map(" ".join, zip(axes, case, strict=True)))] = {
            label: (part["queue_delay_s"].to_numpy() * 1e3, part["goodput_bps"].to_numpy() / 1e6)
            for label, part in parts.items()
        }
    width = WIDE // min(len(drawn), COLUMNS)
    x, y = "mean time in the queue (ms)", "goodput (Mbit/s)"
    info = result.info
    return Figure(
        id="tradeoff",
        title="Delay and goodput",
        message=f"{count(info.replications, 'run')} per point, with mean and 1-sigma ellipse",
        caption="Goodput of all flows over the bottleneck. RFC 7928, section 2.7: up and left "
        "is better.",
        spec=panels.tradeoff(drawn, by_label(labels), x, y, width=width, legend=coloured),
    )
