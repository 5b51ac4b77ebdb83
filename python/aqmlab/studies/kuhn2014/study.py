"""The study's tables, published and ns-2's numbers beside ours, and what makes them differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, Table
from aqmlab.reproduce.published import Published
from aqmlab.statistics import MEAN_METHOD
from aqmlab.studies.kuhn2014 import ns2
from aqmlab.studies.kuhn2014.claims import claims
from aqmlab.studies.kuhn2014.figures import figures
from aqmlab.studies.kuhn2014.measure import (
    AQMS,
    CONTROLS,
    MAIN_BUFFER,
    QUEUES,
    Value,
    increase,
    packet_time,
    reduction,
    transfer_time,
)

__all__ = ["causes", "claims", "figures", "tables"]

Key = tuple[str, str]
"""Row and column."""


def tables(measured: Measurements) -> list[Table]:
    """The study's own numbers, those of ns-2, and the experiments."""
    made = [*_published(measured.part("study")), *_beside_ns2(measured.part("readings"))]
    made += _experiments(measured.part("experiments"))
    return [table for table in made if table.cells]


def _published(study: Measurements | None) -> Iterator[Table]:
    if study is None:
        return
    numbers = Published.load("kuhn2014").paper["numbers"]

    def table(
        ident: str, name: str, unit: str, queues: Iterable[str], value: Callable[..., Value]
    ) -> Table:
        known: Mapping[str, Mapping[str, float]] = numbers.get(ident, {})
        keys = ((control, queue) for control in CONTROLS for queue in queues)
        cells = _cells(
            ((control, queue), {"buffer": MAIN_BUFFER, "control": control, "queue": queue})
            for control, queue in keys
        )
        return Table(
            ident,
            name,
            unit,
            tuple(cells(study, value, lambda key: known.get(key[0], {}).get(key[1]))),
            method=MEAN_METHOD,
        )

    yield table("packet_s", "Figure 5: packet transmission time, mean", "s", QUEUES, packet_time)
    yield table(
        "reduction",
        "Section 4: reduction of the packet transmission time against DropTail",
        "share",
        AQMS,
        reduction,
    )
    yield table("transfer_s", "Figure 6: time to transmit 10 MB, mean", "s", QUEUES, transfer_time)
    yield table(
        "increase",
        "Section 4: increase of the time to transmit 10 MB against DropTail",
        "share",
        AQMS,
        increase,
    )
    where = {"buffer": MAIN_BUFFER, "queue": "DropTail"}
    if study.has(control="CUBIC", **where) and study.has(control="Vegas", **where):
        value, interval = reduction(study, control="Vegas", **where, against={"control": "CUBIC"})
        reference = numbers["vegas_reduction"]
        cell = Cell.judged("Vegas against CUBIC", "DropTail", reference, value, interval, 0.0)
        name = "Section 4: reduction of the packet transmission time by Vegas"
        yield Table("vegas_reduction", name, "share", (cell,), method=MEAN_METHOD)


def _beside_ns2(readings: Measurements | None) -> Iterator[Table]:
    if readings is None:
        return
    queues, labels = readings.axes["queue"], readings.axes["reading"]
    keys = [(r, q) for r in labels for q in queues if (r, q) in ns2.references()]
    notes = {
        reading: f"ns-2: mean of {ns2.references()[reading, 'DropTail'].seeds} seeds"
        for reading in labels
        if ns2.references()[reading, "DropTail"].seeds > 1
    }

    def table(
        ident: str,
        name: str,
        unit: str,
        kept: Iterable[Key],
        value: Callable[..., Value],
        reference: Callable[[Key], float],
    ) -> Table:
        cells = _cells((key, {"reading": key[0], "queue": key[1]}) for key in kept)
        made = tuple(cells(readings, value, reference))
        return Table(ident, name, unit, made, reference="ns-2", method=MEAN_METHOD, notes=notes)

    known = ns2.references()
    yield table(
        "ns2-packet",
        "Packet transmission time, beside ns-2",
        "s",
        keys,
        packet_time,
        lambda key: known[key].packet,
    )
    yield table(
        "ns2-transfer",
        "Time to transmit 10 MB, beside ns-2",
        "s",
        keys,
        transfer_time,
        lambda key: known[key].transfer,
    )
    yield table(
        "ns2-ratio",
        "Time to transmit 10 MB as a multiple of DropTail's, beside ns-2",
        "ratio",
        [key for key in keys if key[1] != "DropTail"],
        lambda *args, **labels: _plus_one(increase(*args, **labels)),
        lambda key: ns2.increase(*key) + 1,
    )


def _plus_one(value: Value) -> Value:
    number, interval = value
    return number + 1, type(interval)(interval.low + 1, interval.high + 1)


def _experiments(part: Measurements | None) -> Iterator[Table]:
    if part is None:
        return
    for ident, name, unit, value in (
        ("experiments-packet", "Packet transmission time, one thing changed", "s", packet_time),
        ("experiments-transfer", "Time to transmit 10 MB, one thing changed", "s", transfer_time),
    ):
        keys = [(setting, queue) for setting in part.axes["setting"] for queue in QUEUES]
        cells = _cells((key, {"setting": key[0], "queue": key[1]}) for key in keys)
        made = tuple(cells(part, value, lambda _: None))
        yield Table(ident, name, unit, made, method=MEAN_METHOD)


def _cells(
    places: Iterable[tuple[Key, dict[str, str]]],
) -> Callable[[Measurements, Callable[..., Value], Callable[[Key], float | None]], Iterator[Cell]]:
    """What makes the cells at these places (row and column, labels), as far as they were run."""
    kept = list(places)

    def cells(
        part: Measurements,
        value: Callable[..., Value],
        reference: Callable[[Key], float | None],
    ) -> Iterator[Cell]:
        for (row, column), labels in kept:
            if part.has(**labels) and part.has(**labels | {"queue": "DropTail"}):
                number, interval = value(part, **labels)
                yield Cell.judged(row, column, reference((row, column)), number, interval, 0.0)

    return cells


def causes(measured: Measurements) -> list[Cause]:
    """Why numbers differ, by experiment."""
    return []
