"""Options that describe a path, shared by the commands that create one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Delay",
    "Down",
    "Loss",
    "Name",
    "NewFolder",
    "Profile",
    "Queue",
    "Rate",
    "Up",
    "link_option",
]

Links = list[str] | None


def link_option(name: str, metavar: str, text: str) -> Any:
    """An option of the panel *Links*."""
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel="Links")


Profile = Annotated[
    str | None,
    link_option(
        "--profile",
        "NAME",
        "An access line: dsl, cable, lte, 5g, satellite, geo, wifi, office; other options "
        "change it.",
    ),
]
Rate = Annotated[
    str | None, link_option("--rate", "RATE", "Rate in both directions; default: no limit.")
]
Delay = Annotated[str | None, link_option("--delay", "TIME", "One-way delay in both directions.")]
Queue = Annotated[
    str | None,
    link_option("--queue", "QUEUE", "Discipline and settings: `fq_codel target=5ms limit=1000p`."),
]
Loss = Annotated[
    str | None,
    link_option("--loss", "SHARE", "Random loss: 1%, 0.01, or with correlation `1% 25%`."),
]
Down = Annotated[
    Links,
    link_option(
        "--down",
        "SETTINGS",
        "A link to the command: `rate=50mbit queue=codel`; repeat for "
        "more in a row. With --scenario: its name.",
    ),
]
Up = Annotated[
    Links, link_option("--up", "SETTINGS", "A link from the command; same form as --down.")
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Its name for `aqmlab set` and `aqmlab top`."),
]
NewFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="Write results to this new folder."),
]
