"""What the rules of Prague, CUBIC and DualPI2 give for the ratio of two flows.

Prague's window falls by half its average of marks, alpha, and grows by r² segments a round trip,
where r is its round-trip time over the virtual one, 25 ms, and at most 1. It falls at the first
mark after `n` round trips, the least number that makes 25 ms, and marks come at random; so with x
marks a round trip it grows for n + 1/x round trips, and window times alpha is

    x = 2 r² (n + 1/x).

CUBIC's window is the larger of the two of RFC 9438 (section 5.1, its Reno-friendly region and its
cubic one) for the share p'², of which the mean over time counts: p' varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.shared import each_run

VIRTUAL = 0.025
"""Prague's virtual round-trip time, s."""
FROM = 20.0
"""From this time of a run on its state counts, s."""


@dataclass(frozen=True)
class State:
    """What a run was like, as means over time."""

    alpha: float
    """Prague's average of marks."""
    base: float
    """DualPI2's base probability, p'."""
    base_rms: float
    """The root of the mean of its square."""
    rtt: float
    """Prague's round-trip time, s."""
    rtt_classic: float
    """CUBIC's, s."""
    windows: tuple[float, float]
    """Windows of both, segments."""
    goodput: tuple[float, float]
    """Goodputs of both, Mbit/s."""

    @property
    def ratio(self) -> float:
        """Prague's goodput over CUBIC's."""
        return self.goodput[0] / self.goodput[1]

    @property
    def steadiness(self) -> float:
        """Variation of p': 1 if constant."""
        return self.base_rms / self.base


def prague(alpha: float, rtt: float) -> float:
    """Prague's window in segments; below two of them its pacing holds it back."""
    r = min(1.0, rtt / VIRTUAL)
    rounds, growth = max(1, ceil(VIRTUAL / rtt)), 2 * r * r
    x = (growth * rounds + sqrt((growth * rounds) ** 2 + 4 * growth)) / 2
    return x / alpha


def cubic(base_rms: float, rtt: float) -> float:
    """CUBIC's window in segments."""
    friendly = sqrt(1.5) / base_rms
    curve: float = 1.054 * rtt**0.75 / base_rms**1.5
    return max(friendly, curve)


def by_the_rules(state: State) -> float:
    """The ratio of goodputs that follows from the probabilities and round-trip times."""
    ours = prague(state.alpha, state.rtt) / state.rtt
    return ours / (cubic(state.base_rms, state.rtt_classic) / state.rtt_classic)


@each_run
def states(measured: Measurements, replication: int, **labels: str) -> State:
    """What a run was like."""

    def values(quantity: str, subject: str | None = None) -> Floats:
        times, found = measured.series(quantity, subject, replication=replication, **labels)
        return np.asarray(found[times > FROM])

    def mean(quantity: str, subject: str) -> float:
        return float(np.nanmean(values(quantity, subject)))

    base = values("base_probability")
    flows = ("first.0", "second.0")
    first, second = (mean("cwnd_bytes", flow) / 1448 for flow in flows)
    ours, theirs = (1e-6 * mean("goodput_bps", flow) for flow in flows)
    return State(
        alpha=mean("alpha", flows[0]),
        base=float(base.mean()),
        base_rms=sqrt(float((base**2).mean())),
        rtt=mean("smoothed_rtt_s", flows[0]),
        rtt_classic=mean("smoothed_rtt_s", flows[1]),
        windows=(first, second),
        goodput=(ours, theirs),
    )
