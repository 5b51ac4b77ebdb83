"""`aqmlab try`: which queue suits the line that you have?"""

from __future__ import annotations

import time
from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import (
    FAILURE,
    command_line,
    console,
    fail,
    naming,
    print_json,
    progress_bar,
    show_report,
)
from aqmlab.cli.options import argument, option

EXAMPLE = (
    "aqmlab try --down 50mbit --up 10mbit --rtt 20ms droptail codel fq_codel cake\n\n"
    "aqmlab try --down 16mbit --up 1mbit --rtt 30ms --access dsl --load gaming droptail cake\n\n"
    "aqmlab try --profile cable fq_codel 'up: cake ack-filter down: cake'\n\n"
    "aqmlab try --down 100mbit --up 20mbit --rtt 15ms fq_codel --assert 'call.mos > 4'"
)


def try_(
    queues: list[str] = argument(
        "QUEUE...",
        "Queues of the router: disciplines, presets, 'fq_codel target 3ms', 'up: cake "
        "ack-filter down: cake'; droptail: the line as it is, which is always simulated.",
    ),
    down: str | None = option("RATE", "Downlink rate: 50mbit."),
    up: str | None = option("RATE", "Uplink rate: 10mbit."),
    rtt: str | None = option("TIME", "Round-trip time of the idle line: 20ms."),
    access: str | None = option(
        "KIND", "fibre (default), ethernet, dsl, adsl, docsis, lte, 5g, wifi, satellite or leo."
    ),
    profile: str | None = option(
        "NAME",
        "An access line: dsl, cable, lte, 5g, satellite, geo, wifi, office; the options "
        "above change it.",
    ),
    load: str = option("KIND", "Traffic: home, office, gaming or rrul.", default="home"),
    device: str | None = option(
        "NAME", "Linux device that leads to the line, for the commands: pppoe-wan, eth0."
    ),
    shape: float | None = option(
        "SHARE",
        "Part of the line's rate that shapers send: 0.95 (default), or 0.7 on lines whose "
        "rate changes.",
    ),
    assert_: list[str] | None = option(
        "'NAME > N'",
        "Exit with 1 unless this holds for every queue: 'call.mos > 4'. May be repeated.",
        "--assert",
    ),
    out: Path | None = options.OUT,
    seed: int | None = options.SEED,
    threads: int | None = options.THREADS,
    no_report: bool = options.NO_REPORT,
    json: bool = options.JSON,
) -> None:
    """Compare queues on your access line by what each user would notice.

    Simulates the line as it is and with each queue behind shapers of a Linux router, in
    both directions, and recommends one if it is better than the line as it is. Prints
    the commands that set up what was simulated. Writes the study to study.toml in the
    results folder (results/try or --out), where you can edit and rerun it.
    """
    from aqmlab.campaign import HOLDS
    from aqmlab.packs.access_line.page import assertions, write_study
    from aqmlab.packs.access_line.trial import try_line

    folder = out or Path("results") / "try"
    began = time.monotonic()
    named = {key: f"--{key}" for key in ("profile", "down", "up", "rtt", "access", "load", "shape")}
    with (
        progress_bar("try", shown=not json) as progress,
        naming(**named, queues="QUEUE", device="--device", rules="--assert"),
    ):
        found = try_line(
            queues,
            profile=profile,
            down=down,
            up=up,
            rtt=rtt,
            access=access,
            load=load,
            device=device,
            shape=shape,
            rules=assert_ or (),
            seed=seed,
            threads=threads,
            progress=progress,
        )
    path = write_study(found.plan.table(), folder)
    if json:
        wall = round(time.monotonic() - began, 3)
        print_json(found.to_json() | {"study": str(path), "wall_seconds": wall})
    else:
        screen = console()
        page = found.document(command_line())
        page.print(screen)
        screen.print(f"Study: {path}", soft_wrap=True)
        if not no_report:
            show_report(found, folder, screen, figures=False)
    broken = [(queue, each) for queue, each in assertions(found) if each.verdict != HOLDS]
    if broken:
        fail("; ".join(f"{q}: {e.text} {e.verdict}: {e.evidence}" for q, e in broken), FAILURE)
