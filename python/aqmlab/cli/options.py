"""Options that several commands share, each declared once."""

from __future__ import annotations

from functools import partial
from typing import Any

import typer


def argument(metavar: str, text: str, **more: Any) -> Any:
    """An argument, called `metavar` in help and errors; required without a `default`."""
    return typer.Argument(more.pop("default", ...), metavar=metavar, help=text, **more)


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value, `default` or None if it is not given; without `names` it is called
    like the parameter of the command."""
    return typer.Option(more.pop("default", None), *names, metavar=metavar, help=text, **more)


def flag(*names_and_text: str, **more: Any) -> Any:
    """An option without a value: its names, then its help."""
    *names, text = names_and_text
    return typer.Option(False, *names, help=text, **more)


link_option = partial(option, rich_help_panel="Links")
host_option = partial(option, rich_help_panel="Hosts")

SET = option(
    "KEY=VALUE", "Set a key of the scenario; `queue` is the bottleneck's. May be repeated.", "--set"
)
SEED = option("N", "Seed of all random streams.", min=0)
JSON = flag("--json", "Print only JSON on stdout.")
OUT = option("FOLDER", "Folder for the results.")
WITH = option(
    "FILE.py",
    "Load your own metrics and charts (@aqmlab.metric, @aqmlab.chart). May be repeated.",
    "--with",
)
NO_REPORT = flag("--no-report", "Write only the tables.")
FIGURES = flag("--figures", "Also write each figure as SVG, PNG and PDF.")
PCAP = option("FILE", "Capture all packets, for Wireshark.")
PCAP_AT = option(
    "WHERE",
    "near (default): each packet once, as COMMAND sends or gets it; far: at the other "
    "end; all: before and after each link, and drops.",
)
PCAP_RING = option("SIZE", "Keep only the last packets: 100mb.")
LOG = option("LINK=FILE", "Log a link in mahimahi's format: up=up.log. May be repeated.")
THREADS = option("N", "Number of cores; default: all.", min=1)
CLUSTER = option(
    "ADDRESS", "Run on the dask cluster with this scheduler (tcp://HOST:8786); see docs/cluster.md."
)
REPLICATIONS = option("N", "Replications of each point.", min=1)
ONLY = option("AXIS=LABEL", "Run only this value of an axis. May be repeated.")
PROFILE = link_option(
    "NAME",
    "An access line: dsl, cable, lte, 5g, satellite, geo, wifi, office; other options change it.",
)
RATE = link_option("RATE", "Rate in both directions; default: no limit.")
DELAY = link_option("TIME", "One-way delay in both directions.")
QUEUE = link_option("QUEUE", "Discipline and settings: `fq_codel target=5ms limit=1000p`.")
LOSS = link_option("SHARE", "Random loss: 1%, with correlation `1% 25%`, or `gemodel 1% 10%`.")
NAME = option("NAME", "Its name for `aqmlab set` and `aqmlab top`.")
NEW_FOLDER = option("FOLDER", "Write results to this new folder.", "--out")
PRECISION = option("HOW", "low-cpu, balanced (default) or exact.")
