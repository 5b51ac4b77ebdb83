"""Why a queue dropped, as a part of the page of a run, and for `aqmlab run --explain-drops`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from aqmlab.document import Block, Column, Figure, Items, Section, Table, Text
from aqmlab.document.numbers import count, seconds, whole
from aqmlab.document.vega import WIDTH, Spec, colour, data, name, number, spec, tip
from aqmlab.drops import Course, Episode, course, in_parts, target_of, why
from aqmlab.results import RunResult

MOST_POINTS = 1500
"""So many departures are drawn at most: the longest wait of those that stand for one point."""
MOST_DROPS = 1500
SHOWN = 12
"""Episodes in the table."""
PALETTE = ("#d55e00", "#0072b2", "#cc79a7", "#e69f00")
TIME, WAITED = "time (s)", "time in queue (ms)"
WAIT, SHADE = "#7f7f7f", "#e69f00"


def sections(result: RunResult) -> Iterator[Section]:
    """The section about the drops at the bottleneck, if its packets were recorded."""
    whole = course(result)
    if whole is None:
        return
    found = whole.episodes
    blocks: list[Block] = [Text(summary(result, found))]
    if found:
        blocks += [Items(tuple(Text(law) for law in laws(result, found)))]
        blocks += [figure(result, whole), table(found)]
    yield Section(f"Why {result.bottleneck} dropped", tuple(blocks), id="drops")


def summary(result: RunResult, found: list[Episode]) -> str:
    """How many drops there were, in how many episodes."""
    if not found:
        return f"{result.bottleneck} dropped nothing."
    total = sum(each.total for each in found)
    return (
        f"{result.bottleneck} dropped {count(total, 'packet')} in {count(len(found), 'episode')}."
    )


def laws(result: RunResult, found: list[Episode]) -> list[str]:
    """A sentence for each reason there was, the most frequent first."""
    total: dict[str, int] = {}
    for each in found:
        for reason, number_ in each.drops.items():
            total[reason] = total.get(reason, 0) + number_
    ranked = sorted(total, key=lambda reason: -total[reason])
    return [f"{total[reason]:,} times {why(result, reason)}." for reason in ranked]


def table(found: list[Episode]) -> Table:
    """A row an episode, the first of them."""
    rows = tuple(
        (
            each.first_s,
            each.last_s - each.first_s,
            each.total,
            ", ".join(each.drops),
            each.above_s,
            each.sojourn_max_s,
        )
        for each in found[:SHOWN]
    )
    columns = (
        Column("from", seconds, label=True),
        Column("lasts", seconds),
        Column("drops", whole),
        Column("reason", prose=True),
        Column("above target before", seconds),
        Column("longest wait", seconds),
    )
    left = len(found) - SHOWN
    more = (
        f" {count(left, 'episode')} more {'is' if left == 1 else 'are'} not shown."
        if left > 0
        else ""
    )
    caption = f"above target before: how long every packet had waited longer than the target.{more}"
    return Table(columns, rows, id="episodes", caption=caption)


def figure(result: RunResult, whole: Course) -> Figure:
    """Sojourn time of the packets, the target, the episodes shaded, and each drop by reason."""
    link, found = result.bottleneck, whole.episodes
    waits, shown = _drawn(result, whole)
    lost = sum(each.total for each in found)
    left = "" if shown.height == lost else f" Of the drops {shown.height:,} are drawn."
    return Figure(
        "drops",
        f"Drops at {link}",
        summary(result, found),
        "Grey: sojourn time of the packets sent. Dashed: the target, if the queue "
        "has one. Shaded: the episodes of drops. Points: drops, with the time they had waited."
        + left,
        _spec(waits, shown, found, target_of(result, link), float(result.runs["end_s"][0])),
    )


def _drawn(result: RunResult, whole: Course) -> tuple[list[dict[str, float]], pl.DataFrame]:
    """Departures and waits in ms, where there are many the longest of each bin; and every so
    many a drop."""
    bin_ = max(1, -(-whole.sent // MOST_POINTS))
    every = max(1, -(-sum(each.total for each in whole.episodes) // MOST_DROPS))
    starts: list[float] = []
    longest = np.full(-(-whole.sent // bin_), -np.inf)
    shown: list[pl.DataFrame] = []
    sent = lost = 0
    for part in in_parts(result, result.bottleneck):
        is_sent = part["verdict"] == "delivered"
        left, dropped = part.filter(is_sent), part.filter(~is_sent)
        shown.append(dropped.gather_every(every, -lost % every))
        starts += left["end_s"].gather_every(bin_, -sent % bin_).to_list()
        places = (sent + np.arange(left.height)) // bin_
        np.maximum.at(longest, places, 1e3 * left["sojourn_s"].to_numpy())
        sent, lost = sent + left.height, lost + dropped.height
    pairs = zip(starts, longest.tolist(), strict=True)
    return [{"x": round(x, 4), "y": round(y, 4)} for x, y in pairs], pl.concat(shown)


def _spec(
    waits: list[dict[str, float]],
    lost: pl.DataFrame,
    found: list[Episode],
    target: float | None,
    end: float,
) -> Spec:
    reasons = list(dict.fromkeys(lost["verdict"]))
    colours = {each: PALETTE[place % len(PALETTE)] for place, each in enumerate(reasons)}
    wide = max(end / 300, 1e-3)
    spans = [
        {"from": round(each.first_s, 4), "to": round(max(each.last_s, each.first_s + wide), 4)}
        for each in found
    ]
    drops = [
        {"x": round(x, 5), "y": round(1e3 * y, 4), "reason": reason}
        for x, y, reason in lost.select("end_s", "sojourn_s", "verdict").rows()
    ]
    x = number("x", TIME, scale={"nice": False, "domain": [0, end]})
    y = number("y", WAITED, scale={"zero": True})
    layers: list[Spec] = [
        {
            "data": data(spans),
            "mark": {"type": "rect", "color": SHADE, "opacity": 0.18},
            "encoding": {"x": number("from", TIME), "x2": {"field": "to"}},
        },
        {
            "data": data(waits),
            "mark": {"type": "line", "strokeWidth": 1.2, "color": WAIT},
            "encoding": {"x": x, "y": y},
        },
    ]
    if target is not None:
        layers.append(
            {
                "data": data([{"y": 1e3 * target}]),
                "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5},
                "encoding": {"y": number("y", WAITED)},
            }
        )
    tips = [tip("reason", "reason"), tip("x", "at (s)", ".4f"), tip("y", "waited (ms)", ".2f")]
    layers.append(
        {
            "data": data(drops),
            "mark": {"type": "point", "filled": True, "size": 28, "opacity": 0.9},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour(reasons, colours) | {"field": "reason"},
                "shape": name("reason", reasons, legend=None),
                "tooltip": tips,
            },
        }
    )
    return spec({"width": WIDTH - 120, "height": 260, "layer": layers})
