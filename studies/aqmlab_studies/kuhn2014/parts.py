"""What the rules of both sections are made of: comparisons, and numbers in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aqmlab.campaign import Comparison, Rule, at_most
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.kuhn2014.measure import BUFFERS

CUBIC = {"control": "CUBIC"}
ROOMY = BUFFERS[1:]
"""The buffers in which an AQM has room to act."""

AnyRule = Rule[Measurements, Any]


def percent(share: float) -> str:
    """`42.0 %`."""
    return f"{100 * share:.1f} %"


def ms(delay: float) -> str:
    """Seconds as `115 ms`."""
    return f"{1e3 * delay:.0f} ms"


def named(number: Callable[[float], str]) -> Callable[[dict[str, float]], str]:
    """Formats numbers with their names: `1.2 (RED), 1.3 (CoDel)`."""
    return lambda found: ", ".join(f"{number(value)} ({name})" for name, value in found.items())


def times(ratio: float) -> str:
    """`1.23`."""
    return f"{ratio:.2f}"


def each(
    compare: Callable[[float, float, str], Comparison], limit: float
) -> Callable[[dict[str, float]], list[Comparison]]:
    """Every number beside the same limit."""
    return lambda found: [compare(value, limit, name) for name, value in found.items()]


def range_within(ratio: float) -> Callable[[dict[str, float]], Comparison]:
    """The largest number is at most this multiple of the smallest."""
    return lambda found: at_most(
        max(found.values()) / min(found.values()), ratio, "largest over smallest"
    )
