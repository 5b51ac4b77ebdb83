"""Congestion controls written in Python: a class with `on_ack`, `on_congestion` and `window`.

docs/your-own-congestion-control.md describes such classes. `aqmlab.custom` loads them.
"""

# Methods that a control need not have are empty here.
# ruff: noqa: B027

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from aqmlab._core import AckSample as AckSample
from aqmlab._core import CongestionEvent as CongestionEvent
from aqmlab._core import LostSegment as LostSegment
from aqmlab._core import RateSample as RateSample
from aqmlab._core import SentSample as SentSample
from aqmlab._core import Setup as Setup


class CongestionControl(ABC):
    """Base class for congestion controls in Python. Any class with these members also works.

    Parameters of the constructor after `setup` are the parameters of the control. Their defaults
    define their types: a time (`"5ms"`) is passed in whole nanoseconds, a rate (`"10mbit"`) in
    bit/s, a size (`"1500b"`, `"10p"`) in bytes; numbers, bools and other texts are passed
    unchanged. The sender reads `window`, `ssthresh` and `pacing_rate` after every call.

    Parameters
    ----------
    setup : Setup
        Segment size, initial window and initial threshold of the connection.
    """

    window: int
    """Congestion window in bytes; the sender uses at least one segment."""
    ssthresh: int
    """Slow-start threshold in bytes."""

    # Without values here, so that the sender reads them only from a class that sets them:
    # pacing_rate: int | None, needs_rate_samples: bool, recovers_by_itself: bool.

    def __init__(self, setup: Setup) -> None:
        """Creates the control; called for each connection, and again if its SYN was lost."""
        self.window = setup.initial_window
        self.ssthresh = setup.initial_ssthresh

    @abstractmethod
    def on_ack(self, ack: AckSample) -> None:
        """Handles delivered data and reported CE marks."""

    @abstractmethod
    def on_congestion(self, event: CongestionEvent) -> None:
        """Handles congestion: a loss, an ECN echo or a timeout."""

    def on_undo(self) -> None:
        """Restores the window before the last loss or timeout, which was spurious."""

    def on_connected(self, now: int, rtt: int | None) -> None:
        """Handles the end of the handshake.

        `rtt` is the round-trip time of the SYN in nanoseconds, or None if it was retransmitted.
        """

    def on_idle(self, restart_window: int) -> None:
        """Limits the window to `restart_window` after idle time (RFC 5681, section 4.1)."""

    def set_ssthresh(self, ssthresh: int) -> None:
        """Sets the slow-start threshold; called only with `window_validation`."""

    def on_sent(self, sent: SentSample) -> None:
        """Handles the transmission of a data segment."""

    def on_lost(self, lost: LostSegment) -> None:
        """Handles a segment declared lost; called only with `needs_rate_samples`."""

    def on_recovery_exit(self, in_flight: int) -> None:
        """Handles the end of a recovery without SACK (RFC 6582, section 3.2).

        `in_flight` is in bytes.
        """

    def observe(self) -> Mapping[str, float]:
        """Returns state variables by name, for recordings of level `series`."""
        return {}
