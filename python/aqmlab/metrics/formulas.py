"""Formulas of the metrics that are computed from columns of the engine's tables, and which flows of
a scenario are alike, and so may be compared.

`t` is a mapping of columns to arrays of numbers, NaN where a row has none. Counts add up, so a
formula also holds for groups taken together (`aqmlab.metrics.pools`).
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from aqmlab.metrics.samples import Floats

    Facts = Mapping[str, Any]
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


ALIKE = ("bulk", "cbr", "pareto-onoff")
"""Workloads whose applications are one flow each: their goodputs may be compared."""
MIXED = ("page", "rrul")
"""Workloads that send datagrams beside streams: queries of names, and probes."""
ALL = "all"
"""Subject of statements on all flows together."""


def bulk_flows(flows: Facts) -> Iterator[tuple[str, int]]:
    """Link, and how many flows have data on it, if all of them are endless bulk flows."""
    for link in sorted({link for group in flows.values() for link in _links_of_data(group)}):
        on_it = [group for group in flows.values() if link in _links_of_data(group)]
        if all(map(is_endless, on_it)):
            yield link, sum(int(group["count"]) for group in on_it)


def beside_first(flows: Facts) -> tuple[str, list[str], bool]:
    """Returns the first group of endless flows (empty without one), the others with data on a link
    of it, and whether there are several groups and all share a link."""
    links = {name: _links_of_data(group) for name, group in flows.items() if is_endless(group)}
    first, *others = links or [""]
    beside = [name for name in others if links[name] & links[first]]
    return first, beside, len(links) > 1 and bool(set.intersection(*links.values()))


def other_packets(flows: Facts) -> Iterator[str]:
    """Groups that carry data over streams, and measure the delays of other packets alone."""
    for name, group in flows.items():
        if group["workload"]["kind"] in MIXED and group.get("delays") != "true":
            yield name


def own_base_delays(flows: Facts) -> Iterator[str]:
    """Groups with `access_delay` drawn for each flow."""
    for name, group in flows.items():
        if "(" in group.get("access_delay", "") and int(group["count"]) > 1:
            yield name


def _links_of_data(group: Facts) -> set[str]:
    return {*group["path"], *(() if is_alike(group) else group["return_path"])}


def is_alike(group: Facts) -> bool:
    """Whether the goodputs of the group's flows may be compared."""
    return group["workload"]["kind"] in ALIKE


def may_meet(scenario: Facts) -> bool:
    """Returns whether two flows may meet in one queue of those that a hash chooses: where sets of
    queues are searched for a free one, few flows do not."""
    return '"hashing": "direct"' in json.dumps(scenario["links"])


def unequal(scenario: Facts, group: str) -> float:
    """Fall of Jain's index when flows meet in one of the queues that share a link: two of n
    flows have half the rate of the others; or one has, as it meets a flow of another group."""
    if not may_meet(scenario):
        return 0.0
    flows: Facts = scenario["flows"]
    groups = [flows[group]] if group in flows else filter(is_endless, flows.values())
    count = sum(int(each["count"]) for each in groups)
    if count < 2:
        return 0.0
    among = 1 - (count - 1) ** 2 / count / (count - 1.5)
    return max(among, 1 - (count - 0.5) ** 2 / count / (count - 0.75))


def is_endless(group: Facts) -> bool:
    """True if its flows always have data to send."""
    return bool(group["workload"]["kind"] == "bulk" and group["size"] == "none")
