"""The study's tables, published and ns-2's numbers beside ours, and what makes them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable, Replicates
from aqmlab_studies.kuhn2014 import ns2
from aqmlab_studies.kuhn2014.claims import claims
from aqmlab_studies.kuhn2014.figures import figures
from aqmlab_studies.kuhn2014.measure import (
    AQMS,
    CONTROLS,
    CUBIC,
    DROPTAIL,
    MAIN_BUFFER,
    QUEUES,
    Mean,
    Quantity,
    change,
    packet_mean,
    packet_times,
    transfer_mean,
    transfer_times,
    within,
)
from aqmlab_studies.shared import mean_table

__all__ = ["causes", "claims", "figures", "tables"]

DEFAULT = "TCP, 16 kbit/s, 1000 b"
"""The study's own reading."""
SATURATED = "TCP, 20 kbit/s, 1460 b"
LARGER = "TCP, 12 kbit/s, 1460 b"
"""One with segments of 1460 bytes."""

Key = tuple[str, str]
"""Row and column."""
packet_time, transfer_time = within(packet_times), within(transfer_times)


def _published(measured: Measurements) -> Iterator[CellTable]:
    study = measured.part("study")
    numbers = study.paper["numbers"]
    faster = "Section 4: reduction of the packet transmission time"
    longer = "Section 4: increase of the time to transmit 10 MB against DropTail"
    for ident, name, unit, queues, value in (
        ("packet_s", "Figure 5: packet transmission time, mean", "s", QUEUES, packet_time),
        ("reduction", f"{faster} against DropTail", "share", AQMS, change(packet_times, -1.0)),
        ("transfer_s", "Figure 6: time to transmit 10 MB, mean", "s", QUEUES, transfer_time),
        ("increase", longer, "share", AQMS, change(transfer_times)),
    ):
        known: Mapping[str, Mapping[str, float]] = numbers.get(ident, {})
        places = {
            (control, queue): {"buffer": MAIN_BUFFER, "control": control, "queue": queue}
            for control in CONTROLS
            for queue in queues
        }
        published = {key: known.get(key[0], {}).get(key[1]) for key in places}
        cells = _cells(study, value, places, published)
        yield mean_table(ident, name, unit, cells)
    where = {"buffer": MAIN_BUFFER, "queue": "DropTail"}
    if study.has(control="CUBIC", **where) and study.has(control="Vegas", **where):
        vegas = change(packet_times, -1.0, CUBIC)(study, control="Vegas", **where)
        reference = numbers["vegas_reduction"]
        cell = Cell.of("Vegas against CUBIC", "DropTail", reference, vegas)
        yield mean_table("vegas_reduction", f"{faster} by Vegas", "share", (cell,))


def _beside_ns2(measured: Measurements) -> Iterator[CellTable]:
    readings = measured.part("readings")
    known = ns2.references()
    queues, labels = readings.axes["queue"], readings.axes["reading"]
    places = {(r, q): {"reading": r, "queue": q} for r in labels for q in queues if (r, q) in known}
    seeds = {reading: known[reading, "DropTail"].seeds for reading in labels}
    notes = {reading: f"ns-2: mean of {many} seeds" for reading, many in seeds.items() if many > 1}
    ratios = {key: ns2.increase(*key) + 1 for key in places if key[1] != "DropTail"}
    packets = {key: known[key].packet for key in places}
    transfers = {key: known[key].transfer for key in places}
    multiple = "Time to transmit 10 MB as a multiple of DropTail's"
    for ident, name, unit, value, theirs in (
        ("ns2-packet", "Packet transmission time", "s", packet_time, packets),
        ("ns2-transfer", "Time to transmit 10 MB", "s", transfer_time, transfers),
        ("ns2-ratio", multiple, "ratio", _multiple, ratios),
    ):
        cells = _cells(readings, value, {key: places[key] for key in theirs}, theirs)
        yield mean_table(ident, f"{name}, beside ns-2", unit, map(_narrow, cells), "ns-2", notes)


def _narrow(cell: Cell) -> Cell:
    """RED's other settings get lines of their own in place of columns."""
    if cell.column in QUEUES:
        return cell
    return replace(cell, row=f"{cell.row}; {cell.column}", column="RED")


def _multiple(part: Measurements, **labels: str) -> Replicates:
    return Replicates(change(transfer_times)(part, **labels).values + 1)


def _experiments(measured: Measurements) -> Iterator[CellTable]:
    part = measured.part("experiments")
    places = {
        (setting, queue): {"setting": setting, "queue": queue}
        for setting in part.axes["setting"]
        for queue in QUEUES
    }
    for ident, name, value in (
        ("experiments-packet", "Packet transmission time, one thing changed", packet_time),
        ("experiments-transfer", "Time to transmit 10 MB, one thing changed", transfer_time),
    ):
        yield mean_table(ident, name, "s", _cells(part, value, places))


tables = (_published, _beside_ns2, _experiments)
"""The study's own numbers, those of ns-2, and the experiments."""


def _cells(
    part: Measurements,
    value: Quantity,
    places: Mapping[Key, dict[str, str]],
    reference: Mapping[Key, float | None] = MappingProxyType({}),
) -> Iterator[Cell]:
    """The cells at these places (row and column to labels), as far as they were run."""
    for key, labels in places.items():
        if part.has(**labels) and part.has(**labels | DROPTAIL):
            yield Cell.of(*key, reference.get(key), value(part, **labels))


