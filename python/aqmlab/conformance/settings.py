"""What a case's parameters are called here: from a reference's settings to a queue's.

One function an algorithm. A value that there is no counterpart of makes the
case unsupported. A parameter that nobody took is named beside the result: the
replay shows whether it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.conformance.case import Case, Unsupported
from aqmlab.errors import unknown

Number = int | float
MTU = 1514
"""The largest packet of the recorded device: 1500 bytes and an Ethernet header."""


class Parameters:
    """The parameters of a case, of which it is known which were taken."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._left = dict(parameters)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Number | None:
        """The value of `name`, or `None` if the case does not set it."""
        value = self._left.pop(name, None)
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

    def only(self, name: str, allowed: Callable[[Number], bool], why: str) -> None:
        """Takes a parameter that has no counterpart, if its value makes no difference."""
        value = self.take(name)
        if value is not None and not allowed(value):
            raise Unsupported(f"parameter {name} = {value}: {why}")

    def left(self) -> list[str]:
        """The parameters that were not taken."""
        return [f"{name} = {value}" for name, value in self._left.items()]


class Settings(dict[str, Any]):
    """Table `queue` of the scenario."""

    def __init__(self, given: Parameters, discipline: str, **settings: Any) -> None:
        super().__init__(discipline=discipline, **settings)
        self._given = given

    def take(self, unit: str, **names: str) -> Settings:
        """Settings under the names that they have in the case, with that unit."""
        for key, name in names.items():
            value = self._given.take(name)
            if value is not None:
                self[key] = f"{value}{unit}" if unit else value
        return self

    def switch(self, **names: str) -> Settings:
        """Settings that are 0 or 1 in the case."""
        for key, name in names.items():
            if name in self._given:
                self[key] = self._given.switch(name)
        return self

    def scaled(self, unit: float, **names: str) -> Settings:
        """Settings that are given in multiples of `unit` in the case."""
        for key, name in names.items():
            self[key] = self._given.number(name) * unit
        return self


def codel(given: Parameters, variant: str) -> Settings:
    """CoDel in any of its variants."""
    settings = Settings(given, "codel", variant=variant)
    settings.take("us", target="target_us", interval="interval_us", ce_threshold="ce_threshold_us")
    return settings.take("p", limit="limit").switch(ecn="ecn")


def sfq_codel(given: Parameters) -> Settings:
    """The sfqCoDel of ns-2."""
    settings = Settings(given, "sfq_codel").take("us", target="target_us", interval="interval_us")
    return settings.take("p", limit="limit").take("", flows="flows")


def fq_codel(given: Parameters) -> Settings:
    """Linux's FQ-CoDel."""
    settings = Settings(given, "fq_codel", variant="linux")
    settings.take("us", target="target_us", interval="interval_us", ce_threshold="ce_threshold_us")
    settings.take("p", limit="limit").take("", flows="flows", drop_batch="drop_batch")
    return settings.take("b", quantum="quantum", memory_limit="memory_limit").switch(ecn="ecn")


def pie(given: Parameters, variant: str) -> Settings:
    """Linux's PIE; its weights are given in sixteenths."""
    settings = Settings(given, "pie", variant=variant)
    settings["delay"] = "rate" if given.switch("dq_rate_estimator") else "timestamps"
    settings.take("us", target="target_us", tupdate="tupdate_us").take("p", limit="limit")
    settings.scaled(1 / 16, alpha="alpha", beta="beta")
    return settings.switch(ecn="ecn", by_size="bytemode")


def fq_pie(given: Parameters, variant: str) -> Settings:
    """Linux's FQ-PIE."""
    settings = Settings(given, "fq_pie", variant=variant)
    settings["delay"] = "rate" if given.switch("dq_rate_estimator") else "timestamps"
    settings.take("us", target="target_us", tupdate="tupdate_us").take("p", limit="limit")
    settings.take("", flows="flows", ecn_prob="ecn_prob").take("b", quantum="quantum")
    settings.scaled(1 / 16, alpha="alpha", beta="beta")
    # The kernel counts what exceeds it and drops nothing for it.
    given.take("memory_limit")
    return settings.switch(ecn="ecn", by_size="bytemode")


def red(given: Parameters) -> Settings:
    """The RED of ns-2: lengths are packets, or so many mean packets in bytes."""
    mean = given.number("mean_pktsize")
    in_bytes = given.switch("queue_in_bytes")
    settings = Settings(given, "red", mean_packet=f"{mean}b")
    lengths = {
        "min_threshold": "thresh_packets",
        "max_threshold": "maxthresh_packets",
        "limit": "limit",
    }
    for key, name in lengths.items():
        length = given.number(name) * (mean if in_bytes else 1)
        settings[key] = f"{length:.15g}{'b' if in_bytes else 'p'}"
    settings["max_p"] = 1 / given.number("linterm")
    weight = given.number("q_weight")
    if weight <= 0:
        raise Unsupported(f"parameter q_weight = {weight}: a weight above 0 is expected")
    # Only a weight that is to be computed depends on the delay of the link.
    given.take("link_delay_s")
    settings["weight"] = weight
    mark_p = given.take("mark_p")
    if given.switch("use_mark_p"):
        settings["mark_p"] = mark_p
    settings.take("", alpha="alpha", beta="beta", top="top", bottom="bottom")
    settings.take("s", adapt_interval="interval_s")
    settings["adaptive"] = "floyd" if given.switch("adaptive") else "none"
    return settings.switch(gentle="gentle", wait="wait", by_size="bytes", ecn="setbit")


