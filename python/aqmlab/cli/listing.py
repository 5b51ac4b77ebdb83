"""`aqmlab list`: disciplines, presets, controls, workloads, metrics, studies and access lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab import plain
from aqmlab._core import reference
from aqmlab.cli import options
from aqmlab.cli.common import load_own, print_json
from aqmlab.cli.options import argument
from aqmlab.errors import unknown

EXAMPLE = (
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
"""By kind: a remark on custom entries, and an example."""
ALSO = {"queues": "disciplines", "controls": "congestion_controls"}
"""Other words for a kind."""
NONE = {"studies": "none is installed; pip install 'aqmlab[studies]' brings the published ones"}
"""By kind: a remark where there are no entries."""


def listing(
    kind: str | None = argument(
        "[KIND]", "disciplines, presets, congestion_controls, ...", default=None
    ),
    with_: list[str] | None = options.WITH,
    json: bool = options.JSON,
) -> None:
    """List disciplines, presets, congestion controls, transports, workloads, metrics, studies,
    access lines."""
    load_own(with_)
    everything = catalogue()
    if kind is not None:
        kind = ALSO.get(kind, kind)
        if kind not in everything:
            raise unknown("kind", kind, everything)
        everything = {kind: everything[kind]}
    if json:
        print_json(everything)
        return
    print(text(everything))


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Lists of {"name", "summary", ...} by kind: what `--json` prints."""
    every = entries()

    def short(entry: Mapping[str, Any], *more: str) -> dict[str, Any]:
        return {key: entry[key] for key in ("name", "summary", *more)}

    def section(name: str) -> list[Mapping[str, Any]]:
        return [entry for entry in every if entry["section"] == name]

    queues, workloads = section("queue"), section("workload")
    return {
        "disciplines": [short(each) for each in queues if not each["preset_of"]],
        "presets": [
            short(each, "preset_of", "settings") for each in queues + workloads if each["preset_of"]
        ],
        "congestion_controls": [short(each) for each in section("congestion_control")],
        "transports": [short(each) for each in section("transport") + section("endpoint")],
        "workloads": [short(each) for each in workloads if not each["preset_of"]],
        "metrics": [short(each, "of", "unit") for each in section("metric")],
        "studies": studies(),
        "profiles": [short(each, "source") for each in section("profile")],
    }


def entries() -> list[dict[str, Any]]:
    """The reference, with the metrics and the named access lines as entries of it."""
    from aqmlab.metrics import entries as metrics
    from aqmlab.scenario.access import PROFILES

    profiles: list[dict[str, Any]] = [
        {
            "section": "profile",
            "preset_of": None,
            "settings": {},
            "params": [],
            "name": name,
            "summary": f"{each.summary}: {each.line.down} down, {each.line.up} up, "
            f"{each.line.rtt} there and back ({each.line.access})",
            "source": each.source_with_kind,
        }
        for name, each in PROFILES.items()
    ]
    return [*reference(), *metrics(), *profiles]


def studies() -> list[dict[str, str]]:
    """The studies that can be reproduced by name: {"name", "summary"}."""
    from aqmlab.reproduce.catalogue import places

    return [{"name": each.name, "summary": each.title} for each in places().values()]


def text(everything: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The catalogue, or some kinds of it, in words."""
    parts = []
    for title, rows in everything.items():
        parts.append(plain.styled(title.capitalize().replace("_", " "), plain.TITLE))
        left = max([18, *(len(row["name"]) for row in rows)]) + 1
        for row in rows:
            about = row["summary"]
            if row.get("preset_of"):
                about = f"{about} (preset of {row['preset_of']})"
            parts.append(plain.beside(row["name"], [(about, "")], left))
        if not rows:
            parts.append(NONE.get(title, "none"))
        for words in OWN.get(title, ()):
            indent = "  " if words.startswith("aqmlab") else ""
            parts.append(plain.styled(indent + words, plain.DIM))
        parts.append("")
    hint = "`aqmlab explain NAME` shows the parameters of each; `aqmlab reproduce NAME` runs "
    parts.append(plain.styled(hint + "a study.", plain.DIM))
    return "\n".join(parts)
