"""Congestion controls written in Python: a class with `on_ack`, `on_congestion` and `window`.

`docs/your-own-congestion-control.md` says what such a class is told and what it has to
do; any class with these members will do. `aqmlab.custom` finds it.
"""

# Methods that a control need not have are empty here.
# ruff: noqa: B027

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from aqmlab._core import (
    AckSample,
    CongestionEvent,
    LostSegment,
    RateSample,
    SentSample,
    Setup,
)

__all__ = [
    "AckSample",
    "CongestionControl",
    "CongestionEvent",
    "LostSegment",
    "RateSample",
    "SentSample",
    "Setup",
]


class CongestionControl(ABC):
    """A base for congestion controls; any class with these members will do.

    The parameters of the constructor behind `setup` are the parameters of the
    control. Their defaults say of which kind they are: of `"5ms"` it gets whole
    nanoseconds, of `"10mbit"` bits per second, of `"1500b"` and `"10p"` bytes; a
    number, a bool or other text is what it is.

    After every call the sender takes `window`, `ssthresh` and `pacing_rate` as they
    stand then.
    """

    window: int
    """The congestion window in bytes. The sender never goes below one segment."""
    ssthresh: int
    """The slow start threshold in bytes."""

    # Without values here, so that only a class that sets them is asked for them:
    # pacing_rate: int | None, needs_rate_samples: bool, recovers_by_itself: bool.

    def __init__(self, setup: Setup) -> None:
        """Called once for each connection, and again if its SYN was lost."""
        self.window = setup.initial_window
        self.ssthresh = setup.initial_ssthresh

    @abstractmethod
    def on_ack(self, ack: AckSample) -> None:
        """Data were delivered, or CE marks reported."""

    @abstractmethod
    def on_congestion(self, event: CongestionEvent) -> None:
        """Congestion was found."""

    def on_undo(self) -> None:
        """The last loss or timeout was none: the window becomes what it was."""

    def on_connected(self, now: int, rtt: int | None) -> None:
        """The connection is open; `rtt` is that of the SYN if it was sent once."""

    def on_idle(self, restart_window: int) -> None:
        """The window was not used: it becomes this at most (RFC 5681, section 4.1)."""

    def set_ssthresh(self, ssthresh: int) -> None:
        """The slow start threshold becomes this; only with `window_validation`."""

    def on_sent(self, sent: SentSample) -> None:
        """A data segment is sent."""

    def on_lost(self, lost: LostSegment) -> None:
        """A segment is taken for lost; only with `needs_rate_samples`."""

    def on_recovery_exit(self, in_flight: int) -> None:
        """A recovery without SACK ends with this much in flight (RFC 6582, section 3.2)."""

    def observe(self) -> Mapping[str, float]:
        """What recordings of level `series` show besides the window, by name."""
        return {}
