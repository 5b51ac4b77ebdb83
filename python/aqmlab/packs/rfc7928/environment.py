"""The path, its buffer, and the disciplines that are compared.

RFC 7928 leaves rate, round-trip time and buffer to the tester (sections 3.1 and 3.2); its formulas
(section 8.2.1) follow from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab._core import Scenario
from aqmlab.errors import InputError, input_error
from aqmlab.scenario.parts import plain

NEWRENO = "reno"
"""Congestion control of RFC 7928's bulk flows (section 3.3)."""
PACKET = 1500
"""Bytes of a full packet: 1460 of payload and 40 of headers."""
KNOBS = (
    "target", "reference", "min_threshold", "target_delay", "interval", "threshold", "limit",
)  # fmt: skip
"""The main parameter of a discipline is the first of these that it has as a quantity (RFC 7928,
section 4.3.1)."""
SCALED_WITH = {"min_threshold": "max_threshold"}
"""Parameter that is scaled with the main one."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
PER_TARGET = {"interval": 20.0}
"""Ratio of the main parameter to the delay to keep, where they differ (CAKE's target is a
twentieth of its interval)."""
PROBE_RATE, PROBE_DELAY = "10mbit", "50ms"


@dataclass(frozen=True)
class Environment:
    """The bottleneck: rate in bit/s, round-trip time in seconds, buffer in their products."""

    rate: float = 10e6
    rtt: float = 0.1
    buffer: float = 1.0
    control: Any = NEWRENO
    """Congestion control of bulk flows: a name of `aqmlab list`, `FILE:CLASS`, a class, or
    `STACK:CONTROLLER` of QUIC."""
    scale: float = 1.0
    """Factor for the time of each case after its warm-up."""

    def bdp(self, rtt: float | None = None, rate: float | None = None) -> int:
        """The bandwidth-delay product in full packets, at least 1."""
        bits = (rate or self.rate) * (rtt or self.rtt)
        return max(round(bits / 8 / PACKET), 1)

    def limit(self, rtt: float | None = None, rate: float | None = None) -> int:
        """The buffer in packets (RFC 7928, section 3.2), at least 4."""
        return max(round(self.bdp(rtt, rate) * self.buffer), 4)

    @property
    def words(self) -> str:
        """`10 Mbit/s, 100 ms, buffer 83 packets`."""
        path = f"{self.rate / 1e6:g} Mbit/s, {1e3 * self.rtt:g} ms, buffer {self.limit()} packets"
        return path if self.control == NEWRENO else f"{path}, bulk flows with {self.senders}"

    @property
    def senders(self) -> str:
        """Congestion control of the bulk flows, as pages name it."""
        if isinstance(self.control, type):
            return self.control.__name__
        return "NewReno" if self.control == NEWRENO else str(self.control)

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
    """Number of bulk flows for a level of congestion: ROUND(share x S), half up; at least 1."""
    return max(int(share * places + 0.5), 1)


@dataclass(frozen=True)
class Contender:
    """A discipline that is compared, with its settings."""

    name: str
    """Name in tables and charts."""
    discipline: Any
    """A name of `aqmlab list`, `FILE:CLASS`, or a class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    """All parameters, with the values on a link of 10 Mbit/s and 50 ms."""

    @staticmethod
    def of(
        discipline: Any, settings: Mapping[str, Any] | None = None, given_as: str = "discipline"
    ) -> Contender:
        """Checks the discipline and its settings.

        Raises `InputError` with the key `given_as` if there is no such discipline.
        """
        given = plain(settings or {})
        settings = {key.removeprefix("queue."): value for key, value in given.items()}
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
        """The discipline on a link with a buffer of `limit` packets. `wished` are parameters for
        disciplines that have them, unless the user set them; `more` override both."""
        own = {key: value for key, value in wished.items() if key in self.params}
        size = {"limit": f"{limit}p"} if "limit" in self.params else {}
        return {"discipline": self.discipline, **size, **own, **self.settings, **(more or {})}

    @property
    def has_flow_queues(self) -> bool:
        """Whether it has a queue for each flow: it then has the parameter `hashing`."""
        return "hashing" in self.params

    def knob(self, limit: int) -> str | None:
        """The main parameter, if any."""
        return next((each for each in KNOBS if scaled(self._start(each, limit), 1.0)), None)

    def knob_values(self, limit: int) -> list[tuple[float, dict[str, Any]]]:
        """The main parameter at a quarter to four times its value: (factor, settings) each."""
        starts = self._starts(limit)
        return [
            (factor, {name: scaled(start, factor) for name, start in starts.items()})
            for factor in (FACTORS if starts else ())
        ]

    def matched(self, targets: Sequence[float], rate: float) -> list[tuple[float, dict[str, Any]]]:
        """The main parameter for each delay in seconds: (delay, settings) each; none without it. A
        limit in packets or bytes is what the link of `rate` bit/s sends in that time."""
        starts = self._starts(1)
        found = []
        for target in targets if starts else ():
            knob, start = next(iter(starts.items()))
            size = target * rate / 8
            packets = max(round(size / PACKET), 1)
            own = {
                "p": f"{packets}p",
                "": f"{packets}",
                "b": f"{max(round(size), PACKET)}b",
            }.get(start.lstrip("0123456789."), f"{1e3 * target * PER_TARGET.get(knob, 1.0):g}ms")
            # The ratio of both is kept.
            ratios = {name: _amount(each) / _amount(start) for name, each in starts.items()}
            settings = {name: scaled(own, ratio) or own for name, ratio in ratios.items()}
            found.append((target, settings | {knob: own}))
        return found

    def _starts(self, limit: int) -> dict[str, str]:
        """The main parameter, and the one that is scaled with it, at their values."""
        knob = self.knob(limit)
        names = [knob, SCALED_WITH.get(knob)] if knob else []
        return {name: self._start(name, limit) for name in names if name}

    def _start(self, name: str, limit: int) -> str:
        if name == "limit" and name in self.params and name not in self.settings:
            return f"{limit}p"
        return self.params.get(name, "")


def scaled(text: str, factor: float) -> str | None:
    """A quantity such as `5ms`, `20p` or `3000b` times `factor`; None for a word."""
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
    """Name of a discipline, or of its class."""
    if isinstance(discipline, type):
        return discipline.__name__
    return str(discipline).rpartition(":")[2]
