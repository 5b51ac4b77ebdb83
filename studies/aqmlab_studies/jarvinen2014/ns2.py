"""ns-2's values on this study's scenario: `ns2.json`, measured by us."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from aqmlab_studies.shared import packed

REST = "11 ms"
"""The paper's main case of the rest of the path."""


@dataclass(frozen=True)
class Reference:
    """ns-2's values at one point of the study, pooled over 100 replications."""

    packets: int
    percentiles: tuple[float, ...]

    def percentile(self, number: int) -> float:
        """Percentile 1 to 100 of the queuing delay of all packets, seconds."""
        return self.percentiles[number - 1]


@cache
def references() -> dict[tuple[str, str, str], Reference]:
    """All of them, by (queue, flows, rest)."""
    return {
        (cell["queue"], cell["flows"], cell["rest"]): Reference(
            cell["packets"], tuple(cell["percentiles"])
        )
        for cell in _file()["cells"]
    }


def reference(queue: str, flows: str, rest: str = REST) -> Reference | None:
    """Values at one point, if measured."""
    return references().get((queue, flows, rest))


def value(kind: str, queue: str, flows: str, rest: str = REST) -> float | None:
    """ns-2's 95th percentile (`p95`) or maximum (`maximum`) at one point, in seconds.

    With 6+6 flows only the rounded numbers were kept.
    """
    known = reference(queue, flows, rest)
    if known:
        return known.percentile(95 if kind == "p95" else 100)
    rounded = _file()["rounded"].get(kind, {}).get(queue, {}) if rest == REST else {}
    return rounded.get(flows)


def offsets() -> list[float]:
    """When the second group started in each of ns-2's replications, seconds."""
    return list(_file()["offsets"])


@cache
def _file() -> Any:
    return packed(__file__, "ns2.json")
