"""The report of a parity run: the table, and what both did, one over the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import numpy as np

import aqmlab
from aqmlab.emulate.parity import Measure, Parity
from aqmlab.emulate.play import EMULATOR, SIMULATOR
from aqmlab.errors import StorageError
from aqmlab.report import FIGURES, FORMATS, REPORT, charts, save_figure
from aqmlab.report.page import document, figure_html
from aqmlab.reproduce.model import Figure
from aqmlab.statistics import Floats

COLOURS = {SIMULATOR: "#2f6fbb", EMULATOR: "#ef9232"}
MILLI = 1e3


def write(parity: Parity, folder: Path, command: str) -> Path:
    """Writes `report.html` and `figures/` into `folder`; the path of the report.

    Raises `StorageError` if a file cannot be written.
    """
    made = figures(parity)
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        for figure in made:
            for ending in FORMATS:
                save_figure(figure, folder / FIGURES / f"{figure.id}.{ending}")
        path = folder / REPORT
        body = "\n".join(_body(parity, made, command))
        path.write_text(document(parity.result.info.title, body, made), encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the report is not complete") from error
    return path


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
                "The share of packets that waited no longer.",
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
    from aqmlab.cli.common import rate, seconds

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
    for mean, interval in zip(measure.means, measure.intervals, strict=True):
        text = write_(mean)
        if measure.simulator.size > 1:
            text += f" ({write_(interval.low)} to {write_(interval.high)})"
        cells.append(text)
    simulated, real = measure.means
    if measure.unit == "share":
        apart = f"{100 * (real - simulated):+.2f} points"
    else:
        apart = f"{real / simulated - 1:+.1%}" if simulated else "–"
    return measure.name, cells[0], cells[1], apart


def _body(parity: Parity, made: list[Figure], command: str) -> Iterator[str]:
    yield f"<h1>{escape(parity.result.info.title)}</h1>"
    yield (
        "<p>The same links, queues, starts and sizes twice: with simulated senders, and with the "
        f"kernel's own TCP and UDP in real time. {parity.replications} run(s) each. One packet in "
        f"a hundred left the emulator more than {1e6 * parity.lateness:.0f} µs late.</p>"
    )
    for remark in parity.remarks:
        yield f"<div class='note warning'><p>{escape(remark)}</p></div>"
    head = ("", SIMULATOR, EMULATOR, "difference")
    yield "<table><thead><tr>" + "".join(f"<th>{each}</th>" for each in head) + "</tr></thead>"
    yield "<tbody>"
    for measure in parity.measures:
        name, *cells = row(measure)
        rest = "".join(f"<td>{escape(each)}</td>" for each in cells)
        yield f"<tr><th scope='row'>{escape(name)}</th>{rest}</tr>"
    yield "</tbody></table>"
    yield from map(figure_html, made)
    yield f"<h2>How this was made</h2><pre>{escape(command)}</pre>"
    yield f"<p>aqmlab {aqmlab.__version__}. Real time is never twice the same.</p>"
