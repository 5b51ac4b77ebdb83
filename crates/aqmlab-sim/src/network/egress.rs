//! Shaper and driver between queue discipline and transmitter: one class of HTB or a TBF, and the
//! FIFO of the driver, which the discipline does not see.
//!
//! # Model
//! The driver takes packets from the queue while it has room. A packet occupies its room until it
//! has been sent and, if the device reports this in interrupts, until the next interrupt. A driver
//! with room for one packet has no effect. The shaper has two token buckets: `burst` filled at
//! `rate`, `cburst` filled at `ceil`. While one of them is in deficit, packets stay in the
//! discipline. A packet that enters the driver takes tokens for its size on the wire from both
//! buckets, which may become negative.
//!
//! A TBF takes the next packet from the discipline as soon as the one before has passed, and holds
//! it until both buckets have tokens for all of it; `burst` and `cburst` are their sizes, `ceil` is
//! its peak rate. A packet that finds a full bucket passes at once.
//!
//! # Sources
//! - tc-htb(8); Linux's sch_htb: `htb_class_mode`, `htb_dequeue_tree`, `htb_accnt_tokens` and
//!   `htb_accnt_ctokens` for a leaf class without a parent to borrow from;
//!   iproute2's q_htb.c for the default bursts.
//! - tc-tbf(8); `tbf_dequeue` and `qdisc_peek_dequeued` of Linux.
//! - Linux's dynamic queue limits ("BQL"): the limit of bytes in the driver grows when the device
//!   starved, and shrinks by the unused part.
//!
//! # Differences
//! 1. There is one class: no borrowing, no classification. `prio` and `quantum`, which share the
//!    rate among classes, have no effect.
//! 2. The buckets' arithmetic is exact: no rounding to ticks of 64 ns, and a deficit is not limited
//!    to 60 s.
//! 3. In Linux the packet that waits for tokens still counts towards the `limit` of the queue below
//!    the TBF, and in the backlog of all disciplines; here only in that of Linux's PIE. A packet
//!    larger than the bucket passes when that is full; Linux drops it.
//! 4. BQL processes interrupts at regular times after the first transmitted packet; a real device's
//!    interrupts depend on load.

use std::collections::VecDeque;

use aqmlab_aqm::Backlog;
use aqmlab_core::framing::CLASS_WORDS;
use aqmlab_core::time::NANOS_PER_SEC;
use aqmlab_core::words::{Dialect, Effect, Form, Word};
use aqmlab_core::{
    Bytes, Framing, FramingParams, Limit, Packet, Rate, Span, Time, choices, params,
};

use super::config::LinkConfig;
use super::occupancy::{Occupancy, Waits};
use super::probe::TimeSum;

choices! {
    /// Shapers of Linux.
    pub enum ShaperKind {
        /// One class of HTB: passes packets while it has tokens, and takes none before.
        Htb = "htb",
        /// TBF: takes a packet from the queue, and holds it until it has tokens for all of it.
        Tbf = "tbf",
    }
}

params! {
    /// Shaper between a queue and its link: one class of HTB, or a TBF.
    pub struct ShaperParams {
        /// Shaper of Linux.
        kind: ShaperKind = ShaperKind::Htb, source "tc-htb(8), tc-tbf(8)";
        /// Long-run rate of the class.
        rate: Rate, required "9500kbit",
            in Rate::from_bps(1) => Rate::from_bps(1_000_000_000_000_000),
            source "tc-htb(8), rate";
        /// Rate at which `burst` may be sent (TBF: `peakrate`); `none`: `rate`.
        ceil: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "tc-htb(8), ceil";
        /// Bytes that may be sent at `ceil` in excess of `rate`, and for a TBF the size of its
        /// bucket; `none`: 1600 bytes and those of 1 ns at `rate`.
        burst: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 30)),
            source "tc-htb(8), burst; iproute2's q_htb.c";
        /// Bytes that may be sent at the rate of the link in excess of `ceil` (TBF: `mtu`); `none`:
        /// 1600 bytes and those of 1 ns at `ceil`.
        cburst: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 30)),
            source "tc-htb(8), cburst; iproute2's q_htb.c";
        /// Whether the queue counts packets in the sizes of the shaper, as below a size table;
        /// else only the class does.
        stab: bool = false, source "tc-stab(8)";
    } with {
        /// Size of packets that the shaper counts.
        framing: FramingParams = FramingParams::default();
    } words TC
}

