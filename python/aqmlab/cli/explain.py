"""`aqmlab explain`: what a parameter means, from its declaration, and what a metric is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab._late import late
from aqmlab.cli.common import (
    EXAMPLES,
    Json,
    With,
    check_chart,
    console,
    load_own,
    print_json,
    reported,
    save_chart,
)
from aqmlab.report.reference import page as reference_page

if TYPE_CHECKING:
    from rich.console import Console


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
    entries = find(name)
    if json:
        print_json(entries)
        return
    if markdown:
        print(reference_page(entries))
        return
    screen = console()
    for entry in entries:
        _show(entry, screen)


def metrics() -> list[dict[str, Any]]:
    """The metrics as entries of the reference."""
    found: list[dict[str, Any]] = late("metric_entries")()
    return found


def profiles() -> list[dict[str, Any]]:
    """The named access lines as entries of the reference."""
    from aqmlab.cli.listing import profiles as listed

    empty = {"section": "profile", "preset_of": None, "settings": {}, "params": []}
    return [{**empty, **profile} for profile in listed()]


def _draw(name: str | None, path: Path) -> None:
    """Draws the discipline `name` at work."""
    from aqmlab.errors import input_error
    from aqmlab.report.behaviour import figure

    if name is None:
        raise input_error("a chart needs a discipline", hint=f"aqmlab explain codel --chart {path}")
    check_chart(path, "--chart")
    save_chart(figure(name), path)


def find(name: str | None) -> list[dict[str, Any]]:
    """The entries of the reference that `name` speaks of, with the parameters it names.

    `name` is `codel`, `codel.target`, or the name of a parameter alone (`target`:
    then every discipline that has one), of a class (`my_queue.py:MyQueue`) or of a metric.
    Raises `InputError` if there is no such thing.
    """
    from aqmlab._core import reference
    from aqmlab.cli.listing import studies
    from aqmlab.errors import input_error, unknown

    if name is None:
        return [*reference(), *metrics()]
    if ":" in name:
        return [_own(name)]
    head, dot, parameter = name.partition(".")
    entries = [entry for entry in reference() if head in (entry["name"], entry["section"])]
    # A metric may have the name of a parameter: both are told.
    others = [*metrics(), *profiles()]
    measured = [entry for entry in others if name in (entry["name"], entry["section"])]
    if name in (study["name"] for study in studies()):
        hint = f"`aqmlab reproduce {name}` runs it"
        raise input_error("this is a study: it has no parameters", given=name, hint=hint)
    if not entries and not dot:
        entries, parameter = list(reference()), name
    elif not entries:
        raise unknown("name", head, _names())
    if not parameter:
        return entries + measured
    found = []
    for entry in entries:
        params = [each for each in entry["params"] if each["name"] == parameter]
        if params:
            found.append(entry | {"params": params})
    if found or measured:
        return measured + found
    if not dot:
        raise unknown("name", name, _names())
    known = dict.fromkeys(each["name"] for entry in entries for each in entry["params"])
    raise unknown(f"parameter of {head}", parameter, known)


def _own(name: str) -> dict[str, Any]:
    """The entry of a class written in Python."""
    from aqmlab._core import describe

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
    from aqmlab._core import reference

    return list(dict.fromkeys(entry["name"] for entry in [*reference(), *metrics(), *profiles()]))


def _show(entry: dict[str, Any], screen: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if entry["section"] == "metric":
        _show_metric(entry, screen)
        return
    screen.print(Text.assemble((entry["name"], "bold cyan"), f"  {entry['summary']}"))
    if entry["preset_of"]:
        settings = ", ".join(f"{key} = {value}" for key, value in entry["settings"].items())
        screen.print(f"  {entry['preset_of']} with {settings}")
    if entry["source"]:
        screen.print(f"  Source: {entry['source']}")
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for param in entry["params"]:
        own = entry["settings"].get(param["name"])
        usual = "required" if param["default"] is None else f"default {param['default']}"
        facts = [usual if own is None else f"default {own} here, else {param['default']}"]
        if param["choices"]:
            facts.append(f"one of {', '.join(param['choices'])}")
        elif param["range"]:
            facts.append(f"{param['range'][0]} to {param['range'][1]}")
        facts.append(f"({param['kind']}; source: {param['source']})")
        lines = [param["meaning"], "\n"] if param["meaning"] else []
        table.add_row(param["name"], Text.assemble(*lines, (" · ".join(facts), "dim")))
    screen.print(table)
    screen.print()


def _show_metric(entry: dict[str, Any], screen: Console) -> None:
    """A metric, in the words of the catalogue."""
    from rich.text import Text

    screen.print(Text.assemble((entry["name"], "bold cyan"), f"  {entry['summary']}"))
    for key in ("of", "unit", "where", "source"):
        screen.print(Text.assemble((f"  {key:<8}", "bold"), entry[key]), soft_wrap=True)
    screen.print()
