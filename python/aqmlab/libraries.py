"""Third-party libraries that take long to load or may be missing, each loaded at its first use.

    from aqmlab import libraries

    libraries.polars.col("run")

Modules that must load without them use this; all others import a library as usual.
"""

from __future__ import annotations

import os
import re
import resource
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as polars
    import vl_convert as vl_convert
    import xarray as xarray

    distributed: Any  # its functions have no types

NAMES = {
    "distributed": "distributed",  # an extra of its own
    "polars": "polars",  # 0.1 s, and threads: for what `aqmlab list` and the emulator load, too
    "special": "scipy.special",  # 0.15 s, for intervals: single runs have none
    "vl_convert": "vl_convert",  # 0.1 s and 60 MB, for pictures alone
    "xarray": "xarray",  # no extra has it
}


LEAST_MEMORY = 2_000_000
"""Address space in kB for tables; on two cores long studies abort with 1,600,000 (2026-11-30)."""


def obstacle() -> str:
    """Why no library for tables can be loaded; empty if they can. With too little address space
    OpenBLAS loops for ever or raises SIGINT, and polars aborts."""
    if os.environ.get("POLARS_MAX_THREADS") == "0":
        return "POLARS_MAX_THREADS=0: polars needs 1 thread or more"
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")  # numpy reads it
    if not re.fullmatch(r"[+-]?\d+", epoch):
        return f"SOURCE_DATE_EPOCH={epoch}: a whole number of seconds is expected"
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft // 1024 >= LEAST_MEMORY:
        return ""
    problem = f"{LEAST_MEMORY} kB of memory are needed, and {soft // 1024} allowed"
    return f"{problem}; raise the limit (ulimit -v {LEAST_MEMORY})"


def __getattr__(name: str) -> Any:
    """Loads the library of this name, at its first use."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = import_module(NAMES[name])
    return found
