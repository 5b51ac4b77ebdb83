//! State of a link's transmitter.

use aqmlab_core::{Span, Time};

/// State of a link's transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmitter {
    /// Idle; the queue discipline was asked for a packet after the last transmission.
    Idle,
    /// Sending a packet of `size` bytes `until` some time, or the end was not handled yet.
    Busy { until: Time, size: u32, end: TransmissionEnd },
    /// Waiting for the next grant, which has an event, if any.
    AwaitingGrant,
    /// Waiting for the turn on a shared medium.
    AwaitingMedium,
    /// Sending a packet for ever: the rate remains zero.
    Stuck,
}

/// Handling of the end of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransmissionEnd {
    /// No event, because no packet waits. The discipline is informed at the next event of the link.
    Quiet,
    /// Handled by an event.
    Event,
    /// No event, although packets wait: see [`fast`](super::fast).
    Deferred,
}

impl Transmitter {
    /// Returns the end of the transmission in progress, if known.
    pub fn until(self) -> Option<Time> {
        match self {
            Transmitter::Busy { until, .. } => Some(until),
            _ => None,
        }
    }

    /// True if a transmission has ended by `now` whose end was not handled yet.
    #[inline(always)]
    pub fn has_ended(self, now: Time) -> bool {
        matches!(self, Transmitter::Busy { until, .. } if until <= now)
    }

    /// Returns the end of the transmission in progress, if it is [deferred](End::Deferred).
    #[inline(always)]
    pub fn deferred(self) -> Option<Time> {
        match self {
            Transmitter::Busy { until, end: TransmissionEnd::Deferred, .. } => Some(until),
            _ => None,
        }
    }

    /// Returns the remaining time of the transmission in progress after `now`.
    pub fn unsent(self, now: Time) -> Span {
        self.until().map_or(Span::ZERO, |until| until.saturating_since(now))
    }
}
