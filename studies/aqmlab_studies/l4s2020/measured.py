"""The published numbers, and the same of our runs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements

FILE = Path(__file__).parent / "published.json"
FLOWS = ("first", "second")


@cache
def published(part: str) -> dict[str, dict[str, list[float]]]:
    """Goodput of both flows, Mbit/s, by queue and by pair."""
    found: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text("utf-8"))[part]
    return found


def goodput(measured: Measurements, flow: str, **labels: str) -> Floats:
    """Of the last interval of each run, Mbit/s."""
    found = []
    for replication in range(measured.replications):
        _, values = measured.series("goodput_bps", f"{flow}.0", replication=replication, **labels)
        found.append(1e-6 * values[-1])
    return np.array(found)
