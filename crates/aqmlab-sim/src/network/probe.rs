//! What is measured at a link: streaming statistics in constant memory.

use aqmlab_aqm::{Backlog, Reason};
use aqmlab_core::{Bytes, Ecn, Span, Time};

use super::histogram::Histogram;
use super::losses::Losses;
use super::occupancy::{Occupancy, Waits};
use super::packet::NetworkPacket;
use super::records::Records;

/// Collects times: those in a queue of all packets that are sent, and others.
#[derive(Clone)]
pub struct TimeHistogram {
    histogram: Histogram,
    sum: u128,
    min: Span,
    max: Span,
}

/// Times summed up: those in a queue of all packets that were sent, or others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeSummary {
    /// How many.
    pub count: u64,
    /// Seconds; NaN without any, as are the quantiles.
    pub mean: f64,
    /// The values at [`QUANTILES`], in seconds.
    pub quantiles: [f64; QUANTILES.len()],
    /// The shortest; zero without any.
    pub min: Span,
    /// The longest.
    pub max: Span,
    /// The histogram: upper ends of buckets in nanoseconds, and counts. The
    /// buckets are the same in all runs, so histograms can be added up; a
    /// bucket's width is at most 0.1 % of its value.
    pub buckets: Vec<(u64, u64)>,
}

/// The quantiles in a summary.
pub const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// The name of a quantile: `p50`, `p99`, `p999`.
pub fn percentile(quantile: f64) -> String {
    format!("p{}", (quantile * 1000.0) / 10.0).replace('.', "")
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl TimeHistogram {
    /// Nothing recorded.
    pub fn new() -> Self {
        TimeHistogram { histogram: Histogram::default(), sum: 0, min: Span::MAX, max: Span::ZERO }
    }

    /// Records a time. For the paths that are not hot: the other is inlined once.
    #[inline(never)]
    pub fn note(&mut self, time: Span) {
        self.record(time);
    }

    /// Records a time as often as `count` says.
    pub fn note_many(&mut self, time: Span, count: u64) {
        self.sum += u128::from(time.as_nanos()) * u128::from(count);
        self.min = self.min.min(time);
        self.max = self.max.max(time);
        self.histogram.record_many(time.as_nanos(), count);
    }

    #[inline(always)]
    fn record(&mut self, sojourn: Span) {
        self.sum += u128::from(sojourn.as_nanos());
        self.min = self.min.min(sojourn);
        self.max = self.max.max(sojourn);
        self.histogram.record(sojourn.as_nanos());
    }

    /// How many, and their sum in seconds.
    pub fn total(&self) -> (u64, f64) {
        (self.count(), self.sum as f64 * 1e-9)
    }

    /// Adds all that another has recorded.
    pub fn add(&mut self, other: &TimeHistogram) {
        self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Packets recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean in seconds; NaN without packets.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count() as f64 * 1e-9
    }

    /// The longest.
    pub fn max(&self) -> Span {
        self.max
    }

    /// Quantiles, in seconds, of what was recorded after `before`, an earlier
    /// state of this; NaN if that is nothing.
    pub fn quantiles_since<const N: usize>(
        &self,
        before: &TimeHistogram,
        asked: [f64; N],
    ) -> [f64; N] {
        let since = self.histogram.since(&before.histogram).filter(|since| since.len() > 0);
        asked.map(|quantile| {
            since.as_ref().map_or(f64::NAN, |since| since.quantile(quantile) as f64 * 1e-9)
        })
    }

    /// What is left of it.
    pub fn summary(&self) -> TimeSummary {
        let count = self.count();
        let quantile = |quantile: f64| match count {
            0 => f64::NAN,
            // The histogram answers with the upper end of a bucket.
            _ => self.histogram.quantile(quantile).min(self.max.as_nanos()) as f64 * 1e-9,
        };
        TimeSummary {
            count,
            mean: self.mean(),
            quantiles: QUANTILES.map(quantile),
            min: if count == 0 { Span::ZERO } else { self.min },
            max: self.max,
            buckets: self.histogram.buckets().collect(),
        }
    }
}

/// The times during which the backlog stayed above a threshold.
#[derive(Clone, Debug)]
pub struct Excursions {
    /// The threshold; "above" is strictly more bytes than this.
    pub threshold: Bytes,
    /// How many times it was exceeded.
    pub count: u64,
    /// The longest time without a break.
    pub longest: Span,
    /// All together.
    pub total: Span,
    since: Option<Time>,
}

impl Excursions {
    fn new(threshold: Bytes) -> Self {
        Excursions { threshold, count: 0, longest: Span::ZERO, total: Span::ZERO, since: None }
    }
    /// Only what is above from now on counts.
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

/// What became of one packet at one link (recording level `packets`).
#[derive(Clone, Copy, Debug)]
pub struct PacketRecord {
    /// The flow, as an index over all flows.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it is an acknowledgement.
    pub is_ack: bool,
    /// When it came to the queue.
    pub arrival: Time,
    /// When it left, or was dropped.
    pub end: Time,
    /// Why it was dropped; `None` if it was sent.
    pub dropped: Option<Reason>,
    /// Whether it carried CE when it left.
    pub ce: bool,
}

/// Something that happened to a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketEvent {
    /// Time of the change.
    pub time: Time,
    /// When it came to the queue.
    pub arrival: Time,
    /// The flow, as an index over all flows.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it is an acknowledgement.
    pub is_ack: bool,
    /// Whether it carries CE.
    pub ce: bool,
    /// What happened.
    pub what: Happened,
}

/// What happens to a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It comes to the queue, which may drop it at once.
    Arrived,
    /// It leaves the queue for the transmitter.
    Left,
    /// It is dropped.
    Dropped(Reason),
}

