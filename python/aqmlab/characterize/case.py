"""A case: one scenario of RFC 7928 with one discipline in it, and what to look at.

Every case is a path from senders A over Router L, where the discipline is, to receivers B
(RFC 7928, section 3.1): the links `down`, and `up` for the way back. Flows that are alike
make a *class*: the groups `bulk`, `web`, ... of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from aqmlab.characterize.environment import NEWRENO, PACKET, Contender, Environment
from aqmlab.scenario.quic import quic_endpoint

WARMUP = 20.0
"""Seconds before time 0 of RFC 7928, section 8.2: slow start is over."""
DURATION = 80.0
"""Seconds that a case lasts, with the warm-up."""
STEPS = 10
"""K of RFC 7928, section 2.7: goodput is sampled every K times the round-trip time."""
HEADER = 40
QUIC_HEADER = 28
"""IPv4 and UDP."""
VOIP_PACKET = 200
"""Bytes of a packet of 20 ms of G.711, with its headers."""
CLASSIC_WINDOW = "3p"


class Way(TypedDict):
    """The links of a flow's data, and of what goes back."""

    path: Sequence[str]
    back: Sequence[str]


DOWNWARDS: Way = {"path": ("down",), "back": ("up",)}
UPWARDS: Way = {"path": ("up",), "back": ("down",)}


@dataclass(frozen=True)
class Phase:
    """A part of each period of a case that changes over time, in seconds after the warm-up."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True)
class Case:
    """One scenario with one discipline."""

    section: str
    """Of RFC 7928."""
    name: str
    """What tells it from the other cases of its section; empty if there is one only."""
    contender: str
    scenario: Mapping[str, Any]
    base: Mapping[str, float] = field(default_factory=dict)
    """One-way delay of a full packet without queues by class, in seconds."""
    links: tuple[str, ...] = ("down",)
    """The links with the discipline under test; the first is the bottleneck."""
    phases: tuple[Phase, ...] = ()
    value: float | None = None
    """The case's place on its section's axis: a round-trip time, a factor."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Section, contender and name: its place in `Plan.points`."""
        return self.section, self.contender, self.name

    @property
    def lasting(self) -> float:
        """Seconds that count: all after the warm-up."""
        return number(self.scenario["duration"]) - self.warmup

    @property
    def interval(self) -> float:
        """Seconds between two samples."""
        return number(self.scenario["record"]["interval"])

    @property
    def warmup(self) -> float:
        """Seconds before anything counts."""
        return float(self.scenario["record"]["warmup"].removesuffix("s"))

    def shortened(self, scale: float) -> Case:
        """The case, lasting `scale` times as long after its warm-up; at least 2 s, or a period."""
        if scale == 1.0:
            return self
        lasted = max(self.lasting * scale, self.period, 2.0)
        scenario = {**self.scenario, "duration": seconds(self.warmup + lasted)}
        return replace(self, scenario=scenario)

    @property
    def period(self) -> float:
        """Seconds after which the phases begin again."""
        return max((phase.end for phase in self.phases), default=0.0)


