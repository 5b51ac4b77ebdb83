"""The published numbers, and the same of our runs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run

FILE = Path(__file__).parent / "published.json"
FLOWS = ("first", "second")


@cache
def published(part: str) -> dict[str, dict[str, list[float]]]:
    """Goodput of both flows, Mbit/s, by queue and by pair."""
    found: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text("utf-8"))[part]
    return found


@per_run
def goodput(measured: Measurements, flow: str, **labels: str) -> Floats:
    """Goodput of the last interval of each run, Mbit/s."""
    _, rows = measured.curves("goodput_bps", f"{flow}.0", **labels)
    last: Floats = 1e-6 * rows[:, -1]
    return last
