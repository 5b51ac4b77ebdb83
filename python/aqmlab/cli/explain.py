"""`aqmlab explain`: what a parameter means, from its declaration, and what a metric is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab import plain
from aqmlab._core import describe, reference
from aqmlab._late import late
from aqmlab.advice import tc
from aqmlab.cli.common import (
    EXAMPLES,
    Json,
    With,
    check_chart,
    load_own,
    print_json,
    reported,
    save_chart,
)
from aqmlab.cli.listing import profiles as listed
from aqmlab.cli.listing import studies
from aqmlab.errors import input_error, unknown
from aqmlab.report.behaviour import figure
from aqmlab.report.reference import page as reference_page

EXAMPLE = EXAMPLES.format(
    "aqmlab explain codel\n\naqmlab explain codel.target\n\naqmlab explain limit\n\n"
    "aqmlab explain jain\n\naqmlab explain codel --chart codel.svg"
)


@reported
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A discipline, control, preset, section, parameter or metric: codel, "
            "pie.target, my_queue.py:MyQueue, jain. Default: all.",
        ),
    ] = None,
    with_: With = None,
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference as a page in Markdown.")
    ] = False,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw the response of a queue to a load step."),
    ] = None,
) -> None:
    """Explain a queue discipline, parameter or metric: default, range, meaning, source."""
    load_own(with_)
    if chart is not None:
        _draw(name, chart)
        return
    found = find(name)
    if json:
        print_json(found)
        return
    if markdown:
        print(reference_page(found))
        return
    for entry in found:
        print(plain.explained(entry))


def metrics() -> list[dict[str, Any]]:
    """The metrics as entries of the reference."""
    found: list[dict[str, Any]] = late("metric_entries")()
    return found


def entries() -> list[dict[str, Any]]:
    """The reference, metrics among it; `tc` is what follows `root` in Linux's command."""
    found: list[dict[str, Any]] = []
    for entry in reference():
        line = tc.line(entry["name"]) if entry["section"] == "queue" else None
        found.append(entry | {"tc": line.words} if line else entry)
    return [*found, *metrics(), *profiles()]


def profiles() -> list[dict[str, Any]]:
    """The named access lines as entries of the reference."""
    empty: dict[str, Any] = {"section": "profile", "preset_of": None, "settings": {}, "params": []}
    return [{**empty, **profile} for profile in listed()]


def _draw(name: str | None, path: Path) -> None:
    """Draws the discipline `name` at work."""
    if name is None:
        raise input_error("a chart needs a discipline", hint=f"aqmlab explain codel --chart {path}")
    check_chart(path, "--chart")
    save_chart(figure(name), path)


def find(name: str | None) -> list[dict[str, Any]]:
    """What `plain.matching` finds, or the entry of a class (`my_queue.py:MyQueue`).

    Raises `InputError` if there is no such thing.
    """
    if name is None:
        return entries()
    if ":" in name:
        return [_own(name)]
    if name in (study["name"] for study in studies()):
        hint = f"`aqmlab reproduce {name}` runs it"
        raise input_error("this is a study: it has no parameters", given=name, hint=hint)
    found = plain.matching(name, entries())
    if found:
        return found
    head, dot, parameter = name.partition(".")
    named = [entry for entry in reference() if head in (entry["name"], entry["section"])]
    if not dot:
        raise unknown("name", name, _names())
    if not named:
        raise unknown("name", head, _names())
    known = dict.fromkeys(each["name"] for entry in named for each in entry["params"])
    raise unknown(f"parameter of {head}", parameter, known)


def _own(name: str) -> dict[str, Any]:
    """The entry of a class written in Python."""
    section, summary, params = describe(name, [])
    more: dict[str, Any] = {"range": None, "choices": [], "meaning": "", "source": "the class"}
    return {
        "section": section,
        "name": name,
        "summary": summary,
        "preset_of": None,
        "settings": {},
        "source": None,
        "params": [param | more for param in params],
    }


def _names() -> list[str]:
    return list(dict.fromkeys(entry["name"] for entry in [*reference(), *metrics(), *profiles()]))
