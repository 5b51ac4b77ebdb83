"""The cells of the parity grid whose delays or drops differ, simulated with bursts as well."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import aqmlab
from aqmlab.metrics.samples import Floats
from aqmlab.packs.parity import linux

SCENARIO = Path(__file__).parent / "parity.toml"
OFFLOAD: Mapping[str, Any] = {"transport.segmentation_offload": True}
BURSTS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("simulated", {}),
    ("with offload", OFFLOAD),
    ("with offload and clumps", {**OFFLOAD, "links.up.slot": {"min": "250us"}}),
)
"""Clumps: acknowledgements arrive every 0.25 ms only, all that have come by then."""
TEXT = """## Why rows differ

Real hosts send in bursts, simulated ones one segment at a time. A kernel hands several segments to
its device at once (`segmentation_offload`), and a host that wakes late finds several
acknowledgements. The queue then swings within a round trip. CoDel waits until it has been above
its target for 100 ms without interruption, so it drops less and the queue is longer; a full FIFO
drops more packets of each burst. The rows above that differ, with both in the simulation (clumps:
acknowledgements arrive every 0.25 ms); means of {runs} runs:
"""
SEPARATED = """
Which of the two the real packets owe it to is not separated. Switching off the offload in the real
hosts (`ip link set dev aqmlab gso_max_segs 1`) did not shorten the queue of CUBIC over CoDel at 100
Mbit/s and 10 ms: 5.34 ms with and without (22 s, means of four runs on a loaded machine,
2026-11-23, one packet in a hundred up to 14 ms late). Clumps remain.
"""


def simulated(
    control: str, settings: Mapping[str, Any], more: Mapping[str, Any], runs: int
) -> Mapping[str, Floats]:
    """Median delay in ms and drop share in %, one value a run, as `aqmlab parity` simulates."""
    scenario = tomllib.loads(SCENARIO.read_text("utf-8"))
    delays, drops = [], []
    for replication in range(runs):
        every = {**linux(control), **settings, **more}
        result = aqmlab.run(scenario, set=every, seed=1, replication=replication)
        (link,) = (row for row in result.links.to_dicts() if row["link"] == "down")
        delays.append(1e3 * link["sojourn_p50_s"])
        drops.append(1e2 * link["dropped"] / max(link["arrived"], 1))
    return {"median delay": np.array(delays), "drop share": np.array(drops)}


def lines(
    differing: Sequence[tuple[str, str, str, Mapping[str, Any], int, float]], runs: int
) -> Iterator[str]:
    """Section; for each row: label, quantity, control, settings, digits, the real mean."""
    yield from TEXT.format(runs=runs).split("\n")
    names = ("row", "real", *(name for name, _ in BURSTS))
    yield f"| {' | '.join(names)} |"
    yield f"| --- |{' ---: |' * (len(names) - 1)}"
    for label, quantity, control, settings, digits, real in differing:
        found = [simulated(control, settings, more, runs)[quantity].mean() for _, more in BURSTS]
        cells = (label, *(f"{value:.{digits}f}" for value in (real, *found)))
        yield f"| {' | '.join(cells)} |"
    yield from SEPARATED.split("\n")
