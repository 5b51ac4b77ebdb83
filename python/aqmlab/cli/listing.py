"""`aqmlab list`: what there is, by kind: disciplines, presets, ..., metrics and studies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from aqmlab._late import late
from aqmlab.access import PROFILES
from aqmlab.cli.common import EXAMPLES, Json, With, console, load_own, print_json, reported

EXAMPLE = EXAMPLES.format(
    "aqmlab list\n\naqmlab list disciplines\n\naqmlab list metrics\n\naqmlab list presets --json"
)
OWN = {
    "disciplines": (
        "Your own queue is a Python class, named by its file (docs/your-own-queue.md):",
        "aqmlab run scenario.toml --set queue=my_queue.py:MyQueue",
    ),
    "congestion_controls": (
        "Your own control is a Python class too (docs/your-own-congestion-control.md):",
        "aqmlab run scenario.toml --set transport.congestion_control=my_control.py:MyControl",
    ),
}
"""What to say below a kind of which users write their own, and an example."""


@reported
def listing(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="[KIND]", help="disciplines, presets, congestion_controls, ..."),
    ] = None,
    with_: With = None,
    json: Json = False,
) -> None:
    """List disciplines, presets, congestion controls, transports, workloads, metrics, studies,
    access lines."""
    load_own(with_)
    everything = catalogue()
    if kind is not None:
        if kind not in everything:
            from aqmlab.errors import unknown

            raise unknown("kind", kind, everything)
        everything = {kind: everything[kind]}
    if json:
        print_json(everything)
        return
    from rich.table import Table

    screen = console()
    for title, rows in everything.items():
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="bold", no_wrap=True, min_width=18)
        table.add_column()
        for row in rows:
            about = row["summary"]
            if row.get("preset_of"):
                about = f"{about} (preset of {row['preset_of']})"
            table.add_row(row["name"], about)
        screen.print(title.capitalize().replace("_", " "), style="bold cyan")
        screen.print(table if rows else "none")
        for words in OWN.get(title, ()):
            indent = "  " if words.startswith("aqmlab") else ""
            screen.print(indent + words, soft_wrap=True, highlight=False, style="dim")
        screen.print()
    screen.print(
        "`aqmlab explain NAME` shows the parameters of each; `aqmlab reproduce NAME` runs a study.",
        style="dim",
    )


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """What `--json` prints: lists of {"name", "summary", ...} by kind."""
    from aqmlab._core import reference

    queues = [entry for entry in reference() if entry["section"] == "queue"]
    controls = [entry for entry in reference() if entry["section"] == "congestion_control"]
    transports = [entry for entry in reference() if entry["section"] == "transport"]
    workloads = [entry for entry in reference() if entry["section"] == "workload"]
    return {
        "disciplines": [_short(each) for each in queues if not each["preset_of"]],
        "presets": [
            _short(each) | {"preset_of": each["preset_of"], "settings": each["settings"]}
            for each in queues + workloads
            if each["preset_of"]
        ],
        "congestion_controls": [_short(each) for each in controls],
        "transports": [_short(each) for each in transports],
        "workloads": [_short(each) for each in workloads if not each["preset_of"]],
        "metrics": [
            {key: entry[key] for key in ("name", "summary", "of", "unit")}
            for entry in late("metric_entries")()
        ],
        "studies": studies(),
        "profiles": profiles(),
    }


def studies() -> list[dict[str, str]]:
    """The studies that can be reproduced by name: {"name", "summary"}."""
    return [{"name": each.name, "summary": each.title} for each in late("studies")().values()]


def profiles() -> list[dict[str, str]]:
    """The named access lines: {"name", "summary", "source"}."""
    return [
        {
            "name": name,
            "summary": f"{each.summary}: {each.line.down} down, {each.line.up} up, "
            f"{each.line.rtt} there and back ({each.line.access})",
            "source": each.source_with_kind,
        }
        for name, each in PROFILES.items()
    ]


def _short(entry: dict[str, Any]) -> dict[str, Any]:
    return {"name": entry["name"], "summary": entry["summary"]}
