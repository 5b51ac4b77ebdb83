"""The scenarios in which a congestion control is evaluated: one bottleneck, and who sends.

Everything but the control is the same for the subject and the standard controls, and so are the
random streams: replication r of one is the pair of replication r of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aqmlab.numbers import rate
from aqmlab.scenario.quic import quic_endpoint

Table = dict[str, Any]
PACKET = 1500
STANDARD = ("reno", "cubic")
"""RFC 5681 and RFC 9438."""
OWN_TRANSPORT: Mapping[str, Mapping[str, Any]] = {
    "prague": {"ecn": "accurate", "ecn_codepoint": "ect1"},
    "dctcp": {"ecn": "accurate"},
}
"""Keys that a control needs of its transport."""


@dataclass(frozen=True)
class ControlSetup:
    """A congestion control, and its keys of the transport."""

    name: str
    control: Any
    """A name, a table with `algorithm`, `FILE:CLASS`, a class, or `STACK:CONTROLLER` of QUIC."""
    transport: Mapping[str, Any] = field(default_factory=dict)
    """Keys of its transport; of the endpoint, for a QUIC stack."""

    def flow(self, **keys: Any) -> Table:
        """The keys of its flows; `keys` are those of a transport of TCP.

        A QUIC stack keeps its own settings, except that packets stay small where those of TCP do.
        """
        quic = quic_endpoint(self.control)
        if quic is None:
            return {"transport": self.sender(**keys)}
        small = {"max_mtu": "none"} if "mss" in keys else {}
        return {"endpoint": quic | small | dict(self.transport)}

    def sender(self, **keys: Any) -> Table:
        """The transport of its flows: Linux's with this control. What the control itself asks for
        wins."""
        return {
            "profile": "linux-6",
            "stack": "auto",
            "congestion_control": self.control,
            **keys,
            **OWN_TRANSPORT.get(self.name, {}),
            **self.transport,
        }

    def for_(self, own: ControlSetup) -> ControlSetup:
        """This control; for `OWN` the one that fills the slot."""
        return own if self is OWN else self

    @property
    def sets_ecn(self) -> bool:
        """True if it asks for ECN by itself, as the QUIC stacks do."""
        return "ecn" in self.sender() or quic_endpoint(self.control) is not None


LONGEST = 100.0
"""Seconds from one loss of Reno to the next of the paths that are run: over 50 Mbit/s, 100 ms and
4 BDP it is more than six minutes for one flow."""
OWN = ControlSetup("own", None)
"""The control under test: the slot of every case."""
Flow = Callable[[ControlSetup], Table]
"""A group of flows, or a scenario, with the control that fills the slot."""


@dataclass(frozen=True)
class Path:
    """A bottleneck: bit/s, seconds there and back, buffer in bandwidth-delay products."""

    rate: float
    rtt: float
    buffer: float = 1.0

    @property
    def packets(self) -> int:
        """The buffer in full packets."""
        return round(self.rate * self.rtt * self.buffer / 8 / PACKET)

    @property
    def sawtooth(self) -> float:
        """Seconds from one loss of a Reno flow to the next: a packet more each round trip, from
        half of path and full buffer to all of it. Up to a third longer with less than 1 BDP."""
        return 3 / 8 * (1 + self.buffer) ** 2 * self.rtt * self.packets / self.buffer

    def settled(self, flows: int = 1) -> float:
        """Seconds in which so many Reno flows together lose packets three times, or a third more:
        what is measured over less is how they begin."""
        return 4 * self.sawtooth / flows

    @property
    def name(self) -> str:
        """`10 Mbit/s, 40 ms, 0.5 BDP`."""
        return f"{rate(self.rate, 'g')}, {1e3 * self.rtt:g} ms, {self.buffer:g} BDP"

    def links(self, **down: Any) -> Table:
        """Both directions; `down` are keys of the bottleneck. The reverse direction never fills."""
        delay = f"{round(self.rtt / 2 * 1e9)}ns"
        link = {"rate": f"{round(self.rate)}bit", "delay": delay}
        own, back = (
            link | {"queue": {"discipline": "droptail", "limit": limit}}
            for limit in (f"{self.packets}p", "unlimited")
        )
        return {"down": own | down, "up": back}


def bulk(control: ControlSetup, count: int = 1, start: float = 0.0, **keys: Any) -> Flow:
    """Greedy flows that begin within a second of `start`, each at its own time."""
    transport = keys.pop("transport", {})
    ways = {"count": count, "path": "down", "return_path": "up"}
    begin = {"each": [f"{start:g}s", f"{start + 1:g}s"]}
    return lambda own: {**control.for_(own).flow(**transport), **ways, "start": begin, **keys}


def load(
    workload: Any, control: ControlSetup | None = None, start: float = 2.0, **keys: Any
) -> Flow:
    """A workload on the bottleneck, over the given control where it uses TCP."""
    flow = {"path": "down", "return_path": "up", "start": f"{start:g}s", "workload": workload}
    return lambda own: {**flow, **keys, **(control.for_(own).flow() if control else {})}


def scenario(
    links: Table,
    flows: Mapping[str, Flow],
    duration: float,
    warmup: float = 5.0,
    sampled: float | None = None,
) -> Flow:
    """A run of `duration` seconds with the control that fills the slot; delays and losses of flows
    count from `warmup` on. With `sampled` goodputs are sampled so often, in seconds."""
    record: Table = {"warmup": f"{warmup:g}s"}
    if sampled is not None:
        record |= {"level": "series", "interval": f"{round(1e3 * sampled)}ms"}
    return lambda own: {
        "duration": f"{duration:g}s",
        "bottleneck": "down",
        "links": links,
        "transport": {"profile": "rfc"},
        "flows": {group: flow(own) for group, flow in flows.items()},
        "record": record,
    }
