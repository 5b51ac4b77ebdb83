//! Measurements at a link: sojourn times, backlog and counts, in constant memory.

use aqmlab_aqm::{Backlog, Reason};
use aqmlab_core::{Bytes, Ecn, Packet, Span, Time};

pub use super::histogram::{QUANTILES, TimeHistogram, TimeSum, TimeSummary, percentile};
use super::losses::Losses;
use super::occupancy::{Occupancy, Waits};
use super::records::Records;

/// Intervals during which the backlog exceeded a threshold.
#[derive(Clone, Debug)]
pub struct Excursions {
    /// Threshold; exceeded by strictly more bytes.
    pub threshold: Bytes,
    /// Number of intervals.
    pub count: u64,
    /// Longest interval.
    pub longest: Span,
    /// Total duration.
    pub total: Span,
    since: Option<Time>,
}

impl Excursions {
    fn new(threshold: Bytes) -> Self {
        Excursions { threshold, count: 0, longest: Span::ZERO, total: Span::ZERO, since: None }
    }
    /// Restarts the counts; an interval in progress continues.
    fn restart(&mut self, now: Time) {
        let since = self.since.map(|_| now);
        *self =
            Excursions { count: u64::from(since.is_some()), since, ..Self::new(self.threshold) };
    }
    #[inline]
    fn update(&mut self, now: Time, bytes: u64) {
        let above = bytes > self.threshold.get();
        match self.since {
            None if above => {
                self.since = Some(now);
                self.count += 1;
            }
            Some(since) if !above => {
                self.since = None;
                self.longest = self.longest.max(now - since);
                self.total += now - since;
            }
            _ => {}
        }
    }
}

/// Record of a packet at a link (recording level `packets`).
#[derive(Clone, Copy, Debug)]
pub struct PacketRecord {
    /// Flow, by index over all flows.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// True for an acknowledgement.
    pub is_ack: bool,
    /// Arrival at the queue.
    pub arrival: Time,
    /// Departure from the queue, or drop.
    pub end: Time,
    /// Reason of the drop; `None` if it was sent.
    pub dropped: Option<Reason>,
    /// True if it carried CE when it left.
    pub ce: bool,
}

/// Event of a packet at a link.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvent {
    /// True if the packet arrives at the queue, which may drop it at once; otherwise it leaves the
    /// queue for the transmitter, or is dropped.
    pub arrives: bool,
    /// Packet, whose end is the time of the event.
    pub packet: PacketRecord,
}

/// Probe of a link.
#[derive(Clone, Default)]
pub(crate) struct LinkProbe {
    pub sojourn: TimeHistogram,
    pub backlog_max: Backlog,
    /// Backlog over time, and its integral up to `measured_from`.
    occupancy: Occupancy,
    integral_before: [i128; 2],
    /// Sojourn times of packets that were dropped, or left before `measured_from`.
    waits: Waits,
    /// Start of the counts: the end of the warm-up.
    measured_from: Time,
    pub first_arrival: Option<Time>,
    /// Times of the discipline's first signal, and of the first drop due to a full buffer.
    pub first_signal: Option<Time>,
    pub first_overflow: Option<Time>,
    /// Longest sojourn time since the last sample of the series.
    pub recent_max: Span,
    /// Number of ECN-capable packets dropped as a signal.
    pub capable_dropped: u64,
    /// Number of packets dropped from the queue, not on arrival.
    pub dropped_queued: u64,
    pub losses: Losses,
    /// Time of the last drop, and intervals between drops; allocated at the first drop.
    drops: Option<Box<(Time, TimeHistogram)>>,
    pub busy: Span,
    pub excursions: Vec<Excursions>,
    pub packets: Option<Records>,
    /// Events of packets, for observers of a run.
    pub watched: Option<Vec<PacketEvent>>,
}

impl LinkProbe {
    /// Creates a probe; `base_rtt` is the longest base round-trip time over the link.
    pub fn new(thresholds: &[Bytes], base_rtt: Span, record_packets: bool) -> Self {
        LinkProbe {
            losses: Losses::new(base_rtt),
            excursions: thresholds.iter().copied().map(Excursions::new).collect(),
            packets: record_packets.then(Records::default),
            ..LinkProbe::default()
        }
    }

    /// Records an arrival; the packet enters the queue unless it [passes](Self::passed).
    #[inline]
    pub fn arrived(&mut self, now: Time, packet: &Packet) {
        if self.watched.is_some() {
            self.observe(now, packet, true, None);
        }
    }

    #[inline(never)]
    fn observe(&mut self, now: Time, packet: &Packet, arrives: bool, dropped: Option<Reason>) {
        let record = PacketRecord {
            flow: packet.flow,
            size: packet.size(),
            is_ack: packet.is_ack(),
            arrival: packet.arrival(),
            end: now,
            dropped,
            ce: packet.ecn() == Ecn::Ce,
        };
        if let Some(watched) = &mut self.watched {
            watched.push(PacketEvent { arrives, packet: record });
        }
        if let Some(packets) = self.packets.as_mut().filter(|_| !arrives) {
            packets.push(record);
        }
    }

    /// Records that a packet of this size enters the queue.
    #[inline(always)]
    pub fn entered(&mut self, now: Time, size: u32) {
        self.occupancy.enter(now, size);
    }

    /// Records that a packet of size `entering` enters the queue while one of size `leaving`
    /// leaves.
    #[inline(always)]
    pub fn passed(&mut self, now: Time, entering: u32, leaving: &Option<Packet>) {
        match leaving {
            Some(packet) => {
                self.occupancy.exchange(now, entering, packet.size());
                self.departure(now, packet);
            }
            None => self.occupancy.enter(now, entering),
        }
    }

