"""ns-2's values for readings of the background traffic: `ns2.json`, measured by us.

`ns2-rerun.json` has what ns-2.35 gave once more for some of them, with a set-up written anew
from README.md: where the two differ, something of the first set-up is not in its description.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import fmean

from aqmlab_studies.shared import packed


@dataclass(frozen=True)
class Reference:
    """Means over the seeds of ns-2, in seconds."""

    packet: float
    """One-way transmission time of the transfer's packets."""
    transfer: float
    """Time for the 10 MB."""
    seeds: int


@cache
def references(file: str = "ns2.json") -> dict[tuple[str, str], Reference]:
    """All of them, by (reading, queue)."""
    return {
        (reading, queue): Reference(
            fmean(each["packet_s"]), fmean(each["transfer_s"]), len(each["packet_s"])
        )
        for reading, queues in packed(__file__, file).items()
        for queue, each in queues.items()
    }


def reruns() -> dict[tuple[str, str], Reference]:
    """Values that were measured again, by (reading, queue)."""
    return references("ns2-rerun.json")


def increase(reading: str, queue: str) -> float:
    """The transfer's time beside that with DropTail, less one."""
    known = references()
    return known[reading, queue].transfer / known[reading, "DropTail"].transfer - 1
