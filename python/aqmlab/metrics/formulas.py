"""Formulas of the metrics that are computed from columns of the engine's tables.

`t` is a mapping of columns to arrays of numbers, NaN where a row has none. Counts add up, so a
formula also holds for groups taken together (`aqmlab.metrics.pools`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aqmlab.metrics.samples import Floats

    Formula = Callable[[Mapping[str, Floats]], Floats]

LINK: dict[str, Formula] = {
    "throughput": lambda t: t["delivered_bytes"] * 8 / t["lasted_s"],
    "possible_share": lambda t: t["delivered_bytes"] / t["capacity_bytes"],
    "drop_share": lambda t: t["dropped"] / t["arrived"],
    "mark_share": lambda t: t["marked"] / t["arrived"],
    # Global synchronisation ratio (RFC 7928, section 2.4).
    "loss_synchronisation": lambda t: t["loss_event_flows"] / t["bulk_flows"],
}
"""Formulas of a link; `lasted_s` is the time after the warm-up, `bulk_flows` the mean number of
flows with data in a loss event, where all on the link are endless bulk flows."""


def ended(t: Mapping[str, Floats]) -> Floats:
    """Packets of a group that arrived, were dropped by a queue or were lost on a link in the
    measured time: a share of these is at most 1."""
    return t["arrived"] + t["dropped"] + t["lost"]


def goodput(t: Mapping[str, Floats]) -> Floats:
    """Delivered bits a second."""
    return t["delivered_bytes"] * 8 / t["lasted_s"]


GROUP: dict[str, Formula] = {
    "goodput": goodput,
    "throughput": lambda t: t["sent_bytes"] * 8 / t["lasted_s"],
    "goodput_share": lambda t: t["delivered_bytes"] / t["total_bytes"],
    "loss_share": lambda t: (t["dropped"] + t["lost"]) / ended(t),
    "loss_share_queue": lambda t: t["dropped"] / ended(t),
    "loss_share_link": lambda t: t["lost"] / ended(t),
    "delay_variation": lambda t: t["p999_s"] - t["min_s"],
    "delay_variation_p95": lambda t: t["p95_s"] - t["min_s"],
    # Kleinrock 1979. The mean is infinite where nothing arrived.
    "power": lambda t: goodput(t) / t["mean_s"],
}
"""Of a group of flows in one direction; `total_bytes` are those of all groups, the others columns
of `traffic`, and of the one-way delays in `times`."""

WORSE_FIRST = tuple(name for name in GROUP if name.startswith(("loss_", "delay_", "power")))
"""Metrics of which the worse of two directions comes first in the table `metrics`. Of others the
forward direction comes first: less goodput is no worse where the directions carry different
things."""
WORST_WITHOUT = ("delay_variation", "delay_variation_p95")
"""Metrics that a direction in which nothing arrives lacks: it is the worse one then."""


def queued_share(t: Mapping[str, Floats]) -> Floats:
    """Share of the drops that were taken from the queue, not at arrival."""
    return t["dropped_queued"] / t["dropped"]


def ack_loss_share(t: Mapping[str, Floats]) -> Floats:
    """Share of the acknowledgements that did not arrive."""
    missing = t["dropped_acks"] + t["lost_acks"]
    return missing / (missing + t["arrived_acks"])