    /// Updates the maximum backlog after an arrival, or another change that may increase it.
    /// Packets sent at once are not part of the backlog.
    #[inline]
    pub fn backlog(&mut self, now: Time, backlog: Backlog) {
        self.backlog_max.packets = self.backlog_max.packets.max(backlog.packets);
        self.backlog_max.bytes = self.backlog_max.bytes.max(backlog.bytes);
        self.shrunk(now, backlog);
    }

    /// Updates the backlog after departures.
    #[inline(always)]
    pub fn shrunk(&mut self, now: Time, backlog: Backlog) {
        for excursions in &mut self.excursions {
            excursions.update(now, backlog.bytes);
        }
    }

    /// Records that a packet leaves the queue.
    #[inline(always)]
    pub fn left(&mut self, now: Time, packet: &Packet) {
        self.occupancy.leave(now, packet.size());
        self.departure(now, packet);
    }

    /// Records packets that were removed with a replaced discipline.
    pub fn abandoned(&mut self, now: Time, gone: Backlog) {
        self.occupancy.leave_all(now, gone);
        self.waits.add_unknown(gone.packets, now);
    }

    /// Updates the statistics of a packet that leaves the queue, or passes it at once.
    #[inline(always)]
    pub fn departure(&mut self, now: Time, packet: &Packet) {
        self.first_arrival.get_or_insert(packet.arrival());
        let sojourn = now - packet.arrival();
        self.sojourn.note_many(sojourn, 1);
        self.recent_max = self.recent_max.max(sojourn);
        if packet.ecn() == Ecn::Ce {
            self.first_signal.get_or_insert(now);
        }
        self.record(now, packet, None);
    }

    /// Records a drop.
    pub fn dropped(&mut self, now: Time, packet: &Packet, reason: Reason) {
        if reason.is_signal() {
            self.first_signal.get_or_insert(now);
            self.capable_dropped += u64::from(packet.ecn().is_capable());
        } else {
            self.first_overflow.get_or_insert(now);
        }
        self.occupancy.leave(now, packet.size());
        self.waits.add(now - packet.arrival());
        self.dropped_queued += u64::from(packet.arrival() < now);
        self.losses.dropped(now, packet);
        match &mut self.drops {
            Some(drops) => {
                drops.1.note(now - drops.0);
                drops.0 = now;
            }
            None => self.drops = Some(Box::new((now, TimeHistogram::new()))),
        }
        self.record(now, packet, Some(reason));
    }

    #[inline]
    pub fn transmission(&mut self, duration: Span) {
        self.busy += duration;
    }

    #[inline(always)]
    fn record(&mut self, now: Time, packet: &Packet, dropped: Option<Reason>) {
        if self.watched.is_some() || self.packets.is_some() {
            self.observe(now, packet, false, dropped);
        }
    }

    /// Ends the warm-up: restarts all statistics other than times of first events. The packet in
    /// transmission takes `sending` from now on.
    pub fn restart(&mut self, now: Time, backlog: Backlog, sending: Span) {
        self.integral_before = self.occupancy.integral(now, backlog);
        self.backlog_max = backlog;
        self.measured_from = now;
        self.waits.add_sum(self.sojourn.sum);
        self.sojourn = TimeHistogram::new();
        self.losses.restart();
        self.drops = None;
        (self.dropped_queued, self.capable_dropped) = (0, 0);
        self.busy = sending;
        self.excursions.iter_mut().for_each(|excursions| excursions.restart(now));
    }

    /// Returns the start of the interval for utilisation: the first packet or the end of the
    /// warm-up; `None` without packets.
    pub fn used_from(&self) -> Option<Time> {
        self.first_arrival.map(|first| first.max(self.measured_from))
    }

    /// Finalises the statistics at the end of the run.
    pub fn finish(&mut self, end: Time) {
        for excursions in &mut self.excursions {
            excursions.update(end, 0);
        }
    }

    /// Returns the mean backlog from the end of the warm-up to `end`, in packets and in bytes.
    pub fn backlog_mean(&self, end: Time, backlog: Backlog) -> [f64; 2] {
        let lasted = end.saturating_since(self.measured_from).as_nanos().max(1);
        let integral = self.occupancy.integral(end, backlog);
        [0, 1].map(|of| (integral[of] - self.integral_before[of]) as f64 / lasted as f64)
    }

    /// Checks Little's law at the end of a run; `inside` are the sojourn times of the packets still
    /// in the queue, `backlog`.
    pub fn assert_littles_law(&self, end: Time, backlog: Backlog, inside: Waits, link: &str) {
        let mut waits = inside;
        waits.add_all(self.waits);
        waits.add_sum(self.sojourn.sum);
        waits.assert_equal(self.occupancy.integral(end, backlog)[0], link, "queue");
    }

    /// Returns the intervals between drops.
    pub fn loss_intervals(&self) -> TimeSummary {
        match &self.drops {
            Some(drops) => drops.1.summary(),
            None => TimeHistogram::new().summary(),
        }
    }

    /// Returns the share of the time from [`used_from`](Self::used_from) to `end` in which the
    /// transmitter was busy, without the last `unsent` of its transmission.
    pub fn utilisation(&self, end: Time, unsent: Span) -> f64 {
        let Some(first) = self.used_from() else { return 0.0 };
        let span = end.saturating_since(first).as_nanos();
        (self.busy - unsent).as_nanos() as f64 / span.max(1) as f64
    }
}