const ONE_CLASS: &str = "the shaper has one class";

/// Notations of tc-htb(8) for a class, and of tc-tbf(8).
const TC: &[Dialect] = &[HTB, TBF];

const BUCKET: &[Word] = &[
    Word::value("rate", "rate", Form::Rate),
    Word::value("burst", "burst", Form::Burst),
    Word::value("buffer", "burst", Form::Burst),
    Word::value("maxburst", "burst", Form::Burst),
];

const OWN_LIMIT: &str = "the queue of the link has the limit";

const TBF: Dialect = Dialect {
    kind: "tbf",
    source: "tc-tbf(8)",
    implies: &[("kind", "tbf")],
    always: &["rate"],
    words: &[
        BUCKET,
        &[
            Word::value("peakrate", "ceil", Form::Rate),
            Word::value("mtu", "cburst", Form::Burst),
            Word::value("minburst", "cburst", Form::Burst),
            Word::ignored("limit", true, OWN_LIMIT),
            Word::ignored("latency", true, OWN_LIMIT),
            Word::ignored("lat", true, OWN_LIMIT),
        ],
        CLASS_WORDS,
    ],
    ..Dialect::EMPTY
};

const HTB: Dialect = Dialect {
    kind: "htb",
    source: "tc-htb(8)",
    implies: &[("kind", "htb")],
    always: &["rate"],
    words: &[
        BUCKET,
        &[
            Word::value("ceil", "ceil", Form::Rate),
            Word::value("cburst", "cburst", Form::Burst),
            Word::value("cbuffer", "cburst", Form::Burst),
            Word::value("cmaxburst", "cburst", Form::Burst),
            Word::ignored("prio", true, ONE_CLASS),
            Word::ignored("quantum", true, ONE_CLASS),
            Word {
                word: "mtu",
                effect: Effect::Same {
                    form: Form::Plain,
                    value: "1600",
                    why: "tc's default; give burst and cburst instead",
                },
            },
        ],
        CLASS_WORDS,
    ],
    ..Dialect::EMPTY
};

params! {
    /// Driver with its own FIFO after the queue.
    pub struct DriverParams {
        /// Capacity, including the packet in transmission.
        limit: Limit = Limit::Packets(256), source "common ring size of Ethernet drivers";
        /// True if byte queue limits (BQL) keep only as many bytes as the device needs to stay
        /// busy.
        bql: bool = false, source "Linux, dynamic queue limits";
        /// Time from the first transmitted packet to the completion interrupt; 0s: immediate.
        interrupts: Span = Span::ZERO, in Span::ZERO => Span::from_secs(1),
            source "ethtool(8), tx-usecs";
    }
}

/// Token bucket, in units of a bit times the rate's nanosecond, so that no remainder is lost.
/// Negative tokens are a deficit.
#[derive(Clone, PartialEq)]
struct Bucket {
    rate: u64,
    full: i128,
    tokens: i128,
    updated: Time,
}

impl Bucket {
    const PER_BYTE: i128 = 8 * NANOS_PER_SEC as i128;
    /// tc's default `mtu` for the size of a bucket.
    const MTU: u64 = 1600;

    fn new(rate: Rate, size: Option<Bytes>) -> Self {
        let usual = || Self::MTU + rate.as_bps() / 8 / NANOS_PER_SEC;
        let full = size.map_or_else(usual, Bytes::get) as i128 * Self::PER_BYTE;
        Bucket { rate: rate.as_bps(), full, tokens: full, updated: Time::ZERO }
    }
    /// Returns the time until there are tokens for this many bytes, at most a full bucket. For none:
    /// until the end of the deficit.
    fn wait(&mut self, now: Time, bytes: u32) -> Span {
        let elapsed = now.saturating_since(self.updated).as_nanos();
        let fresh = i128::from(elapsed) * i128::from(self.rate) + self.tokens;
        self.tokens = fresh.min(self.full);
        self.updated = now;
        let needed = (i128::from(bytes) * Self::PER_BYTE).min(self.full);
        let deficit = (self.tokens - needed).min(0).unsigned_abs();
        Span::from_nanos(deficit.div_ceil(u128::from(self.rate)) as u64)
    }
    fn take(&mut self, bytes: u32) {
        self.tokens -= i128::from(bytes) * Self::PER_BYTE;
    }
}

