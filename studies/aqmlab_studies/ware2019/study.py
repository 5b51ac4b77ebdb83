"""BBR's share of the link beside the paper's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from aqmlab.campaign import Asked, Rule, above, at_least, below
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.stats import MEAN_METHOD, SHARE
from aqmlab_studies.ware2019 import validation
from aqmlab_studies.ware2019.model import NEAR, PACKET, STEP, Path, late_mean

__all__ = ["causes", "claims", "tables"]

PATH = Path(50e6, 0.04)
FROM = 60.0
"""From this time on everything is measured, s."""
DEEP = 2.0
"""From so many bandwidth-delay products on BBR is limited by its window."""


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


def points(measured: Measurements, beside: str) -> list[Point]:
    """Results beside a control, by buffer."""
    return [_point(measured, beside, buffer) for buffer in measured.axes["buffer"]]


def _point(measured: Measurements, beside: str, buffer: str) -> Point:
    def mean(quantity: str, subject: str = "") -> Floats:
        return late_mean(measured, quantity, subject, FROM, beside=beside, buffer=buffer)

    size = float(buffer.split()[0])
    ours, theirs = mean("goodput_bps", "bbr.0"), mean("goodput_bps", "other.0")
    return Point(
        size,
        ours / (ours + theirs),
        mean("in_flight_bytes", "bbr.0") / mean("cwnd_bytes", "bbr.0"),
        8 * PACKET * mean("backlog_packets") / (size * PATH.rate * PATH.rtt),
        1e-3 * mean("min_rtt_ms", "bbr.0"),
    )


def _shares_of(measured: Measurements) -> list[CellTable]:
    """Shares beside the model, and beside the model times what was in flight."""
    measured = measured.part("study")
    kinds: tuple[tuple[str, str, str, float, Callable[[Point], float]], ...] = (
        (
            "shares",
            "BBR's share of the goodput",
            "model of the paper",
            0.0,
            lambda point: point.model,
        ),
        (
            "limited",
            "BBR's share of the goodput, its window not always full",
            "model times what is in flight of the window",
            DEEP,
            lambda point: point.limited,
        ),
    )
    found = []
    for ident, name, reference, least, value in kinds:
        cells = [
            Cell.mean(buffer, beside, value(point), point.shares, NEAR, SHARE)
            for beside in measured.axes["beside"]
            for buffer, point in zip(measured.axes["buffer"], points(measured, beside), strict=True)
            if point.buffer >= least
        ]
        table = CellTable(ident, name, "1", tuple(cells), reference=reference, method=MEAN_METHOD)
        found.append(table)
    return found


def _means(measured: Measurements) -> list[list[float]] | None:
    """BBR's share by rival and buffer, if all buffers were run."""
    if len(measured.axes["buffer"]) < 7:
        return None
    return [
        [float(point.shares.mean()) for point in points(measured, beside)]
        for beside in measured.axes["beside"]
    ]


def _deep(measured: Measurements) -> list[tuple[float, float]] | None:
    """Shares and the model times what is in flight, where buffers are deep enough for a window."""
    found = [
        (float(point.shares.mean()), point.limited)
        for beside in measured.axes["beside"]
        for point in points(measured, beside)
        if point.buffer >= DEEP
    ]
    return found or None


def _shares(found: list[list[float]]) -> str:
    return "; ".join(", ".join(f"{share:.2f}" for share in row) for row in found)


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
    _shares,
    [[0.9, 0.9, 0.4, 0.5, 0.6, 0.6, 0.6]],
)
WINDOW: Rule[Measurements, list[tuple[float, float]]] = Rule(
    "window",
    "What separates the shares from the model is that BBR does not always fill its window.",
    "within 0.1 of the model times what was in flight of the window in nine of ten points of at "
    "least two bandwidth-delay products",
    _deep,
    lambda found: at_least(
        sum(abs(ours - law) <= 0.1 for ours, law in found) / len(found), 0.9, "share"
    ),
    lambda found: "; ".join(f"{ours:.2f} and {law:.2f}" for ours, law in found),
    [(0.3, 0.6)],
    own=True,
)


RULES = (SHAPE, WINDOW, *validation.RULES)


def claims(measured: Measurements) -> list[Asked]:
    """The shape of the paper's curve, what separates ours from it, and the paper's validation."""
    return measured.asked(study=(SHAPE, WINDOW), validation=validation.RULES)


def _of_one(measured: Measurements) -> list[Cause]:
    study = measured.part("study")
    study.point(beside="CUBIC", buffer="8 BDP")
    told = []
    for point in points(study, "CUBIC"):
        if point.buffer >= DEEP:
            supposed = 1e3 * PATH.rtt * (1 + PATH.others(point.buffer) * point.buffer)
            told.append(
                f"{point.buffer:g}: {1e3 * point.least_rtt.mean():.0f} ({supposed:.0f}) ms, "
                f"{100 * point.occupied.mean():.0f} %, {100 * point.filled.mean():.0f} %"
            )
    return [
        Cause(
            "The model has the buffer full and BBR's window too",
            "After a loss of the other flow the queue falls and round trips shorten; what BBR "
            "sends is then bounded by its estimate of the rate, not by its window. By buffer "
            "beside CUBIC: its estimate of the least round-trip time (by the model), how full "
            f"the buffer is, how much of BBR's window is in flight: {'; '.join(told)}.",
        )
    ]


tables = (_shares_of, validation.tables)
causes = (_of_one, validation.causes)
"""Where the model and the runs part."""
