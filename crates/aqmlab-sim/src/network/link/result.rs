//! Results of a link with a queue, from the end of the warm-up on.

use aqmlab_aqm::{Backlog, Counts, Reason};
use aqmlab_core::{Span, Time};

use super::QueuedLink;
use crate::network::egress::DriverSummary;
use crate::network::losses::Losses;
use crate::network::probe::{Excursions, PacketRecord, QUANTILES, TimeSummary, percentile};
use crate::network::propagation::PropagationCounts;

/// Results of a link.
#[derive(Debug)]
pub struct LinkResult {
    /// Packets and bytes that arrived, were delivered, dropped and marked. A packet is delivered
    /// when its transmission ends; one whose transmission began before the end of the warm-up is
    /// counted neither as arrived nor as delivered. Arrived = delivered + dropped + packets that
    /// wait or are in transmission at the end.
    pub counts: Counts,
    /// Number of dropped packets that had been in the queue.
    pub dropped_queued: u64,
    /// Sojourn times of packets: from arrival until they leave the queue for the driver or the
    /// transmitter.
    pub sojourn: TimeSummary,
    /// Largest backlog.
    pub backlog_max: Backlog,
    /// Mean backlog over time, in packets and in bytes.
    pub backlog_mean: [f64; 2],
    /// Intervals between drops.
    pub loss_intervals: TimeSummary,
    /// Bytes that the link offered over the whole run.
    pub capacity: f64,
    /// Used share of the capacity offered since the first packet.
    pub utilisation: f64,
    /// Propagation counts.
    pub way: PropagationCounts,
    /// Summary of the driver, if the link has a driver or shaper.
    pub driver: Option<DriverSummary>,
    /// Loss events, after the warm-up: see [`losses`](crate::network::losses).
    pub loss_events: u64,
    /// Mean number of flows with lost data per event; NaN without events.
    pub loss_event_flows: f64,
    /// Mean number of bulk flows that have data at an event; NaN without events.
    pub loss_event_bulk_flows: f64,
    /// Backlog above thresholds.
    pub excursions: Vec<Excursions>,
    /// Records at level `packets` that no sink has taken.
    pub packets: Vec<PacketRecord>,
}

/// Column of the table `links`: its name, and a function for its values.
pub type LinkColumn<T> = (String, Box<dyn Fn(&LinkResult) -> T>);

struct Columns<T>(Vec<LinkColumn<T>>);

impl<T> Columns<T> {
    fn add(&mut self, name: impl Into<String>, of: impl Fn(&LinkResult) -> T + 'static) {
        self.0.push((name.into(), Box::new(of)));
    }
}

impl LinkResult {
    /// Returns the columns of counts, in order.
    pub fn counts() -> Vec<LinkColumn<u64>> {
        let mut columns = Columns(Vec::new());
        columns.add("arrived", |link| link.counts.arrived);
        columns.add("delivered", |link| link.counts.delivered);
        columns.add("dropped", |link| link.counts.dropped_total());
        columns.add("marked", |link| link.counts.marked_total());
        columns.add("arrived_bytes", |link| link.counts.arrived_bytes);
        columns.add("delivered_bytes", |link| link.counts.delivered_bytes);
        columns.add("dropped_bytes", |link| link.counts.dropped_bytes);
        columns.add("lost", |link| link.way.lost);
        columns.add("lost_bytes", |link| link.way.lost_bytes);
        columns.add("duplicated", |link| link.way.duplicated);
        columns.add("reordered", |link| link.way.reordered);
        for reason in Reason::ALL {
            columns.add(format!("drop_{}", reason.name()), move |link| {
                link.counts.dropped[reason as usize]
            });
        }
        for reason in Reason::ALL.into_iter().filter(|reason| reason.is_signal()) {
            columns.add(format!("mark_{}", reason.name()), move |link| {
                link.counts.marked[reason as usize]
            });
        }
        columns.add("dropped_queued", |link| link.dropped_queued);
        columns.add("loss_events", |link| link.loss_events);
        columns.add("backlog_max_packets", |link| link.backlog_max.packets);
        columns.add("backlog_max_bytes", |link| link.backlog_max.bytes);
        columns.0
    }

    /// Returns the following columns of numbers.
    pub fn numbers() -> Vec<LinkColumn<f64>> {
        let mut columns = Columns(Vec::new());
        columns.add("backlog_mean_packets", |link| link.backlog_mean[0]);
        columns.add("backlog_mean_bytes", |link| link.backlog_mean[1]);
        columns.add("capacity_bytes", |link| link.capacity);
        columns.add("utilisation", |link| link.utilisation);
        columns.add("sojourn_mean_s", |link| link.sojourn.mean);
        for (i, quantile) in QUANTILES.iter().enumerate() {
            let name = format!("sojourn_{}_s", percentile(*quantile));
            columns.add(name, move |link| link.sojourn.quantiles[i]);
        }
        columns.add("sojourn_max_s", |link| match link.sojourn.count {
            0 => f64::NAN,
            _ => link.sojourn.max.as_secs_f64(),
        });
        let losses = |of: fn(&TimeSummary) -> f64| {
            move |link: &LinkResult| match link.loss_intervals.count {
                0 => f64::NAN,
                _ => of(&link.loss_intervals),
            }
        };
        columns.add("loss_interval_mean_s", losses(|intervals| intervals.mean));
        columns.add("loss_interval_p50_s", losses(|intervals| intervals.quantiles[0]));
        columns.add("loss_interval_p95_s", losses(|intervals| intervals.quantiles[3]));
        columns.add("loss_interval_max_s", losses(|intervals| intervals.max.as_secs_f64()));
        let driver = |of: fn(&DriverSummary) -> f64| {
            move |link: &LinkResult| link.driver.as_ref().map_or(f64::NAN, of)
        };
        columns.add("loss_event_flows", |link| link.loss_event_flows);
        columns.add("loss_event_bulk_flows", |link| link.loss_event_bulk_flows);
        columns.add("driver_mean_s", driver(|driver| driver.times.mean()));
        let longest = |driver: &DriverSummary| match driver.times.count {
            0 => f64::NAN,
            _ => driver.times.max.as_secs_f64(),
        };
        columns.add("driver_max_s", driver(longest));
        columns.add("driver_max_bytes", driver(|driver| driver.max_bytes as f64));
        columns.0
    }
}

