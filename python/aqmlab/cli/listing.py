"""`aqmlab list`: what there is, by kind: disciplines, presets, ..., metrics and studies."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from aqmlab import plain
from aqmlab._core import reference
from aqmlab._late import late
from aqmlab.cli.common import EXAMPLES, Json, With, load_own, print_json, reported
from aqmlab.scenarios.access import PROFILES

EXAMPLE = EXAMPLES.format(
    "aqmlab list\n\naqmlab list disciplines\n\naqmlab list metrics\n\naqmlab list presets --json"
)


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
    print(plain.listing(everything))


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """What `--json` prints: lists of {"name", "summary", ...} by kind."""
    return plain.by_kind(reference(), late("metric_entries")(), studies(), profiles())


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