/// The probe at one link.
pub(crate) struct LinkProbe {
    pub sojourn: TimeHistogram,
    pub backlog_max: Backlog,
    /// The backlog over time, and its integral up to `measured_from`.
    occupancy: Occupancy,
    integral_before: [i128; 2],
    /// The times in the queue of packets that were dropped, or left before `measured_from`.
    waits: Waits,
    /// What is counted here counts from then on: the end of the warm-up.
    measured_from: Time,
    pub first_arrival: Option<Time>,
    /// When the discipline gave its first signal, and when a packet was first
    /// dropped for want of room.
    pub first_signal: Option<Time>,
    pub first_overflow: Option<Time>,
    /// The longest time in queue since the last sample of the series.
    pub recent_max: Span,
    /// ECN-capable packets that were dropped for a signal.
    pub capable_dropped: u64,
    /// Packets dropped that had been in the queue, not on their arrival.
    pub dropped_queued: u64,
    pub losses: Losses,
    /// When the last packet was dropped, and the times between two drops; made
    /// at the first.
    drops: Option<Box<(Time, TimeHistogram)>>,
    pub busy: Span,
    pub excursions: Vec<Excursions>,
    pub packets: Option<Records>,
    /// What happens to each packet, for those who watch a run.
    pub watched: Option<Vec<PacketEvent>>,
}

impl LinkProbe {
    /// `base_rtt` is the longest round-trip time without queues over the link.
    pub fn new(thresholds: &[Bytes], base_rtt: Span, record_packets: bool) -> Self {
        LinkProbe {
            sojourn: TimeHistogram::new(),
            backlog_max: Backlog::default(),
            occupancy: Occupancy::default(),
            integral_before: [0; 2],
            waits: Waits::default(),
            measured_from: Time::ZERO,
            first_arrival: None,
            first_signal: None,
            first_overflow: None,
            recent_max: Span::ZERO,
            capable_dropped: 0,
            dropped_queued: 0,
            losses: Losses::new(base_rtt),
            drops: None,
            busy: Span::ZERO,
            excursions: thresholds.iter().copied().map(Excursions::new).collect(),
            packets: record_packets.then(Records::default),
            watched: None,
        }
    }

    /// A packet arrives, and enters the queue unless it [passes](Self::passed).
    #[inline]
    pub fn arrived(&mut self, now: Time, packet: &impl NetworkPacket) {
        if self.watched.is_some() {
            self.watch(now, now, packet, Happened::Arrived);
        }
    }

    #[inline(never)]
    fn watch(&mut self, now: Time, arrival: Time, packet: &impl NetworkPacket, what: Happened) {
        if let Some(watched) = &mut self.watched {
            watched.push(PacketEvent {
                time: now,
                arrival,
                flow: packet.flow(),
                size: packet.size(),
                is_ack: packet.is_ack(),
                ce: packet.ecn() == Ecn::Ce,
                what,
            });
        }
    }

    /// A packet of this size enters the queue.
    #[inline(always)]
    pub fn entered(&mut self, now: Time, size: u32) {
        self.occupancy.enter(now, size);
    }

    /// A packet of size `entering` enters the queue, and at the same time `leaving` leaves it.
    #[inline(always)]
    pub fn passed(&mut self, now: Time, entering: u32, leaving: &Option<impl NetworkPacket>) {
        match leaving {
            Some(packet) => {
                self.occupancy.exchange(now, entering, packet.size());
                self.departure(now, packet);
            }
            None => self.occupancy.enter(now, entering),
        }
    }

    /// The backlog after an arrival, or after another change that may add to it. A packet that is
    /// sent at once has not been in it.
    #[inline]
    pub fn backlog(&mut self, now: Time, backlog: Backlog) {
        self.backlog_max.packets = self.backlog_max.packets.max(backlog.packets);
        self.backlog_max.bytes = self.backlog_max.bytes.max(backlog.bytes);
        self.shrunk(now, backlog);
    }

