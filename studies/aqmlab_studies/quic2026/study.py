"""Use, delay, signals, shares and spurious retransmissions, beside those of Linux's senders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from aqmlab.campaign import Asked, Comparison, Rule, asked, at_least, at_most
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements, per_run
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.stats import POSITIVE, SHARE
from aqmlab_studies.shared import mean_table

PEERS = {
    f"{stack}:{name}": peer
    for stack, bbr in (("noq", "bbr3"), ("quinn", "bbr"))
    for name, peer in (("new_reno", "Linux Reno"), ("cubic", "Linux CUBIC"), (bbr, "Linux BBR"))
}
"""QUIC controllers, and the sender that each is compared with."""
Value = Callable[..., Floats]


@per_run
def _spurious(measured: Measurements, **labels: str) -> Floats:
    """Share of the packets that were declared lost but not lost."""
    extra = pl.col("retransmissions").cast(pl.Int64) - pl.col("dropped") - pl.col("lost")
    rows = measured.rows("flows", **labels).sort("run").filter(group="own")
    found: Floats = rows.select(extra.clip(0) / pl.col("segments_sent")).to_series().to_numpy()
    return found


def _metric(name: str, subject: str = "down") -> Value:
    return lambda measured, **labels: measured.metric(name, subject, **labels)


def _signals(measured: Measurements, **labels: str) -> Floats:
    dropped, marked = (_metric(name)(measured, **labels) for name in ("drop_share", "mark_share"))
    return dropped + marked


@dataclass(frozen=True)
class Quantity:
    """A table for each path, and a statement about each QUIC controller."""

    id: str
    name: str
    unit: str
    of: Value
    text: str
    rule: str
    compared: Callable[[float, float, str], Comparison]
    """Compares a QUIC controller's number with its peer's."""
    wrong: tuple[float, float]
    beside: str = "alone"


QUANTITIES = (
    Quantity(
        "use", "Utilisation", "share", _metric("utilisation"), "uses the link as {peer} does",
        "at most 0.03 less", lambda own, peer, name: at_least(own - peer, -0.03, name), (0.5, 0.9),
    ),
    Quantity(
        "delay", "95th percentile of the queuing delay", "s", _metric("sojourn_p95"),
        "keeps the queue as short as {peer} does", "at most 1.25 times as long, and 2 ms",
        lambda own, peer, name: at_most(own - 1.25 * peer, 0.002, name), (0.1, 0.01),
    ),
    Quantity(
        "signals", "Dropped or marked packets", "share", _signals,
        "reacts to drops and marks as {peer} does", "at most 0.02 more of the packets",
        lambda own, peer, name: at_most(own - peer, 0.02, name), (0.5, 0.01),
    ),
    Quantity(
        "share", "Share of the goodput beside CUBIC", "share", _metric("goodput_share", "own"),
        "has the share beside CUBIC that {peer} has", "off by at most 0.1",
        lambda own, peer, name: at_most(abs(own - peer), 0.1, name), (0.9, 0.5), "CUBIC",
    ),
    Quantity(
        "spurious", "Packets declared lost but not lost", "share", _spurious,
        "retransmits only lost packets", "at most 0.005 of the packets more",
        lambda own, _, name: at_most(own, 0.005, name), (0.2, 0.0),
    ),
)  # fmt: skip
Found = dict[str, tuple[float, float]]
"""A QUIC controller's number and its peer's, by queue and path."""


def _rule(quantity: Quantity, sender: str) -> Rule[Measurements, Found]:
    peer = PEERS[sender]

    def measure(measured: Measurements) -> Found | None:
        places = list(product(measured.axes["queue"], measured.axes["path"]))
        if not all(measured.has(sender=each, beside=quantity.beside) for each in (sender, peer)):
            return None

        def mean(sender: str, queue: str, path: str) -> float:
            labels = {"queue": queue, "path": path, "beside": quantity.beside}
            return float(quantity.of(measured, sender=sender, **labels).mean())

        return {", ".join(each): (mean(sender, *each), mean(peer, *each)) for each in places}

    def compared(found: Found) -> list[Comparison]:
        return [quantity.compared(*pair, name) for name, pair in found.items()]

    def told(found: Found) -> str:
        each = compared(found)
        worst = min(each, key=lambda one: one.slack).name
        right, (own, other) = sum(one.slack > 0 for one in each), found[worst]
        return f"{right} of {len(found)}; {worst}: {own:.4g}, {peer} {other:.4g}"

    ident = f"{quantity.id}-{sender.replace(':', '-')}"
    text = f"{sender} {quantity.text.format(peer=peer)}."
    rule = f"{quantity.rule}, over every queue and path"
    wrong = {"PIE, 10 Mbit/s, 20 ms": quantity.wrong}
    return Rule(ident, text, rule, measure, compared, told, wrong, own=True)


RULES = tuple(_rule(quantity, sender) for quantity in QUANTITIES for sender in PEERS)


def claims(measured: Measurements) -> list[Asked]:
    """A statement about each QUIC controller and quantity."""
    return asked(RULES, measured.part("study"))


def tables(measured: Measurements) -> Iterator[CellTable]:
    """A table for each quantity and path."""
    study = measured.part("study")
    places = list(product(study.axes["sender"], study.axes["queue"]))
    for quantity, path in product(QUANTITIES, study.axes["path"]):
        at = {"path": path, "beside": quantity.beside}
        if study.has(**at):
            bounds = SHARE if quantity.unit == "share" else POSITIVE
            cells = [
                Cell.mean(
                    each, q, None, quantity.of(study, sender=each, queue=q, **at), bounds=bounds
                )
                for each, q in places
            ]
            ident = f"{quantity.id}-{path}".replace(" ", "-")
            yield mean_table(ident, f"{quantity.name}, {path}", quantity.unit, cells)


def _window(part: Measurements, **labels: str) -> Floats:
    """Mean congestion window after the warm-up."""
    times, rows = part.curves("cwnd_bytes", "own.0", **labels)
    found: Floats = rows[:, times > 5].mean(axis=1)
    return found


def _startup(part: Measurements, **labels: str) -> Floats:
    """Seconds in which the pacing rate is above twice the link's rate."""
    times, rows = part.curves("pacing_rate_bps", "own.0", **labels)
    found: Floats = (rows > 2e8).sum(axis=1) * (times[1] - times[0])
    return found