/// Token buckets of `rate` and `ceil`.
#[derive(Clone)]
struct Shaper {
    kind: ShaperKind,
    buckets: Vec<Bucket>,
    framing: Framing,
    /// The packet that a TBF has taken from the queue.
    held: Option<Packet>,
}

impl Shaper {
    fn new(params: &ShaperParams) -> Self {
        let mut buckets = vec![
            Bucket::new(params.rate, params.burst),
            Bucket::new(params.ceil.unwrap_or(params.rate), params.cburst),
        ];
        if params.kind == ShaperKind::Tbf && params.ceil.is_none() {
            buckets.truncate(1);
        }
        buckets.dedup();
        Shaper { kind: params.kind, buckets, framing: params.framing.resolve(), held: None }
    }
    /// Returns the time until the held packet may pass, or without one any packet.
    fn wait(&mut self, now: Time) -> Span {
        let held = self.held.as_ref().map_or(0, |packet| self.framing.wire_size(packet.size()));
        let waits = self.buckets.iter_mut().map(|bucket| bucket.wait(now, held));
        waits.max().expect("a shaper has at least one bucket")
    }
    fn take(&mut self, size: u32) {
        let bytes = self.framing.wire_size(size);
        self.buckets.iter_mut().for_each(|bucket| bucket.take(bytes));
    }
}

/// Dynamic queue limits, in bytes.
#[derive(Clone, Default)]
struct DynamicLimit {
    limit: u64,
    queued: u64,
    completed: u64,
    /// Bytes of the packet queued last.
    packet: u64,
    /// State at the last interrupt: bytes queued, bytes over the limit, and `packet`.
    last_queued: u64,
    last_over: u64,
    last_packet: u64,
    /// Minimum of the unused bytes since the time in the next field.
    slack: Option<u64>,
    slack_since: Time,
}

impl DynamicLimit {
    /// Time for which bytes must be unused before the limit shrinks.
    const HOLD: Span = Span::from_secs(1);

    fn has_room(&self) -> bool {
        self.queued - self.completed <= self.limit
    }

    fn queue(&mut self, bytes: u64) {
        self.queued += bytes;
        self.packet = bytes;
    }

    /// Processes an interrupt that completes these bytes.
    fn complete(&mut self, now: Time, bytes: u64) {
        let done = self.completed + bytes;
        let over = (self.queued - self.completed).saturating_sub(self.limit);
        let last_done = done >= self.last_queued;
        let is_dry = done == self.queued;
        let before = self.limit;
        if (over > 0 && is_dry) || (self.last_over > 0 && last_done) {
            // The device starved while the queue was limited.
            self.limit += done.saturating_sub(self.last_queued) + self.last_over;
            self.slack = None;
            self.slack_since = now;
        } else if !is_dry && self.last_queued > self.completed && !last_done {
            // Busy all the time: anything beyond twice the completed bytes was unused, and so was
            // the part of the last packet within the limit.
            let of_packet = match self.last_over {
                0 => 0,
                over => self.last_packet.saturating_sub(over),
            };
            let spare = (self.limit + self.last_over).saturating_sub(2 * bytes).max(of_packet);
            let least = self.slack.map_or(spare, |slack| slack.min(spare));
            self.slack = Some(least);
            if now.saturating_since(self.slack_since) > Self::HOLD {
                self.limit -= least.min(self.limit);
                self.slack = None;
                self.slack_since = now;
            }
        }
        self.completed = done;
        self.last_queued = self.queued;
        self.last_over = if self.limit == before { over } else { 0 };
        self.last_packet = self.packet;
    }
}

