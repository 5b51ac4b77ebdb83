"""Linux commands for the simulated links `egress` and `ingress`.

Sources: tc(8), tc-htb(8), tc-stab(8), tc-cake(8), ip-link(8); sqm-scripts for the ifb device.

1. The kernel counts the Ethernet header of a device that has one; tc-stab's overhead is less by
   that. cake leaves the header out by itself when it has a keyword or an overhead.
2. `nat` lets cake see the hosts behind a router's address translation, as it sees them here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab._core import queue_in_tc, shaper_in_tc
from aqmlab.errors import input_error
from aqmlab.packs.access_line.setup import PORTS, is_shaping

ETHERNET_HEADER = 14
HEADERLESS = ("ppp", "wwan", "tun", "wg")
"""Prefixes of the names of devices without an Ethernet header."""
NAME_LENGTH = 15
"""Characters of a device's name, at most (IFNAMSIZ)."""

Links = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class SetupCommands:
    """Commands for one set-up."""

    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    problem: str = ""
    """Reason for the lack of commands."""

    @property
    def lines(self) -> list[str]:
        """All commands of the set-up, in order."""
        return [*self.up, *self.down]


def commands(links: Links, device: str) -> SetupCommands:
    """Commands for the links of a simulated scenario, every default filled in."""
    ports = {way: links[port] for way, port in PORTS.items()}
    shaped = {w: each for w, each in ports.items() if "shaper" in each or is_shaping(each["queue"])}
    words = {}
    for way, link in reversed(shaped.items()):
        found = queue_in_tc(link["queue"], link["shaper"]["rate"] if "shaper" in link else None)
        if found is None:
            return SetupCommands(problem=f"Linux has no {link['queue']['discipline']}.")
        words[way], left_out = found
        if left_out:
            return SetupCommands(problem=f"tc has no words for {', '.join(left_out)}.")
    ifb = f"ifb4{device}"[:NAME_LENGTH]
    header = 0 if device.startswith(HEADERLESS) else ETHERNET_HEADER
    up, down, undo = [], [], []
    if "up" in shaped:
        up = _queue(shaped["up"], words["up"], device, header)
        undo = [f"tc qdisc del dev {device} root"]
    if "down" in shaped:
        down = [
            f"ip link add name {ifb} type ifb",
            f"ip link set dev {ifb} up",
            *_queue(shaped["down"], words["down"], ifb, header),
            f"tc qdisc replace dev {device} handle ffff: ingress",
            f"tc filter replace dev {device} parent ffff: matchall "
            f"action mirred egress redirect dev {ifb}",
        ]
        undo += [f"tc qdisc del dev {device} ingress", f"ip link del {ifb}"]
    return SetupCommands(tuple(up), tuple(down), tuple(undo))


def check_device(name: str) -> None:
    """Raises `InputError` for a device's name that the kernel refuses (dev_valid_name) or a shell
    would not take as one word."""
    if name in (".", "..") or not re.fullmatch(rf"[\w.@+-]{{1,{NAME_LENGTH}}}", name, re.ASCII):
        raise input_error(
            f"expected 1 to {NAME_LENGTH} letters, digits or characters of `_.@+-`, such as eth0",
            key="device",
            given=name,
        )


def _queue(link: Mapping[str, Any], words: str, device: str, header: int) -> list[str]:
    """Commands for one device's shaper and queue, whose words of tc are `words`."""
    if "shaper" not in link:
        return [f"tc qdisc replace dev {device} root {words} nat"]
    shaper = link["shaper"]
    rates, _ = shaper_in_tc({key: shaper[key] for key in ("rate", "burst", "cburst")})
    return [
        f"tc qdisc replace dev {device} root handle 1: {_stab(shaper, header)}htb default 1",
        f"tc class replace dev {device} parent 1: classid 1:1 {rates} quantum 1514",
        f"tc qdisc replace dev {device} parent 1:1 handle 11: {words}",
    ]


def _stab(shaper: Mapping[str, Any], header: int) -> str:
    """tc's words for the size of packets that the shaper counts, with a space behind."""
    octets = [int(shaper.get(key, "0b").removesuffix("b")) for key in ("overhead", "mpu")]
    overhead, mpu = octets[0] - header, octets[1]
    layer = "atm" if shaper.get("framing") == "atm" else "ethernet"
    # A table with an entry for every size: without it tc rounds up to multiples of 4 bytes.
    exact = f"mtu 2047 tsize 2048 mpu {mpu} " if mpu or layer == "atm" else ""
    return f"stab {exact}overhead {overhead} linklayer {layer} " if exact or overhead else ""
