"""The `tc` command that gives a Linux machine a queue with these settings.

The engine has the words, declared beside the parameters of each discipline. A discipline that
Linux lacks has no command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab._core import queue_in_tc


@dataclass(frozen=True)
class Line:
    """A queue in the words of tc."""

    words: str
    """Words after `tc qdisc replace dev eth0 root`."""
    left_out: tuple[str, ...]
    """Settings that tc has no words for."""

    @property
    def kind(self) -> str:
        """tc's name of the discipline."""
        return self.words.partition(" ")[0]

    @property
    def options(self) -> str:
        """The words after the name."""
        return self.words.partition(" ")[2]


def line(queue: str | Mapping[str, Any], rate: str | None = None) -> Line | None:
    """The words of tc for a queue (in words or a table); `None` if Linux has none such.

    `rate` is that of the link, which tc wants to know for some. Raises `InputError` for a queue
    that does not exist.
    """
    found = queue_in_tc(queue, rate)
    return None if found is None else Line(found[0], tuple(found[1]))
