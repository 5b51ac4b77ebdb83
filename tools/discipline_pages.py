"""What the pages in docs/disciplines get from the program: parameters and a chart each.

python -m tools.discipline_pages docs

Everything below the line `MADE` of a page is replaced, the charts in docs/images/disciplines
are drawn anew. `make reference` does it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab._core import reference
from aqmlab.report.plot import behaviour as figure
from aqmlab.report.reference import parameters

MADE = "<!-- below: made by `make reference` -->"
PAGES, IMAGES = "disciplines", "images/disciplines"


def disciplines() -> list[dict[str, Any]]:
    """The disciplines of the reference, without presets."""
    return [each for each in reference() if each["section"] == "queue" and not each["preset_of"]]


def page(text: str, entry: dict[str, Any]) -> str:
    """Page of a discipline: the written part, then the generated part."""
    written = text.partition(MADE)[0].rstrip()
    name = entry["name"]
    presets = [each for each in reference() if each["preset_of"] == name]
    made = ["## Parameters", "", *parameters(entry)]
    if presets:
        made += ["Presets:", "", *(f"- {preset(each)}" for each in presets), ""]
    made += [
        "## Under a step of load",
        "",
        f"![{name} under a step of load](../{IMAGES}/{name}.svg)",
    ]
    return "\n".join([written, "", MADE, "", *made, ""])


def preset(entry: dict[str, Any]) -> str:
    """A preset in one line."""
    settings = ", ".join(f"`{key} = {text}`" for key, text in entry["settings"].items())
    return f"`{entry['name']}`: {settings} ({entry['source']})"


def write(docs: Path) -> Iterator[Path]:
    """Writes every page and chart below `docs`; yields the paths.

    Raises `FileNotFoundError` if a discipline has no page.
    """
    (docs / IMAGES).mkdir(parents=True, exist_ok=True)
    for entry in disciplines():
        path = docs / PAGES / f"{entry['name']}.md"
        path.write_text(page(path.read_text(encoding="utf-8"), entry), encoding="utf-8")
        yield path
        image = docs / IMAGES / f"{entry['name']}.svg"
        figure(entry["name"]).save(image)
        yield image


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} DOCS")
    for path in write(Path(sys.argv[1])):
        print(path)