@dataclass
class Dumbbell:
    """Builds the scenario of a case."""

    environment: Environment
    contender: Contender
    rtt: float | None = None
    """Seconds there and back, if not the environment's."""
    limit: int | None = None
    """The buffer in packets, if not the environment's."""
    rate: Any = None
    """Of the bottleneck, in bit/s or as a table, if not the environment's."""
    back_rate: float | None = None
    """Of the way back, if not the bottleneck's: asymmetric."""
    wished: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the discipline that the scenario sets."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """The same, whatever else was asked for."""
    links: dict[str, Any] = field(default_factory=dict)
    flows: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rate = self.rate if self.rate is not None else self.environment.rate
        back = self.back_rate or (self.environment.rate if isinstance(rate, Mapping) else rate)
        self.buffer = self.limit or self.environment.limit()
        self.links["down"] = {
            "rate": bits(rate),
            "delay": seconds(self.half),
            "queue": self.queue(),
        }
        # The way back is not the question: its queue never overflows.
        self.links["up"] = {
            "rate": bits(back),
            "delay": seconds(self.half),
            "queue": {"discipline": "droptail", "limit": "unlimited"},
        }

    @property
    def half(self) -> float:
        """The propagation delay of one way, in seconds."""
        return (self.rtt or self.environment.rtt) / 2

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
        path: Sequence[str] = ("down",),
        back: Sequence[str] = ("up",),
        mss: int = PACKET - HEADER,
        **keys: Any,
    ) -> None:
        """Adds bulk flows (or with a `workload` other ones) that begin within a second of
        `start`, each at its own time. `transport` has more keys of theirs. Without a `control`
        bulk flows have the environment's, others NewReno."""
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
            "count": count,
            "path": list(path),
            "return_path": list(back),
            "start": {"each": [seconds(start), seconds(start + 1.0)]},
            "delays": True,
            "transport": transport,
            **keys,
        }

    def tfrc(self, group: str) -> None:
        """Adds a TFRC flow (RFC 5348) that begins in the first second."""
        self.flows[group] = {
            "path": ["down"],
            "return_path": ["up"],
            "start": {"each": ["0s", "1s"]},
            "delays": True,
            "endpoint": "tfrc",
            "transport": {"mss": f"{PACKET - HEADER}b"},
        }

    def datagrams(
        self,
        group: str,
        rate: float,
        start: float = 0.0,
        *,
        path: Sequence[str] = ("down",),
        back: Sequence[str] = ("up",),
        **keys: Any,
    ) -> None:
        """Adds a flow of datagrams of a constant rate, in bit/s."""
        self.flows[group] = {
            "path": list(path),
            "return_path": list(back),
            "start": {"uniform": [seconds(start), seconds(start + 1.0)]},
            "workload": {"kind": "cbr", "packet": f"{PACKET}b", **keys, "rate": bits(rate)},
        }

    def case(
        self,
        section: str,
        name: str = "",
        *,
        duration: float = DURATION,
        warmup: float = WARMUP,
        interval: float | None = None,
        **keys: Any,
    ) -> Case:
        """The case. `interval` is the time between samples if not K round-trip times."""
        every = interval or STEPS * self.environment.rtt
        scenario = {
            "duration": seconds(duration),
            "bottleneck": "down",
            "links": self.links,
            "transport": {"profile": "rfc"},
            "flows": self.flows,
            "record": {"level": "series", "interval": seconds(every), "warmup": seconds(warmup)},
        }
        base = {class_of(group): self._base(group) for group in self.flows}
        return Case(section, name, self.contender.name, scenario, base, **keys)

    def _base(self, group: str) -> float:
        """Propagation and transmission of a full packet over the group's path."""
        flow = self.flows[group]
        size = PACKET
        if flow.get("workload") == "voip":
            size = VOIP_PACKET
        elif "packet" in (workload := flow.get("workload", {})):
            size = int(workload["packet"].removesuffix("b"))
        elif "transport" in flow:
            size = int(flow["transport"]["mss"].removesuffix("b")) + HEADER
        total = 0.0
        for name in flow["path"]:
            link = self.links[name]
            rate = link["rate"]
            if isinstance(rate, Mapping):
                steps = [step[1] for step in rate.get("steps", [])]
                rate = max(steps, key=number) if steps else bits(self.environment.rate)
            total += number(link["delay"]) + 8 * size / number(rate)
        return total


def class_of(group: str) -> str:
    """The class of a group of flows: what stands before the first underscore."""
    return group.partition("_")[0]


def number(text: str) -> float:
    """A time or rate as `seconds` and `bits` write it."""
    return float(text.rstrip("bits"))


def seconds(value: float) -> str:
    """A time as scenarios write it."""
    return f"{value:.9f}".rstrip("0").rstrip(".") + "s"


def bits(value: Any) -> Any:
    """A rate as scenarios write it; a table is one already."""
    return value if isinstance(value, Mapping) else f"{round(value)}bit"
