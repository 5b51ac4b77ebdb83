"""The comparison with ns-3: tables, one statement a job, and the experiments on what differs."""

from __future__ import annotations

from collections.abc import Iterator

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, Claim, Table
from aqmlab.statistics import AGREES, DIFFERS, FAILS, HOLDS, MEAN_METHOD, PARTLY, mean_interval
from aqmlab.studies.ns3.outcomes import (
    BUILDS,
    JOBS,
    QUANTITIES,
    Quantity,
    Window,
    outcome,
    superfluous,
    window,
)

__all__ = ["causes", "claims", "tables"]


def _windows(measured: Measurements) -> dict[str, Window]:
    found = ((job, window(measured, job)) for job in JOBS)
    return {job: each for job, each in found if each}


def tables(measured: Measurements) -> list[Table]:
    """A table for each quantity: our mean beside the two builds'."""
    windows = _windows(measured)
    return [_table(quantity, windows) for quantity in QUANTITIES if windows]


def _table(quantity: Quantity, windows: dict[str, Window]) -> Table:
    cells, notes = [], {}
    for job, each in windows.items():
        values = each.values(quantity.key)
        mean, interval = float(values.mean()), mean_interval(values)
        word = AGREES if quantity.agrees(job, mean) else DIFFERS
        band = quantity.band(job)
        notes[job] = f"the band: {band.low:.4g} to {band.high:.4g}"
        for build in BUILDS:
            theirs = float(outcome(build, job)[quantity.key])
            cells.append(Cell(job, build, theirs, mean, interval.low, interval.high, word))
    return Table(
        quantity.key,
        f"{quantity.name} (agrees: inside the band of ns-3's two builds)",
        quantity.unit,
        tuple(cells),
        reference="ns-3",
        method=MEAN_METHOD,
        notes=notes,
    )


def claims(measured: Measurements) -> list[Claim]:
    """For each job, whether all quantities are inside their bands."""
    return [_claim(job, each) for job, each in _windows(measured).items()]


def _claim(job: str, each: Window) -> Claim:
    told, outside = [], 0
    for quantity in QUANTITIES:
        mean = float(each.values(quantity.key).mean())
        agrees = quantity.agrees(job, mean)
        outside += not agrees
        band = quantity.band(job)
        where = "" if agrees else ", outside"
        told.append(f"{quantity.key} {mean:.4g} ({band.low:.4g} to {band.high:.4g}{where})")
    return Claim(
        job.lower().replace(" ", "-"),
        f"Job {job}: what ns-3 gives lies around what we measure.",
        HOLDS if not outside else PARTLY if outside < len(QUANTITIES) else FAILS,
        "; ".join(told) + ".",
    )


def causes(measured: Measurements) -> list[Cause]:
    """The experiments: what moves a quantity, and what the standard says."""
    return [*_reno(measured), *_fq_codel(measured), *_duplicates(measured), *_slow_start(measured)]


def _told(each: Window, *keys: str) -> str:
    units = {"p50": " ms", "p95": " ms", "loss": " %", "timeouts": ""}
    means = ((key, float(each.values(key).mean())) for key in keys)
    return ", ".join(f"{key} {mean:.3g}{units.get(key, '')}" for key, mean in means)


def _reno(measured: Measurements) -> Iterator[Cause]:
    labels = ("b Reno", "b Reno, RFC 5681", "b Reno, acknowledgements counted", "b Reno, RACK")
    linux, rfc, counted, rack = (window(measured, label) for label in labels)
    if not (linux and rfc and counted and rack):
        return
    keys = ("utilisation", "p50", "p95", "loss", "timeouts")
    yield Cause(
        "Reno: how much an acknowledgement of two segments counts",
        f"Counting all bytes, as Linux's Reno (what ns-3 ran): {_told(linux, *keys)}. Counting "
        f"bytes in congestion avoidance and a segment an acknowledgement in slow start, what RFC "
        f"5681, section 3.1, recommends and is our default: {_told(rfc, *keys)}. Counting "
        f"acknowledgements, which RFC 5681 allows and ns-2 does: {_told(counted, *keys)}: the "
        "window grows by half a segment a round trip, and the queue and the losses are half of "
        f"ns-3's. Losses found by time (RACK) instead of RFC 6675: {_told(rack, *keys)}.",
    )


def _fq_codel(measured: Measurements) -> Iterator[Cause]:
    usual = window(measured, "c FQ-CoDel")
    packet = window(measured, "c FQ-CoDel, quantum of a packet")
    if not (usual and packet):
        return
    band = next(each for each in QUANTITIES if each.key == "p50").band("c FQ-CoDel")
    yield Cause(
        "FQ-CoDel: the second packet of a pair",
        "Acknowledgements of two segments let pairs leave. With a quantum above the packet (1514 "
        "bytes, Linux's default) a queue that was empty sends both at once, for its deficit is "
        "still positive after the first (RFC 8290, section 4.2); with a quantum of just the "
        "packet the second waits for a round of all queues, 6 ms with 50 flows. Median "
        f"{_told(usual, 'p50', 'p95')} with the first, {_told(packet, 'p50', 'p95')} with the "
        f"second; the band for the median begins at {band.low:.3g} ms. ns-3's quantum is the "
        "device's MTU, 1500 bytes, and its packets have 1498 bytes there, so its pairs should "
        "leave together too; why they do not we have not found.",
    )


def _duplicates(measured: Measurements) -> Iterator[Cause]:
    windows = {job: each for job, each in _windows(measured).items() if job.startswith("b ")}
    if not windows:
        return
    told = []
    for job, each in windows.items():
        theirs = " and ".join(f"{100 * superfluous(build, job):.1f} %" for build in BUILDS)
        told.append(
            f"{job}: {theirs} in ns-3, {100 * float(each.values('superfluous').mean()):.1f} % here"
        )
    yield Cause(
        "ns-3 sends again what has arrived",
        "Packets that pass the bottleneck and bring nothing new (its goodput against the packets "
        f"it delivered): {'; '.join(told)}. They count as utilisation and make the queue longer; "
        "RFC 6675, section 5, sends again what its scoreboard takes for lost, and section 5.1 "
        "keeps what SACK has reported over a timeout.",
    )


def _slow_start(measured: Measurements) -> Iterator[Cause]:
    usual, other = window(measured, "d"), window(measured, "d, HyStart++")
    if not (usual and other):
        return
    keys = ("jain", "p50", "loss")
    yield Cause(
        "Job d: how slow start ends",
        "Ten seconds are too short for a hundred flows to forget how they began. With HyStart, "
        f"as ns-3: {_told(usual, *keys)}; with HyStart++ (RFC 9406), our default for CUBIC: "
        f"{_told(other, *keys)}.",
    )
