"""The report of a parity run: the table, and what both did, one over the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import aqmlab
from aqmlab.emulator.parity import Measure, Parity
from aqmlab.emulator.play import EMULATOR, SIMULATOR
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import rate, seconds
from aqmlab.report.document import (
    Block,
    Code,
    Column,
    Document,
    Figure,
    Note,
    Section,
    Table,
    Text,
    charts,
    save,
)

COLOURS = {SIMULATOR: "#2f6fbb", EMULATOR: "#ef9232"}
MILLI = 1e3


def write(parity: Parity, folder: Path, command: str, *, figures: bool = True) -> Path:
    """Writes `report.html` into `folder`, and with `figures` the pictures; the path of the report.

    Raises `StorageError` if a file cannot be written.
    """
    return save(document(parity, command), folder, figures=figures)


def document(parity: Parity, command: str = "") -> Document:
    """The page of a parity run."""
    how = Text(
        "The same links, queues, starts and sizes twice: with simulated senders, and with the "
        f"kernel's own TCP and UDP in real time. {parity.replications} run(s) each. One packet in "
        f"a hundred left the emulator more than {1e6 * parity.lateness:.0f} µs late."
    )
    made = (
        Code(command),
        Text(f"aqmlab {aqmlab.__version__}. Runs in real time are never identical."),
    )
    blocks: tuple[Block, ...] = (
        *(Note(remark) for remark in parity.remarks),
        table(parity),
        *figures(parity),
        Section("How this was made", made),
    )
    return Document(parity.result.info.title, blocks, head=(how,))


def table(parity: Parity, title: str = "") -> Table:
    """A row a measure: simulated, with real packets, and how far apart."""
    columns = (Column("", label=True), *map(Column, (SIMULATOR, EMULATOR, "difference")))
    several = parity.replications > 1
    caption = f"means of {parity.replications} runs each" if several else ""
    if any(any(each.intervals) for each in parity.measures):
        caption += " (95 % intervals)"
    return Table(columns, tuple(map(row, parity.measures)), title=title, caption=caption)


def figures(parity: Parity) -> list[Figure]:
    """The distribution of the delays, and delay and throughput over time."""
    found = {by: parity.histograms(by) for by in (SIMULATOR, EMULATOR)}
    made = []
    if all(each.observations for each in found.values()):
        medians = [MILLI * found[by].quantile(0.5) for by in (SIMULATOR, EMULATOR)]
        made.append(
            Figure(
                "sojourn",
                f"Time in the queue of {parity.link}",
                f"The median is {medians[0]:.1f} ms simulated and {medians[1]:.1f} ms with real "
                "packets.",
                "Cumulative share of the packets.",
                charts.cdf({by: _cdf(parity, by) for by in found}, COLOURS, "time in queue (ms)"),
            )
        )
    end = float(max(parity.series(by, "throughput_bps")[0][-1] for by in found))
    panels = [
        (title, {by: _scaled(parity, by, name, factor) for by in found}, COLOURS)
        for title, name, factor in (
            ("delay (ms)", "sojourn_mean_s", MILLI),
            ("throughput (Mbit/s)", "throughput_bps", 1e-6),
            ("queue (packets)", "backlog_packets", 1.0),
        )
    ]
    made.append(
        Figure(
            "course",
            f"The queue of {parity.link} over time",
            "Simulated, and with real packets, at the same times.",
            f"Means over {parity.replications} run(s) each.",
            charts.panels(panels, "time (s)", x_domain=(0, end)),
        )
    )
    return made


def _cdf(parity: Parity, by: str) -> tuple[Floats, Floats]:
    values, shares = parity.histograms(by).cdf()
    return MILLI * values, shares


def _scaled(parity: Parity, by: str, quantity: str, factor: float) -> tuple[Floats, Floats]:
    times, values = parity.series(by, quantity)
    return times, factor * np.nan_to_num(values)


def told(measure: Measure) -> Callable[[float], str]:
    """How the values of a measure are written."""
    words: dict[str, Callable[[float], str]] = {
        "share": lambda value: f"{value:.2%}",
        "s": seconds,
        "bps": rate,
        "": lambda value: f"{value:.3f}",
    }
    return words[measure.unit]


def row(measure: Measure) -> tuple[str, str, str, str]:
    """Name, simulator, emulator, difference; with intervals if there are several runs."""
    write_ = told(measure)
    cells = []
    for mean, within in zip(measure.means, measure.intervals, strict=True):
        text = write_(mean)
        if within is not None:
            text += f" ({write_(within.low)} to {write_(within.high)})"
        cells.append(text)
    simulated, real = measure.means
    if measure.unit == "share":
        apart = f"{100 * (real - simulated):+.2f} points"
    else:
        apart = f"{real / simulated - 1:+.1%}" if simulated else "–"
    return measure.name, cells[0], cells[1], apart
