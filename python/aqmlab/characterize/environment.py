"""Where disciplines are characterised: the path, its buffer, and who is compared.

RFC 7928 leaves rate, round-trip time and buffer to the tester (sections 3.1 and 3.2); all
its formulas (section 8.2.1) follow from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab._core import Scenario
from aqmlab.errors import InputError, input_error

NEWRENO = "reno"
"""Congestion control of RFC 7928's bulk flows (section 2.3)."""
PACKET = 1500
"""Bytes of a full packet: 1460 of payload and 40 of headers."""
KNOBS = (
    "target", "reference", "min_threshold", "target_delay", "interval", "threshold", "limit",
)  # fmt: skip
"""What moves the queue of a discipline: the first of these that it has and that is a
quantity there (RFC 7928, section 4.3.1)."""
SCALED_WITH = {"min_threshold": "max_threshold"}
"""What has to move with it."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
PER_TARGET = {"interval": 20.0}
"""Where the main parameter is not the delay to keep: how many times as long it is (CAKE's target
is a twentieth of its interval)."""
PROBE_RATE, PROBE_DELAY = "10mbit", "50ms"


@dataclass(frozen=True)
class Environment:
    """The bottleneck: bits per second, seconds there and back, buffer in those products."""

    rate: float = 10e6
    rtt: float = 0.1
    buffer: float = 1.0
    control: Any = NEWRENO
    """Congestion control of bulk flows: a name of `aqmlab list`, `FILE:CLASS`, a class, or
    `STACK:CONTROLLER` of QUIC."""

    def bdp(self, rtt: float | None = None, rate: float | None = None) -> int:
        """The bandwidth-delay product in full packets, at least 1."""
        bits = (rate or self.rate) * (rtt or self.rtt)
        return max(round(bits / 8 / PACKET), 1)

    def limit(self, rtt: float | None = None, rate: float | None = None) -> int:
        """The buffer in packets (RFC 7928, section 3.2), at least 4."""
        return max(round(self.bdp(rtt, rate) * self.buffer), 4)

    @property
    def places(self) -> int:
        """S of RFC 7928, section 8.2.1: packets in the path and in the buffer."""
        return self.bdp() + self.limit()

    @property
    def mild(self) -> int:
        """N_mild (RFC 7928, section 8.2.2)."""
        return congestion_flows(0.036, self.places)

    @property
    def medium(self) -> int:
        """N_med (RFC 7928, section 8.2.3)."""
        return congestion_flows(0.081, self.places)

    @property
    def heavy(self) -> int:
        """N_heavy (RFC 7928, section 8.2.4)."""
        return congestion_flows(0.114, self.places)


def congestion_flows(share: float, places: int) -> int:
    """How many bulk flows make a level of congestion: ROUND(share x S), half up; at least 1."""
    return max(int(share * places + 0.5), 1)


def projected_loss(flows: int, places: int) -> float:
    """l_r of RFC 7928, section 8.2.1: the loss rate that a drop-tail queue is expected to have."""
    return 0.76 * flows**2 / places**2


@dataclass(frozen=True)
class Contender:
    """A discipline that is compared, with the settings that were asked for."""

    name: str
    """How tables and charts call it."""
    discipline: Any
    """A name of `aqmlab list`, `FILE:CLASS`, or a class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """Its parameters, each with what it is in a queue of the middle of the road."""

    @staticmethod
    def of(
        discipline: Any, settings: Mapping[str, Any] | None = None, given_as: str = "discipline"
    ) -> Contender:
        """Checks that there is such a discipline, and that it takes the settings.

        Raises `InputError` for one that there is not; it says that it was `given_as`.
        """
        settings = {key.removeprefix("queue."): value for key, value in (settings or {}).items()}
        queue = {"discipline": discipline, **settings}
        link = {"rate": PROBE_RATE, "delay": PROBE_DELAY}
        table = {
            "duration": "1s",
            "bottleneck": "down",
            "links": {"down": link | {"queue": queue}, "up": link},
            "flows": {"bulk": {"path": "down", "return_path": "up"}},
        }
        try:
            scenario = Scenario(table, file=f"characterize {label(discipline)}")
        except InputError as error:
            parameter = error.key.partition("queue.")[2]
            key = given_as if parameter in ("", "discipline") else parameter
            raise input_error(
                error.problem, key=key, given=error.given or None, hint=error.hint
            ) from None
        resolved = json.loads(scenario.resolved)["links"]["down"]["queue"]
        params = {key: str(value) for key, value in resolved.items() if key != "discipline"}
        return Contender(label(discipline), discipline, settings, params)

    def queue(
        self, limit: int, more: Mapping[str, Any] | None = None, **wished: Any
    ) -> dict[str, Any]:
        """The discipline on a link with a buffer of `limit` packets. `wished` are parameters
        that a scenario sets where the discipline has them and nothing else was asked for;
        `more` come after all."""
        own = {key: value for key, value in wished.items() if key in self.params}
        size = {"limit": f"{limit}p"} if "limit" in self.params else {}
        return {"discipline": self.discipline, **size, **own, **self.settings, **(more or {})}

    @property
    def has_flow_queues(self) -> bool:
        """Whether it has a queue for each flow: its parameters say how flows are told apart."""
        return "hashing" in self.params

    def knob(self, limit: int) -> str | None:
        """The parameter that moves its queue; None if there is none."""
        return next((each for each in KNOBS if scaled(self._start(each, limit), 1.0)), None)

    def knob_values(self, limit: int) -> list[tuple[float, dict[str, Any]]]:
        """The knob at a quarter to four times what it is: (factor, settings) each."""
        knob = self.knob(limit)
        if knob is None:
            return []
        names = [knob, *([SCALED_WITH[knob]] if knob in SCALED_WITH else [])]
        return [
            (factor, {name: scaled(self._start(name, limit), factor) for name in names})
            for factor in FACTORS
        ]

    def matched(self, targets: Sequence[float], rate: float) -> list[tuple[float, dict[str, Any]]]:
        """The knob for each delay in seconds: a time as it is, packets and bytes as the link of
        `rate` bit/s sends them in that time. (delay, settings) each; none without a knob."""
        knob = self.knob(1)
        if knob is None:
            return []
        names = [knob, *([SCALED_WITH[knob]] if knob in SCALED_WITH else [])]
        starts = {name: self._start(name, 1) for name in names}
        first = _amount(starts[knob])
        found = []
        for target in targets:
            unit = starts[knob].lstrip("0123456789.")
            size = target * rate / 8
            own = {
                "p": f"{max(round(size / PACKET), 1)}p",
                "b": f"{max(round(size), PACKET)}b",
            }.get(unit, f"{1e3 * target * PER_TARGET.get(knob, 1.0):g}ms")
            settings = {knob: own}
            for name in names[1:]:
                # It keeps its distance, as a factor.
                settings[name] = scaled(own, _amount(starts[name]) / first) or own
            found.append((target, settings))
        return found

    def _start(self, name: str, limit: int) -> str:
        if name == "limit" and name in self.params and name not in self.settings:
            return f"{limit}p"
        return self.params.get(name, "")


def scaled(text: str, factor: float) -> str | None:
    """A quantity such as `5ms`, `20p` or `3000b` times `factor`; None if it is a word."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    try:
        value = float(number) * factor
    except ValueError:
        return None
    if unit in ("p", "b", ""):
        return f"{max(round(value), 1)}{unit}"
    return f"{value:g}{unit}" if "e" not in f"{value:g}" else f"{value:.6f}{unit}"


def _amount(text: str) -> float:
    """The number of a quantity."""
    return float(text.rstrip("abcdefghijklmnopqrstuvwxyz"))


def label(discipline: Any) -> str:
    """What a discipline is called: its name, or that of its class."""
    if isinstance(discipline, type):
        return discipline.__name__
    return str(discipline).rpartition(":")[2]
