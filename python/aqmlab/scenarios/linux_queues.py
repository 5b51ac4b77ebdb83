"""Queues in the words of Linux's `tc`: `fq_codel target 5ms limit 1024`, or a line that
`tc qdisc show` printed.

Sources: tc(8), section "Units"; tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8), tc-cake(8),
tc-sfq(8), tc-red(8), tc-sfb(8), tc-pfifo(8) of iproute2 6.1. `aqmlab.advice.tc` writes them.

1. What does not change what a queue does to packets (`refcnt`, `handle`, `offloaded`, `split-gso`,
   `nat`) is read and left out.
2. A number without a unit is microseconds as a time and bytes as a size, as tc has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.errors import input_error, unknown

Read = Callable[[str], Any]
"""From a word to the value of a parameter. Raises `ValueError`."""
SIZES = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30,
         "gb": 1 << 30}  # fmt: skip
NUMBER = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")


def _split(word: str) -> tuple[float, str]:
    found = NUMBER.fullmatch(word)
    if not found:
        raise ValueError(word)
    return float(found[1]), found[2].lower()


def _size(word: str) -> str:
    number, unit = _split(word)
    if unit not in SIZES:
        raise ValueError(word)
    return f"{round(number * SIZES[unit])}b"


def _packets(word: str) -> str:
    return f"{int(word.removesuffix('p'))}p"


def _time(word: str) -> str:
    number, unit = _split(word)
    unit = {"": "us", "usec": "us", "msec": "ms", "sec": "s", "secs": "s"}.get(unit, unit)
    if unit not in ("us", "ms", "s", "ns"):
        raise ValueError(word)
    return f"{number:.12g}{unit}"


def _rate(word: str) -> str:
    number, unit = _split(word)
    if unit not in ("bit", "kbit", "mbit", "gbit"):
        raise ValueError(word)
    return f"{number:.12g}{unit}"


def _sixteenths(word: str) -> float:
    return int(word) / 16


def _seconds(word: str) -> str:
    return f"{int(word.removesuffix('sec'))}s"


Options = Mapping[str, tuple[str, Read]]
"""tc's word to the parameter, and how the next word is read."""
Flags = Mapping[str, tuple[str, Any]]
"""tc's word to a parameter and its value."""