    /// The backlog after packets left.
    #[inline(always)]
    pub fn shrunk(&mut self, now: Time, backlog: Backlog) {
        for excursions in &mut self.excursions {
            excursions.update(now, backlog.bytes);
        }
    }

    /// A packet leaves the queue.
    #[inline(always)]
    pub fn left(&mut self, now: Time, packet: &impl NetworkPacket) {
        self.occupancy.leave(now, packet.size());
        self.departure(now, packet);
    }

    /// Packets vanish with a discipline that is replaced.
    pub fn abandoned(&mut self, now: Time, gone: Backlog) {
        self.occupancy.leave_all(now, gone);
        self.waits.add_unknown(gone.packets, now);
    }

    /// Statistics of a packet that leaves the queue.
    #[inline(always)]
    fn departure(&mut self, now: Time, packet: &impl NetworkPacket) {
        self.first_arrival.get_or_insert(packet.arrival());
        let sojourn = now - packet.arrival();
        self.sojourn.record(sojourn);
        self.recent_max = self.recent_max.max(sojourn);
        if packet.ecn() == Ecn::Ce {
            self.first_signal.get_or_insert(now);
        }
        self.record(now, packet, None);
    }

    /// A packet was dropped.
    pub fn dropped(&mut self, now: Time, packet: &impl NetworkPacket, reason: Reason) {
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

    #[inline]
    fn record(&mut self, now: Time, packet: &impl NetworkPacket, dropped: Option<Reason>) {
        if self.watched.is_some() {
            let what = dropped.map_or(Happened::Left, Happened::Dropped);
            self.watch(now, packet.arrival(), packet, what);
        }
        if let Some(packets) = &mut self.packets {
            packets.push(PacketRecord {
                flow: packet.flow(),
                size: packet.size(),
                is_ack: packet.is_ack(),
                arrival: packet.arrival(),
                end: now,
                dropped,
                ce: packet.ecn() == Ecn::Ce,
            });
        }
    }

    /// The warm-up is over: all begins again but what was the first of its kind. The packet on
    /// the transmitter takes `sending` from now on.
    pub fn restart(&mut self, now: Time, backlog: Backlog, sending: Span) {
        self.integral_before = self.occupancy.integral(now, backlog);
        self.backlog_max = backlog;
        self.measured_from = now;
        self.waits.add_sum(self.sojourn.sum);
        self.sojourn = TimeHistogram::new();
        self.losses.restart();
        self.drops = None;
        self.dropped_queued = 0;
        self.busy = sending;
        self.excursions.iter_mut().for_each(|excursions| excursions.restart(now));
    }

    /// When the time began for which the link's use is stated: with its first packet, or with
    /// the end of the warm-up; `None` if no packet has come.
    pub fn used_from(&self) -> Option<Time> {
        self.first_arrival.map(|first| first.max(self.measured_from))
    }

    /// The run is over: closes what is still open.
    pub fn finish(&mut self, end: Time) {
        for excursions in &mut self.excursions {
            excursions.update(end, 0);
        }
    }

    /// Mean backlog from the end of the warm-up to `end`, in packets and in bytes.
    pub fn backlog_mean(&self, end: Time, backlog: Backlog) -> [f64; 2] {
        let lasted = end.saturating_since(self.measured_from).as_nanos().max(1);
        let integral = self.occupancy.integral(end, backlog);
        [0, 1].map(|of| (integral[of] - self.integral_before[of]) as f64 / lasted as f64)
    }

    /// Checks Little's law at the end of a run, with the times of the packets that are still in the
    /// queue, `backlog`.
    pub fn assert_littles_law(&self, end: Time, backlog: Backlog, inside: Waits, link: &str) {
        let mut waits = inside;
        waits.add_all(self.waits);
        waits.add_sum(self.sojourn.sum);
        waits.assert_equal(self.occupancy.integral(end, backlog)[0], link, "queue");
    }

    /// The times from one drop to the next.
    pub fn loss_intervals(&self) -> TimeSummary {
        match &self.drops {
            Some(drops) => drops.1.summary(),
            None => TimeHistogram::new().summary(),
        }
    }

    /// Share of the time from [`used_from`](Self::used_from) to `end` in which the transmitter was
    /// busy, without the last `unsent` of its transmission.
    pub fn utilisation(&self, end: Time, unsent: Span) -> f64 {
        let Some(first) = self.used_from() else { return 0.0 };
        let span = end.saturating_since(first).as_nanos();
        (self.busy - unsent).as_nanos() as f64 / span.max(1) as f64
    }
}
