"""The page of an emulation: what its queues did, and below that how exact the emulator was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aqmlab
from aqmlab.numbers import percent, seconds
from aqmlab.report.document import (
    Column,
    Document,
    Facts,
    Figure,
    Section,
    Table,
    Text,
    Tiles,
    charts,
    notes,
)
from aqmlab.report.document.colours import by_label
from aqmlab.report.made import made
from aqmlab.report.notes import of_run
from aqmlab.report.plot import course
from aqmlab.report.run_page import finding, links, parameters, sojourn_figure
from aqmlab.results import RunResult
from aqmlab.scenario.quantity import quantity
from aqmlab.scenario.toml import shown

TITLE = "An emulation"
"""The title where the command is not known."""
LONGEST = 90
"""So many characters of the command are in the title."""
QUANTITIES = {
    "throughput_bps": "throughput (Mbit/s)",
    "sojourn_max_s": "longest in queue (ms)",
    "backlog_packets": "backlog (packets)",
}


def document(result: RunResult, command: str, folder: Path) -> Document:
    """The page of an emulation: the command that made the results, and the folder of its tables."""
    scores = dict(result.scores.select("quantity", "value").iter_rows())
    told = Text("Real packets through the links below, in real time.", "lead")
    noted = of_run(result)
    how = (*made(command, folder), Facts(tuple(_facts(result, scores))))
    blocks = (
        *notes(noted),
        Section("Links", (links(result),)),
        *_changes(result),
        *_figures(result),
        _precision(result, scores),
        Section("How this was made", how),
    )
    return Document(title(command), blocks, head=(told, Text(finding(result)), _tiles(result)))


def title(command: str) -> str:
    """The command that ran behind the path, if it was named, or the whole command line."""
    _, parted, own = command.partition(" -- ")
    text = " ".join((own if parted else command).split()) or TITLE
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _tiles(result: RunResult) -> Tiles:
    """What the queue of the bottleneck did."""
    link = result.links.filter(link=result.shown).row(0, named=True)
    if not link["arrived"]:
        return Tiles((("0", f"packets at {link['link']}"),))
    end = result.runs["end_s"][0]
    queue = result.scenario["links"][link["link"]]["queue"]["discipline"]
    told = [
        (seconds(link["sojourn_p50_s"]), f"in the queue of {link['link']} ({queue}), median"),
        (seconds(link["sojourn_p99_s"]), "in the queue, 99th percentile"),
        (percent(link["dropped"] / link["arrived"]), "of the packets dropped"),
        (percent(link["utilisation"] or 0.0), f"of {link['link']} used"),
        (f"{link['delivered']:,.0f}", f"packets in {end:.1f} s"),
    ]
    if link["marked"]:
        told.insert(3, (percent(link["marked"] / link["arrived"]), "of the packets marked"))
    return Tiles(tuple((value, text) for value, text in told))


def _precision(result: RunResult, scores: dict[str, float]) -> Section:
    """Delay and processor time of the emulator."""
    names = {"lateness": "added to a packet", "input_lateness": "waiting to be read",
             "timer_lateness": "lateness of sleeps"}  # fmt: skip
    times = ("p50", "p99", "max")
    found = {row["quantity"]: row for row in result.times.to_dicts()}
    rows = [(text, *(found[name][f"{key}_s"] for key in times)) for name, text in names.items()]
    columns = (Column("delay by the emulator", label=True), *(Column(n, seconds) for n in times))
    table = Table(columns, tuple(rows))
    busy = f"The emulator took {seconds(scores['processor_s'])} of processor time."
    return Section("Precision of the emulator", (table, Text(busy)))


def _facts(result: RunResult, scores: dict[str, float]) -> Iterator[tuple[str, str]]:
    yield "Program", f"aqmlab {aqmlab.__version__}"
    yield "Seed", str(result.scenario["seed"])
    for key, number in scores.items():
        if key.startswith("unfit_") and number:
            what = key.removeprefix("unfit_").replace("_", " ")
            yield "Not carried", f"{number:,.0f} packets: {what}"
    yield from parameters(result.scenario)


def _changes(result: RunResult) -> Iterator[Section]:
    """Changes during the emulation."""
    made = result.scenario.get("changes", [])
    lines = tuple(
        (f"{time:.3f} s", each["key"], shown(each["value"]))
        for time, each in zip(_change_times(result), made, strict=True)
    )
    if lines:
        columns = tuple(Column(name, label=True) for name in ("time", "key", "value"))
        yield Section("Changes", (Table(columns, lines),))


def _change_times(result: RunResult) -> list[float]:
    """Times of changes in seconds."""
    return [quantity(each["at"], "delay", "at") for each in result.scenario.get("changes", [])]


def _figures(result: RunResult) -> Iterator[Figure]:
    names = result.links["link"].to_list()
    colours = by_label(names)
    sampled = set(result.series.drop_nulls("value").drop_nans("value")["quantity"])
    parts = []
    for key, label in QUANTITIES.items():
        drawn = course(result, key, names) if key in sampled else {}
        curves = {name: curve for name, curve in drawn.items() if len(curve[0]) > 1}
        if curves:
            parts.append((label, curves, {name: colours[name] for name in curves}))
    if parts:
        end = float(result.runs["end_s"][0])
        most = result.links.row(int(result.links["sojourn_max_s"].arg_max() or 0), named=True)
        yield Figure(
            "course",
            "What passed, and what waited",
            f"The longest wait is {seconds(most['sojourn_max_s'] or 0.0)}, at {most['link']}.",
            "Values over each interval, and the backlog at its end."
            + (" Dashed lines: changes." if _change_times(result) else ""),
            charts.panels(parts, "time (s)", x_domain=(0.0, end), rules=_change_times(result)),
        )
    yield from sojourn_figure(result)
