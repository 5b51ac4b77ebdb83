//! Counters of a flow, from the end of the warm-up on.

use aqmlab_core::{Span, Time};
use aqmlab_tcp::Stats;

use super::{Ends, Flow};
use crate::endpoints::Volume;
use crate::endpoints::datagrams::DatagramSummary;
use crate::network::probe::TimeSum;

/// Counters of a flow: packets, bytes, and TCP's statistics.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Data packets that the source sent, including retransmissions.
    pub sent: u64,
    pub volume: Volume,
    pub stats: Option<Stats>,
    /// Number of datagrams that arrived.
    received: u64,
}

/// Counters at the end of the warm-up, or when a change stopped the flow.
#[derive(Clone)]
pub(super) struct Then {
    tally: Tally,
    time: Time,
}

impl Flow {
    fn tally(&self) -> Tally {
        let received = match &self.ends {
            Ends::Datagrams(datagrams) => datagrams.sink.received,
            _ => 0,
        };
        Tally { sent: self.sent(), volume: self.volume(), stats: self.stats(), received }
    }

    /// Returns the counters without the warm-up.
    pub fn measured(&self) -> Tally {
        let mut tally = self.tally();
        if let Some(before) = self.before.as_deref() {
            let then = &before.tally;
            tally.sent -= then.sent;
            tally.volume = tally.volume.since(&then.volume);
            tally.received -= then.received;
            tally.stats = tally.stats.zip(then.stats).map(|(now, then)| now.since(&then));
        }
        tally
    }

    /// Marks a flow with more data as stopped by a change of the scenario.
    pub fn stop(&mut self, now: Time) {
        if self.completed().is_none() {
            self.stopped = Some(Box::new(Then { tally: self.tally(), time: now }));
        }
    }

    /// Returns the time of the change that stopped the flow.
    pub fn stopped(&self) -> Option<Time> {
        self.stopped.as_ref().map(|stopped| stopped.time)
    }

    /// Returns the traffic of the flow while it was active after the warm-up, in a run that ends at
    /// `end`, and the duration; `None` if that is zero. It is active from its start until its last byte
    /// arrives or a change stops it; data in flight at that time does not count.
    pub fn rated(&self, end: Time) -> Option<(Volume, Span)> {
        let until = self.stopped().or(self.completed()).or(self.finish).unwrap_or(end);
        let volume = self.stopped.as_ref().map_or_else(|| self.volume(), |at| at.tally.volume);
        let (before, from) = match &self.before {
            Some(before) => (before.tally.volume, self.start.max(before.time)),
            None => (Volume::default(), self.start),
        };
        // A transfer takes at least the resolution of times.
        let least = match self.completed() == Some(from) && from == self.start {
            true => Span::from_nanos(1),
            false => Span::ZERO,
        };
        let active = until.saturating_since(from).max(least);
        (active > Span::ZERO).then(|| (volume.since(&before), active))
    }

    /// Returns the summary of the datagrams after the warm-up; `None` for other flows.
    pub fn datagram_summary(&self) -> Option<DatagramSummary> {
        let Ends::Datagrams(datagrams) = &self.ends else { return None };
        let Tally { sent, volume, received, .. } = self.measured();
        Some(DatagramSummary {
            received,
            received_bytes: volume.delivered,
            ..datagrams.sink.summary(sent, volume.sent)
        })
    }

    /// Ends the warm-up: counters count from now on.
    pub fn end_warmup(&mut self, now: Time) {
        self.before = Some(Box::new(Then { tally: self.tally(), time: now }));
        self.delays = self.delays.map(|_| TimeSum::default());
        if let Ends::Datagrams(datagrams) = &mut self.ends {
            datagrams.sink.delay = Default::default();
        }
    }
}
