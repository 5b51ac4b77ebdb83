"""The `tc` command that gives a Linux machine a queue with these settings.

Sources: tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8), tc-cake(8), tc-sfq(8), tc-red(8),
tc-pfifo(8), tc-choke(8) and tc-sfb(8) of iproute2 6.1. A discipline that Linux lacks has no
command. A parameter that tc has no option for is named in `Line.left_out`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab._core import Scenario

Option = Callable[[str], str]
"""From a value as a resolved scenario has it to what stands in the command (may be nothing)."""


@dataclass(frozen=True)
class Line:
    """A queue as tc's words say it."""

    kind: str
    """tc's name of the discipline."""
    options: str
    left_out: tuple[str, ...]
    """Settings that tc cannot make."""

    @property
    def words(self) -> str:
        """What follows `tc qdisc replace dev eth0 root`."""
        return f"{self.kind} {self.options}".strip()


def _word(name: str) -> Option:
    return lambda value: f"{name} {value}"


def _packets(name: str) -> Option:
    def option(value: str) -> str:
        if not value.endswith("p"):
            raise ValueError(value)
        return f"{name} {value.removesuffix('p')}"

    return option


def _bytes(name: str) -> Option:
    def option(value: str) -> str:
        if not value.endswith("b") or value.endswith(("kb", "mb")):
            raise ValueError(value)
        return f"{name} {value.removesuffix('b')}"

    return option


def _switch(on: str, off: str = "") -> Option:
    return lambda value: on if value == "true" else off


def _sixteenths(name: str) -> Option:
    """PIE's weights: tc takes whole sixteenths, 0 to 32 (tc-pie(8))."""
    return lambda value: f"{name} {round(float(value) * 16)}"


def _choice(words: Mapping[Any, str]) -> Option:
    return lambda value: words[value]


_CODEL: dict[str, Option] = {
    "target": _word("target"),
    "interval": _word("interval"),
    "ce_threshold": _word("ce_threshold"),
    "ecn": _switch("ecn", "noecn"),
}
_PIE: dict[str, Option] = {
    "target": _word("target"),
    "tupdate": _word("tupdate"),
    "alpha": _sixteenths("alpha"),
    "beta": _sixteenths("beta"),
    "ecn": _switch("ecn"),
    "by_size": _switch("bytemode"),
    "delay": _choice({"timestamps": "", "rate": "dq_rate_estimator"}),
}
_FLOWS: dict[str, Option] = {"flows": _word("flows"), "quantum": _bytes("quantum")}
_ISOLATION = {
    "flow-blind": "flowblind",
    "src-host": "srchost",
    "dst-host": "dsthost",
    "hosts": "hosts",
    "flow": "flows",
    "dual-src-host": "dual-srchost",
    "dual-dst-host": "dual-dsthost",
    "triple": "triple-isolate",
}
_LIMIT = {"limit": _packets("limit")}
DISCIPLINES: dict[str, tuple[str, dict[str, Option]]] = {
    "codel": ("codel", {**_LIMIT, **_CODEL}),
    "fq_codel": (
        "fq_codel",
        {
            **_LIMIT, **_FLOWS, **_CODEL,
            "memory_limit": _bytes("memory_limit"), "drop_batch": _word("drop_batch"),
        },
    ),
    "pie": ("pie", {**_LIMIT, **_PIE}),
    "fq_pie": (
        "fq_pie",
        {**_LIMIT, **_FLOWS, **_PIE, "ecn_prob": _word("ecn_prob")},
    ),
    "cake": (
        "cake",
        {
            "bandwidth": lambda value: "" if value == "unlimited" else f"bandwidth {value}",
            "diffserv": _word(""),
            "isolation": _choice(_ISOLATION),
            "interval": _word("rtt"),
            "limit": _bytes("memlimit"),
            "ack_filter": _choice(
                {"none": "", "conservative": "ack-filter", "aggressive": "ack-filter-aggressive"}
            ),
            "wash": _switch("wash", "nowash"),
            "ingress": _switch("ingress", "egress"),
            "overhead": _bytes("overhead"),
            "mpu": _bytes("mpu"),
        },
    ),
    "sfq": (
        "sfq",
        {
            **_LIMIT, **_FLOWS, "depth": _word("depth"),
            "divisor": _word("divisor"), "headdrop": _switch("headdrop"),
            "perturb": lambda value: f"perturb {value.removesuffix('s')}",
        },
    ),
    "red_linux": (
        "red",
        {
            "limit": _bytes("limit"), "min_threshold": _bytes("min"),
            "max_threshold": _bytes("max"), "mean_packet": _bytes("avpkt"),
            "max_p": _word("probability"), "bandwidth": _word("bandwidth"),
            "ecn": _switch("ecn"), "harddrop": _switch("harddrop"),
            "adaptive": _switch("adaptive"),
        },
    ),
    "sfb": (
        "sfb",
        {
            **_LIMIT, "max": _word("max"), "target": _word("target"),
            "increment": _word("increment"), "decrement": _word("decrement"),
            "penalty_rate": _word("penalty_rate"), "penalty_burst": _word("penalty_burst"),
        },
    ),
}  # fmt: skip
REQUIRED = {"red_linux": ("limit", "min_threshold", "max_threshold", "mean_packet", "max_p")}
"""What tc has no default for, or another one."""


def line(queue: str | Mapping[str, Any]) -> Line | None:
    """What tc calls this queue (a name, a preset or a table); `None` if Linux has none such.

    Only what differs from the discipline's defaults is in the command: these are tc's, too.
    Raises `InputError` for a queue that does not exist.
    """
    settings = _resolved(queue)
    name = settings.pop("discipline")
    if name == "droptail":
        return _fifo(settings)
    if name not in DISCIPLINES:
        return None
    kind, options = DISCIPLINES[name]
    usual = _resolved(name)
    words, left_out = [], []
    for key, value in settings.items():
        if value == usual.get(key) and key not in REQUIRED.get(name, ()):
            continue
        try:
            words.append(options[key](value).strip())
        except (KeyError, ValueError):
            left_out.append(f"{key} = {value}")
    return Line(kind, " ".join(word for word in words if word), tuple(left_out))


def _resolved(queue: str | Mapping[str, Any]) -> dict[str, str]:
    """The queue with every default filled in, as text."""
    link = {"rate": "10mbit", "delay": "10ms"}
    links = {"down": {**link, "queue": queue}, "up": link}
    flows = {"flow": {"path": ["down"], "return_path": ["up"]}}
    scenario = Scenario({"duration": "1s", "links": links, "flows": flows})
    return dict(json.loads(scenario.resolved)["links"]["down"]["queue"])


def _fifo(settings: Mapping[str, str]) -> Line:
    """Drop-tail: `pfifo` counts packets, `bfifo` bytes."""
    limit, usual = settings["limit"], _resolved("droptail")
    left_out = [
        f"{key} = {settings[key]}" for key in ("byte_limit", "drop") if settings[key] != usual[key]
    ]
    for unit, kind in (("p", "pfifo"), ("b", "bfifo")):
        number = limit.removesuffix(unit)
        if number.isdecimal():
            return Line(kind, f"limit {number}", tuple(left_out))
    return Line("pfifo", "", (*left_out, f"limit = {limit}"))
