"""Kinds of access lines: what the last mile adds to a rate and a round-trip time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

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
    link.update(linklayer="ptm", overhead=30)


def _docsis(link: Link, way: str) -> None:
    link["linklayer"] = "docsis"
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
