"""Access lines: kinds of last mile and named examples, as data.

A kind says how the line carries packets, which buffers the user cannot configure, and how
`aqmlab try` shapes it. All of it is declared in `KINDS` and `PROFILES`, with its sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from aqmlab._core import Scenario
from aqmlab.errors import input_error, unknown
from aqmlab.scenario.parts import plain
from aqmlab.scenario.quantity import quantity

Link = dict[str, Any]
WAYS = ("down", "up")
PACKET = 1500
"""Bytes of the largest packet: a smaller buffer would pass none."""


@dataclass(frozen=True)
class Buffer:
    """A FIFO at the line that the user cannot configure."""

    owner: str
    """Device that holds it."""
    size: str
    """Limit, as links have it, or a time at the line's rate: `250ms`; at least a packet."""


STEADY, FADING = 0.95, 0.7
"""Shares for a constant and for a random rate. The first is the advice of OpenWrt, SQM Details; the
second is chosen for this program (docs/try.md has the effect of others)."""


@dataclass(frozen=True)
class Access:
    """A kind of access line."""

    summary: str
    source: str
    down: Buffer
    """Buffer of the provider, in front of the line towards the user."""
    up: Buffer
    """Buffer of the modem."""
    buffers: str
    """Source of the sizes of the buffers."""
    layer: str = "raw"
    """Framing, by the keyword of tc-cake(8)."""
    process: tuple[str, str] | None = None
    """Random process of the rate, and its key that takes the line's rate."""
    delay: float = 0.0
    """Seconds added to half of the round-trip time in each direction."""
    jitter: Mapping[str, str] | None = None
    """Jitter of the link towards the provider."""
    share: float = STEADY
    """Part of the line's rate that shapers send."""
    device: str = "eth0"
    """Usual name of the Linux device that leads to the line."""


ROUTER = (
    "250 ms at the line's rate: Appenzeller, Keslassy and McKeown, Sizing Router Buffers, "
    "SIGCOMM 2004, section 1"
)
RADIO: Mapping[str, Any] = {"process": ("lte", "mean"), "share": FADING, "device": "wwan0"}

KINDS: Mapping[str, Access] = MappingProxyType(
    {
        "fibre": Access(
            "a constant rate without framing",
            "tc-cake(8), raw",
            Buffer("the provider's router", "250ms"),
            Buffer("the fibre modem", "250ms"),
            ROUTER,
        ),
        "ethernet": Access(
            "Ethernet with preamble, check sequence and gap",
            "tc-cake(8), ethernet",
            Buffer("the provider's port", "256p"),
            Buffer("the port's driver", "256p"),
            "256 packets: a common ring size of Ethernet drivers",
            layer="ethernet",
        ),
        "dsl": Access(
            "VDSL2 with PPPoE: 30 bytes per packet, 65 bytes on the line per 64",
            "tc-cake(8), pppoe-ptm",
            Buffer("the provider's router", "250ms"),
            Buffer("the modem", "128p"),
            f"{ROUTER}; modem: descriptors of the driver for Lantiq VR9, 64 of the processor and "
            "64 of a queue (OpenWrt, ltq-ptm, ifxmips_ptm_fw_regs_vr9.h)",
            layer="pppoe-ptm",
            device="pppoe-wan",
        ),
        "adsl": Access(
            "ADSL with PPPoE: 40 bytes per packet, in cells of 53 bytes that carry 48",
            "tc-cake(8), pppoe-llcsnap",
            Buffer("the provider's router", "250ms"),
            Buffer("the modem", "128p"),
            f"{ROUTER}; modem: as for dsl",
            layer="pppoe-llcsnap",
            device="pppoe-wan",
        ),
        "docsis": Access(
            "a cable modem: DOCSIS framing; upstream packets wait for grants (0 to 6 ms)",
            "tc-cake(8), docsis; White, Sundaresan and Briscoe, Low Latency DOCSIS, 2019: a media "
            "acquisition delay of 2 to 8 ms",
            Buffer("the CMTS", "250ms"),
            Buffer("the cable modem", "250ms"),
            "Target Buffer of 250 ms at the service flow's rate, without AQM: CableLabs, "
            "docsis-ns3, experiments/residential",
            layer="docsis",
            jitter={"spread": "3ms", "distribution": "uniform"},
        ),
        "lte": Access(
            "a cellular link with a fading rate; the given rates are means",
            "the process `lte` (docs/links.md)",
            Buffer("the base station", "256p"),
            Buffer("the phone's modem", "256p"),
            "RLC queues of srsRAN 4G, RLC_TX_QUEUE_LEN",
            **RADIO,
        ),
        "5g": Access(
            "a 5G link with a fading rate; the given rates are means",
            "the process `lte` (docs/links.md)",
            Buffer("the base station", "6172672b"),
            Buffer("the phone's modem", "256p"),
            "RLC queues: srsRAN Project, default queue-bytes of a bearer; srsRAN 4G, "
            "RLC_TX_QUEUE_LEN",
            **RADIO,
        ),
        "wifi": Access(
            "Wi-Fi in contention with one other station; the given rates are PHY rates",
            "the process `wifi` (docs/links.md)",
            Buffer("the access point", "1000p"),
            Buffer("the station", "1000p"),
            "Linux's default queue of a device: pfifo of 1000 packets",
            process=("wifi", "phy"),
            share=FADING,
            device="wlan0",
        ),
        "satellite": Access(
            "a geostationary satellite: 240 ms more delay in each direction",
            "RFC 2488, section 2: at least 239.6 ms from ground to ground",
            Buffer("the gateway", "520ms"),
            Buffer("the terminal", "520ms"),
            "a round-trip time at the line's rate: the rule of thumb of Appenzeller and others",
            delay=0.24,
        ),
        "leo": Access(
            "satellites in low orbits: a constant rate without framing",
            "tc-cake(8), raw",
            Buffer("the gateway", "250ms"),
            Buffer("the terminal", "250ms"),
            ROUTER,
        ),
    }
)
"""By name, as `--access` takes it."""


