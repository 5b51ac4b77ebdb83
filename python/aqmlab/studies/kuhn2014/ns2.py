"""What ns-2 gives for readings of the background traffic: `ns2.json`, measured by us."""

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
    text = (Path(__file__).parent / "ns2.json").read_text(encoding="utf-8")
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
