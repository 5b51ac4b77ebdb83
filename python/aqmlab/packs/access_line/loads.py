"""Load of an access line: groups of flows by their everyday names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

DOWN = {"path": "down", "return_path": "up"}
UP = {"path": "up", "return_path": "down"}
SOON = {"uniform": ["0s", "1s"]}
"""Start of bulk flows: one draw each, so that replications differ."""

DOWNLOAD = {**DOWN, "count": 2, "start": {"each": ["0s", "1s"]}}
UPLOAD = {**UP, "count": 1, "start": {"each": ["0s", "1s"]}}
WEB = {**DOWN, "start": SOON, "workload": {"kind": "page", "think": "exponential(2s)"}}
CALL = {**DOWN, "start": SOON, "workload": "voip"}
VIDEO = {**DOWN, "start": SOON, "workload": "dash"}
GAME = {**DOWN, "start": SOON, "workload": "game"}
PROBE = {**DOWN, "start": SOON, "workload": "probe"}


@dataclass(frozen=True)
class Load:
    """Groups of flows that run together."""

    summary: str
    flows: Mapping[str, Mapping[str, Any]]
    """Name of the group to its keys, as in a scenario."""


KINDS: Mapping[str, Load] = MappingProxyType(
    {
        "home": Load(
            "web pages, a call, streamed video and a game, with two downloads and an upload",
            {
                "web": WEB, "call": CALL, "video": VIDEO, "game": GAME,
                "download": DOWNLOAD, "upload": UPLOAD,
            },
        ),
        "office": Load(
            "five web users, three calls, and a backup that uploads and downloads",
            {
                "web": {**WEB, "count": 5}, "call": {**CALL, "count": 3},
                "download": {**DOWNLOAD, "count": 1}, "upload": {**UPLOAD, "count": 2},
            },
        ),
        "gaming": Load(
            "a game and its voice chat, with one download (an update) and one upload (a stream)",
            {
                "game": GAME, "call": CALL,
                "download": {**DOWNLOAD, "count": 1}, "upload": UPLOAD,
            },
        ),
        "rrul": Load(
            "flent's response under load: four flows in each direction, and probes",
            {
                "ping": PROBE, "download": {**DOWNLOAD, "count": 4},
                "upload": {**UPLOAD, "count": 4},
            },
        ),
    }
)  # fmt: skip
"""By name, as `--load` takes it."""
