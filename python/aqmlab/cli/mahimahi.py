"""`aqmlab mahimahi`: mahimahi's command lines."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from aqmlab._core import has_far_end_here
from aqmlab.cli import options
from aqmlab.cli.common import command_line, say, settings_of_real_packets
from aqmlab.cli.options import argument, flag, option
from aqmlab.emulator import emulate
from aqmlab.emulator.keep import Reserved, recordings
from aqmlab.emulator.mahimahi import USAGE, read

EXAMPLE = (
    "aqmlab mahimahi delay 20 sh -c 'ping -c 3 $MAHIMAHI_BASE'\n\n"
    "aqmlab mahimahi link up.trace down.trace --uplink-log=up.log --downlink-queue=codel "
    '--downlink-queue-args="packets=1000, target=5, interval=100" -- ./client\n\n'
    "aqmlab mahimahi loss downlink 0.01 aqmlab mahimahi delay 50 ./client"
)


def mahimahi(
    tool: str = argument("delay|link|loss|onoff", "`aqmlab mahimahi TOOL` replaces mm-TOOL."),
    words: list[str] | None = argument(
        "[ARGUMENT]...", "The arguments of mm-TOOL and the command.", default=None
    ),
    nat: bool = flag(
        "--nat", "Let the command reach other networks. Always on for ordinary users."
    ),
    out: Path | None = option("FOLDER", "Also write results to this new folder."),
    pcap: Path | None = options.PCAP,
    precision: str | None = options.PRECISION,
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
) -> None:
    """Run a command as mm-delay, mm-link, mm-loss and mm-onoff do: the same arguments, trace
    files and logs, and $MAHIMAHI_BASE for the other end.

    aqmlab's options precede the tool. See docs/emulator.md.
    """
    if tool in USAGE and (words or [])[:1] in (["--help"], ["-h"]):
        print(f"usage: aqmlab mahimahi {USAGE[tool]}")
        return
    settings = settings_of_real_packets(set_, seed, out)
    drawn = "seed" not in settings
    settings.setdefault("seed", secrets.randbits(32))
    prefix = os.environ.get("MAHIMAHI_SHELL_PREFIX", "")
    asked = read(tool, words or [], settings, prefix)
    say(*asked.remarks)
    if drawn and asked.is_random:
        # mahimahi draws differently in each run; users who repeat runs rely on it.
        again = f"the same with `aqmlab mahimahi --seed {settings['seed']} ...`"
        say(f"seed {settings['seed']}; {again}")
    # Prompt as in mahimahi: bash shows the shells around it.
    os.environ["MAHIMAHI_SHELL_PREFIX"] = prefix + asked.prefix
    os.environ["PROMPT_COMMAND"] = 'PS1="$MAHIMAHI_SHELL_PREFIX$PS1" PROMPT_COMMAND='
    is_inside = "AQMLAB_FAR" in os.environ
    # A far end that is not here is alone; a relay reaches the machine's servers. In a shell
    # in a shell it is the outer one that has it.
    with Reserved(out) as kept:
        done = emulate(
            asked.path,
            asked.command,
            nat=nat or not (is_inside or has_far_end_here()),
            settings={"precision": precision} if precision else {},
            **recordings(pcap).of_run(1, asked.path.scenario) | {"logs": asked.logs},
            until=asked.until,
        )
        kept.keep(done, command_line())
    say(*done.remarks, *kept.told())
    raise SystemExit(done.status or bool(kept.problem))
