"""Delay against goodput, a point a run (RFC 7928, section 2.7), of any study."""

from __future__ import annotations

from itertools import product

import polars as pl

from aqmlab.errors import input_error
from aqmlab.numbers import count
from aqmlab.report.document import Figure
from aqmlab.report.document.colours import by_label
from aqmlab.report.document.panels import COLUMNS, WIDE, Points, tradeoff
from aqmlab.results import StudyResult

QUEUE_AXIS = "queue"
"""The axis that colours stand for; without one of this name it is the first."""
MAX_PANELS = 60


def runs(result: StudyResult) -> pl.DataFrame:
    """A row a run: the axes, `queue_delay_s` (mean sojourn time at the bottleneck) and
    `goodput_bps` (of all data that pass it)."""
    passing = [
        (point, name, direction)
        for point, scenario in enumerate(result.scenarios)
        for name, group in scenario["flows"].items()
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


def figure(result: StudyResult) -> Figure:
    """The runs, their means and 1-sigma ellipses: a colour a queue, a panel a point else.

    Raises `InputError` if there would be more than `MAX_PANELS` panels.
    """
    axes = dict(result.info.axes)
    coloured = QUEUE_AXIS if QUEUE_AXIS in axes else next(iter(axes), None)
    labels = axes.pop(coloured) if coloured else (result.info.name,)
    rows = runs(result).drop_nulls()
    cases = list(product(*axes.values()))
    if len(cases) > MAX_PANELS:
        problem = f"more than {MAX_PANELS} panels: draw only a part of the study"
        raise input_error(problem, given=str(len(cases)), hint="--only AXIS=LABEL")

    def points(case: tuple[str, ...], label: str) -> pl.DataFrame:
        chosen = [pl.col(name) == value for name, value in zip(axes, case, strict=True)]
        chosen += [pl.col(coloured) == label] if coloured else []
        return rows.filter(*chosen)

    panels: dict[str, Points] = {}
    for case in cases:
        parts = {label: points(case, label) for label in labels}
        panels[", ".join(map(" ".join, zip(axes, case, strict=True)))] = {
            label: (part["queue_delay_s"].to_numpy() * 1e3, part["goodput_bps"].to_numpy() / 1e6)
            for label, part in parts.items()
        }
    width = WIDE // min(len(panels), COLUMNS)
    x, y = "mean time in the queue (ms)", "goodput (Mbit/s)"
    info = result.info
    return Figure(
        id="tradeoff",
        title="Delay and goodput",
        message=f"{count(info.replications, 'run')} per point, with mean and 1-sigma ellipse",
        caption="RFC 7928, section 2.7: up and to the left is better.",
        spec=tradeoff(panels, by_label(labels), x, y, width=width, legend=coloured),
    )