/// Counters of a link at the end of the warm-up, including the packet in transmission.
#[derive(Clone, Copy, Default)]
pub(super) struct LinkBefore {
    counts: Counts,
    way: PropagationCounts,
    /// True if grants have sent a part of a packet, which is in `counts` and not yet in `way`.
    sending: bool,
    /// Bytes offered.
    capacity: f64,
    /// Bits sent, if counted.
    used_bits: f64,
}

impl QueuedLink {
    /// Ends the warm-up: statistics count from now on.
    pub fn end_warmup(&mut self, now: Time) {
        let unsent = self.transmitter.unsent(now);
        self.probe.restart(now, self.queue.counted(), unsent);
        if let Some(egress) = &mut self.egress {
            egress.restart();
        }
        *self.before = LinkBefore {
            counts: self.begun_counts(),
            way: self.way(),
            sending: self.wire.unfinished().is_some(),
            capacity: self.capacity().bytes(now),
            used_bits: self.used_bits(now),
        };
    }

    /// Counts a packet that has just been sent as one of the warm-up, which sent a part of it.
    /// `losses` are those of the flows before it.
    pub(super) fn end_of_warmups_packet(&mut self, losses: Losses) {
        self.probe.losses = losses;
        let reordered = self.before.way.reordered;
        self.before.way = PropagationCounts { reordered, ..self.way() };
        self.before.sending = false;
    }

    /// Returns true while a packet of the warm-up is in transmission.
    #[inline(always)]
    pub(super) fn warmup_sends(&self) -> bool {
        self.before.sending
    }

    /// Returns the results from the end of the warm-up to `end`; call `Link::finish` before.
    ///
    /// # Panics
    /// Panics if Little's law does not hold: a bug.
    pub fn into_result(mut self, end: Time) -> LinkResult {
        let packets = self.take_records();
        let capacity = self.capacity().bytes(end) - self.before.capacity;
        let (counts, way) = self.measured(end);
        let result = LinkResult {
            counts,
            dropped_queued: self.probe.dropped_queued,
            backlog_mean: self.probe.backlog_mean(end, self.queue.counted()),
            // An end is rounded down to a nanosecond, and a negative overhead shrinks packets.
            capacity: capacity.max(counts.delivered_bytes as f64),
            loss_intervals: self.probe.loss_intervals(),
            utilisation: self.utilisation(end),
            way,
            sojourn: self.probe.sojourn.summary(),
            backlog_max: self.probe.backlog_max,
            driver: self.egress.as_ref().map(|egress| egress.summary),
            loss_events: self.probe.losses.events(),
            loss_event_flows: self.probe.losses.mean_flows(),
            loss_event_bulk_flows: self.probe.losses.mean_bulk_flows(),
            excursions: std::mem::take(&mut self.probe.excursions),
            packets,
        };
        self.assert_littles_law(end);
        result
    }

    /// Returns the counts from the end of the warm-up to `end`, of the queue and of the propagation.
    pub(crate) fn measured(&self, end: Time) -> (Counts, PropagationCounts) {
        let mut counts = self.begun_counts().since(&self.before.counts);
        let mut way = self.way();
        if counts.delivered > 0 {
            // Otherwise one transmission lasts from the end of the warm-up to that of the run.
            let sending = self.in_transmission(end);
            counts.delivered -= sending.packets;
            counts.delivered_bytes -= sending.bytes;
            way = self.way_at(end);
        }
        (counts, way.since(&self.before.way))
    }

    /// Returns the share of the offered capacity that packets used from the first packet (or the
    /// end of the warm-up) to `end`; with a constant rate, the share of the time.
    pub fn utilisation(&self, end: Time) -> f64 {
        match (self.meter(), self.probe.used_from()) {
            (Some(mut meter), Some(first)) => {
                let before = meter.bits(first);
                let offered = meter.bits(end + Span::from_nanos(1)) - before;
                let used = self.used_bits(end) - self.before.used_bits;
                if offered > 0.0 { (used / offered).min(1.0) } else { 0.0 }
            }
            _ => self.probe.utilisation(end, self.transmitter.unsent(end)),
        }
    }

    /// Returns the bits used by packets up to `now`, if counted.
    fn used_bits(&self, now: Time) -> f64 {
        self.wire.used_bits(now, self.transmitter.until())
    }
}
