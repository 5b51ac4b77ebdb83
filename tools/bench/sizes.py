"""Time to read large scenarios and studies, by size: `python -m
tools.bench.sizes`.

Prints the CPU time for a size and for ten times as much, and the ratio: about 10 if the time is
in proportion to the size. (The chain's mean rate is of the order of the square of its states.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

FLOWS = {"one": {"path": ["link0"], "return_path": ["link1"]}}
LINK = {"rate": "10mbit", "delay": "1ms"}


def links(count: int) -> dict[str, Any]:
    """A scenario of so many links."""
    return {"duration": "1ms", "links": {f"link{n}": LINK for n in range(count)}, "flows": FLOWS}


def states(count: int) -> dict[str, Any]:
    """A scenario of a link whose rate has so many states."""
    rates = [f"{1 + n}mbit" for n in range(count)]
    rate = {"process": "markov", "rates": rates, "dwell": ["1s"] * count}
    return {"duration": "1ms", "links": {"link0": LINK | {"rate": rate}, "link1": LINK},
            "flows": FLOWS}  # fmt: skip


def values(count: int) -> dict[str, Any]:
    """A study of an axis of so many values."""
    key = "flows.one.count"
    return {
        "scenario": links(2),
        "axes": [{"key": key, "name": "many", "values": list(range(1, count + 1))}],
    }


def seconds(make: Callable[[int], Mapping[str, Any]], count: int) -> float:
    """CPU time of reading it, the least of three."""
    from aqmlab import _core
    from aqmlab.study import Study

    content = make(count)
    found = []
    for _ in range(3):
        began = time.process_time()
        if make is values:
            Study(content)
        else:
            _core.Scenario(content)
        found.append(time.process_time() - began)
    return min(found)


CASES = {"links": (links, 20_000), "values of an axis": (values, 4_000), "states": (states, 80)}


def main() -> None:
    """Prints a line a case."""
    print(f"{'of':20} {'size':>8} {'s':>8} {'size':>8} {'s':>8} {'ratio':>6}")
    for name, (make, count) in CASES.items():
        few, many = seconds(make, count), seconds(make, 10 * count)
        print(f"{name:20} {count:8,} {few:8.3f} {10 * count:8,} {many:8.3f} {many / few:6.1f}")


if __name__ == "__main__":
    main()
