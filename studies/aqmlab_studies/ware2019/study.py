"""BBR's share of the link beside the paper's model (equations 9 to 11), and the paper's own
validation: the median error of its model over the buffers and flows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from aqmlab.campaign import Asked, Rule, above, at_least, at_most, below
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.stats import SHARE
from aqmlab_studies.shared import mean_table

PACKET = 1500
STEP = 0.05
"""A share is the same within this much."""
NEAR = Criterion(STEP, relative=False)
FROM = 60.0
"""From this time on everything is measured, s."""
DEEP = 2.0
"""From so many bandwidth-delay products on BBR is limited by its window."""
PUBLISHED = {"CUBIC": 0.05, "Reno": 0.08}
"""The median error of the model by the paper."""


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


PATH, VALIDATION = Path(50e6, 0.04), Path(10e6, 0.04)
"""Paths of the two parts."""


@per_run
def late(measured: Measurements, quantity: str, subject: str, **labels: str) -> Floats:
    """The mean of a sampled quantity in each run (the link's, without `subject`) since `FROM`."""
    times, rows = measured.curves(quantity, subject, **labels)
    mean: Floats = np.nanmean(rows[:, times > FROM], axis=1)
    return mean


@dataclass(frozen=True)
class Point:
    """Results with one rival and buffer: a value for each replication."""

    buffer: float
    """In bandwidth-delay products."""
    shares: Floats
    """BBR's share of the goodput."""
    filled: Floats
    """Share of BBR's window in flight."""
    occupied: Floats
    """Used share of the buffer."""
    least_rtt: Floats
    """BBR's estimate, s."""

    @property
    def model(self) -> float:
        """The paper's share."""
        return PATH.share(self.buffer)

    @property
    def limited(self) -> float:
        """The paper's share times the share of the window in flight."""
        return self.model * float(self.filled.mean())


def _all(measured: Measurements) -> dict[tuple[str, str], Point]:
    """Results by buffer and rival."""
    places = product(measured.axes["beside"], measured.axes["buffer"])
    return {(buffer, beside): _point(measured, beside, buffer) for beside, buffer in places}


def _point(measured: Measurements, beside: str, buffer: str) -> Point:
    def mean(quantity: str, subject: str = "") -> Floats:
        return late(measured, quantity, subject, beside=beside, buffer=buffer)

    size = float(buffer.split()[0])
    ours, theirs = mean("goodput_bps", "bbr.0"), mean("goodput_bps", "other.0")
    return Point(
        size,
        ours / (ours + theirs),
        mean("in_flight_bytes", "bbr.0") / mean("cwnd_bytes", "bbr.0"),
        8 * PACKET * mean("backlog_packets") / (size * PATH.rate * PATH.rtt),
        1e-3 * mean("min_rtt_ms", "bbr.0"),
    )


def _shares_of(measured: Measurements) -> Iterator[CellTable]:
    """Shares beside the model, and beside the model times what was in flight."""
    study = measured.part("study")
    name = "BBR's share of the goodput"
    found = _all(study)
    cells = [Cell.mean(*at, each.model, each.shares, NEAR, SHARE) for at, each in found.items()]
    yield mean_table("shares", name, "1", cells, "model of the paper")
    cells = [
        Cell.mean(*at, each.limited, each.shares, NEAR, SHARE)
        for at, each in found.items()
        if each.buffer >= DEEP
    ]
    of_window = "model times the share of the window that is in flight"
    yield mean_table("limited", f"{name}, its window not always full", "1", cells, of_window)


def _means(measured: Measurements) -> list[list[float]] | None:
    """BBR's share by rival and buffer, if all buffers were run."""
    if len(measured.axes["buffer"]) < 7:
        return None
    found = _all(measured)
    return [
        [float(each.shares.mean()) for (_, rival), each in found.items() if rival == beside]
        for beside in measured.axes["beside"]
    ]


def _deep(measured: Measurements) -> list[tuple[float, float]] | None:
    """Shares and the model times what is in flight, where buffers are deep enough for a window."""
    deep = [each for each in _all(measured).values() if each.buffer >= DEEP]
    return [(float(each.shares.mean()), each.limited) for each in deep] or None


SHAPE: Rule[Measurements, list[list[float]]] = Rule(
    "shape",
    "BBR takes nearly all of a link with a shallow buffer, and less the deeper it is, down to less "
    "than half.",
    "over 0.8 up to one bandwidth-delay product, then nowhere more than 0.05 above the one before, "
    "and under 0.5 at 32 of them",
    _means,
    lambda found: [
        each
        for row in found
        for each in (
            *(above(share, 0.8, "shallow") for share in row[:2]),
            below(row[-1], 0.5, "deepest"),
            *(below(after - before, STEP, "step") for before, after in pairwise(row[1:])),
        )
    ],
    lambda found: "; ".join(", ".join(f"{share:.2f}" for share in row) for row in found),
    [[0.9, 0.9, 0.4, 0.5, 0.6, 0.6, 0.6]],
)
WINDOW: Rule[Measurements, list[tuple[float, float]]] = Rule(
    "window",
    "What separates the shares from the model is that BBR does not always fill its window.",
    "within 0.1 of the model times the share of the window in flight in nine of ten points of at "
    "least two bandwidth-delay products",
    _deep,
    lambda found: at_least(
        sum(abs(ours - law) <= 0.1 for ours, law in found) / len(found), 0.9, "share"
    ),
    lambda found: "; ".join(f"{ours:.2f} and {law:.2f}" for ours, law in found),
    [(0.3, 0.6)],
    own=True,
)


@dataclass(frozen=True)
class Place:
    """So many flows of BBR in a buffer, beside one flow of another control."""

    measured: Measurements
    at: dict[str, str]
    """Labels of the point."""

    @property
    def flows(self) -> int:
        """Flows of BBR."""
        return int(self.at["bbr"].split()[0])

    @property
    def model(self) -> float:
        """The share of all flows of BBR by the paper."""
        return VALIDATION.share(float(self.at["buffer"].split()[0]), self.flows)

    @property
    def shares(self) -> Floats:
        """Share of BBR's flows in the goodput, a value for each replication."""
        flows = [self._goodput(f"bbr.{flow}") for flow in range(self.flows)]
        ours: Floats = np.sum(flows, axis=0)
        return ours / (ours + self._goodput("other.0"))

    @property
    def overestimated(self) -> float:
        """The rates that the flows of BBR estimate, together, to their goodput, in the first
        replication: their windows are twice the estimated product (BBR, 4.2.3.2)."""
        rates, goodputs = [], []
        for flow in (f"bbr.{number}" for number in range(self.flows)):
            window, rtt = (self._first(each, flow) for each in ("cwnd_bytes", "min_rtt_ms"))
            rates.append(float(np.nanmean(8 * window / 2 / (1e-3 * rtt))))
            goodputs.append(float(self._goodput(flow)[0]))
        return sum(rates) / sum(goodputs)

    @property
    def error(self) -> float:
        """Distance of the model from the mean share, as a part of the share."""
        share = float(self.shares.mean())
        return abs(self.model - share) / share

    def _goodput(self, flow: str) -> Floats:
        return late(self.measured, "goodput_bps", flow, **self.at)

    def _first(self, quantity: str, flow: str) -> Floats:
        times, rows = self.measured.curves(quantity, flow, **self.at)
        first: Floats = rows[0, times > FROM]
        return first


def places(measured: Measurements, beside: str) -> list[Place]:
    """All that were run beside a control."""
    axes = measured.axes
    return [
        Place(measured, {"beside": beside, "bbr": bbr, "buffer": buffer})
        for buffer in axes["buffer"]
        for bbr in axes["bbr"]
    ]


def _validation(measured: Measurements) -> Iterator[CellTable]:
    """The share of the flows of BBR by buffer and number, for each rival."""
    measured = measured.part("validation")
    for beside in measured.axes["beside"]:
        cells = [
            Cell.mean(each.at["buffer"], each.at["bbr"], each.model, each.shares, NEAR, SHARE)
            for each in places(measured, beside)
        ]
        name = f"The paper's validation: share of the flows of BBR beside one of {beside}"
        yield mean_table(f"validation-{beside.lower()}", name, "1", cells, "model of the paper")


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


OF_VALIDATION = tuple(_median_error(beside) for beside in PUBLISHED)
RULES = (SHAPE, WINDOW, *OF_VALIDATION)


def claims(measured: Measurements) -> list[Asked]:
    """The shape of the paper's curve, what separates ours from it, and the paper's validation."""
    return measured.asked(study=(SHAPE, WINDOW), validation=OF_VALIDATION)


def _of_one(measured: Measurements) -> Cause:
    study = measured.part("study")
    study.point(beside="CUBIC", buffer="8 BDP")
    told = []
    for (_, beside), point in _all(study).items():
        if beside == "CUBIC" and point.buffer >= DEEP:
            supposed = 1e3 * PATH.rtt * (1 + PATH.others(point.buffer) * point.buffer)
            told.append(
                f"{point.buffer:g}: {1e3 * point.least_rtt.mean():.0f} ({supposed:.0f}) ms, "
                f"{100 * point.occupied.mean():.0f} %, {100 * point.filled.mean():.0f} %"
            )
    return Cause(
        "The model has the buffer full and BBR's window too",
        "After a loss of the other flow the queue falls and round trips shorten; what BBR "
        "sends is then bounded by its estimate of the rate, not by its window. By buffer "
        "beside CUBIC: its estimate of the least round-trip time (by the model), how full "
        f"the buffer is, how much of BBR's window is in flight: {'; '.join(told)}.",
    )


def _of_several(measured: Measurements) -> Cause:
    """The sum of what several flows of BBR estimate."""
    measured = measured.part("validation")
    at = {"beside": "CUBIC", "buffer": "8 BDP"}
    measured.point(**at, bbr="16 BBR")
    told = [
        f"{flows}: {Place(measured, at | {'bbr': flows}).overestimated:.2f} times"
        for flows in measured.axes["bbr"]
    ]
    return Cause(
        "What several flows of BBR estimate",
        "The model gives all flows of BBR together the rate that they have; each takes the "
        "largest of its samples of ten round trips, and these do not fall together (the paper "
        "names the excess and leaves it out). Their windows follow the estimates. The sum of "
        "their estimates to their goodput, in a buffer of 8 products beside CUBIC: "
        f"{', '.join(told)}.",
    )


tables = (_shares_of, _validation)
causes = (_of_one, _of_several)
"""Where the model and the runs part."""
