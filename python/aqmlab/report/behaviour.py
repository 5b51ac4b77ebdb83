"""How a queue discipline answers to a step of load, as one picture.

Two bulk flows fill a link of 10 Mbit/s (40 ms there and back without queues); at half time
eight more join. From top to bottom: the delay of the packets, the discipline's signals, and
the first of the states that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aqmlab.report.document import Figure, charts
from aqmlab.report.plot import delays, signals, state
from aqmlab.study.single import run

STEP = 20.0
"""Seconds at which the load grows."""
INTERVAL = "250ms"
LINK = {"delay": "20ms"}
PATH = {"path": ["down"], "return_path": ["up"]}
SCENARIO: dict[str, Any] = {
    "duration": f"{2 * STEP:g}s",
    "links": {"down": LINK | {"rate": "10mbit"}, "up": LINK | {"rate": "100mbit"}},
    "transport": {"profile": "rfc"},
    "flows": {
        "first": PATH | {"count": 2},
        "joining": PATH | {"count": 8, "start": f"{STEP:g}s"},
    },
    "record": {"level": "series", "interval": INTERVAL},
}


def figure(name: str, settings: Mapping[str, Any] | None = None) -> Figure:
    """The picture for the discipline or preset `name`, with other `settings` than its own.

    Raises `InputError` for an unknown name or a setting that is not allowed.
    """
    queue = {"discipline": name} | dict(settings or {})
    result = run(SCENARIO, set={"queue": queue})
    text = ", ".join(f"{key} = {value}" for key, value in (settings or {}).items())
    return Figure(
        name,
        f"{name} under a step of load" + (f" ({text})" if text else ""),
        f"10 Mbit/s, 40 ms round trip; two Reno flows, and from {STEP:g} s eight more. "
        f"Values over {INTERVAL} each.",
        "",
        charts.panels(
            [delays(result), *signals(result), state(result)], "time (s)", x_domain=(0, 2 * STEP)
        ),
    )
