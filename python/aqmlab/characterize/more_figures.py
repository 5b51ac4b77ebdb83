"""Figures that every section has, and those of comparisons along an axis: delay and goodput at the
same targets (4.3.1), the size of the buffer (7.1), realistic capacities (8.2.6), and how steady
the queue is (8.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.characterize.sections.stability import WIRELESS
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure
from aqmlab.report.document import panels as charts

if TYPE_CHECKING:
    from aqmlab.characterize.figures import Album

CURVE_POINTS = 21
"""Of a distribution: every 5 % of it."""
DELAY, GOODPUT = "queuing delay (ms)", "goodput (Mbit/s)"
WIDE = 315


def is_distribution(figure: Figure) -> bool:
    """Whether a figure is of those that every section has."""
    return figure.id.endswith("-cdf")


def distributions(album: Album, section: str) -> Iterator[Figure]:
    """The distributions of delay and goodput that section 2.7 asks for."""
    every = (case for name in album.names for case in album.measures.names(section, name))
    cases = list(dict.fromkeys(every))
    delays, goodputs = {}, {}
    for case in cases:
        own = [name for name in album.names if case in album.measures.names(section, name)]
        waited = {name: _scaled(album.measures.histogram(section, case, name), 1e3) for name in own}
        got = {
            name: _scaled(album.measures.goodput_samples(section, case, name), 1e-6) for name in own
        }
        title = case or "all"
        delays[f"{title}: delay"] = charts.Panel(waited, DELAY, "share of packets", share=True)
        goodputs[f"{title}: goodput"] = charts.Panel(
            got, GOODPUT, "share of samples", share=True, zero=False
        )
    panels = {
        name: panel
        for pair in zip(delays.items(), goodputs.items(), strict=True)
        for name, panel in pair
    }
    if panels:
        yield Figure(
            f"{section}-cdf",
            "Distributions of delay and goodput",
            "The time in the queue of every packet, and the goodput of all flows together over "
            f"{10 * album.rtt:g} s each or the interval of the section, of all runs.",
            "The share of the packets, or samples, that is not above (RFC 7928, section 2.7); "
            "points stand every 5 %.",
            charts.curves(panels, album.palette, columns=2, width=WIDE),
        )


def _scaled(points: tuple[Floats, Floats], factor: float) -> tuple[Floats, Floats]:
    """A distribution at equal steps of its share, in another unit."""
    values, shares = points
    if not values.size:
        return values, shares
    wanted = np.linspace(0.0, 1.0, CURVE_POINTS)
    places = np.searchsorted(shares, wanted - 1e-12).clip(max=values.size - 1)
    return values[places] * factor, wanted


def same_targets(album: Album) -> Iterator[Figure]:
    """Section 4.3.1."""
    costs, kept = {}, {}
    get = album.measures.mean
    for name in album.names:
        cases = album.measures.names("4.3.1", name)
        if not cases:
            continue
        targets = [album.measures.case("4.3.1", case, name).value or 0.0 for case in cases]
        delay = np.array([1e3 * get("4.3.1", c, name, "down", "queue_delay") for c in cases])
        goodput = np.array([1e-6 * get("4.3.1", c, name, "all", "goodput") for c in cases])
        costs[name], kept[name] = (delay, goodput), (1e3 * np.array(targets), delay)
    if costs:
        panels = {
            "what the delay costs": charts.Panel(
                costs, DELAY, GOODPUT, dots=True, log_x=True, zero=False
            ),
            "what the target gives": charts.Panel(
                kept, "target (ms)", DELAY, dots=True, log_x=True
            ),
        }
        yield Figure(
            "4.3.1-targets",
            "Delay and goodput at the same targets",
            "Every discipline is told to keep 2.5 to 80 ms by its main parameter (thresholds in "
            "packets or bytes: what the link sends in that time); medium congestion.",
            "Means over the runs; along a line the target doubles from point to point.",
            charts.curves(panels, album.palette, columns=2, width=WIDE),
        )


def buffers(album: Album) -> Iterator[Figure]:
    """Section 7.1."""
    panels = {}
    for title, subject, measure, factor, unit in (
        ("page load time", "web", "page_load", 1.0, "seconds"),
        ("constant stream: packets lost", "cbr", "loss_share", 100.0, "share of the packets (%)"),
        ("queue", "down", "queue_delay", 1e3, DELAY),
        ("goodput", "all", "goodput", 1e-6, GOODPUT),
    ):
        points = {}
        for name in album.names:
            cases = album.measures.names("7.1", name)
            x = [album.measures.case("7.1", case, name).value or 0.0 for case in cases]
            y = [factor * album.measures.mean("7.1", c, name, subject, measure) for c in cases]
            if "7.2" in album.ran:
                x.append(1.0)
                y.append(factor * album.measures.mean("7.2", "IV", name, subject, measure))
            order = np.argsort(x)
            points[name] = (np.array(x)[order], np.array(y)[order])
        panels[title] = charts.Panel(points, "factor of the buffer", unit, dots=True, log_x=True)
    yield Figure(
        "7.1-buffers",
        "Bursts and the size of the buffer",
        "Web pages, video frames, a constant stream and a bulk flow (mix IV of section 7.2).",
        "Means over the runs; 1 is the buffer of section 7.2.",
        charts.curves(panels, album.palette, columns=2, width=WIDE),
    )


def wireless(album: Album) -> Iterator[Figure]:
    """Section 8.2.6."""
    panels = {
        case: album.points("8.2.6", case, ("down", "queue_delay"), ("all", "goodput"))
        for case in WIRELESS
    }
    yield Figure(
        "8.2.6-wireless",
        "Realistic capacities",
        "Five flows over synthetic LTE and Wi-Fi.",
        "A small dot is a run, the circle the mean, the line the 1σ ellipse of the most likely "
        "normal distribution (RFC 7928, section 2.7). Left and up is better.",
        charts.tradeoff(panels, album.palette, DELAY, GOODPUT),
    )


def steadiness(album: Album) -> Iterator[Figure]:
    """Section 8.3."""
    cases = {
        case: case
        for case in album.measures.names("8.3", album.names[0])
        if album.measures.case("8.3", case, album.names[0]).value is None
    }
    yield Figure(
        "8.3-stability",
        "How steady the queue is",
        "The discipline as it is, medium congestion, where one condition is different.",
        "Swing: the standard deviation of the mean delays of 10 round-trip times each, over their "
        "mean. Points are medians over the runs, lines go from the lower to the upper quartile.",
        charts.ranges(
            {
                "swing": album.cells("8.3", "down", "swing", 100.0, cases),
                "queue": album.cells("8.3", "down", "queue_delay", 1e3, cases),
            },
            album.palette,
            {"swing": "share of the mean delay (%)", "queue": DELAY},
            columns=1,
            width=400,
        ),
    )
