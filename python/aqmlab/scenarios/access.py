"""Access lines: what the last mile adds to a rate and a round-trip time, and named examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from aqmlab.errors import input_error, unknown
from aqmlab.scenarios.quantities import quantity

Link = dict[str, Any]


@dataclass(frozen=True)
class Access:
    """A kind of access line."""

    summary: str
    source: str
    shape: Callable[[Link, str], None]
    """Changes a link (keys of scenarios) of the direction `down` or `up`."""


def _plain(link: Link, way: str) -> None:
    """Ethernet or fibre: a constant rate."""


def _dsl(link: Link, way: str) -> None:
    link["link_layer"] = "pppoe-ptm"


def _docsis(link: Link, way: str) -> None:
    link["link_layer"] = "docsis"
    if way == "up":
        link["jitter"] = {"spread": "3ms", "distribution": "uniform"}


def _lte(link: Link, way: str) -> None:
    link["rate"] = {"process": "lte", "mean": link["rate"]}


def _wifi(link: Link, way: str) -> None:
    link["rate"] = {"process": "wifi", "phy": link["rate"]}


def _satellite(link: Link, way: str) -> None:
    link["delay"] = f"{float(link['delay'].removesuffix('ms')) + 240:g}ms"


KINDS: Mapping[str, Access] = MappingProxyType(
    {
        "fibre": Access("a constant rate without framing", "tc-cake(8), raw", _plain),
        "dsl": Access(
            "VDSL2 with PPPoE: 30 bytes per packet, 65 bytes on the line per 64",
            "tc-cake(8), pppoe-ptm",
            _dsl,
        ),
        "docsis": Access(
            "a cable modem: DOCSIS framing; upstream packets wait for grants (0 to 6 ms)",
            "tc-cake(8), docsis; White, Sundaresan and Briscoe, Low Latency DOCSIS, 2019: a media "
            "acquisition delay of 2 to 8 ms",
            _docsis,
        ),
        "lte": Access(
            "a cellular link with a fading rate; the given rates are means",
            "the process `lte` (docs/links.md)",
            _lte,
        ),
        "wifi": Access(
            "Wi-Fi in contention with one other station; the given rates are PHY rates",
            "the process `wifi` (docs/links.md)",
            _wifi,
        ),
        "satellite": Access(
            "a geostationary satellite: 240 ms more delay each way",
            "RFC 2488, section 2: at least 239.6 ms from ground to ground",
            _satellite,
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

    def links(self) -> dict[str, Link]:
        """The links `down` and `up` of a scenario. Raises `InputError` for a wrong value."""
        if self.access not in KINDS:
            raise unknown("kind of access", self.access, KINDS, key="--access")
        delay = f"{quantity(self.rtt, 'delay', '--rtt') * 1e3 / 2:g}ms"
        found: dict[str, Link] = {}
        for way, rate in (("down", self.down), ("up", self.up)):
            quantity(rate, "rate", f"--{way}")
            link: Link = {"rate": rate, "delay": delay}
            KINDS[self.access].shape(link, way)
            found[way] = link
        return found


@dataclass(frozen=True)
class Profile:
    """A named access line."""

    summary: str
    line: Line
    source: str

    @property
    def source_with_kind(self) -> str:
        """Where the numbers are from, and where the behaviour of its kind is."""
        return f"{self.source}; {KINDS[self.line.access].source}"


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
        "5g": Profile("a mobile phone with 5G", Line("100mbit", "20mbit", "40ms", "lte"), CHOSEN),
        "satellite": Profile(
            "satellites in low orbits",
            Line("180mbit", "18mbit", "50ms"),
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
        "office": Profile("Gigabit Ethernet", Line("1gbit", "1gbit", "4ms"), CHOSEN),
    }
)
"""By name, as `--profile` takes it."""


def profile(name: str) -> Profile:
    """The access line of this name. Raises `InputError` if there is none."""
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES, key="--profile")
    return PROFILES[name]


def line_of(
    name: str | None, down: str | None, up: str | None, rtt: str | None, access: str | None
) -> Line:
    """The line of the profile `name`, with what is given in the place of its own.

    Raises `InputError` for an unknown profile, and without one if something is missing.
    """
    given = {"down": down, "up": up, "rtt": rtt, "access": access}
    own = {key: value for key, value in given.items() if value is not None}
    if name is not None:
        return replace(profile(name).line, **own)
    for key in ("down", "up", "rtt"):
        if key not in own:
            hint = "`--profile NAME` names a whole line (`aqmlab list profiles`)"
            raise input_error("this option is missing", key=f"--{key}", hint=hint)
    return Line(**own)
