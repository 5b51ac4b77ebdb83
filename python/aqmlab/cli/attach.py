"""`aqmlab attach`: a path in front of processes that run already, or of an interface."""

from __future__ import annotations

from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import OF_RECORDINGS, command_line, naming, say, settings_of_real_packets
from aqmlab.cli.options import link_option, option
from aqmlab.emulator import emulate
from aqmlab.emulator.keep import Reserved, recordings
from aqmlab.emulator.links import from_options
from aqmlab.errors import input_error
from aqmlab.report.run_console import busy_links

EXAMPLE = (
    "aqmlab attach --pid 4711 --rate 12mbit --delay 20ms --queue fq_codel\n\n"
    "aqmlab attach --pid 4711 --down 'rate=50mbit queue=cake' --up rate=5mbit --for 60 "
    "--out results/attached\n\n"
    "aqmlab attach --interface eth0 --rate 50mbit --delay 10ms --queue cake"
)
WAITS = ("sh", "-c", 'echo "aqmlab: attached $1" >&2; exec sleep infinity', "sh")
"""The command: it begins when the path is there, and everything ends with it."""


@naming(
    **OF_RECORDINGS,
    **{key: f"--{key}" for key in ("rate", "delay", "queue", "loss", "down", "up", "profile")},
    name="--name",
    attached="--pid",
    interface="--interface",
)
def attach(
    pid: int | None = option("PID", "A process of the namespace.", min=1),
    interface: str | None = option("NAME", "An interface of this namespace."),
    profile: str | None = options.PROFILE,
    rate: str | None = options.RATE,
    delay: str | None = options.DELAY,
    queue: str | None = options.QUEUE,
    loss: str | None = options.LOSS,
    down: list[str] | None = link_option(
        "SETTINGS", "A link to the processes: `rate=50mbit queue=codel`."
    ),
    up: list[str] | None = link_option("SETTINGS", "A link from them; same form as --down."),
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
    for_: float | None = option(
        "SECONDS", "End after this time; default: at Ctrl-C.", "--for", min=0.0
    ),
    name: str | None = options.NAME,
    out: Path | None = options.NEW_FOLDER,
    pcap: Path | None = options.PCAP,
    pcap_at: str | None = options.PCAP_AT,
) -> None:
    """Put a path in front of the network namespace of a running process, such as a container's,
    or of an interface.

    With --pid, new connections to other networks take the path; with --interface, all IP packets
    that this interface sends and receives. The path is removed when this program ends, however it
    ends. Needs root. See docs/emulator.md.
    """
    if (pid is None) == (interface is None):
        problem = "expected one of --pid and --interface"
        raise input_error(problem, hint="--pid 4711 or --interface eth0")
    given = {"rate": rate, "delay": delay, "queue": queue, "loss": loss}
    common = {key: text for key, text in given.items() if text is not None}
    settings = settings_of_real_packets(set_, seed, out)
    path = from_options(common, down or [], up or [], settings, profile)
    captured = recordings(pcap, places=pcap_at).of_run(1, path.scenario)
    with Reserved(out) as kept:
        end = "until Ctrl-C" if for_ is None else f"for {for_:g} s"
        done = emulate(path, (*WAITS, end), nat=pid is not None,
                       settings={"name": name} if name else {}, until=for_,
                       attached=pid, interface=interface, **captured)  # fmt: skip
        kept.keep(done, command_line())
    say(*done.remarks, *busy_links(done.results), *kept.told(), "detached")
    raise SystemExit(bool(kept.problem))
