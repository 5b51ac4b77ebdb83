"""The metrics of a single run, from a few rows, without a library for tables.

`aqmlab.metrics.table` computes the same of many runs at once, by the same formulas; a test
compares bit by bit.
"""

from __future__ import annotations

from math import inf, isfinite, nan

from aqmlab.metrics.flows import ALL, bulk_flows, is_alike, is_endless
from aqmlab.metrics.formulas import WORSE, WORST_WITHOUT, of_group, of_link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Rows = Sequence[Mapping[str, Any]]
    Tables = Mapping[str, Rows]
    Found = tuple[str, str | None, str, float]

BLOCK, LANES = 128, 8
"""How numpy adds: 8 sums side by side in blocks of at most 128 numbers."""


def metrics(tables: Tables, scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of subject, metric and value: links, then groups, then all flows together."""
    flows = scenario["flows"]
    run = tables["runs"][0]
    lasted = run["end_s"] - run["warmup_s"]
    found: list[Found] = [*_links(tables["links"], dict(bulk_flows(flows)), lasted)]
    alike = {name: _goodputs(tables["flows"], name) for name in flows if is_alike(flows[name])}
    alike = {name: values for name, values in alike.items() if values}
    endless = [name for name in flows if is_endless(flows[name])]
    found += _groups(tables, alike, endless, lasted)
    if len(endless) > 1:
        of_all = [value for name in endless for value in alike.get(name, ())]
        if of_all:
            found.append((ALL, None, "jain", _jain(of_all)))
    there = {(subject, metric) for subject, _, metric, value in found if isfinite(value)}
    return [
        {
            "subject": subject,
            "direction": direction,
            "metric": metric,
            "value": value if isfinite(value) else None,
        }
        for subject, direction, metric, value in found
        if isfinite(value) or (metric in WORST_WITHOUT and (subject, metric) in there)
    ]


def _of(row: Mapping[str, Any]) -> Callable[[str], float]:
    """The quantities of a row by name, NaN for those that it has not."""

    def of(name: str) -> float:
        value = row.get(name)
        return nan if value is None else float(value)

    return of


def _links(links: Rows, bulk: Mapping[str, int], lasted: float) -> list[Found]:
    found: list[Found] = []
    for row in links:
        whole = {**row, "lasted_s": lasted, "bulk_flows": bulk.get(row["link"])}
        values = of_link(_of(whole), _over)
        found += [(row["link"], None, metric, value) for metric, value in values.items()]
    return found


def _groups(
    tables: Tables, alike: Mapping[str, list[float]], endless: Sequence[str], lasted: float
) -> list[Found]:
    total = sum(row["delivered_bytes"] for row in tables["traffic"])
    first = endless[0] if endless else None
    found: list[Found] = []
    for name in dict.fromkeys(row["group"] for row in tables["traffic"]):
        directed = [
            (row["direction"], _directed(row, tables["times"], total, lasted))
            for row in tables["traffic"]
            if row["group"] == name
        ]
        for metric in directed[0][1]:
            rows = [(name, direction, metric, values[metric]) for direction, values in directed]
            found += sorted(rows, key=lambda row: -_badness(metric, row[-1]))
        goodputs = alike.get(name, [])
        if len(goodputs) > 1:
            found.append((name, None, "jain", _jain(goodputs)))
        if name in endless and name != first and goodputs and alike.get(first or ""):
            ratio = _over(_mean(goodputs), _mean(alike[first or ""]))
            found.append((name, None, "rtt_fairness", ratio))
    return found


def _directed(
    row: Mapping[str, Any], times: Rows, total: int, lasted: float
) -> Mapping[str, float]:
    """Metrics of a group in one direction."""
    delay = _delay(times, row["group"], row["direction"])
    whole = {**row, "total_bytes": total, "lasted_s": lasted, **delay}
    return of_group(_of(whole), _over, lambda value: value if isfinite(value) else 0.0)


def _badness(metric: str, value: float) -> float:
    """What the directions of a metric are sorted by; of equal ones the order stays."""
    sign = WORSE.get(metric, 0.0)
    return inf if sign and not isfinite(value) else sign * value if sign else 0.0


def _delay(times: Rows, group: str, direction: str) -> Mapping[str, Any]:
    """The one-way delays of a group, if any were measured; the mean is infinite where nothing
    arrived."""
    for row in times:
        if (row["group"], row["quantity"], row["direction"]) == (group, "delay", direction):
            return row if row["count"] else {"mean_s": inf}
    return {}


def _goodputs(flows: Rows, group: str) -> list[float]:
    """The goodputs of the group's flows that have one."""
    of = [row["goodput_bps"] for row in flows if row["group"] == group]
    return [value for value in of if value is not None and value == value]


def _over(value: float, whole: float) -> float:
    """A share or rate; not finite where there is nothing to share."""
    if whole == 0:
        return nan if value == 0 else inf
    return value / whole


def _mean(values: Sequence[float]) -> float:
    return _sum(values) / len(values)


def _jain(values: Sequence[float]) -> float:
    """Jain's fairness index."""
    squares = _sum([value * value for value in values]) * len(values)
    total = _sum(values)
    return _over(total * total, squares)


def _sum(values: Sequence[float]) -> float:
    """The sum in numpy's order of additions."""
    count = len(values)
    if count < LANES:
        total = 0.0
        for value in values:
            total += value
        return total
    if count <= BLOCK:
        lanes = list(values[:LANES])
        whole = count - count % LANES
        for place in range(LANES, whole):
            lanes[place % LANES] += values[place]
        left = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        total = left + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
        for value in values[whole:]:
            total += value
        return total
    half = count // 2
    half -= half % LANES
    return _sum(values[:half]) + _sum(values[half:])
