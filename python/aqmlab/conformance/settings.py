"""Settings of a queue from the parameters of a recorded case; settings.toml maps their names.

A parameter without counterpart makes the case unsupported. A parameter that is not used is named
beside the result: the replay shows whether it matters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aqmlab.conformance.folder import RecordedCase, Unsupported
from aqmlab.errors import unknown

Number = int | float
Settings = dict[str, Any]
"""Table `queue` of the scenario."""
MTU = 1514
"""The largest packet of the recorded device: 1500 bytes and an Ethernet header."""


class Parameters(dict[str, Any]):
    """The parameters of a case that have not been taken yet."""

    def take(self, name: str) -> Number | None:
        """The value of `name`, or `None` if the case does not set it."""
        value = self.pop(name, None)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is None or isinstance(value, int | float):
            return value
        raise Unsupported(f"parameter {name} = {value!r}: a number is expected")

    def number(self, name: str) -> Number:
        """The value of a parameter that every case of the algorithm has to set."""
        value = self.take(name)
        if value is None:
            raise Unsupported(f"parameter {name} is missing")
        return value

    def switch(self, name: str) -> bool:
        """Whether a parameter that is 0 or 1 is there and is 1."""
        value = self.take(name)
        if value not in (None, 0, 1):
            raise Unsupported(f"parameter {name} = {value}: 0 or 1 is expected")
        return bool(value)


@cache
def algorithms() -> Mapping[str, Mapping[str, Any]]:
    """The entries of settings.toml by algorithm, each with those that it is `like`."""
    text = (Path(__file__).parent / "settings.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = {}
    for name, entry in tomllib.loads(text).items():
        like = found.get(entry.pop("like", ""), {})
        found[name] = {**like, **entry, "queue": like.get("queue", {}) | entry.get("queue", {})}
    return found


def _settings(entry: Mapping[str, Any], given: Parameters) -> Settings:
    """The settings of an entry."""
    settings = dict(entry["queue"])
    for unit, names in entry.items():
        for each in names if unit == "ignored" else ():
            given.take(each)
        for key, name in names.items() if unit not in ("queue", "ignored") else ():
            if "/" in unit:
                settings[key] = given.number(name) * (1 / int(unit.removeprefix("1/")))
            elif name in given:
                plain = unit in ("number", "switch")
                value = given.switch(name) if unit == "switch" else given.take(name)
                settings[key] = value if plain else f"{value}{unit}"
    return settings


def _pie(given: Parameters, settings: Settings) -> None:
    """The recordings' timer runs every `tupdate`, the kernel's and ours 1 ms (a jiffy) later."""
    settings["tupdate"] = f"{given.number('tupdate_us') - 1000}us"
    settings["delay"] = "rate" if given.switch("dq_rate_estimator") else "timestamps"


def _red(given: Parameters, settings: Settings) -> None:
    """The lengths of ns-2's RED are packets, or so many mean packets in bytes."""
    mean = given.number("mean_pktsize")
    settings["mean_packet"] = f"{mean}b"
    in_bytes = given.switch("queue_in_bytes")
    lengths = {
        "min_threshold": "thresh_packets",
        "max_threshold": "maxthresh_packets",
        "limit": "limit",
    }
    for key, name in lengths.items():
        length = given.number(name) * (mean if in_bytes else 1)
        settings[key] = f"{length:.15g}{'b' if in_bytes else 'p'}"
    settings["max_p"] = 1 / given.number("linterm")
    settings["weight"] = given.number("q_weight")
    if settings["weight"] <= 0:
        problem = "a weight above 0 is expected"
        raise Unsupported(f"parameter q_weight = {settings['weight']}: {problem}")
    mark_p = given.take("mark_p")
    if given.switch("use_mark_p"):
        settings["mark_p"] = mark_p
    settings["adaptive"] = "floyd" if given.switch("adaptive") else "none"


def _red_linux(given: Parameters, settings: Settings) -> None:
    """The recordings' idle table counts microseconds, tc's ticks of 64 ns: as for such a rate."""
    settings["bandwidth"] = f"{given.number('bandwidth_bps') * 15.625:.15g}bit"


def _sfq(given: Parameters, settings: Settings) -> None:
    if seconds := given.take("perturb_s"):
        settings["perturb"] = f"{seconds}s"


def _dualpi2(given: Parameters, settings: Settings) -> None:
    mask = given.take("ecn_mask")
    if mask not in (None, 1, 3):
        raise Unsupported(f"parameter ecn_mask = {mask}: 1 or 3 is expected")
    settings["classifier"] = "any-ect" if mask == 3 else "l4s"
    limit = given.number("limit")
    settings["limit"] = f"{limit}p"
    memory = given.take("memory_limit")
    if memory is not None and memory < limit * MTU:
        room = "aqmlab's DualPI2 has no memory limit, and this one could be reached"
        raise Unsupported(f"parameter memory_limit = {memory}: {room}")


MORE: dict[str, Callable[[Parameters, Settings], None]] = {
    "pie": _pie,
    "fq_pie": _pie,
    "red": _red,
    "red_linux": _red_linux,
    "sfq": _sfq,
    "dualpi2": _dualpi2,
}
"""Settings that a table of names cannot express, by discipline."""


def queue_of(case: RecordedCase) -> tuple[Settings, int, list[str]]:
    """The settings of the queue that a case is replayed with, the device's largest packet, and
    the parameters without counterpart here.

    Raises `Unsupported` if there is no such queue here.
    """
    entry = algorithms().get(case.algorithm)
    if entry is None:
        raise Unsupported(str(unknown("algorithm", case.algorithm, algorithms())))
    given = Parameters(case.parameters)
    # Only the RFC's CoDel has a parameter for its largest packet; elsewhere it is the device's.
    mtu = given.take("maxpacket") if case.algorithm == "codel_rfc8289" else None
    own: Settings = {}
    if more := MORE.get(entry["queue"]["discipline"]):
        more(given, own)
    settings = _settings(entry, given) | own
    _check_timer(case)
    return (
        settings,
        int(MTU if mtu is None else mtu),
        [f"{name} = {value}" for name, value in given.items()],
    )


def _check_timer(case: RecordedCase) -> None:
    """Our timers run from the first period on, with the period of the settings."""
    if case.timer is None:
        return
    period = case.parameters.get("tupdate_us", 500_000) * 1000
    for key, value in case.timer.items():
        if value != period:
            raise Unsupported(f"timer.{key} = {value}: the timer runs every {period} ns here")
