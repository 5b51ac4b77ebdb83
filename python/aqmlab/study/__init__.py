"""Studies: what is run (`sweep`), how (`execute`, on other machines `spread` and `cluster`), for
how long (`sequential`), and what stays of it (`folder`, its `chunks` and `manifest`, `merge`). The
smallest of them is a single run (`single`, in steps `stepping`).
"""

from __future__ import annotations

from aqmlab._face import make_callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aqmlab.study.sweep import Study, study

__all__ = ["Study", "study"]


def __getattr__(name: str) -> Any:
    """Loads tables when a study is asked for, not for a file of this package alone."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'aqmlab.study' has no attribute {name!r}")
    return getattr(import_module("aqmlab.study.sweep"), name)


make_callable("aqmlab.study")
