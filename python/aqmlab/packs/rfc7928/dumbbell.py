"""The topology of RFC 7928, section 3.1: senders A, Router L with the discipline, receivers B.

The links are `down`, with the discipline, and `up` in the reverse direction. Flows that are alike
make a *class*: the groups `bulk`, `web`, ... of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from aqmlab.errors import input_error
from aqmlab.packs.rfc7928.environment import NEWRENO, PACKET, Contender, Environment
from aqmlab.scenario.quic import quic_endpoint

WARMUP = 20.0
"""Seconds before time 0 of RFC 7928, section 8.2, for slow start to end."""
DURATION = 80.0
"""Length of a case in seconds, with the warm-up."""
STEPS = 10
"""K of RFC 7928, section 2.7: goodput is sampled every K times the round-trip time."""
HEADER = 40
QUIC_HEADER = 28
"""IPv4 and UDP."""
CLASSIC_WINDOW = "3p"


class Made(NamedTuple):
    """A case with one discipline."""

    name: str
    """Empty if it is the only case of its section."""
    scenario: Mapping[str, Any] | None
    place: float | None = None
    """Place on the axis of the section: a round-trip time, a factor."""


class Bench(NamedTuple):
    """One of the disciplines that are compared, in an environment."""

    environment: Environment
    contender: Contender
    everyone: Sequence[Contender]

    def plan(self, **keys: Any) -> Dumbbell:
        """A new scenario, with fields of `Dumbbell`."""
        return Dumbbell(self.environment, self.contender, **keys)


@dataclass
class Dumbbell:
    """Builds the scenario of a case."""

    environment: Environment
    contender: Contender
    rtt: float | None = None
    """Round-trip time in seconds, if not the environment's."""
    limit: int | None = None
    """Buffer in packets, if not the environment's."""
    rate: Any = None
    """Rate of the bottleneck, in bit/s or as a table, if not the environment's."""
    back_rate: float | None = None
    """Rate of the reverse direction, if not the bottleneck's."""
    wished: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the discipline in this scenario; settings of the user come first."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that override the user's."""
    links: dict[str, Any] = field(default_factory=dict)
    flows: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rate = self.rate if self.rate is not None else self.environment.rate
        back = self.back_rate or (self.environment.rate if isinstance(rate, Mapping) else rate)
        self.buffer = self.limit or self.environment.limit()
        # The reverse direction is not tested: its queue never overflows.
        deep = {"discipline": "droptail", "limit": "unlimited"}
        delay = seconds((self.rtt or self.environment.rtt) / 2)
        for name, speed, queue in (("down", rate, self.queue()), ("up", back, deep)):
            self.links[name] = {"rate": bits(speed), "delay": delay, "queue": queue}

    def queue(self, limit: int | None = None) -> dict[str, Any]:
        """The discipline under test with the case's buffer."""
        return self.contender.queue(limit or self.buffer, self.more, **self.wished)

    def tcp(
        self,
        group: str,
        count: int = 1,
        *,
        control: Any = None,
        start: float = 0.0,
        window: str = CLASSIC_WINDOW,
        mss: int = PACKET - HEADER,
        path: Sequence[str] = ("down",),
        back: str = "up",
        **keys: Any,
    ) -> Self:
        """Adds bulk flows, or flows of a `workload`, that begin at random times within a second of
        `start`. `transport` has more keys of their transport. Without a `control` bulk flows have
        the environment's, others NewReno."""
        control = control or (NEWRENO if "workload" in keys else self.environment.control)
        if quic := quic_endpoint(control):
            size, ecn = mss + HEADER - QUIC_HEADER, "ecn" in keys.pop("transport", {})
            first = f"{int(window.removesuffix('p')) * size}b"
            keys["endpoint"] = quic | {"max_mtu": f"{size}b", "initial_window": first, "ecn": ecn}
            control = NEWRENO
        transport = {
            "congestion_control": control,
            "initial_window": window,
            "mss": f"{mss}b",
            **keys.pop("transport", {}),
        }
        self.flows[group] = {
            "count": count, **_ways(path, back), **_delayed(start), "transport": transport, **keys
        }  # fmt: skip
        return self

    def tfrc(self, group: str) -> Self:
        """Adds a TFRC flow (RFC 5348) that begins in the first second."""
        transport = {"mss": f"{PACKET - HEADER}b"}
        self.flows[group] = {
            **_ways(), **_delayed(0.0), "endpoint": "tfrc", "transport": transport
        }  # fmt: skip
        return self

    def datagrams(
        self,
        group: str,
        rate: float,
        path: Sequence[str] = ("down",),
        back: str = "up",
        **keys: Any,
    ) -> Self:
        """Adds a flow of datagrams of a constant rate, in bit/s."""
        self.flows[group] = {
            **_ways(path, back),
            "start": {"uniform": ["0s", "1s"]},
            "workload": {"kind": "cbr", "packet": f"{PACKET}b", **keys, "rate": bits(rate)},
        }
        return self

    def case(
        self,
        name: str = "",
        *,
        duration: float = DURATION,
        warmup: float = WARMUP,
        interval: float | None = None,
        period: float = 0.0,
        place: float | None = None,
    ) -> Made:
        """The case. `interval` is the time between samples (default: K round-trip times); what
        counts is scaled by the environment, to at least 2 s or a `period`."""
        every = interval or STEPS * self.environment.rtt
        if self.environment.scale != 1.0:
            lasting = (duration - warmup) * self.environment.scale
            duration = warmup + max(lasting, period, 2.0)
        if duration - warmup < every - 1e-9:
            problem = (
                f"the path is too long: goodput is sampled every {STEPS} round-trip times, and a "
                f"case lasts {duration - warmup:g} s"
            )
            raise input_error(problem, key="rtt", given=f"{self.environment.rtt:g}s")
        scenario = {
            "duration": seconds(duration),
            "bottleneck": "down",
            "links": self.links,
            "transport": {"profile": "rfc"},
            "flows": self.flows,
            "record": {"level": "series", "interval": seconds(every), "warmup": seconds(warmup)},
        }
        return Made(name, scenario, place)


def _ways(path: Sequence[str] = ("down",), back: str = "up") -> dict[str, list[str]]:
    return {"path": list(path), "return_path": [back]}


def _delayed(start: float) -> dict[str, Any]:
    """A start within a second of `start`, and delays of the packets in the results."""
    return {"start": {"each": [seconds(start), seconds(start + 1.0)]}, "delays": True}


def class_of(group: str) -> str:
    """Class of a group of flows: its name up to the first underscore."""
    return group.partition("_")[0]


def seconds(value: float) -> str:
    """A time as scenarios write it."""
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def bits(value: Any) -> Any:
    """A rate as scenarios write it; a table is one already."""
    return value if isinstance(value, Mapping) else f"{round(value)}bit"
