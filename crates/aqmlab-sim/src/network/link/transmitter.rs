//! State of a link's transmitter.

use aqmlab_core::{Span, Time};

/// What the transmitter of a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmitter {
    /// Nothing: and the queue discipline has been asked for a packet since the last transmission.
    Idle,
    /// Sends a packet of `size` bytes `until` some time; or has sent it, and the end has not been
    /// handled yet.
    Busy { until: Time, size: u32, end: End },
    /// Waits for the next grant, at which the link has an event if there is one.
    AwaitingGrant,
    /// Waits for its turn on a shared medium.
    AwaitingMedium,
    /// Sends a packet for ever: the rate remains zero.
    Stuck,
}

/// How the end of a transmission is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No packet waits for it. The discipline learns of it with the next event of the link.
    Quiet,
    /// It has an event.
    Event,
    /// It has no event, although packets wait: see [`fast`](super::fast).
    Deferred,
}

impl Transmitter {
    /// The end of the transmission in progress, where it is known.
    pub fn until(self) -> Option<Time> {
        match self {
            Transmitter::Busy { until, .. } => Some(until),
            _ => None,
        }
    }

    /// The end of the transmission in progress, if it is [deferred](End::Deferred).
    #[inline(always)]
    pub fn deferred(self) -> Option<Time> {
        match self {
            Transmitter::Busy { until, end: End::Deferred, .. } => Some(until),
            _ => None,
        }
    }

    /// How long the transmission in progress takes after `now`.
    pub fn unsent(self, now: Time) -> Span {
        self.until().map_or(Span::ZERO, |until| until.saturating_since(now))
    }
}
