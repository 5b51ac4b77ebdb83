"""Queues under test on an access line: shapers and queues on a Linux router, as links.

    servers -> down: the provider's FIFO and the line -> ingress: shaper and queue -> home
    home -> egress: shaper and queue -> up: the modem's FIFO and the line -> servers

The ingress shaper is on an ifb device, behind the bottleneck. It keeps the provider's FIFO short
only because it sends less than the line carries, so that senders slow down.

CAKE shapes by itself and counts the line's framing exactly. Other queues are leaves of HTB, whose
size table (tc-stab(8)) has no PTM: there the rate is lower instead, by 64/65.

Sources: sqm-scripts (`simplest.qos`, `piece_of_cake.qos`, `functions.sh`) for the structure and
for bursts of 1 ms; tc-cake(8) for the framing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aqmlab._core import InputError, parse_queue
from aqmlab.errors import input_error
from aqmlab.scenario.access import WAYS, Line

BASELINE = "droptail"
"""The line as it is: no shaper, so that packets wait in the FIFOs of modem and provider."""
PORTS: Mapping[str, str] = {"down": "ingress", "up": "egress"}
PATHS: Mapping[str, list[str]] = {"down": ["down", "ingress"], "up": ["egress", "up"]}
"""The links of each direction, in the order in which packets traverse them."""
PORT: Mapping[str, Any] = {
    "rate": "10gbit", "delay": "0s", "queue": {"discipline": "droptail", "limit": "unlimited"},
    "driver": {},
}  # fmt: skip
"""A port of the router: faster than the line, so that only a shaper lets packets wait there. Its
ring takes a burst of the shaper at once, as on Linux; otherwise a short queue would drop it."""
STAB: Mapping[str, str] = {
    "raw": "",
    "ethernet": "overhead 38 mpu 84",
    "docsis": "overhead 18 mpu 64",
    "pppoe-ptm": "overhead 30",
    "pppoe-llcsnap": "overhead 40 linklayer atm",
}
"""Words of tc-stab(8) for the line's framing by tc-cake(8), without PTM's coding."""
CODING = {"pppoe-ptm": 64 / 65}
VARIED = frozenset({"codel", "dualpi2", "fq_codel", "fq_pie", "pie"})
"""Disciplines of Linux whose default here is another variant than Linux's."""
LEAST_BURST = 1600
BURST = 1e-3
"""Seconds at the shaper's rate that it may send at once, at least one packet."""
WAY = re.compile(r"(?:^|\s)(down|up):")


def links(line: Line) -> dict[str, dict[str, Any]]:
    """The line as it is, with the router's ports."""
    found = line.links()
    for way in WAYS:
        found[way]["queue"] = {"discipline": "droptail", "limit": line.buffer(way)}
    return found | {port: dict(PORT) for port in PORTS.values()}


def settings(words: str, line: Line, share: float | None = None) -> dict[str, Any]:
    """Values of the scenario that set a queue up: `fq_codel`, `up: cake ack-filter down: cake`.

    `share` is the part of the line's rate that shapers send. Raises `InputError` for a queue that
    does not exist or has a wrong setting.
    """
    if share is not None and not 0 < share <= 1:
        raise input_error("expected a share above 0, to 1", key="shape", given=f"{share:g}")
    found: dict[str, Any] = {}
    for way, own in by_way(words).items():
        if own != BASELINE:
            stage = _stage(own, way, line, share or line.kind.share)
            found |= {f"links.{PORTS[way]}.{key}": value for key, value in stage.items()}
    has_bandwidth = not WAY.search(words) and is_shaping(_parsed(words))
    if line.down != line.up and has_bandwidth:
        problem = "one bandwidth for two directions of different rates"
        hint = "leave it out, or give each direction its own: `up: cake bandwidth 9mbit down: cake`"
        raise input_error(problem, key="queues", given=words, hint=hint)
    return found


def by_way(words: str) -> dict[str, str]:
    """The queue of each direction; one that is not named stays as it is."""
    first, *rest = WAY.split(words)
    if not rest:
        return dict.fromkeys(WAYS, words.strip())
    ways, texts = rest[::2], [text.strip() for text in rest[1::2]]
    if first.strip() or len(set(ways)) < len(ways) or not all(texts):
        raise input_error("expected `up: QUEUE down: QUEUE`", key="queues", given=words)
    return dict.fromkeys(WAYS, BASELINE) | dict(zip(ways, texts, strict=True))


def _stage(words: str, way: str, line: Line, share: float) -> dict[str, str]:
    """Queue and shaper of one direction, in words."""
    kind, rate = line.kind, share * line.rate(way)
    queue = _parsed(words)
    discipline = queue["discipline"]
    if discipline != "cake":
        if discipline in VARIED and "variant" not in words:
            words += " variant=linux"
        rate *= CODING.get(kind.layer, 1.0)
        burst = f"{max(LEAST_BURST, rate * BURST / 8):.0f}"
        htb = f"htb rate {_kbit(rate)} burst {burst} cburst {burst} {STAB[kind.layer]} stab=true"
        return {"queue": words, "shaper": htb}
    # Without a keyword cake counts the header of an Ethernet device; two keywords add up.
    framing = "overhead 0" if kind.layer == "raw" else kind.layer
    if queue.get("link_layer", "raw") != "raw":
        framing = ""
    ingress = " ingress" if way == "down" else ""
    own = words.partition("cake")[2]  # after ours: the last of two words counts
    return {"queue": f"cake bandwidth {_kbit(rate)} {framing}{ingress}{own}"}


def _kbit(rate: float) -> str:
    return f"{max(1, int(rate / 1e3))}kbit"


def is_shaping(queue: Mapping[str, Any]) -> bool:
    """Whether a queue with every parameter is cake, and has a rate."""
    return bool(queue["discipline"] == "cake" and queue["bandwidth"] != "unlimited")


def _parsed(words: str) -> dict[str, Any]:
    """The queue with every parameter. Raises `InputError`."""
    try:
        return dict(parse_queue(words))
    except InputError as error:
        given = words if error.given is None else error.given
        raise input_error(error.problem, key="queues", given=given, hint=error.hint) from None
