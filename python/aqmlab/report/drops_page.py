"""Why a queue dropped, as a part of the page of a run, and for `aqmlab run --explain-drops`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats
from aqmlab.numbers import count, seconds, whole
from aqmlab.report.document import Block, Column, Figure, Items, Section, Table, Text
from aqmlab.report.document.vega import WIDTH, Spec, colour, layer, name, number, spec, tip
from aqmlab.report.drops import Episode, course, target_of, why
from aqmlab.results import RunResult

MOST_POINTS = 1500
"""So many departures are drawn at most: the longest wait of those that stand for one point."""
MOST_DROPS = 1500
SHOWN = 12
"""Rows of the table."""
PALETTE = ("#d55e00", "#0072b2", "#cc79a7", "#e69f00")
TIME, WAITED = "time (s)", "time in queue (ms)"
WAIT, SHADE = "#7f7f7f", "#e69f00"


def sections(result: RunResult) -> Iterator[Section]:
    """The section about the drops at the bottleneck, if its packets were recorded."""
    drawn = Drawn()
    whole = course(result, see=drawn.take)
    if whole is None:
        return
    found = whole.episodes
    blocks: list[Block] = [Text(summary(result, found))]
    if found:
        blocks += [Items(tuple(Text(law) for law in laws(result, found)))]
        blocks += [figure(result, found, drawn), table(found)]
    yield Section(f"Why {result.bottleneck} dropped", tuple(blocks), id="why-dropped")


def summary(result: RunResult, found: list[Episode]) -> str:
    """Numbers of drops and of episodes."""
    if not found:
        return f"{result.bottleneck} dropped nothing."
    total = sum(each.total for each in found)
    alone = sum(each.total == 1 for each in found)
    singles = f", {alone:,} of one drop" if alone > 1 else ""
    return (
        f"{result.bottleneck} dropped {count(total, 'packet')} "
        f"in {count(len(found), 'episode')}{singles}."
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
    """A row an episode, the first of them; those of one drop that follow each other have one."""
    together = [tuple(each) for _, each in groupby(enumerate(found), lambda pair: _alike(*pair))]
    rows = tuple(_row([each for _, each in pairs]) for pairs in together[:SHOWN])
    columns = (
        Column("from", seconds, label=True),
        Column("lasts", seconds),
        Column("drops", whole),
        Column("reason", prose=True),
        Column("above target before", seconds),
        Column("longest wait", seconds),
    )
    left = sum(map(len, together[SHOWN:]))
    more = (
        f" {count(left, 'episode')} more {'is' if left == 1 else 'are'} not shown."
        if left > 0
        else ""
    )
    caption = (
        "above target before: how long every packet had waited longer than the target; "
        f"one at a time: episodes of one drop each.{more}"
    )
    return Table(columns, rows, id="episodes", caption=caption)


def _alike(place: int, episode: Episode) -> str | int:
    """Common properties of neighbours that share a row."""
    return next(iter(episode.drops)) if episode.total == 1 else place


def _row(alike: Sequence[Episode]) -> tuple[float | int | str | None, ...]:
    """The cells of an episode, or of several of one drop each."""
    first, last = alike[0], alike[-1]
    reason = ", ".join(first.drops)
    return (
        first.first_s,
        last.last_s - first.first_s,
        sum(each.total for each in alike),
        reason if len(alike) == 1 else f"{reason}, one at a time",
        first.above_s if len(alike) == 1 else None,
        max(each.sojourn_max_s for each in alike) or None,
    )


def figure(result: RunResult, found: list[Episode], drawn: Drawn) -> Figure:
    """Sojourn time of the packets, the target, the episodes shaded, and each drop by reason."""
    link, shown = result.bottleneck, drawn.drops
    lost = sum(each.total for each in found)
    left = "" if shown.height == lost else f" Of the drops {shown.height:,} are drawn."
    return Figure(
        "drops",
        f"Drops at {link}",
        summary(result, found),
        "Grey: sojourn time of the packets sent. Dashed: the target, if the queue "
        "has one. Shaded: the episodes of drops. Points: drops, with the time they had waited."
        + left,
        _spec(drawn.waits(), shown, found, target_of(result, link), float(result.runs["end_s"][0])),
    )


class Drawn:
    """Selection of packets to draw, read in parts: of many departures the longest wait of each few,
    and of many drops every so many."""

    def __init__(self) -> None:
        self._starts: Floats = np.empty(0)
        self._longest: Floats = np.empty(0)
        self._bin = self._every = 1
        """So many departures make a point; so many drops are one that is drawn."""
        self._sent = self._lost = 0
        self.drops = pl.DataFrame()

    def take(self, part: pl.DataFrame) -> None:
        """Takes the next packets (`aqmlab.report.drops.in_parts`)."""
        is_sent = part["verdict"] == "delivered"
        sent, lost = part.filter(is_sent), part.filter(~is_sent)
        ends, waits = sent["end_s"].to_numpy(), 1e3 * sent["sojourn_s"].to_numpy()
        self._starts = np.append(self._starts, ends[-self._sent % self._bin :: self._bin])
        places = (self._sent + np.arange(ends.size)) // self._bin
        more = np.full(self._starts.size - self._longest.size, -np.inf)
        self._longest = np.append(self._longest, more)
        np.maximum.at(self._longest, places, waits)
        self._sent += ends.size
        while self._starts.size > MOST_POINTS:
            self._bin *= 2
            self._starts = self._starts[::2]
            self._longest = np.maximum.reduceat(self._longest, np.arange(0, self._longest.size, 2))
        chosen = lost.gather_every(self._every, -self._lost % self._every)
        self.drops = pl.concat([self.drops, chosen]) if self.drops.width else chosen
        self._lost += lost.height
        while self.drops.height > MOST_DROPS:
            self._every *= 2
            self.drops = self.drops.gather_every(2)

    def waits(self) -> list[dict[str, float]]:
        """Times of departures, and waits in ms."""
        pairs = zip(self._starts.tolist(), self._longest.tolist(), strict=True)
        return [{"x": round(x, 4), "y": round(y, 4)} for x, y in pairs]


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
    ends = {"x": number("from", TIME), "x2": {"field": "to"}}
    layers = [
        layer("rect", ends, rows=spans, color=SHADE, opacity=0.18),
        layer("line", {"x": x, "y": y}, rows=waits, strokeWidth=1.2, color=WAIT),
    ]
    if target is not None:
        dashed = {"strokeDash": [5, 4], "strokeWidth": 1.5}
        at = [{"y": 1e3 * target}]
        layers.append(layer("rule", {"y": number("y", WAITED)}, rows=at, **dashed))
    tips = [tip("reason", "reason"), tip("x", "at (s)", ".4f"), tip("y", "waited (ms)", ".2f")]
    encoding = {
        "x": x,
        "y": y,
        "color": colour(reasons, colours) | {"field": "reason"},
        "shape": name("reason", reasons, legend=None),
        "tooltip": tips,
    }
    layers.append(layer("point", encoding, rows=drops, filled=True, size=28, opacity=0.9))
    return spec({"width": WIDTH - 120, "height": 260, "layer": layers})