def _droptail(measured: Measurements) -> Iterator[Cause]:
    """The published DropTail is neither CUBIC's nor Vegas's of the readings."""
    study = measured.part("study")
    times = {
        control: packet_mean(study, buffer=MAIN_BUFFER, control=control, queue="DropTail")
        for control in CONTROLS
    }
    theirs = ns2.references()
    known = {"CUBIC": DEFAULT, "NewReno": f"{DEFAULT}, NewReno", "Vegas": f"{DEFAULT}, Vegas"}
    yield Cause(
        f"DropTail: Vegas {100 * (1 - times['Vegas'] / times['CUBIC']):.0f} % below CUBIC, printed "
        "are 44 %",
        f"With DropTail we measure {_listed(times)}; ns-2 has for the same reading "
        f"{_listed({name: theirs[each, 'DropTail'].packet for name, each in known.items()})}. "
        "Vegas keeps a few packets in the queue.",
    )


def _experiment_causes(measured: Measurements) -> Iterator[Cause]:
    part = measured.part("experiments")

    def times(mean: Mean, setting: str) -> list[float]:
        return [mean(part, setting=setting, queue=queue) for queue in QUEUES]

    def transfers(setting: str) -> str:
        return f"{', '.join(f'{each:.0f}' for each in times(transfer_mean, setting))} s"

    def told(setting: str) -> str:
        packets = ", ".join(f"{1e3 * each:.0f}" for each in times(packet_mean, setting))
        return f"packets take {packets} ms, the 10 MB {transfers(setting)}"

    own, sack = "as in the study", "recovery of RFC 6675"
    settings = part.axes["setting"]
    if own in settings and sack in settings:
        yield Cause(
            "The recovery of ns-2's TCP-Linux",
            f"DropTail, RED and CoDel: {told(own)}. With the recovery of RFC 6675 {told(sack)}. "
            "TCP-Linux restarts its timer with every duplicate acknowledgement, and forgets at the "
            "end of a recovery what had arrived above it: the first slow start, which overshoots "
            "by far and is followed by reductions of a fifth only, ends in a long storm of "
            "segments sent twice, and not in a timeout. Linux does neither.",
        )
    once = "all applications begin at once"
    if own in settings and once in settings:
        yield Cause(
            "When the applications begin",
            "The study does not say. Here they are spread over the first 100 s (README). If all "
            "begin at once the 10 MB take "
            f"{transfers(once)}, in place of {transfers(own)}.",
        )


def _reading_causes(measured: Measurements) -> Iterator[Cause]:
    part = measured.part("readings")
    if part.has(reading=LARGER, queue="CoDel"):
        small, large = (
            packet_mean(part, reading=each, queue="CoDel") for each in (DEFAULT, LARGER)
        )
        yield Cause(
            f"CoDel: {small * 1e3:.0f} ms, printed are 115 ms",
            "The path alone takes 85 ms with packets of 1050 bytes, and CoDel keeps one or two more"
            f" in the queue. With segments of 1460 bytes ({LARGER}) the mean is {large * 1e3:.0f} "
            f"in place of {small * 1e3:.0f} ms: the study's packets may have been larger. Then "
            "DropTail's 125 packets take 1.5 s.",
        )
    yield from _rerun(part)
    known = ns2.references()[SATURATED, "CoDel"]
    values = transfer_time(part, reading=SATURATED, queue="CoDel")
    found = Cell.of(SATURATED, "CoDel", known.transfer, values)
    ends = f" ({found.low:.0f} to {found.high:.0f} s)" if found.low and found.high else ""
    yield Cause(
        "Readings near saturation",
        f"With {SATURATED} the applications ask for about as much as the link carries: what is "
        "left for the transfer is the small difference of two large numbers, and rare long bursts "
        f"decide. With CoDel the 10 MB take {found.measured:.0f} s here{ends} "
        f"with {part.replications} replications, {known.transfer:.0f} s in "
        "the one run of ns-2.",
    )


def _rerun(part: Measurements) -> Iterator[Cause]:
    """CoDel beside ns-2: the recorded runs, ns-2 once more, and ours."""
    told, off = [], []
    for (reading, queue), again in ns2.reruns().items():
        if not part.has(reading=reading, queue=queue):
            continue
        ours = packet_mean(part, reading=reading, queue=queue)
        first = ns2.references()[reading, queue].packet
        off.append(abs(ours - again.packet) / again.packet)
        told.append(
            f"{reading}, {queue}: {1e3 * first:.0f}, {1e3 * again.packet:.1f} and {1e3 * ours:.1f}"
        )
    if told:
        yield Cause(
            "CoDel's packets in ns-2: recorded, and run again",
            "ns-2.35 was run again with TCP applications of 1000 bytes, with a new set-up from the "
            "description below and CoDel by the pseudo-code of 2012. Packet times in ms as "
            "recorded, run again, and "
            f"ours: {'; '.join(told)}. Run again, ns-2 is within {100 * max(off):.0f} % of ours at "
            "each of these; the other settings of the recorded set-up are not known.",
        )


def _listed(times: Mapping[str, float]) -> str:
    return ", ".join(f"{time * 1e3:.0f} ms with {name}" for name, time in times.items())


causes = (_droptail, _experiment_causes, _reading_causes)
"""Why numbers differ, by experiment."""
