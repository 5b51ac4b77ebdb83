"""Options that several commands share, and those of `aqmlab shell`, each declared once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

# Types of options that need not be given.
Text = str | None
Texts = list[str] | None
Number = int | None
File = Path | None


def argument(metavar: str, text: str, **more: Any) -> Any:
    """An argument, called `metavar` in help and errors."""
    return typer.Argument(metavar=metavar, help=text, **more)


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value; without `names` it is called like the parameter of the command."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def flag(*names_and_text: str, **more: Any) -> Any:
    """An option without a value: its names, then its help."""
    *names, text = names_and_text
    return typer.Option(*names, help=text, **more)


link_option = partial(option, rich_help_panel="Links")
host_option = partial(option, rich_help_panel="Hosts")

Set = Annotated[
    Texts,
    option(
        "KEY=VALUE",
        "Set a key of the scenario; `queue` is the bottleneck's. May be repeated.",
        "--set",
    ),
]
Seed = Annotated[Number, option("N", "Seed of all random streams.", min=0)]
Json = Annotated[bool, flag("--json", "Print only JSON on stdout.")]
Out = Annotated[File, option("FOLDER", "Folder for the results.")]
With = Annotated[
    Texts,
    option(
        "FILE.py",
        "Load your own metrics and charts (@aqmlab.metric, @aqmlab.chart). May be repeated.",
        "--with",
    ),
]
NoReport = Annotated[bool, flag("--no-report", "Write only the tables.")]
Figures = Annotated[bool, flag("--figures", "Also write each figure as SVG, PNG and PDF.")]
Pcap = Annotated[File, option("FILE", "Capture all packets, for Wireshark.")]
PcapAt = Annotated[
    Text,
    option(
        "WHERE",
        "near (default): each packet once, as COMMAND sends or gets it; far: at the other "
        "end; all: before and after each link, and drops.",
    ),
]
PcapRing = Annotated[Text, option("SIZE", "Keep only the last packets: 100mb.")]
Log = Annotated[
    Texts, option("LINK=FILE", "Log a link in mahimahi's format: up=up.log. May be repeated.")
]
Threads = Annotated[Number, option("N", "Number of cores; default: all.", min=1)]
Cluster = Annotated[
    Text,
    option(
        "ADDRESS",
        "Run on the dask cluster with this scheduler (tcp://HOST:8786); see docs/cluster.md.",
    ),
]
Replications = Annotated[Number, option("N", "Replications of each point.", min=1)]
Only = Annotated[Texts, option("AXIS=LABEL", "Run only this value of an axis. May be repeated.")]
Profile = Annotated[
    Text,
    link_option(
        "NAME",
        "An access line: dsl, cable, lte, 5g, satellite, geo, wifi, office; other options "
        "change it.",
    ),
]
Rate = Annotated[Text, link_option("RATE", "Rate in both directions; default: no limit.")]
Delay = Annotated[Text, link_option("TIME", "One-way delay in both directions.")]
Queue = Annotated[
    Text, link_option("QUEUE", "Discipline and settings: `fq_codel target=5ms limit=1000p`.")
]
Loss = Annotated[Text, link_option("SHARE", "Random loss: 1%, 0.01, or with correlation `1% 25%`.")]
Down = Annotated[
    Texts,
    link_option(
        "SETTINGS",
        "A link to the command: `rate=50mbit queue=codel`; repeat for "
        "more in a row. With --scenario: its name.",
    ),
]
Up = Annotated[Texts, link_option("SETTINGS", "A link from the command; same form as --down.")]
Name = Annotated[Text, option("NAME", "Its name for `aqmlab set` and `aqmlab top`.")]
NewFolder = Annotated[File, option("FOLDER", "Write results to this new folder.", "--out")]
Command = Annotated[
    Texts, argument("[-- COMMAND [ARGUMENT]...]", "Command to run; default: $SHELL.")
]
Trace = Annotated[File, link_option("FILE", "Delivery opportunities in mahimahi's format.")]
Jitter = Annotated[
    Text, link_option("TIME", "Spread of the delay: 2ms, or netem's `2ms 25% pareto`.")
]
Slot = Annotated[
    Text, link_option("TIMES", "Deliver packets in bursts, as netem's `2ms 8ms packets 16`.")
]
Duplicate = Annotated[Text, link_option("SHARE", "Duplication; same form as --loss.")]
Reordering = Annotated[
    bool, flag("--reordering", "Let jitter reorder packets.", rich_help_panel="Links")
]
Overhead = Annotated[Text, link_option("BYTES", "Bytes that the link adds to each packet.")]
Scenario = Annotated[
    File,
    link_option(
        "FILE", "Links of a scenario: the path of its first flow group leads to the command."
    ),
]
Topology = Annotated[
    File, host_option("FILE", "Several hosts: a file with hosts and links, or a scenario.")
]
At = Annotated[Text, host_option("HOST", "Host that runs COMMAND; default: the first.")]
Host = Annotated[
    Texts, host_option("NAME=COMMAND", "Command to run on another host. May be repeated.")
]
Far = Annotated[str, option("COMMAND", "Command to run at the far end.")]
Nat = Annotated[bool, flag("--nat", "Let the command reach other networks, including DNS.")]
Precision = Annotated[Text, option("HOW", "low-cpu, balanced (default) or exact.")]
Mtu = Annotated[Text, option("BYTES", "Largest packet; default: 1500b.")]
Cpu = Annotated[Number, option("N", "Pin the emulator to this processor.", min=0)]
Priority = Annotated[Number, option("N", "Real-time priority; 0 for none.", min=0)]
Drain = Annotated[
    Text,
    option(
        "TIME",
        "Time for packets in flight to arrive after COMMAND has ended: 2s; 0s discards them.",
    ),
]
KeepCapabilities = Annotated[
    bool, flag("--keep-capabilities", "Let a command in a user namespace change the network there.")
]
Watch = Annotated[bool, flag("--watch", "Show the links below the output of COMMAND.")]
Quiet = Annotated[bool, flag("--quiet", "-q", "Print no summary of the links at the end.")]
ShellJson = Annotated[
    bool, flag("--json", "Print only JSON on stdout: the tables. COMMAND's output goes to stderr.")
]
