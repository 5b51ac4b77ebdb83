"""Why a queue dropped: every drop of a run with its reason, and the law behind it in words; as a
part of the page of a run, and for `aqmlab run --explain-drops`.

Works on the table `packets` (level `packets`). Drops make an episode as long as they follow each
other closely; for CoDel and its relatives, as long as the queue stays above its target: what RFC
8289 calls the dropping state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats, Whole
from aqmlab.numbers import count, seconds, whole
from aqmlab.report.document import Block, Column, Figure, Items, Section, Table, Text
from aqmlab.report.document.vega import WIDTH, Spec, colour, layer, name, number, spec, tip
from aqmlab.results import RunResult
from aqmlab.scenario.quantity import canonical

APART = 0.5
"""Seconds without a drop that part two episodes of a queue without a dropping state."""
LAWS: Mapping[str, str] = {
    "overlimit": "the buffer was full (limit {limit})",
    "overmemory": "the memory limit was reached ({memory_limit})",
    "flow_limit": "the flow's own queue was full",
    "red_early": "RED dropped at random: the average queue was above min_threshold "
    "({min_threshold})",
    "red_forced": "RED dropped every arrival: the average queue was above max_threshold "
    "({max_threshold})",
    "codel": "CoDel dropped at the head: the sojourn time had stayed above the target ({target}) "
    "for an interval ({interval}); the next drop comes after interval / sqrt(count)",
    "pie": "PIE dropped arrivals at random, with a probability that rises while the delay is "
    "above the target ({target})",
    "cobalt": "COBALT dropped at the head: the sojourn time had stayed above the "
    "target for an interval ({interval})",
    "blue": "BLUE dropped at random, with a probability that overflows raise and idle times lower",
    "pi2": "PI squared dropped at random, with a probability that follows the delay and its "
    "target ({target})",
    "step": "the queue was above the step's threshold",
    "sfb_early": "SFB dropped at random: the bins of the flow were long",
    "sfb_bucket": "all bins of the flow were full in SFB",
    "sfb_penalty": "SFB's penalty box: the flow does not slow down",
    "choke": "CHOKe drew a packet of the same flow from the queue",
    "sred": "SRED dropped at random, by its estimate of the number of flows",
    "pi": "the PI controller dropped at random, with a probability that follows the queue",
    "ack_filter": "a later acknowledgement in the queue says all that this one did",
}
"""Reason to sentence; names in braces are parameters of the queue."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Drops of one link that are close together."""

    first_s: float
    last_s: float
    drops: Mapping[str, int]
    """Reason to number."""
    above_s: float | None
    """Time for which every departing packet had exceeded the target at its start; `None`
    if the queue has no target, or the last packet before had waited less."""
    sojourn_max_s: float
    """The longest wait of a packet that was sent during the episode (0 without one)."""

    @property
    def total(self) -> int:
        """The number of drops."""
        return sum(self.drops.values())


def episodes(
    result: RunResult, see: Callable[[pl.DataFrame], None] = lambda part: None
) -> list[Episode] | None:
    """The episodes of drops at the bottleneck, in order of time; of packets that are read in parts,
    each of which is shown to `see`; None if they were not recorded."""
    finder = _Finder(target_of(result), has_state="interval" in _queue(result))
    parts = 0
    for part in _whole_moments(in_parts(result)):
        see(part)
        finder.take(part)
        parts += 1
    return finder.found if parts else None


def _queue(result: RunResult) -> Mapping[str, Any]:
    """The queue of the bottleneck, with every parameter."""
    queue: Mapping[str, Any] = result.scenario["links"][result.bottleneck]["queue"]
    return queue


def in_parts(result: RunResult) -> Iterator[pl.DataFrame]:
    """Outcomes of the packets of the bottleneck, in frames: `verdict`, `end_s`, `sojourn_s`.

    They were recorded when it happened: `end_s` never goes back.
    """
    wait = (pl.col("end_s") - pl.col("arrival_s")).alias("sojourn_s")
    for part in result.parts("packets", "link", "verdict", "arrival_s", "end_s"):
        yield part.filter(link=result.bottleneck).select("verdict", "end_s", wait)


def target_of(result: RunResult) -> float | None:
    """The delay in seconds that the queue aims at, if it has such a parameter."""
    target = _queue(result).get("target", "none")
    return canonical(target) if target != "none" and target[-1] == "s" else None


def why(result: RunResult, reason: str) -> str:
    """The law behind a reason, with the numbers of the bottleneck's queue."""
    return LAWS.get(reason, f"the discipline's own decision ({reason})").format_map(
        defaultdict(lambda: "not set", _queue(result))
    )