/// Summary of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriverSummary {
    /// Times of packets in the driver, without their transmission.
    pub times: TimeSum,
    /// Largest number of bytes in the driver.
    pub max_bytes: u64,
}

/// Shaper and driver of a link.
#[derive(Clone)]
pub(crate) struct Egress {
    shaper: Option<Shaper>,
    limit: Limit,
    dynamic: Option<DynamicLimit>,
    interrupts: Span,
    /// FIFO of the driver.
    fifo: VecDeque<Packet>,
    /// Packets that occupy room in the driver: waiting, in transmission, or sent and not reported.
    room_taken: Backlog,
    /// Packets sent and not reported.
    sent: Backlog,
    /// Time of the next interrupt, if packets are to be reported.
    interrupt_at: Option<Time>,
    pub summary: DriverSummary,
    /// Packets passed to the transmitter since the start of the run.
    pub passed: Backlog,
    /// Packets in the driver's FIFO over time.
    occupancy: Occupancy,
    /// Times in the FIFO before the end of the warm-up.
    waits: Waits,
}

impl Egress {
    /// Creates the egress; `None` if the link has neither.
    pub fn new(link: &LinkConfig, base_rtt: Span) -> Option<Self> {
        if link.shaper.is_none() && link.driver.is_none() {
            return None;
        }
        let transparent = || DriverParams { limit: Limit::Packets(1), ..DriverParams::default() };
        let driver = link.driver.clone().unwrap_or_else(transparent);
        Some(Egress {
            shaper: link.shaper.as_ref().map(Shaper::new),
            limit: driver.limit.resolve(link.rate, base_rtt),
            dynamic: driver.bql.then(DynamicLimit::default),
            interrupts: driver.interrupts,
            fifo: VecDeque::new(),
            room_taken: Backlog::default(),
            sent: Backlog::default(),
            interrupt_at: None,
            summary: DriverSummary::default(),
            passed: Backlog::default(),
            occupancy: Occupancy::default(),
            waits: Waits::default(),
        })
    }

    /// Returns whether the driver has room for a packet. A limit in bytes is checked before the
    /// packet is known, like a device that stops its queue: it may be exceeded by one packet.
    pub fn has_room(&self) -> bool {
        let within = match self.limit {
            Limit::Packets(limit) => self.room_taken.packets < limit,
            Limit::Bytes(limit) => self.room_taken.bytes < limit.get(),
            Limit::Bdp(_) | Limit::Unlimited => true,
        };
        within && self.dynamic.as_ref().is_none_or(DynamicLimit::has_room)
    }

    /// Returns whether the shaper lets this queue be asked for a packet. HTB deactivates a class
    /// without packets, and calls no dequeue of an empty queue; without it, a discipline with an
    /// empty queue learns from the call that it is idle.
    pub fn may_take(&mut self, now: Time, queued: u64) -> bool {
        match &mut self.shaper {
            None => true,
            Some(shaper) if shaper.kind == ShaperKind::Tbf => shaper.held.is_none(),
            Some(shaper) => queued > 0 && shaper.wait(now) == Span::ZERO,
        }
    }

    /// Takes a packet from the queue: a TBF holds it, otherwise it enters the driver.
    pub fn push(&mut self, mut packet: Packet, now: Time) {
        self.occupancy.enter(now, packet.size());
        packet.set_arrival(now);
        match &mut self.shaper {
            Some(shaper) if shaper.kind == ShaperKind::Tbf => shaper.held = Some(packet),
            _ => self.enter(packet),
        }
    }

    /// Moves the packet that a TBF holds, if any, into the driver, and returns whether it may pass.
    pub fn release(&mut self, now: Time) -> bool {
        let Some(shaper) = &mut self.shaper else { return false };
        if shaper.held.is_none() || shaper.wait(now) > Span::ZERO {
            return false;
        }
        let held = shaper.held.take();
        held.map(|packet| self.enter(packet)).is_some()
    }

