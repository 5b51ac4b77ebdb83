"""Options of `aqmlab shell` alone; those of other commands too are in `path_options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.cli.path_options import link_option

Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND [ARGUMENT]...]", help="Command to run; default: $SHELL."),
]
Trace = Annotated[
    Path | None, link_option("--trace", "FILE", "Delivery opportunities in mahimahi's format.")
]
Jitter = Annotated[
    str | None,
    link_option("--jitter", "TIME", "Spread of the delay: 2ms, or netem's `2ms 25% pareto`."),
]
Slot = Annotated[
    str | None,
    link_option("--slot", "TIMES", "Deliver packets in bursts, as netem's `2ms 8ms packets 16`."),
]
Duplicate = Annotated[
    str | None, link_option("--duplicate", "SHARE", "Duplication; same form as --loss.")
]
Reordering = Annotated[
    bool,
    typer.Option("--reordering", help="Let jitter reorder packets.", rich_help_panel="Links"),
]
Overhead = Annotated[
    str | None, link_option("--overhead", "BYTES", "Bytes that the link adds to each packet.")
]
Scenario = Annotated[
    Path | None,
    link_option(
        "--scenario",
        "FILE",
        "Links of a scenario: the path of its first flow group leads to the command.",
    ),
]
Topology = Annotated[
    Path | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        help="Several hosts: a file with hosts and links, or a scenario.",
        rich_help_panel="Hosts",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="HOST",
        help="Host that runs COMMAND; default: the first.",
        rich_help_panel="Hosts",
    ),
]
Host = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME=COMMAND",
        help="Command to run on another host. May be repeated.",
        rich_help_panel="Hosts",
    ),
]
Far = Annotated[
    str, typer.Option("--far", metavar="COMMAND", help="Command to run at the far end.")
]
Nat = Annotated[
    bool, typer.Option("--nat", help="Let the command reach other networks, including DNS.")
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="HOW", help="low-cpu, balanced (default) or exact."),
]
Mtu = Annotated[
    str | None, typer.Option("--mtu", metavar="BYTES", help="Largest packet; default: 1500b.")
]
Cpu = Annotated[
    int | None,
    typer.Option("--cpu", min=0, metavar="N", help="Pin the emulator to this processor."),
]
Priority = Annotated[
    int | None,
    typer.Option("--priority", min=0, metavar="N", help="Real-time priority; 0 for none."),
]
Drain = Annotated[
    str | None,
    typer.Option(
        "--drain",
        metavar="TIME",
        help="Time for packets in flight to arrive after COMMAND has ended: 2s; 0s discards them.",
    ),
]
KeepCapabilities = Annotated[
    bool,
    typer.Option(
        "--keep-capabilities",
        help="Let a command in a user namespace change the network there.",
    ),
]
Watch = Annotated[
    bool,
    typer.Option("--watch", help="Show the links below the output of COMMAND."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no summary of the links at the end.")
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print only JSON on stdout: the tables. COMMAND's output goes to stderr."
    ),
]