def _whole_moments(parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows: those of one time are in one frame, and none is empty."""
    left: pl.DataFrame | None = None
    for part in parts:
        if part.is_empty():
            continue
        rows = part if left is None else pl.concat([left, part])
        is_last = rows["end_s"] == rows["end_s"][-1]
        whole, left = rows.filter(~is_last), rows.filter(is_last)
        if not whole.is_empty():
            yield whole
    if left is not None:
        yield left


class _Finder:
    """Finds the episodes of a link in one pass, with constant memory."""

    def __init__(self, target: float | None, *, has_state: bool) -> None:
        self.found: list[Episode] = []
        self._target = target
        self._has_state = has_state and target is not None
        self._key: int | None = None
        """The episode of the last drop: drops with the same key belong together."""
        self._keys = 0
        """So many waits below the target, or gaps between drops, have been."""
        self._last_drop = np.nan
        self._wait, self._since = np.nan, np.nan
        """The wait of the last packet sent, and since when none had waited less than the target."""
        self._later = 0.0
        """The longest wait of a packet sent after the last drop."""

    def take(self, part: pl.DataFrame) -> None:
        """Takes the next packets: all of the times that are in it."""
        is_sent = part["verdict"] == "delivered"
        sent, lost = part.filter(is_sent), part.filter(~is_sent)
        ends, waits = sent["end_s"].to_numpy(), sent["sojourn_s"].to_numpy()
        drops = lost["end_s"].to_numpy()
        if self._target is None or not self._has_state:
            keys = self._keys + np.cumsum(np.diff(drops, prepend=self._last_drop) > APART)
            self._keys = int(keys[-1]) if keys.size else self._keys
        else:
            short = ends[waits < self._target]
            keys = self._keys + np.searchsorted(short, drops)
            self._keys += short.size
        since = self._times_since(ends, waits)
        after = 0
        for key, first, last, counts in _together(lost, keys):
            start = int(np.searchsorted(ends, first))
            after = int(np.searchsorted(ends, last, side="right"))
            if key == self._key:
                self._extend(last, counts, float(waits[:after].max(initial=self._later)))
            else:
                wait = waits[start - 1] if start else self._wait
                from_ = since[start - 1] if start else self._since
                above = None
                if self._target is not None and wait >= self._target:
                    above = first - float(from_)
                longest = float(waits[start:after].max(initial=0.0))
                self.found.append(Episode(first, last, counts, above, longest))
            self._key, self._later = key, 0.0
        self._later = float(waits[after:].max(initial=self._later))
        self._last_drop = drops[-1] if drops.size else self._last_drop
        if waits.size:
            self._wait, self._since = waits[-1], since[-1]

    def _times_since(self, ends: Floats, waits: Floats) -> Floats:
        """At each packet sent: since when none had waited less than the target."""
        if self._target is None or not ends.size:
            return ends
        short = np.where(waits < self._target, np.arange(ends.size), -1)
        last = np.maximum.accumulate(short)
        before = ends[0] if np.isnan(self._since) else self._since
        return np.where(last < 0, before, ends[last])

    def _extend(self, last: float, counts: Mapping[str, int], longest: float) -> None:
        """Adds drops to the last episode."""
        whole = self.found[-1]
        drops = Counter(whole.drops) + Counter(counts)
        longest = max(whole.sojourn_max_s, longest)
        self.found[-1] = replace(whole, last_s=last, drops=drops, sojourn_max_s=longest)


def _together(
    lost: pl.DataFrame, keys: Whole
) -> Iterator[tuple[int, float, float, dict[str, int]]]:
    """Key, first and last time, and number by reason of drops that have the same key."""
    keyed = lost.with_columns(pl.Series("key", keys, dtype=pl.Int64))
    end, reason = pl.col("end_s"), pl.col("verdict")
    rows = keyed.group_by("key", "verdict", maintain_order=True).agg(
        end.first().alias("first"), end.last().alias("last"), pl.len()
    )
    groups = rows.group_by("key", maintain_order=True).agg(
        pl.col("first").min(), pl.col("last").max(), reason, pl.col("len")
    )
    for key, first, last, reasons, numbers in groups.iter_rows():
        yield key, first, last, dict(zip(reasons, numbers, strict=True))


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
    found = episodes(result, see=drawn.take)
    if found is None:
        return
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
    total: Counter[str] = Counter()
    for each in found:
        total.update(each.drops)
    return [f"{times:,} times {why(result, reason)}." for reason, times in total.most_common()]


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
        _spec(drawn.waits(), shown, found, target_of(result), float(result.runs["end_s"][0])),
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
        """Takes the next packets (`in_parts`)."""
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
