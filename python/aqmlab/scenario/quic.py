"""Congestion controllers of QUIC stacks by name, such as `noq:cubic`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from aqmlab import _core


@cache
def _choices(key: str) -> Sequence[str]:
    """The names that a key of the endpoint `quic` takes."""
    [quic] = [
        entry
        for entry in _core.reference()
        if (entry["section"], entry["name"]) == ("endpoint", "quic")
    ]
    [parameter] = [each for each in quic["params"] if each["name"] == key]
    return tuple(parameter["choices"])


def quic_endpoint(control: Any) -> dict[str, Any] | None:
    """Returns the endpoint of `STACK:CONTROLLER`, or `None` for any other control.

    One known name is enough: the engine's error about the other one lists the names it knows.
    """
    if not isinstance(control, str) or control.count(":") != 1:
        return None
    stack, controller = control.split(":")
    if stack not in _choices("stack") and controller not in _choices("controller"):
        return None
    return {"kind": "quic", "stack": stack, "controller": controller}