def _failed(part: Measurements, **labels: str) -> Floats:
    """Whether the connection ended early."""
    return np.less(part.metric("utilisation", "down", **labels), 0.05).astype(float)


SHOWN: dict[str, tuple[str, Value, float, str]] = {
    "delay": ("median delay", _metric("sojourn_p50"), 1e3, "ms"),
    "signals": ("dropped or marked", _signals, 100, "%"),
    "window": ("window", _window, 1e-3, "kB"),
    "startup": ("STARTUP", _startup, 1, "s"),
    "failed": ("failed connections", _failed, 100, "%"),
    "use": ("utilisation", _metric("utilisation"), 100, "%"),
    "spurious": ("declared lost but not lost", _spurious, 100, "%"),
}
"""Name, value, scale and unit of what a cause shows of its experiments."""


def causes(measured: Measurements) -> list[Cause]:
    """Causes whose experiments were run."""
    part = measured.part("experiments")
    return [each for name in measured.paper["numbers"] if (each := _cause(part, name))]


def _cause(part: Measurements, name: str) -> Cause | None:
    cause, told = part.paper["numbers"][name], []
    for experiment in part.paper["subsets"][name]["experiment"]:
        if not part.has(experiment=experiment):
            return None
        values = []
        for title, value, scale, unit in (SHOWN[each] for each in cause["shown"]):
            number = scale * float(value(part, experiment=experiment).mean())
            values.append(f"{title} {number:.3g} {unit}")
        told.append(f"{experiment}: {', '.join(values)}")
    text = f"{cause['text']} {'; '.join(told)}. `aqmlab reproduce quic2026 --only {name}`"
    return Cause(cause["title"], text)
