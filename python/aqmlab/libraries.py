"""Third-party libraries that take long to load or may be missing, each loaded at its first use.

    from aqmlab import libraries

    libraries.polars.col("run")

Modules that must load without them use this; all others import a library as usual.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as polars
    import vl_convert as vl_convert
    import xarray as xarray

    distributed: Any  # its functions have no types

NAMES = (
    "distributed",  # an extra of its own
    "polars",  # 0.1 s, and threads: for what `aqmlab list` and the emulator load, too
    "vl_convert",  # 0.1 s and 60 MB, for pictures alone
    "xarray",  # no extra has it
)


def __getattr__(name: str) -> Any:
    """The library of this name."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(name)
