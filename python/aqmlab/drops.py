"""Why a queue dropped: every drop of a run with its reason, and the law behind it in words.

Works on the table `packets` (level `packets`). Drops make an episode as long as the queue stays
above its target, or, without a target, as long as they follow each other closely. For CoDel an
episode is what RFC 8289 calls the dropping state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from aqmlab.errors import input_error
from aqmlab.results import RunResult
from aqmlab.scenarios.quantities import canonical

APART = 0.5
"""Seconds without a drop that part two episodes of a queue without a target."""
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


@dataclass(frozen=True)
class Episode:
    """Drops of one link that are close together."""

    first_s: float
    last_s: float
    drops: Mapping[str, int]
    """Reason to number."""
    above_s: float | None
    """How long every departing packet had waited longer than the target when it began; `None`
    if the queue has no target, or the last packet before had waited less."""
    sojourn_max_s: float
    """The longest wait of a packet that was sent during the episode (0 without one)."""

    @property
    def total(self) -> int:
        """The number of drops."""
        return sum(self.drops.values())


def episodes(result: RunResult, link: str | None = None) -> list[Episode]:
    """The episodes of drops at `link` (the bottleneck), in order of time.

    Raises `InputError` if packets were not recorded, or there is no such link.
    """
    packets = packets_of(result, link or result.bottleneck)
    lost = packets.filter(pl.col("verdict") != "delivered").sort("end_s", maintain_order=True)
    if lost.is_empty():
        return []
    sent = packets.filter(pl.col("verdict") == "delivered").sort("end_s", maintain_order=True)
    target = target_of(result, link or result.bottleneck)
    if target is None:
        is_new = (pl.col("end_s").diff() > APART).fill_null(True)
        lost = lost.with_columns(is_new.cum_sum().alias("episode"))
    else:
        short = sent.filter(pl.col("sojourn_s") < target)["end_s"].to_numpy()
        before = np.searchsorted(short, lost["end_s"].to_numpy())
        lost = lost.with_columns(pl.Series("episode", before))
    return [
        _episode(rows, sent, target) for _, rows in lost.group_by("episode", maintain_order=True)
    ]


def packets_of(result: RunResult, link: str) -> pl.DataFrame:
    """The packets of a link with `sojourn_s`; of dropped ones the wait until the drop."""
    if link not in result.scenario["links"]:
        raise input_error("there is no such link", key="link", given=link)
    packets = result.packets.filter(pl.col("link") == link)
    if packets.is_empty():
        hint = 'run it with record.level = "packets"'
        raise input_error("the packets of this run were not recorded", key=link, hint=hint)
    return packets.with_columns((pl.col("end_s") - pl.col("arrival_s")).alias("sojourn_s"))


def target_of(result: RunResult, link: str) -> float | None:
    """The delay in seconds that the queue of `link` aims at, if it has such a parameter."""
    target = result.scenario["links"][link]["queue"].get("target", "none")
    return canonical(target) if target != "none" and target[-1] == "s" else None


def why(result: RunResult, reason: str, link: str | None = None) -> str:
    """The law behind a reason, with the numbers of the queue of `link`."""
    queue = result.scenario["links"][link or result.bottleneck]["queue"]
    return LAWS.get(reason, f"the discipline's own decision ({reason})").format_map(_Known(queue))


class _Known(dict[str, str]):
    """Parameters of a queue, by name; one that it does not have is left open."""

    def __missing__(self, key: str) -> str:
        return "not set"


def _episode(lost: pl.DataFrame, sent: pl.DataFrame, target: float | None) -> Episode:
    first, last = lost["end_s"][0], lost["end_s"][-1]
    before = sent.filter(pl.col("end_s") < first)
    above = None
    if target is not None and not before.is_empty() and before["sojourn_s"][-1] >= target:
        below = before.filter(pl.col("sojourn_s") < target)
        above = first - (before["end_s"][0] if below.is_empty() else below["end_s"][-1])
    during = sent.filter(pl.col("end_s").is_between(first, last))["sojourn_s"].to_numpy()
    counts = lost.group_by("verdict", maintain_order=True).len().rows()
    return Episode(first, last, dict(counts), above, float(during.max(initial=0.0)))
