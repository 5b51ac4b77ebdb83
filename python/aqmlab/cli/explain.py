"""`aqmlab explain`: what a parameter means, from its declaration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab.cli.common import EXAMPLES, Json, console, print_json, reported

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.errors import InputError

EXAMPLE = EXAMPLES.format(
    "aqmlab explain codel\n\naqmlab explain codel.target\n\naqmlab explain limit\n\n"
    "aqmlab explain codel --chart codel.svg"
)


@reported
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A discipline, control, preset, section or parameter: codel, pie.target, "
            "my_queue.py:MyQueue. If absent: all.",
        ),
    ] = None,
    json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As a page; docs/reference.md is made so.")
    ] = False,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw how a queue answers to a step of load."),
    ] = None,
) -> None:
    """Say what a queue discipline or a parameter is: default, range, meaning, source."""
    if chart is not None:
        _draw(name, chart)
        return
    entries = find(name)
    if json:
        print_json(entries)
        return
    if markdown:
        print(page(entries))
        return
    screen = console()
    for entry in entries:
        _show(entry, screen)


def _draw(name: str | None, path: Path) -> None:
    """Draws the discipline `name` at work."""
    from aqmlab.errors import StorageError, input_error
    from aqmlab.report import FORMATS, save_figure
    from aqmlab.report.behaviour import figure

    if name is None:
        raise input_error("a chart needs a discipline", hint=f"aqmlab explain codel --chart {path}")
    if path.suffix[1:] not in FORMATS:
        allowed = f"expected a file that ends in .{', .'.join(FORMATS)}"
        raise input_error(allowed, key="--chart", given=str(path))
    try:
        save_figure(figure(name), path)
    except OSError as error:
        raise StorageError(error, path, "the chart was not written") from error
    console().print(f"The chart is in {path}.", soft_wrap=True)


def find(name: str | None) -> list[dict[str, Any]]:
    """The entries of the reference that `name` speaks of, with the parameters it names.

    `name` is `codel`, `codel.target`, or the name of a parameter alone (`target`:
    then every discipline that has one), or of a class (`my_queue.py:MyQueue`).
    Raises `InputError` if there is no such thing.
    """
    from aqmlab._core import reference
    from aqmlab.cli.listing import studies
    from aqmlab.errors import input_error, unknown

    if name is None:
        return list(reference())
    if ":" in name:
        return [_own(name)]
    head, dot, parameter = name.partition(".")
    entries = [entry for entry in reference() if head in (entry["name"], entry["section"])]
    if name in (study["name"] for study in studies()):
        hint = f"`aqmlab reproduce {name}` runs it"
        raise input_error("this is a study: it has no parameters", given=name, hint=hint)
    if not entries and not dot:
        entries, parameter = list(reference()), name
    elif not entries:
        raise _unknown(head)
    if not parameter:
        return entries
    found = []
    for entry in entries:
        params = [each for each in entry["params"] if each["name"] == parameter]
        if params:
            found.append(entry | {"params": params})
    if found:
        return found
    if not dot:
        raise _unknown(name)
    known = dict.fromkeys(each["name"] for entry in entries for each in entry["params"])
    raise unknown(f"parameter of {head}", parameter, known)


def _unknown(name: str) -> InputError:
    """There are too many names for a message: the nearest, and where all of them are."""
    from aqmlab.errors import input_error, nearest

    guess = nearest(name, _names())
    hint = f"did you mean `{guess}`?" if guess else None
    return input_error("unknown name; `aqmlab list` shows all", given=name, hint=hint)


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


def page(entries: list[dict[str, Any]]) -> str:
    """The entries as a Markdown page."""
    lines = ["# Reference", "", "Made by `make reference` from the declarations in the code.", ""]
    for entry in entries:
        summary = entry["summary"]
        lines += [f"## {entry['name']}", "", f"{summary[0].upper()}{summary[1:]}.", ""]
        if entry["preset_of"]:
            settings = ", ".join(f"`{key} = {text}`" for key, text in entry["settings"].items())
            lines += [f"`{entry['preset_of']}` with {settings}. Source: {entry['source']}.", ""]
        elif entry["params"]:
            lines += parameters(entry)
    return "\n".join(lines).rstrip()


def parameters(entry: dict[str, Any]) -> list[str]:
    """The parameters of an entry as the lines of a Markdown table."""
    head = ["| key | default | allowed | meaning | source |", "|---|---|---|---|---|"]
    return [*head, *(_row(param) for param in entry["params"]), ""]


def _row(param: dict[str, Any]) -> str:
    allowed = ", ".join(param["choices"]) or param["kind"]
    if param["range"]:
        allowed = f"{param['kind']}, {param['range'][0]} to {param['range'][1]}"
    cells = (f"`{param['name']}`", f"`{param['default']}`", allowed)
    texts = [text.replace("|", "\\|") for text in (*cells, param["meaning"], param["source"])]
    return f"| {' | '.join(texts)} |"


def _names() -> list[str]:
    from aqmlab._core import reference

    return list(dict.fromkeys(entry["name"] for entry in reference()))


def _show(entry: dict[str, Any], screen: Console) -> None:
    from rich.table import Table
    from rich.text import Text

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
        default = param["default"] if own is None else f"{own} here, else {param['default']}"
        facts = [f"default {default}"]
        if param["choices"]:
            facts.append(f"one of {', '.join(param['choices'])}")
        elif param["range"]:
            facts.append(f"{param['range'][0]} to {param['range'][1]}")
        facts.append(f"({param['kind']}; source: {param['source']})")
        lines = [param["meaning"], "\n"] if param["meaning"] else []
        table.add_row(param["name"], Text.assemble(*lines, (" · ".join(facts), "dim")))
    screen.print(table)
    screen.print()
