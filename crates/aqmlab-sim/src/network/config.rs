//! What a link is, and what is left of it.

use aqmlab_aqm::{Backlog, Counts, QueueConfig};
use aqmlab_core::{Bytes, Framing, Rate, Span};

use super::egress::{DriverParams, DriverSummary, ShaperParams};
use super::pipe::PathCounts;
use super::probe::{Excursions, PacketRecord, SojournSummary};
use crate::impairment::PathConfig;
use crate::rate::RateProcess;

/// A link of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Its name.
    pub name: String,
    /// Its rate; the mean if it changes.
    pub rate: Rate,
    /// Its propagation delay; the mean if it changes.
    pub delay: Span,
    /// Its rate as it is stated.
    pub process: RateProcess,
    /// What packets take on the wire.
    pub framing: Framing,
    /// What happens to packets on their way.
    pub way: PathConfig,
    /// The medium on which it sends, if other links are there too: the index of
    /// the first of them.
    pub medium: Option<u32>,
    /// Its queue.
    pub queue: QueueConfig,
    /// A token bucket behind the queue.
    pub shaper: Option<ShaperParams>,
    /// A driver with a FIFO of its own behind that.
    pub driver: Option<DriverParams>,
    /// Backlogs whose excursions are measured.
    pub thresholds: Vec<Bytes>,
}

impl LinkConfig {
    /// Takes one of the keys that may change from another: `rate`, `delay`, `loss` or `queue`.
    pub(crate) fn change(&mut self, key: &str, to: &LinkConfig) {
        match key {
            "rate" => (self.rate, self.process) = (to.rate, to.process.clone()),
            "delay" => (self.delay, self.way.delay) = (to.delay, to.way.delay.clone()),
            "loss" => self.way.loss = to.way.loss.clone(),
            _ => self.queue = to.queue.clone(),
        }
    }
}

/// What happened at a link.
#[derive(Debug)]
pub struct LinkResult {
    /// Packets and bytes that arrived, left, were dropped and marked.
    pub counts: Counts,
    /// Of the dropped packets those that had been in the queue.
    pub dropped_queued: u64,
    /// Time in queue of the packets that were sent.
    pub sojourn: SojournSummary,
    /// The largest backlog.
    pub backlog_max: Backlog,
    /// The mean backlog over time: in packets, and in bytes.
    pub backlog_mean: [f64; 2],
    /// The times from one drop to the next.
    pub loss_intervals: SojournSummary,
    /// Bytes that the link offered from the start of the run to its end.
    pub capacity: f64,
    /// Share of what the link offered since the first packet that was used.
    pub utilisation: f64,
    /// What happened to packets on the way to the far end.
    pub way: PathCounts,
    /// What passed the driver behind the queue, if the link has one (or a shaper).
    pub driver: Option<DriverSummary>,
    /// Loss events, after the warm-up: see [`losses`](super::losses).
    pub loss_events: u64,
    /// How many flows lose data in one, as a mean; NaN without events.
    pub loss_event_flows: f64,
    /// Backlog above thresholds.
    pub excursions: Vec<Excursions>,
    /// At level `packets`; those that no sink has taken.
    pub packets: Vec<PacketRecord>,
}
