"""CoDel as in the pseudo-code of RFC 8289, section 5: equal to `codel`, packet by packet.
The pseudo-code counts in seconds, times here are whole nanoseconds.

aqmlab run examples/scenario.toml --set queue=codel.py:CoDel --set queue.target=2ms
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Any

import aqmlab
from aqmlab.queue import Context, Limit, Link, Packet


class CoDel(aqmlab.Queue):
    def __init__(
        self,
        link: Link,
        target: Any = "5ms",
        interval: Any = "100ms",
        limit: Any = "1000p",
        ecn: bool = False,
    ) -> None:
        self.mtu = link.mtu
        self.target: float = target / 1e9
        self.interval: float = interval / 1e9
        self.limit: Limit = limit
        self.ecn = ecn
        self.fifo: deque[Packet] = deque()
        self.first_above: float | None = None
        self.drop_next = 0.0
        self.count = self.last_count = 0
        self.dropping = False

    def enqueue(self, packet: Packet, cx: Context) -> None:
        if self.limit.admits(cx.packets, cx.bytes, packet.size):
            self.fifo.append(packet)
        else:
            cx.drop(packet, "overlimit")

    def change(self, cx: Context, target: Any, interval: Any, limit: Any, ecn: bool) -> None:
        """Other parameters: the state stays, what a smaller limit has no room for goes."""
        self.target, self.interval = target / 1e9, interval / 1e9
        self.limit, self.ecn = limit, ecn
        while self.fifo:
            head = self.fifo[0]
            if limit.admits(cx.packets - 1, cx.bytes - head.size, head.size):
                break
            cx.drop(self.fifo.popleft(), "overlimit")

    def take(self, cx: Context) -> tuple[Packet | None, bool]:
        """Section 5.6: a packet, and whether the delay was above target for an interval."""
        if not self.fifo:
            self.first_above = None
            return None, False
        packet = self.fifo.popleft()
        now = cx.now * 1e-9
        if now - packet.arrival * 1e-9 < self.target or cx.bytes - packet.size <= self.mtu:
            self.first_above = None
        elif self.first_above is None:
            self.first_above = now + self.interval
        else:
            return packet, now >= self.first_above
        return packet, False

    def after(self, time: float) -> float:
        """Section 5.4: when the next drop is due."""
        return time + self.interval / sqrt(self.count)

    def signal(self, packet: Packet, cx: Context) -> bool:
        """Marks the packet, if it can be marked, or drops it; whether it is still there."""
        if self.ecn and packet.ecn_capable:
            cx.mark(packet, "codel")
            return True
        cx.drop(packet, "codel")
        return False

    def dequeue(self, cx: Context) -> Packet | None:
        """Section 5.5."""
        now = cx.now * 1e-9
        packet, ok_to_drop = self.take(cx)
        if packet is None or not ok_to_drop:
            self.dropping = False
        elif self.dropping:
            while packet and self.dropping and now >= self.drop_next:
                self.count += 1
                if self.signal(packet, cx):
                    self.drop_next = self.after(self.drop_next)
                    break
                packet, ok_to_drop = self.take(cx)
                if ok_to_drop:
                    self.drop_next = self.after(self.drop_next)
                else:
                    self.dropping = False
        else:
            if not self.signal(packet, cx):
                packet, _ = self.take(cx)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < 16 * self.interval
            self.count = delta if delta > 1 and recent else 1
            self.last_count = self.count
            self.drop_next = self.after(now)
        return packet

    def observe(self) -> dict[str, float]:
        return {"count": self.count, "dropping": self.dropping}
