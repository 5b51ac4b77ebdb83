"""CoDel as mahimahi has it: a clock of whole milliseconds, and the packet at which a drop is due
is forwarded while the one behind it is dropped. For the small print: README.md.

aqmlab study study.toml --only queue=CoDel --set queue.discipline=mahimahi_codel.py:MahimahiCoDel
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Any

import aqmlab
from aqmlab.queue import Context, Limit, Link, Packet

MILLISECOND = 1_000_000


class MahimahiCoDel(aqmlab.Queue):
    """Differs from RFC 8289 in the two ways above only; drops at a full buffer are as usual."""

    def __init__(
        self, link: Link, target: Any = "5ms", interval: Any = "100ms", limit: Any = "830p"
    ) -> None:
        self.mtu = link.mtu
        self.target: int = target // MILLISECOND
        self.interval: int = interval // MILLISECOND
        self.limit: Limit = limit
        self.fifo: deque[Packet] = deque()
        self.first_above: int | None = None
        self.drop_next = 0
        self.count = self.last_count = 0
        self.dropping = False

    def enqueue(self, packet: Packet, cx: Context) -> None:
        """Keeps the packet if there is room."""
        if self.limit.admits(cx.packets, cx.bytes, packet.size):
            self.fifo.append(packet)
        else:
            cx.drop(packet, "overlimit")

    def take(self, cx: Context, now: int, left: int) -> tuple[Packet | None, bool]:
        """A packet, and whether the delay was above target for an interval; `left` bytes are in
        the queue before it."""
        if not self.fifo:
            self.first_above = None
            return None, False
        packet = self.fifo.popleft()
        sojourn = now - packet.arrival // MILLISECOND
        if not self.fifo or sojourn < self.target or left - packet.size <= self.mtu:
            self.first_above = None
        elif self.first_above is None:
            self.first_above = now + self.interval
        else:
            return packet, now >= self.first_above
        return packet, False

    def after(self, time: int) -> int:
        """When the next drop is due, in whole milliseconds."""
        return int(time + self.interval / sqrt(self.count))

    def drop_behind(self, cx: Context, now: int, left: int) -> bool:
        """Drops the next packet; whether the delay was above target for it, too."""
        packet, above = self.take(cx, now, left)
        if packet is not None:
            cx.drop(packet, "codel")
        return above

    def dequeue(self, cx: Context) -> Packet | None:
        """Returns the next packet, after dropping those before it."""
        now = cx.now // MILLISECOND
        packet, above = self.take(cx, now, cx.bytes)
        if packet is None:
            self.dropping = False
            return None
        if self.dropping:
            self.dropping = above
            while self.dropping and now >= self.drop_next:
                self.count += 1
                self.dropping = self.drop_behind(cx, now, cx.bytes - packet.size)
                if self.dropping:
                    self.drop_next = self.after(self.drop_next)
        elif above:
            self.drop_behind(cx, now, cx.bytes - packet.size)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < 16 * self.interval
            self.count = delta if delta > 1 and recent else 1
            self.last_count = self.count
            self.drop_next = self.after(now)
        return packet
