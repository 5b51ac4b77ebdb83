"""`aqmlab top`: what running emulators do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from json import dumps as json_text
from typing import TYPE_CHECKING, Any

from aqmlab.cli import options
from aqmlab.cli.common import console, print_json
from aqmlab.cli.options import argument, flag, option
from aqmlab.emulator.view import between, named, some_running
from aqmlab.numbers import rate, seconds

if TYPE_CHECKING:
    from rich.console import Console, Group

    from aqmlab.emulator.view import Emulator

EXAMPLE = (
    "aqmlab top\n\naqmlab top lab --interval 5\n\naqmlab top --once --json\n\n"
    "aqmlab top --openmetrics"
)
PATIENCE = 4.0
"""Seconds until an emulator must have answered."""
POLL = 0.1
ARROWS = {"down": "↓", "up": "↑"}
COLUMNS = ("rate", "packets", "p50", "p95", "p99", "dropped", "marked", "lost", "backlog")


def top(
    names: list[str] | None = argument(
        "[NAME]...", "Emulators to show, by --name or process ID; default: all.", default=None
    ),
    interval: float = option("SECONDS", "Time between two samples.", min=0.5, default=1.0),
    once: bool = flag("--once", "Take one sample, over one interval, and exit."),
    openmetrics: bool = flag("--openmetrics", "Print one sample as OpenMetrics and exit."),
    json: bool = options.JSON,
) -> None:
    """Show the links of running emulators: rate, sojourn time, drops, marks, backlog.

    Run it in another terminal while `aqmlab shell` or `aqmlab mahimahi` runs; it ends when they
    end. Nested shells are shown, too.
    """
    emulators = [named(name, key="NAME") for name in names or []] or some_running()
    before = _newer(emulators, readings_of(emulators), PATIENCE)
    if openmetrics:
        time.sleep(interval)
        print(exposition(emulators, readings_of(emulators)), end="")
    elif once:
        time.sleep(interval)
        rows = changes(before, _newer(emulators, before, 1.0))
        if json:
            print_json(_as_json(emulators, rows))
        else:
            screen = console()
            screen.print(tables(emulators, rows, screen))
    elif json:
        for rows in _looks(emulators, before, interval):
            print(json_text(_as_json(emulators, rows)), flush=True)
    else:
        _follow(emulators, before, interval)


Readings = dict[int, dict[str, Any]]


def readings_of(emulators: list[Emulator]) -> Readings:
    """Says that somebody looks; the numbers of those that still run."""
    return {each.pid: found for each in emulators if (found := each.look()) is not None}


def _newer(emulators: list[Emulator], stale: Readings, patience: float) -> Readings:
    """The numbers of all emulators after those that are `stale`, or the present ones after so many
    seconds: emulators compute them twice a second, once they see that somebody looks."""
    until = time.monotonic() + patience
    while True:
        now = readings_of(emulators)
        fresh = (
            pid not in stale or found["time_s"] > stale[pid]["time_s"] for pid, found in now.items()
        )
        if (len(now) == len(emulators) and all(fresh)) or time.monotonic() >= until:
            return now
        time.sleep(POLL)


def changes(before: Readings, now: Readings) -> dict[int, list[dict[str, Any]]]:
    """What the links of each emulator did between two looks."""
    return {pid: between(before[pid], found) for pid, found in now.items() if pid in before}


METRICS = {
    "arrived": ("packets_arrived", "counter", "Packets that arrived at the queue."),
    "delivered": ("packets_delivered", "counter", "Packets that the link sent."),
    "delivered_bytes": ("bytes_delivered", "counter", "Bytes that the link sent."),
    "dropped": ("packets_dropped", "counter", "Packets that the queue dropped."),
    "marked": ("packets_marked", "counter", "Packets that the queue marked."),
    "lost": ("packets_lost", "counter", "Packets lost on the link."),
    "backlog_packets": ("backlog_packets", "gauge", "Packets in the queue."),
    "backlog_bytes": ("backlog_bytes", "gauge", "Bytes in the queue."),
    "sojourn_p50_s": ("sojourn_p50_seconds", "gauge", "Median time in the queue."),
    "sojourn_p95_s": ("sojourn_p95_seconds", "gauge", "95th percentile of the time in the queue."),
    "sojourn_p99_s": ("sojourn_p99_seconds", "gauge", "99th percentile of the time in the queue."),
}
"""Numbers of a link: name, type and help as OpenMetrics has them."""


def exposition(emulators: list[Emulator], readings: Readings) -> str:
    """The numbers of all links in the text format of OpenMetrics 1.0."""
    known = [each.pid for each in emulators if each.pid in readings]
    lines = []
    for key, (name, kind, text) in METRICS.items():
        lines += [f"# TYPE aqmlab_{name} {kind}", f"# HELP aqmlab_{name} {text}"]
        suffix = "_total" if kind == "counter" else ""
        for pid in known:
            for link in readings[pid]["links"]:
                if link.get(key) is not None:
                    label = str(link["link"]).replace("\\", "\\\\").replace('"', '\\"')
                    labels = f'pid="{pid}",link="{label}"'
                    lines.append(f"aqmlab_{name}{suffix}{{{labels}}} {link[key]}")
    return "\n".join([*lines, "# EOF", ""])


def _as_json(emulators: list[Emulator], rows: dict[int, list[dict[str, Any]]]) -> list[Any]:
    return [
        {"pid": each.pid, "name": each.name, "command": each.command, "links": rows[each.pid]}
        for each in emulators
        if each.pid in rows
    ]


def _looks(
    emulators: list[Emulator], before: Readings, interval: float
) -> Iterator[dict[int, list[dict[str, Any]]]]:
    """What the links did in each interval, until the emulators have ended."""
    while True:
        time.sleep(interval)
        now = readings_of(emulators)
        if not now:
            return
        yield changes(before, now)
        before = now


def _follow(emulators: list[Emulator], before: Readings, interval: float) -> None:
    from rich.live import Live

    screen = console()
    shown = (tables(emulators, rows, screen) for rows in _looks(emulators, before, interval))
    with contextlib.suppress(KeyboardInterrupt):
        if not screen.is_terminal:  # a file or a pipe: one table below the other
            for table in shown:
                screen.print(table)
            return
        with Live(console=screen, auto_refresh=False, screen=True) as live:
            for table in shown:
                live.update(table, refresh=True)


def tables(
    emulators: list[Emulator], rows: dict[int, list[dict[str, Any]]], screen: Console
) -> Group:
    """A table for each emulator."""
    from rich.console import Group

    from aqmlab.report.document import Column, Table, terminal

    columns = (Column("link", label=True), *(Column(name, "{:,}".format) for name in COLUMNS))
    tables = []
    for emulator in (each for each in emulators if each.pid in rows):
        name = f" {emulator.name}" if emulator.name else ""
        cells = tuple(
            (
                f"{ARROWS.get(row['direction'], '·')} {row['link']}",
                rate(row["rate_bps"]),
                row["delivered"],
                *(seconds(row[f"sojourn_{key}_s"]) for key in ("p50", "p95", "p99")),
                *(row[key] for key in ("dropped", "marked", "lost")),
                f"{row['backlog_packets']:,} ({row['backlog_bytes'] / 1000:,.0f} kB)",
            )
            for row in rows[emulator.pid]
        )
        title = f"{emulator.pid}{name}: {_short(emulator.command)}"
        caption = "p50 to p99: time in the queue (sojourn time)"
        tables.append(terminal.table(Table(columns, cells, title=title, caption=caption), screen))
    return Group(*tables)


def _short(command: str) -> str:
    """The command without the interpreter and the path of the program."""
    words = command.split()
    start = next((at for at, word in enumerate(words) if word.endswith("aqmlab")), 0)
    text = " ".join(["aqmlab", *words[start + 1 :]] if start or words else words)
    return text if len(text) <= 90 else text[:89] + "…"
