//! Counters of a flow, from the end of the warm-up on.

use aqmlab_core::{Span, Time};
use aqmlab_tcp::Stats;

use super::{Delays, Ends, Flow};
use crate::endpoints::Volume;
use crate::endpoints::datagrams::DatagramSummary;

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

/// Counters at the end of the warm-up.
#[derive(Clone)]
pub(super) struct Before {
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

    /// Returns the time the flow was active after the warm-up, in a run that ends at `end`; `None`
    /// if it was over before. It is active until its last byte arrives or, if a change stopped it
    /// with data in flight, is acknowledged.
    pub fn measured_time(&self, end: Time) -> Option<Span> {
        let over = self.completed().or(self.finish);
        let until = over.unwrap_or(end);
        match &self.before {
            Some(before) if over.is_some_and(|over| over <= before.time) => None,
            Some(before) => Some(until.saturating_since(self.start.max(before.time))),
            None => Some(until.saturating_since(self.start)),
        }
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
        self.before = Some(Box::new(Before { tally: self.tally(), time: now }));
        self.delays = self.delays.map(|_| Delays::default());
        if let Ends::Datagrams(datagrams) = &mut self.ends {
            datagrams.sink.delay = Default::default();
        }
    }
}
