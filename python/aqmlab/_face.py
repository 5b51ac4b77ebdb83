"""Modules that can be called: `aqmlab.compare(...)` works whether or not somebody wrote
`import aqmlab.compare` before, which makes the name a module."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module with a function of its own name, which stands for it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **kwargs)


def make_callable(name: str) -> None:
    """Makes the module of this name one that can be called."""
    sys.modules[name].__class__ = _Callable
