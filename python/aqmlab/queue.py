"""Queue disciplines written in Python: a class with `enqueue` and `dequeue`.

`docs/your-own-queue.md` says what such a class is given and what it has to do; any class
with these methods will do. `aqmlab.custom` finds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from aqmlab._core import Context, Limit, Link, Packet

__all__ = ["Context", "Limit", "Link", "Packet", "Queue"]


class Queue(ABC):
    """A base for queue disciplines; any class with these methods will do.

    The parameters of the constructor behind `link` are the parameters of the
    discipline. Their defaults say of which kind they are: of `"5ms"` it gets whole
    nanoseconds, of `"10mbit"` bits per second, of `"1500b"` bytes, of `"100p"` a
    `Limit`; a number, a bool or other text is what it is.
    """

    def __init__(self, link: Link) -> None:
        """Called once for each run, with the link behind the queue."""
        self.link = link

    @abstractmethod
    def enqueue(self, packet: Packet, cx: Context) -> None:
        """Keeps the packet that has just arrived, or hands it to `cx.drop`."""

    @abstractmethod
    def dequeue(self, cx: Context) -> Packet | None:
        """The next packet to send; None only if there is none."""

    def next_wakeup(self) -> int | None:
        """When `on_wakeup` is to be called next, in nanoseconds. Asked after every call."""
        return None

    def on_wakeup(self, cx: Context) -> None:
        """The time given by `next_wakeup` has come."""
        raise NotImplementedError

    def change(self, *args: Any, **parameters: Any) -> None:
        """Takes other values of its parameters, in `change(cx, name=value, ...)`.

        All parameters of the constructor are passed by name; the method may leave out those
        that it takes no other value of (then give it `**rest`). Packets and state stay. A
        class without this method cannot be changed, only replaced.
        """
        raise NotImplementedError

    def observe(self) -> Mapping[str, float]:
        """What recordings of level `series` show, by name."""
        return {}

    def notes(self) -> Mapping[str, str]:
        """At the end of a run: sentences that a reader has to know, by a short name."""
        return {}
