"""The paper's model: equations 9 to 11."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab.reproduce.verdicts import Criterion

__all__ = ["NEAR", "STEP", "Path", "late_mean"]

PACKET = 1500
STEP = 0.05
"""A share is the same within this much."""
NEAR = Criterion(STEP, relative=False)


@dataclass(frozen=True)
class Path:
    """What the model knows of a path: the rate in bit/s and the round-trip time in s."""

    rate: float
    rtt: float

    def others(self, buffer: float, flows: int = 1) -> float:
        """The share of the loss-based flows, p (equation 9; none where it is below zero), beside
        so many flows of BBR in a buffer of so many bandwidth-delay products."""
        packets = buffer * self.rate * self.rtt / 8 / PACKET
        return max(0.0, 0.5 - 1 / (2 * buffer) - 4 * flows / packets)

    def share(self, buffer: float, flows: int = 1) -> float:
        """The share of all flows of BBR, without the time of ProbeRTT (equations 10 and 11)."""
        return (1 - self.others(buffer, flows)) * (1 - (buffer * self.rtt + 0.2 + self.rtt) / 10)


@per_run
def late_mean(
    measured: Measurements, quantity: str, subject: str, after: float, **labels: str
) -> Floats:
    """The mean of a sampled quantity in each run (the link's, without `subject`), from `after`
    seconds on."""
    times, rows = measured.curves(quantity, subject, **labels)
    mean: Floats = np.nanmean(rows[:, times > after], axis=1)
    return mean