def red_linux(given: Parameters) -> Settings:
    """Linux's RED."""
    settings = Settings(given, "red_linux")
    settings.take("b", min_threshold="min_bytes", max_threshold="max_bytes", limit="limit_bytes")
    settings.take("b", mean_packet="avpkt").take("bit", bandwidth="bandwidth_bps")
    settings.take("", wlog="wlog", max_p="probability")
    return settings.switch(ecn="ecn", harddrop="harddrop", adaptive="adaptive")


def sfq(given: Parameters) -> Settings:
    """Linux's SFQ."""
    settings = Settings(given, "sfq").take("p", limit="limit").take("b", quantum="quantum")
    settings.take("", depth="depth", divisor="divisor", flows="flows").switch(headdrop="headdrop")
    seconds = given.take("perturb_s")
    settings["perturb"] = f"{seconds}s" if seconds else "none"
    return settings


def sfb(given: Parameters) -> Settings:
    """Linux's SFB; steps are given in units of 1/65535."""
    settings = Settings(given, "sfb").take("p", limit="limit").take("", max="max", target="target")
    settings.scaled(1 / 65_535, increment="increment_q16", decrement="decrement_q16")
    settings.take("", penalty_rate="penalty_rate", penalty_burst="penalty_burst")
    return settings.take("ms", rehash="rehash_ms", warmup="db_ms")


def dualpi2(given: Parameters) -> Settings:
    """Linux's DualPI2; gains are given in 1/256 Hz."""
    settings = Settings(given, "dualpi2", variant="linux").scaled(
        1 / 256, alpha="alpha", beta="beta"
    )
    settings.take("us", target="target_us", tupdate="tupdate_us", step="step_thresh_us")
    settings.take("", step_packets="step_thresh_packets", min_qlen_step="min_qlen_step")
    settings.take("", coupling="coupling", c_protection="c_protection")
    settings.switch(drop_overload="drop_overload", drop_early="drop_early")
    mask = given.take("ecn_mask")
    if mask not in (None, 1, 3):
        raise Unsupported(f"parameter ecn_mask = {mask}: 1 or 3 is expected")
    settings["classifier"] = "any-ect" if mask == 3 else "l4s"
    limit = given.number("limit")
    settings["limit"] = f"{limit}p"
    room = "aqmlab's DualPI2 has no memory limit, and this one could be reached"
    given.only("memory_limit", lambda value: value >= limit * MTU, room)
    return settings


def cake(given: Parameters, variant: str) -> Settings:
    """CAKE in its mode `besteffort`, without a shaper."""
    settings = Settings(given, "cake", variant=variant, isolation="flow")
    settings.take("b", limit="memory_limit")
    return settings.take("us", target="target_us", interval="rtt_us")


ALGORITHMS: dict[str, Callable[[Parameters], Settings]] = {
    "cake_besteffort_linux": lambda given: cake(given, "linux"),
    "cake_besteffort_linux_initfix": lambda given: cake(given, "linux-initfix"),
    "codel_linux": lambda given: codel(given, "linux"),
    "codel_ns2_2012": lambda given: codel(given, "ns2-2012"),
    "codel_ns2_experimental": lambda given: codel(given, "ns2-2013"),
    "codel_rfc8289": lambda given: codel(given, "rfc8289"),
    "dualpi2_linux": dualpi2,
    "fq_codel_linux": fq_codel,
    "fq_pie_linux": lambda given: fq_pie(given, "linux"),
    "fq_pie_linux_clamped": lambda given: fq_pie(given, "linux-clamped"),
    "pie_linux": lambda given: pie(given, "linux"),
    "pie_linux_clamped": lambda given: pie(given, "linux-clamped"),
    "red_linux": red_linux,
    "red_linux_adaptive": red_linux,
    "red_ns2": red,
    "red_ns2_adaptive": red,
    "red_ns2_gentle": red,
    "sfb_linux": sfb,
    "sfq_linux": sfq,
    "sfqcodel_ns2": sfq_codel,
}
"""Discipline for each algorithm of the recorded cases."""


def queue_of(case: Case) -> tuple[dict[str, Any], int, list[str]]:
    """The settings of the queue that a case is replayed with, the device's largest packet, and
    the parameters that there are none like here.

    Raises `Unsupported` if there is no such queue here.
    """
    algorithm = ALGORITHMS.get(case.algorithm)
    if algorithm is None:
        raise Unsupported(str(unknown("algorithm", case.algorithm, ALGORITHMS)))
    given = Parameters(case.parameters)
    # Only the RFC's CoDel has a parameter for its largest packet; elsewhere it is the device's.
    mtu = given.take("maxpacket") if case.algorithm == "codel_rfc8289" else None
    settings = algorithm(given)
    _check_timer(case)
    return dict(settings), int(MTU if mtu is None else mtu), given.left()


def _check_timer(case: Case) -> None:
    """Our timers run from the first period on, with the period of the settings."""
    if case.timer is None:
        return
    period = case.parameters.get("tupdate_us", 500_000) * 1000
    for key, value in case.timer.items():
        if value != period:
            raise Unsupported(f"timer.{key} = {value}: the timer runs every {period} ns here")
