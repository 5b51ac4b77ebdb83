"""The classes made from the engine's declarations; `classes.pyi` declares them."""

from __future__ import annotations

from typing import Any

from aqmlab.scenario.parts import classes


def __getattr__(name: str) -> Any:
    """The class of this name."""
    if name == "__all__":
        return sorted(classes())
    if name not in classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes()[name]