_CODEL: Options = {
    "limit": ("limit", _packets), "target": ("target", _time), "interval": ("interval", _time),
    "ce_threshold": ("ce_threshold", _time),
}  # fmt: skip
_PIE: Options = {
    "limit": ("limit", _packets), "target": ("target", _time), "tupdate": ("tupdate", _time),
    "alpha": ("alpha", _sixteenths), "beta": ("beta", _sixteenths),
}  # fmt: skip
_FLOWS: Options = {"flows": ("flows", int), "quantum": ("quantum", _size)}
_ECN: Flags = {"ecn": ("ecn", True), "noecn": ("ecn", False)}
_PIE_FLAGS: Flags = {
    **_ECN, "bytemode": ("by_size", True), "nobytemode": ("by_size", False),
    "dq_rate_estimator": ("delay", "rate"), "no_dq_rate_estimator": ("delay", "timestamps"),
}  # fmt: skip
_ISOLATION = {
    "flowblind": "flow-blind", "srchost": "src-host", "dsthost": "dst-host", "hosts": "hosts",
    "flows": "flow", "dual-srchost": "dual-src-host", "dual-dsthost": "dual-dst-host",
    "triple-isolate": "triple",
}  # fmt: skip
_RTT = {
    "lan": "1ms", "metro": "10ms", "regional": "30ms", "internet": "100ms", "oceanic": "300ms",
    "satellite": "1s", "datacentre": "100us",
}  # fmt: skip
_CAKE: Flags = {
    **{word: ("isolation", value) for word, value in _ISOLATION.items()},
    **{word: ("interval", value) for word, value in _RTT.items()},
    **{
        word: ("diffserv", word)
        for word in ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8")
    },
    "no-ack-filter": ("ack_filter", "none"), "ack-filter": ("ack_filter", "conservative"),
    "ack-filter-aggressive": ("ack_filter", "aggressive"),
    "wash": ("wash", True), "nowash": ("wash", False),
    "ingress": ("ingress", True), "egress": ("ingress", False),
}  # fmt: skip
KINDS: dict[str, tuple[str, Options, Flags]] = {
    "pfifo": ("droptail", {"limit": ("limit", _packets)}, {}),
    "bfifo": ("droptail", {"limit": ("limit", _size)}, {}),
    "codel": ("codel", _CODEL, _ECN),
    "fq_codel": (
        "fq_codel",
        {
            **_CODEL, **_FLOWS, "memory_limit": ("memory_limit", _size),
            "drop_batch": ("drop_batch", int),
        },
        _ECN,
    ),
    "pie": ("pie", _PIE, _PIE_FLAGS),
    "fq_pie": ("fq_pie", {**_PIE, **_FLOWS, "ecn_prob": ("ecn_prob", int)}, _PIE_FLAGS),
    "cake": (
        "cake",
        {
            "bandwidth": ("bandwidth", _rate), "rtt": ("interval", _time),
            "memlimit": ("limit", _size), "overhead": ("overhead", _size), "mpu": ("mpu", _size),
        },
        _CAKE,
    ),
    "sfq": (
        "sfq",
        {
            "limit": ("limit", _packets), **_FLOWS, "depth": ("depth", int),
            "divisor": ("divisor", int), "perturb": ("perturb", _seconds),
        },
        {"headdrop": ("headdrop", True)},
    ),
    "red": (
        "red_linux",
        {
            "limit": ("limit", _size), "min": ("min_threshold", _size),
            "max": ("max_threshold", _size), "avpkt": ("mean_packet", _size),
            "probability": ("max_p", float), "bandwidth": ("bandwidth", _rate),
        },
        {"ecn": ("ecn", True), "harddrop": ("harddrop", True), "adaptive": ("adaptive", True)},
    ),
}  # fmt: skip
WITH_VALUE = ("dev", "refcnt", "parent", "handle", "weight")
"""Words of a line, each with a value, that say nothing of the queue itself."""
WITHOUT = ("root", "offloaded", "nat", "nonat", "split-gso", "no-split-gso", "unlimited", "raw",
           "noatm", "replace", "add", "change", "tc", "qdisc", "show")  # fmt: skip


def is_line(text: str) -> bool:
    """Whether this is a queue in the words of tc: more than a name, and no `key=value`."""
    words = text.split()
    return len(words) > 1 and "=" not in text and (words[0] in KINDS or words[0] in ("tc", "qdisc"))


def read(text: str, key: str = "queue") -> dict[str, Any]:
    """The queue as scenarios have it.

    Raises `InputError`, about `key`, for a discipline or word that is not known.
    """
    words = text.split()
    kind = next((word for word in words if word in KINDS), None)
    if kind is None:
        given = next((word for word in words if word not in WITHOUT), text)
        raise unknown("discipline of tc", given, KINDS, key=key)
    name, options, flags = KINDS[kind]
    at = words.index(kind)
    rest = words[at + 1 :]
    table: dict[str, Any] = {"discipline": name}
    while rest:
        word = rest.pop(0)
        if word in options:
            parameter, convert = options[word]
            value = rest.pop(0) if rest else ""
            try:
                table[parameter] = convert(value)
            except ValueError:
                problem = f"expected a value of `{word}` as tc has it"
                raise input_error(problem, key=key, given=f"{word} {value}".strip()) from None
        elif word in flags:
            parameter, value = flags[word]
            table[parameter] = value
        elif word in WITH_VALUE and rest:
            rest.pop(0)
        elif word not in WITHOUT and not re.fullmatch(r"[0-9a-f]*:[0-9a-f]*", word):
            raise unknown(f"word of tc's {kind}", word, [*options, *flags], key=key)
    return table
