"""ns-2's values for readings of the background traffic: `ns2.json`, measured by us.

`ns2-rerun.json` has what ns-2.35 gave once more for some of them, with a set-up written anew
from README.md: where the two differ, something of the first set-up is not in its description.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean


@dataclass(frozen=True)
class Reference:
    """Means over the seeds of ns-2, in seconds."""

    packet: float
    """One-way transmission time of the transfer's packets."""
    transfer: float
    """Time for the 10 MB."""
    seeds: int


@cache
def references() -> dict[tuple[str, str], Reference]:
    """All of them, by (reading, queue)."""
    return _read("ns2.json")


@cache
def reruns() -> dict[tuple[str, str], Reference]:
    """Values that were measured again, by (reading, queue)."""
    return _read("ns2-rerun.json")


def _read(file: str) -> dict[tuple[str, str], Reference]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return {
        (reading, queue): Reference(
            fmean(each["packet_s"]), fmean(each["transfer_s"]), len(each["packet_s"])
        )
        for reading, queues in json.loads(text).items()
        for queue, each in queues.items()
    }


def increase(reading: str, queue: str) -> float:
    """The transfer's time beside that with DropTail, less one."""
    known = references()
    return known[reading, queue].transfer / known[reading, "DropTail"].transfer - 1