    /// Appends a packet to the driver's FIFO.
    fn enter(&mut self, packet: Packet) {
        if let Some(shaper) = &mut self.shaper {
            shaper.take(packet.size());
        }
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.queue(packet.size().into());
        }
        self.room_taken.packets += 1;
        self.room_taken.bytes += u64::from(packet.size());
        self.summary.max_bytes = self.summary.max_bytes.max(self.room_taken.bytes);
        self.fifo.push_back(packet);
    }

    /// Removes the next packet for the transmitter.
    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        let packet = self.fifo.pop_front()?;
        self.occupancy.leave(now, packet.size());
        self.summary.times.add(now - packet.arrival());
        self.passed.packets += 1;
        self.passed.bytes += u64::from(packet.size());
        Some(packet)
    }

    /// Ends the warm-up: the summary restarts.
    pub fn restart(&mut self) {
        self.waits.add_sum(self.summary.times.sum);
        let max_bytes = self.room_taken.bytes;
        self.summary = DriverSummary { max_bytes, ..DriverSummary::default() };
    }

    /// Checks Little's law in the driver at the end of a run.
    pub fn assert_littles_law(&self, end: Time, link: &str) {
        let mut waits = self.waits;
        waits.add_sum(self.summary.times.sum);
        let held = self.shaper.iter().filter_map(|shaper| shaper.held.as_ref());
        self.fifo.iter().chain(held).for_each(|packet| waits.add(end - packet.arrival()));
        let inside = Backlog { packets: self.waiting(), bytes: 0 };
        waits.assert_equal(self.occupancy.integral(end, inside)[0], link, "driver");
    }

    /// Records that a packet of this size has been sent.
    pub fn sent(&mut self, now: Time, size: u32) {
        self.sent.packets += 1;
        self.sent.bytes += u64::from(size);
        if self.interrupts == Span::ZERO {
            self.interrupt(now);
        } else {
            self.interrupt_at.get_or_insert(now + self.interrupts);
        }
    }

    fn interrupt(&mut self, now: Time) {
        let Backlog { packets, bytes } = std::mem::take(&mut self.sent);
        self.room_taken.packets -= packets;
        self.room_taken.bytes -= bytes;
        self.interrupt_at = None;
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.complete(now, bytes);
        }
    }

    /// Returns the time of the next interrupt or, if `queued` packets wait only for tokens, the end
    /// of the deficit.
    pub fn next_wakeup(&mut self, now: Time, queued: bool) -> Option<Time> {
        let has_room = self.has_room();
        let may_enter = |shaper: &&mut Shaper| has_room && (queued || shaper.held.is_some());
        let Some(shaper) = self.shaper.as_mut().filter(may_enter) else {
            return self.interrupt_at;
        };
        let tokens =
            Some(shaper.wait(now)).filter(|wait| *wait > Span::ZERO).map(|wait| now + wait);
        tokens.into_iter().chain(self.interrupt_at).min()
    }

    /// Handles the wake-up.
    pub fn on_wakeup(&mut self, now: Time) {
        if self.interrupt_at.is_some_and(|at| at <= now) {
            self.interrupt(now);
        }
    }

    /// Returns the number of packets waiting in shaper and driver.
    pub fn waiting(&self) -> u64 {
        self.fifo.len() as u64 + u64::from(self.held() > 0)
    }

    /// Returns the bytes of the packet that a TBF holds.
    pub fn held(&self) -> u64 {
        let held = self.shaper.as_ref().and_then(|shaper| shaper.held.as_ref());
        held.map_or(0, |packet| packet.size().into())
    }

    /// Reports the state that recordings contain.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("driver_bytes", self.room_taken.bytes as f64);
        if let Some(dynamic) = &self.dynamic {
            see("driver_limit_bytes", dynamic.limit as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Params;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For any times of polling, packets sent as early as possible leave at the exact rate,
        /// rounded up to a nanosecond.
        #[test]
        fn the_bucket_keeps_its_rate(
            rate in 1_000u64..10_000_000_000,
            sizes in prop::collection::vec(40u32..1500, 1..100),
        ) {
            let mut bucket = Bucket::new(Rate::from_bps(rate), Some(Bytes::new(1500)));
            let (mut now, mut sent) = (Time::ZERO, 0u128);
            for size in sizes {
                now += bucket.wait(now, 0);
                prop_assert_eq!(bucket.wait(now, 0), Span::ZERO);
                // The bucket was full at the start, and earlier packets are paid.
                let needed = sent.saturating_sub(1500) * Bucket::PER_BYTE as u128;
                let due = needed.div_ceil(u128::from(rate)) as u64;
                prop_assert!(now.as_nanos() >= due, "{now:?} before {due}");
                prop_assert!(now.as_nanos() <= due + 1, "{now:?} after {due}");
                bucket.take(size);
                sent += u128::from(size);
            }
        }
    }

    /// Returns the times in microseconds at which packets of these sizes pass, if all are present
    /// at time 0.
    fn passing(params: &[(&str, &str)], sizes: &[u32]) -> Vec<u64> {
        let table = params.iter().map(|(key, value)| (key.to_string(), (*value).into()));
        let params = ShaperParams::from_table(&table.collect()).unwrap();
        let mut shaper = Shaper::new(&params);
        let mut now = Time::ZERO;
        let pass = |size: &u32| {
            now += shaper.wait(now);
            shaper.take(*size);
            now.as_nanos() / 1000
        };
        sizes.iter().map(pass).collect()
    }

    /// 1600 bytes of credit: a packet passes while there is no deficit.
    #[test]
    fn a_class_passes_what_begins_before_its_deficit() {
        let rate = ("rate", "1mbit");
        assert_eq!(passing(&[rate], &[1500; 4]), [0, 0, 11_200, 23_200]);
        // The other bucket is emptied at ten times the rate.
        let ceil = [rate, ("burst", "6000b"), ("ceil", "10mbit")];
        assert_eq!(passing(&ceil, &[1500; 7]), [0, 0, 1120, 2320, 3520, 12_000, 24_000]);
        // 1500 bytes are 32 cells of 53.
        let cells = [rate, ("burst", "1b"), ("cburst", "1b"), ("link_layer", "pppoa-vcmux")];
        assert_eq!(passing(&cells, &[1500, 40, 1500]), [0, 13_560, 14_408]);
    }

    #[test]
    fn bursts_are_those_of_tc() {
        // `tc -d class show` of a class with a rate alone: burst 1600b cburst 1600b.
        let size = |rate: u64| Bucket::new(Rate::from_bps(rate), None).full / Bucket::PER_BYTE;
        assert_eq!([9_500_000, 8_000_000_000, 80_000_000_000].map(size), [1600, 1601, 1610]);
    }

    #[test]
    fn the_dynamic_limit_grows_when_the_device_ran_dry_and_gives_back_slack() {
        let mut limit = DynamicLimit { limit: 1000, ..DynamicLimit::default() };
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        // 1500 bytes were queued, more than allowed, and all were sent at once.
        limit.queued = 1500;
        assert!(!limit.has_room());
        limit.complete(at(1), 1500);
        assert_eq!(limit.limit, 2500, "all bytes sent since the last interrupt");
        // Always about 8000 bytes queued, of which 1500 are sent at a time.
        limit.limit = 10_000;
        limit.queued += 8000;
        for second in 2..4 {
            limit.queued += 1500;
            limit.complete(at(second), 1500);
        }
        assert_eq!(limit.limit, 3000, "twice the bytes sent between two interrupts");
    }

    /// `slack_last_objs` in Linux's lib/dynamic_queue_limits.c, computed manually.
    #[test]
    fn the_dynamic_limit_gives_back_the_part_of_a_packet_within_it() {
        let mut limit = DynamicLimit { limit: 2000, ..DynamicLimit::default() };
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        [1000, 1500].into_iter().for_each(|bytes| limit.queue(bytes));
        limit.complete(at(500), 100);
        // 2000 + 500 - 2 * 900 bytes are unused by the one rule, 1500 - 500 by the other.
        limit.complete(at(1500), 900);
        assert_eq!(limit.limit, 1000);
    }
}