@dataclass(frozen=True)
class Line:
    """An access line."""

    down: str
    """Rate towards the user, as scenarios have it: `50mbit`."""
    up: str
    rtt: str
    """Round-trip time without queues, to the far end and back: `20ms`."""
    access: str = "fibre"

    @property
    def kind(self) -> Access:
        """Kind of the line. Raises `InputError` for an unknown name."""
        if self.access not in KINDS:
            raise unknown("kind of access", self.access, KINDS, key="access")
        return KINDS[self.access]

    def rate(self, way: str) -> float:
        """Mean rate in one direction, in bit/s."""
        return self._scenario().mean_rate(way)

    def links(self) -> dict[str, Link]:
        """Links `down` and `up` of a scenario. Raises `InputError` for a wrong value."""
        kind = self.kind
        delay = quantity(self.rtt, "delay", "rtt") / 2 + kind.delay
        found: dict[str, Link] = {}
        for way, rate in (("down", self.down), ("up", self.up)):
            quantity(rate, "rate", way)
            link: Link = {"rate": rate, "delay": f"{delay * 1e3:g}ms"}
            if kind.process is not None:
                process, key = kind.process
                link["rate"] = {"process": process, key: rate}
            if kind.layer != "raw":
                link["link_layer"] = kind.layer
            if way == "up" and kind.jitter is not None:
                link["jitter"] = dict(kind.jitter)
            found[way] = link
        return found

    def buffer(self, way: str) -> str:
        """Limit of the FIFO that the user cannot configure, as links have it."""
        buffer: Buffer = getattr(self.kind, way)
        if not buffer.size.endswith("s"):
            return buffer.size
        seconds = quantity(buffer.size, "delay", way)
        return f"{max(PACKET, self.rate(way) * seconds / 8):.0f}b"

    def _scenario(self) -> Scenario:
        flows = {"flow": {"path": "down", "return_path": "up"}}
        return Scenario({"duration": "1s", "links": self.links(), "flows": flows})


@dataclass(frozen=True)
class Profile:
    """A named access line."""

    summary: str
    line: Line
    source: str

    @property
    def source_with_kind(self) -> str:
        """Sources of the numbers, of the kind's behaviour, and of its buffers."""
        kind = self.line.kind
        return f"{self.source}; {kind.source}; buffers: {kind.buffers}"


CHOSEN = "rates and round-trip time chosen for this program"
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "dsl": Profile("VDSL2 with PPPoE", Line("50mbit", "10mbit", "20ms", "dsl"), CHOSEN),
        "cable": Profile("a cable modem", Line("100mbit", "10mbit", "20ms", "docsis"), CHOSEN),
        "lte": Profile(
            "a mobile phone with LTE",
            Line("12mbit", "12mbit", "70ms", "lte"),
            "rates (here means) and round-trip time of `LTE` in WebPageTest's connectivity.ini",
        ),
        "5g": Profile("a mobile phone with 5G", Line("100mbit", "20mbit", "40ms", "5g"), CHOSEN),
        "satellite": Profile(
            "satellites in low orbits",
            Line("180mbit", "18mbit", "50ms", "leo"),
            "Michel, Trevisan, Giordano and Bonaventure, A First Look at Starlink Performance, "
            "2022: a median round-trip time of 50 ms; rates chosen for this program",
        ),
        "geo": Profile(
            "a geostationary satellite, 480 ms more there and back",
            Line("25mbit", "3mbit", "40ms", "satellite"),
            CHOSEN,
        ),
        "wifi": Profile(
            "Wi-Fi beside one other station", Line("144mbit", "144mbit", "10ms", "wifi"), CHOSEN
        ),
        "office": Profile("Gigabit Ethernet", Line("1gbit", "1gbit", "4ms", "ethernet"), CHOSEN),
    }
)
"""By name, as `--profile` takes it."""


def profile(name: str) -> Profile:
    """Access line of this name. Raises `InputError` for an unknown one."""
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES, key="profile")
    return PROFILES[name]


def line_of(
    name: str | None, down: str | None, up: str | None, rtt: str | None, access: str | None
) -> Line:
    """The line of the profile `name`, with the given values instead of its own.

    Raises `InputError` for an unknown profile, and without one if something is missing.
    """
    given = {"down": down, "up": up, "rtt": rtt, "access": access}
    own = {key: plain(value) for key, value in given.items() if value is not None}
    if name is not None:
        return replace(profile(name).line, **own)
    for key in ("down", "up", "rtt"):
        if key not in own:
            hint = "`aqmlab list profiles` has whole lines, for `profile` (`--profile`)"
            raise input_error("this value is missing", key=key, hint=hint)
    return Line(**own)
