"""What a report compares: the few numbers of a study that most people ask for, run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aqmlab.metrics import Shown
from aqmlab.metrics.samples import Floats
from aqmlab.report.document.colours import FEWEST_ORDERED
from aqmlab.scenario.quantity import numbers
from aqmlab.stats import Statistic, estimate_means

if TYPE_CHECKING:
    from aqmlab.results import StudyResult

MOST_COLOURS = 8
MOST_PLACES = 24
"""More places than these on an x axis cannot be read."""
BUSY = "link busy"


@dataclass(frozen=True)
class Layout:
    """Axis of the colours, and axes along x."""

    compared: str | None
    """The axis whose labels are compared in words: the first with more than one."""
    colour: str | None
    """None: everything is of one colour."""
    across: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Axes drawn with one label only, to limit the number of places."""

    @staticmethod
    def of(axes: Sequence[tuple[str, Sequence[str]]]) -> Layout:
        """The first axis of two to eight labels has the colours, names before numbers; the others
        stand side by side. Where that is too much, those with the fewest labels keep their last
        one. An only axis of numbers is along x."""
        numeric = {n for n, labels in axes if len(labels) >= FEWEST_ORDERED and numbers(labels)}
        able = [name for name, labels in axes if 2 <= len(labels) <= MOST_COLOURS]
        colour = min(able, key=lambda name: name in numeric, default=None)
        if colour in numeric and all(len(labels) == 1 for name, labels in axes if name != colour):
            colour = None
        others = sorted(
            ((name, labels) for name, labels in axes if name != colour),
            key=lambda each: -len(each[1]),
        )
        across, left_out, places = [], {}, 1
        for name, labels in others:
            if places == 1 or places * len(labels) <= MOST_PLACES:
                across.append(name)
                places *= len(labels)
            else:
                left_out[name] = labels[-1]
        order = [name for name, _ in axes]
        compared = next((name for name, labels in axes if len(labels) > 1), None)
        return Layout(compared, colour, tuple(sorted(across, key=order.index)), left_out)

    def split(self, axes: Mapping[str, Sequence[str]]) -> dict[str, Layout]:
        """The layouts of panels side by side, by what stands above them: where several axes would
        stand along the x axis, the one with the fewest labels has a panel for each of them."""
        if len(self.across) < 2:
            return {"": self}
        facet = min(self.across, key=lambda name: len(axes[name]))
        inner = tuple(name for name in self.across if name != facet)
        return {
            f"{facet.replace('_', ' ')} {label}": replace(
                self, across=inner, left_out={**self.left_out, facet: label}
            )
            for label in axes[facet]
        }

    def place(self, row: Mapping[str, Any]) -> str:
        """Place of a row on the x axis."""
        return " · ".join(str(row[name]) for name in self.across)


def answering(found: Sequence[Shown]) -> list[Shown]:
    """Showns in order of importance: applications and flows, then the link."""
    return sorted(found, key=lambda each: ":" not in each.title)


def cells(result: StudyResult, measure: Shown, layout: Layout) -> dict[tuple[str, str], Statistic]:
    """The mean of each point, by (colour, place on the x axis)."""
    points = result.points
    for name, label in layout.left_out.items():
        points = points.filter(pl.col(name).cast(pl.String) == label)
    means = estimates(result, measure, points)
    return {
        (str(row[layout.colour]) if layout.colour else "", layout.place(row)): means[row["point"]]
        for row in points.to_dicts()
        if row["point"] in means
    }


def estimates(
    result: StudyResult, measure: Shown, points: pl.DataFrame | None = None
) -> dict[int, Statistic]:
    """The mean of each point that has values, with its interval or the reason for its absence; only
    of `points` if given."""
    values = by_point(result, measure, points)
    looked, events = result.info.precision is not None, [measure.event(point) for point in values]
    found = estimate_means(
        list(values.values()), bounds=measure.bounds, looked=looked, events=events
    )
    return dict(zip(values, found, strict=True))


def by_point(
    result: StudyResult, measure: Shown, points: pl.DataFrame | None = None
) -> dict[int, Floats]:
    """The values of the replications of each point that has any; only of `points` if given."""
    rows = measure.values.with_columns(result.point_of_run)
    if points is not None:
        rows = rows.join(points, on="point", how="semi", maintain_order="left")
    rows = rows.sort("point", maintain_order=True)
    found, starts = np.unique(rows["point"].to_numpy(), return_index=True)
    ends, values = [*starts[1:].tolist(), rows.height], rows["value"].to_numpy()
    parts = zip(found.tolist(), starts.tolist(), ends, strict=True)
    return {point: values[start:end] for point, start, end in parts}
