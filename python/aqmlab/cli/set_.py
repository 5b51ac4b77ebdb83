"""`aqmlab set`: changes the links of a running emulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from aqmlab._core import InputError, queue_in_words
from aqmlab.cli import options
from aqmlab.cli.common import naming, print_json
from aqmlab.cli.options import argument, flag
from aqmlab.emulator.change import change
from aqmlab.scenario.settings import parse_settings
from aqmlab.scenario.toml import shown

EXAMPLE = (
    "aqmlab set lab down.rate=5mbit\n\n"
    "aqmlab set 4711 down.queue=fq_codel down.queue.target=20ms\n\n"
    "aqmlab set lab up.loss=1% up.delay=40ms"
)


def set_(
    name: str = argument("NAME", "Its --name or process ID; see `aqmlab top`."),
    settings: list[str] = argument(
        "KEY=VALUE...",
        "A link (or down, up), a dot, and rate, delay, loss, queue or queue.PARAMETER.",
    ),
    replace: bool = flag(
        "--replace", "Begin a new queue with the packets of the old one (queues only)."
    ),
    json: bool = options.JSON,
) -> None:
    """Change the links of a running emulator: `aqmlab shell --name NAME` in another terminal.

    Makes all changes or none. The emulator's results list them with their times. A parameter of a
    queue changes while the queue goes on: packets and state stay.
    See docs/emulator.md.
    """
    given = parse_settings(settings, "KEY=VALUE", "a setting such as down.rate=5mbit")
    with naming(emulator="NAME"):
        done = change(name, given, replace=replace)
    if json:
        print_json(asdict(done))
        return
    for each in done.changes:
        key = each.key.removeprefix("links.")
        print(f"{key}: {_shown(each.before)} -> {_shown(each.after)} at {done.time_s:.3f} s")


def _shown(value: Any) -> str:
    """A value as one would write it; a queue in words."""
    if isinstance(value, Mapping) and "discipline" in value:
        try:
            return queue_in_words(value)
        except InputError:
            pass  # a class in Python, whose file is elsewhere
    return shown(value)
