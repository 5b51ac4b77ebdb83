"""The classes made from the engine's declarations; `generated.pyi` declares them."""

from __future__ import annotations

from aqmlab.scenario.parts import classes

globals().update(classes())
__all__ = sorted(classes())
