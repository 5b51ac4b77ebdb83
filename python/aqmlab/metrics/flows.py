"""Which flows of a scenario are alike, and so may be compared."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Facts = Mapping[str, Any]

ALIKE = ("bulk", "cbr", "pareto-onoff")
"""Workloads whose applications are one flow each: their goodputs may be compared."""
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


def is_endless(group: Facts) -> bool:
    """True if its flows always have data to send."""
    return bool(group["workload"]["kind"] == "bulk" and group["size"] == "none")
