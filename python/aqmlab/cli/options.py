"""Options that several commands share, and those of `aqmlab shell`, each declared once."""

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
LOSS = link_option("SHARE", "Random loss: 1%, 0.01, or with correlation `1% 25%`.")
DOWN = link_option(
    "SETTINGS",
    "A link to the command: `rate=50mbit queue=codel`; repeat for "
    "more in a row. With --scenario: its name.",
)
UP = link_option("SETTINGS", "A link from the command; same form as --down.")
NAME = option("NAME", "Its name for `aqmlab set` and `aqmlab top`.")
NEW_FOLDER = option("FOLDER", "Write results to this new folder.", "--out")
COMMAND = argument("[-- COMMAND [ARGUMENT]...]", "Command to run; default: $SHELL.", default=None)
TRACE = link_option("FILE", "Delivery opportunities in mahimahi's format.")
JITTER = link_option("TIME", "Spread of the delay: 2ms, or netem's `2ms 25% pareto`.")
SLOT = link_option("TIMES", "Deliver packets in bursts, as netem's `2ms 8ms packets 16`.")
DUPLICATE = link_option("SHARE", "Duplication; same form as --loss.")
REORDERING = flag("--reordering", "Let jitter reorder packets.", rich_help_panel="Links")
OVERHEAD = link_option("BYTES", "Bytes that the link adds to each packet.")
SCENARIO = link_option(
    "FILE", "Links of a scenario: the path of its first flow group leads to the command."
)
TOPOLOGY = host_option("FILE", "Several hosts: a file with hosts and links, or a scenario.")
AT = host_option("HOST", "Host that runs COMMAND; default: the first.")
HOST = host_option("NAME=COMMAND", "Command to run on another host. May be repeated.")
FAR = option("COMMAND", "Command to run at the far end.", default="")
NAT = flag("--nat", "Let the command reach other networks, including DNS.")
PRECISION = option("HOW", "low-cpu, balanced (default) or exact.")
MTU = option("BYTES", "Largest packet; default: 1500b.")
CPU = option("N", "Pin the emulator to this processor.", min=0)
PRIORITY = option("N", "Real-time priority; 0 for none.", min=0)
DRAIN = option(
    "TIME", "Time for packets in flight to arrive after COMMAND has ended: 2s; 0s discards them."
)
KEEP_CAPABILITIES = flag(
    "--keep-capabilities", "Let a command in a user namespace change the network there."
)
WATCH = flag("--watch", "Show the links below the output of COMMAND.")
QUIET = flag("--quiet", "-q", "Print no summary of the links at the end.")
SHELL_JSON = flag(
    "--json", "Print only JSON on stdout: the tables. COMMAND's output goes to stderr."
)
