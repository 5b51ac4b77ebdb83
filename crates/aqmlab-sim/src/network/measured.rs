//! What is measured at a link with a queue, from the end of the warm-up on.

use aqmlab_aqm::Counts;
use aqmlab_core::{Span, Time};

use super::QueuedLink;
use crate::network::carried::Carried;
use crate::network::config::LinkResult;
use crate::network::pipe::PathCounts;

/// What a link had counted when the warm-up ended.
pub(super) struct Before {
    counts: Counts,
    way: PathCounts,
    /// Bytes that were offered.
    capacity: f64,
    /// Bits that were sent, where they are counted.
    used_bits: f64,
}

impl<P: Carried> QueuedLink<P> {
    /// The warm-up is over: what is measured counts from now on.
    pub fn end_warmup(&mut self, now: Time) {
        let sending = self.busy_until.map_or(Span::ZERO, |until| until.saturating_since(now));
        self.probe.restart(now, sending);
        if let Some(egress) = &mut self.egress {
            egress.restart();
        }
        self.before = Some(Box::new(Before {
            counts: self.queue.counts(),
            way: self.way(),
            capacity: self.capacity().bytes(now),
            used_bits: self.wire.used_bits(self.is_sent(now)),
        }));
    }

    /// What happened from the end of the warm-up to `end`; call `Link::finish` before.
    pub fn into_result(mut self, end: Time) -> LinkResult {
        let packets = self.take_records();
        let (counts, way, capacity) = (self.queue.counts(), self.way(), self.capacity().bytes(end));
        let (counts, way, capacity) = match &self.before {
            None => (counts, way, capacity),
            Some(before) => {
                let counts = counts.since(&before.counts);
                (counts, way.since(&before.way), capacity - before.capacity)
            }
        };
        LinkResult {
            counts,
            dropped_queued: self.probe.dropped_queued,
            backlog_mean: self.probe.backlog_mean(end),
            capacity,
            loss_intervals: self.probe.loss_intervals(),
            utilisation: self.utilisation(end),
            way,
            sojourn: self.probe.sojourn.summary(),
            backlog_max: self.probe.backlog_max,
            driver: self.egress.map(|egress| egress.summary),
            loss_events: self.probe.losses.events(),
            loss_event_flows: self.probe.losses.mean_flows(),
            excursions: self.probe.excursions,
            packets,
        }
    }

    /// The share of what the link offered from the first packet (or the end of the warm-up)
    /// to `end` that packets used; with a constant rate, the share of the time.
    pub fn utilisation(&self, end: Time) -> f64 {
        match (self.meter(), self.probe.used_from()) {
            (Some(mut meter), Some(first)) => {
                let before = meter.bits(first);
                let offered = meter.bits(end + Span::from_nanos(1)) - before;
                let used_before = self.before.as_ref().map_or(0.0, |before| before.used_bits);
                let used = self.wire.used_bits(self.is_sent(end)) - used_before;
                if offered > 0.0 { (used / offered).min(1.0) } else { 0.0 }
            }
            _ => self.probe.utilisation(end),
        }
    }
}
