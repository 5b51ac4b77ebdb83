"""The reference of parameters and metrics as Markdown."""

from __future__ import annotations

from typing import Any


def page(entries: list[dict[str, Any]], *, whole: bool = True) -> str:
    """The entries as a Markdown page.

    The `whole` reference links to the pages of disciplines, which have their parameters.
    """
    lines = ["# Reference", "", "Made by `make reference` from the declarations in the code.", ""]
    if whole:
        queues = [entry for entry in entries if entry["section"] == "queue"]
        entries = [entry for entry in entries if entry["section"] != "queue"]
        lines += ["## Queue disciplines", "", "Their pages have the parameters.", ""]
        lines += ["| discipline | meaning |", "|---|---|", *map(_link, queues), ""]
    measured = [entry for entry in entries if entry["section"] == "metric"]
    lines_of_access = [entry for entry in entries if entry["section"] == "profile"]
    for entry in (each for each in entries if each["section"] not in ("metric", "profile")):
        summary = entry["summary"]
        lines += [f"## {entry['name']}", "", f"{summary[0].upper()}{summary[1:]}.", ""]
        if entry["preset_of"]:
            settings = ", ".join(f"`{key} = {text}`" for key, text in entry["settings"].items())
            lines += [f"`{entry['preset_of']}` with {settings}. Source: {entry['source']}.", ""]
        elif entry["params"]:
            lines += parameters(entry)
    if lines_of_access:
        lines += ["## Profiles", "", "| profile | meaning | source |", "|---|---|---|"]
        lines += [
            f"| `{entry['name']}` | {entry['summary']} | {entry['source']} |"
            for entry in lines_of_access
        ]
        lines += [""]
    if measured:
        lines += ["## Metrics", "", "| metric | of | unit | meaning | where | source |"]
        keys = ("name", "of", "unit", "summary", "where", "source")
        rows = ([f"`{entry['name']}`", *(entry[key] for key in keys[1:])] for entry in measured)
        lines += ["|---|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join(lines).rstrip()


def _link(entry: dict[str, Any]) -> str:
    """A row of the table of disciplines and presets."""
    page = entry["preset_of"] or entry["name"]
    return f"| [`{entry['name']}`](disciplines/{page}.md#parameters) | {entry['summary']} |"


def parameters(entry: dict[str, Any]) -> list[str]:
    """The parameters of an entry as the lines of a Markdown table."""
    head = ["| key | default | allowed | meaning | source |", "|---|---|---|---|---|"]
    return [*head, *(_row(param) for param in entry["params"]), ""]


def _row(param: dict[str, Any]) -> str:
    allowed = ", ".join(param["choices"]) or param["kind"]
    if param["range"]:
        allowed = f"{param['kind']}, {param['range'][0]} to {param['range'][1]}"
    default = "required" if param["default"] is None else f"`{param['default']}`"
    cells = (f"`{param['name']}`", default, allowed)
    texts = [text.replace("|", "\\|") for text in (*cells, param["meaning"], param["source"])]
    return f"| {' | '.join(texts)} |"
