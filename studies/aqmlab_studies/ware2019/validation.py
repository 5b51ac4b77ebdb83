"""The paper's own validation: the median error of its model over the buffers and flows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aqmlab.campaign import Rule, at_most
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.stats import MEAN_METHOD, SHARE
from aqmlab_studies.ware2019.model import NEAR, Path, late_mean

__all__ = ["RULES", "causes", "tables"]

PATH = Path(10e6, 0.04)
FROM = 60.0
"""From this time on shares are measured, s."""
PUBLISHED = {"CUBIC": 0.05, "Reno": 0.08}
"""The median error of the model by the paper."""


@dataclass(frozen=True)
class Place:
    """So many flows of BBR in a buffer, beside one flow of another control."""

    measured: Measurements
    beside: str
    bbr: str
    buffer: str

    @property
    def flows(self) -> int:
        """Flows of BBR."""
        return int(self.bbr.split()[0])

    @property
    def model(self) -> float:
        """The share of all flows of BBR by the paper."""
        return PATH.share(float(self.buffer.split()[0]), self.flows)

    @cached_property
    def shares(self) -> Floats:
        """Share of BBR's flows in the goodput, a value for each replication."""
        ours: Floats = np.sum([self._goodput(f"bbr.{flow}") for flow in range(self.flows)], axis=0)
        return ours / (ours + self._goodput("other.0"))

    @property
    def overestimated(self) -> float:
        """The rates that the flows of BBR estimate, together, to their goodput, in the first
        replication: their windows are twice the estimated product (BBR, 4.2.3.2)."""
        rates, goodputs = [], []
        for flow in (f"bbr.{number}" for number in range(self.flows)):
            window, rtt = self._series("cwnd_bytes", flow), self._series("min_rtt_ms", flow)
            rates.append(float(np.nanmean(8 * window / 2 / (1e-3 * rtt))))
            goodputs.append(float(self._goodput(flow)[0]))
        return sum(rates) / sum(goodputs)

    @property
    def _labels(self) -> dict[str, str]:
        return {"beside": self.beside, "bbr": self.bbr, "buffer": self.buffer}

    def _goodput(self, flow: str) -> Floats:
        return late_mean(self.measured, "goodput_bps", flow, FROM, **self._labels)

    def _series(self, quantity: str, flow: str) -> Floats:
        times, rows = self.measured.curves(quantity, flow, **self._labels)
        first: Floats = rows[0, times > FROM]
        return first

    @property
    def error(self) -> float:
        """Distance of the model from the mean share, as a part of the share."""
        share = float(self.shares.mean())
        return abs(self.model - share) / share


def places(measured: Measurements, beside: str) -> list[Place]:
    """All that were run beside a control."""
    axes = measured.axes
    return [
        Place(measured, beside, bbr, buffer) for buffer in axes["buffer"] for bbr in axes["bbr"]
    ]


def tables(measured: Measurements) -> list[CellTable]:
    """The share of the flows of BBR by buffer and number, for each rival."""
    measured = measured.part("validation")
    return [
        CellTable(
            f"validation-{beside.lower()}",
            f"The paper's validation: share of the flows of BBR beside one of {beside}",
            "1",
            tuple(
                Cell.mean(place.buffer, place.bbr, place.model, place.shares, NEAR, SHARE)
                for place in places(measured, beside)
            ),
            reference="model of the paper",
            method=MEAN_METHOD,
        )
        for beside in measured.axes["beside"]
    ]


def causes(measured: Measurements) -> list[Cause]:
    """The sum of what several flows of BBR estimate."""
    measured = measured.part("validation")
    measured.point(beside="CUBIC", buffer="8 BDP", bbr="16 BBR")
    told = [
        f"{flows}: {place.overestimated:.2f} times"
        for flows in measured.axes["bbr"]
        for place in [Place(measured, "CUBIC", flows, "8 BDP")]
    ]
    return [
        Cause(
            "What several flows of BBR estimate",
            "The model gives all flows of BBR together the rate that they have; each takes the "
            "largest of its samples of ten round trips, and these do not fall together (the paper "
            "names the excess and leaves it out). Their windows follow the estimates. The sum of "
            "their estimates to their goodput, in a buffer of 8 products beside CUBIC: "
            f"{', '.join(told)}.",
        )
    ]


def _median_error(beside: str) -> Rule[Measurements, float]:
    most = PUBLISHED[beside]

    def measure(measured: Measurements) -> float | None:
        found = places(measured, beside)
        if not measured.has(beside=beside) or len(found) < 42:
            return None
        return float(np.median([place.error for place in found]))

    return Rule(
        f"median-{beside.lower()}",
        f"The model predicts the share of BBR beside {beside} with a median error of "
        f"{100 * most:.0f} %.",
        f"the median over 1 to 32 flows and buffers of 1 to 64 products is at most {most:g}",
        measure,
        lambda error: at_most(error, most),
        lambda error: f"{100 * error:.1f} %",
        2 * most,
    )


RULES = tuple(_median_error(beside) for beside in PUBLISHED)
