"""The published numbers, and the same of our runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab_studies.shared import packed

FILE = Path(__file__).parent / "published.json"
FLOWS = ("first", "second")


@cache
def published(part: str) -> dict[str, dict[str, list[float]]]:
    """Goodput of both flows, Mbit/s, by queue and by pair."""
    found: dict[str, dict[str, list[float]]] = packed(__file__, FILE.name)[part]
    return found


@per_run
def goodput(measured: Measurements, flow: str, **labels: str) -> Floats:
    """Goodput of the last interval of each run, Mbit/s."""
    _, rows = measured.curves("goodput_bps", f"{flow}.0", **labels)
    last: Floats = 1e-6 * rows[:, -1]
    return last


def both(measured: Measurements, **labels: str) -> tuple[float, float]:
    """The mean goodputs of both flows, Mbit/s."""
    first, second = (float(goodput(measured, flow, **labels).mean()) for flow in FLOWS)
    return first, second
