"""Queue disciplines written in Python: a class with `enqueue` and `dequeue`.

docs/your-own-queue.md describes such classes. `aqmlab.custom` loads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from aqmlab._core import Context, Limit, Link, Packet

__all__ = ["Context", "Limit", "Link", "Packet", "Queue"]


class Queue(ABC):
    """Base class for queue disciplines in Python. Any class with these methods also works.

    Parameters of the constructor after `link` are the parameters of the discipline. Their defaults
    define their types: a time (`"5ms"`) is passed in whole nanoseconds, a rate (`"10mbit"`) in
    bit/s, a size (`"1500b"`) in bytes, a limit (`"100p"`) as `Limit`; numbers, bools and other
    texts are passed unchanged.

    Parameters
    ----------
    link : Link
        The link behind the queue.
    """

    def __init__(self, link: Link) -> None:
        """Creates the queue; called once for each run."""
        self.link = link

    @abstractmethod
    def enqueue(self, packet: Packet, cx: Context) -> None:
        """Stores an arriving packet, or drops it with `cx.drop`."""

    @abstractmethod
    def dequeue(self, cx: Context) -> Packet | None:
        """Returns the next packet to send; None only if the queue is empty."""

    def next_wakeup(self) -> int | None:
        """Returns the time of the next `on_wakeup` in nanoseconds, or None.

        Queried after every call of another method.
        """
        return None

    def on_wakeup(self, cx: Context) -> None:
        """Handles the timer that `next_wakeup` set."""
        raise NotImplementedError

    def change(self, *args: Any, **parameters: Any) -> None:
        """Changes parameters of the running queue: `change(cx, name=value, ...)`.

        All parameters of the constructor are passed by name; `**rest` ignores those that cannot
        change. Packets and state stay. A class without this method can only be replaced.
        """
        raise NotImplementedError

    def observe(self) -> Mapping[str, float]:
        """Returns state variables by name, for recordings of level `series`."""
        return {}

    def notes(self) -> Mapping[str, str]:
        """Returns notes for the reader of the results, by a short name, at the end of a run."""
        return {}
