//! CoDel: controlled delay.
//!
//! # Model
//! Packets are dropped (or marked) as they leave, once the time they spent
//! in the queue has stayed above `target` for `interval`, and then again at
//! times that come closer with the square root of the number of drops.
//!
//! # Sources
//! - RFC 8289, sections 5.2 to 5.6 (the pseudo-code).
//! - `variant = linux`: the arithmetic of Linux's qdisc, as recorded in the
//!   conformance vectors.
//! - `variant = ns2-2012`, `ns2-2013`: the ns-2 implementations of May 2012 and
//!   of 2013, as recorded in the conformance vectors.
//! - Järvinen and Kojo (2014), section VI, on the variants of the recall.
//!
//! # Differences
//! 1. `variant = no-recall` is nobody's default: it shows what the recall does.

use alloc::{boxed::Box, format, vec::Vec};

use aqmlab_core::{Bytes, Limit, Packet, Rate, Span, Time, choices, math, params};

use crate::discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, Note, QueueDiscipline};
use crate::fifo::{Fifo, Room};

choices! {
    /// With which `count` the dropping state begins when it was left not long
    /// ago; and, for other implementations than the RFC's, what else they do
    /// differently.
    pub enum Variant {
        /// RFC 8289: the drops of the last dropping state, within 16 intervals.
        Rfc8289 = "rfc8289",
        /// The same with Linux's arithmetic: a clock of 1024 ns and an inverse
        /// square root that takes one Newton step for each drop.
        Linux = "linux",
        /// ns-2 of May 2012: count - 1, within 16 intervals.
        Ns2Of2012 = "ns2-2012",
        /// ns-2 of 2013: count - 2, within 8 intervals; a shorter first wait.
        Ns2Of2013 = "ns2-2013",
        /// Always from 1.
        NoRecall = "no-recall",
    }
}

params! {
    /// Parameters of CoDel.
    pub struct CodelParams {
        /// The sojourn time that a queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "RFC 8289, section 4.4";
        /// How long it may be above the target; about the longest usual round-trip time.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8289, section 4.3";
        /// How much the queue holds.
        limit: Limit = Limit::Packets(1000), source "tc-codel(8)";
        /// How many bytes it holds at most besides; `none` for as many as `limit` lets.
        byte_limit: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1 << 40)),
            source "mahimahi, as for droptail";
        /// The count with which a dropping state begins soon after another.
        variant: Variant = Variant::Rfc8289, source "RFC 8289, section 5.5; Järvinen and Kojo, section VI";
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool = false, source "RFC 8289, section 5.5, comment; tc-codel(8)";
        /// Mark ECN-capable packets that waited longer than this; `none` for never.
        ce_threshold: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(100)),
            source "tc-codel(8)";
    }
}

impl Discipline for CodelParams {
    const NAME: &'static str = "codel";
    const SUMMARY: &'static str = "controlled delay: drops at dequeue while the delay stays high";

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        let law = Settings::new(self, env);
        Box::new(Codel {
            fifo: Fifo::default(),
            room: Room::new(self.limit, self.byte_limit, env),
            state: CodelState::new(&law),
            largest: law.smallest_backlog,
            law,
            sojourn: Span::ZERO,
            longest: Span::ZERO,
            target: self.target,
            link_rate: env.rate,
        })
    }
}

/// What the algorithm needs to know of the parameters, computed once; times
/// are those of [`Settings::clock`].
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    target: f64,
    interval: f64,
    variant: Variant,
    ecn: bool,
    ce_threshold: Option<f64>,
    /// A delay less than this is below every threshold, however the clock
    /// rounds: most packets need no more than this comparison. Nothing for
    /// variants that look at every packet.
    surely_short: Span,
    /// A queue that holds no more than this is never too long.
    pub smallest_backlog: u64,
    /// The queue is one of many, as ns-2's sfqCoDel has them.
    bucket: bool,
    /// One of many queues is compared with it by itself, and not all together.
    alone: bool,
}

impl Settings {
    pub fn new(params: &CodelParams, env: &LinkEnv) -> Self {
        // Linux's clock runs in units of 1024 ns: so do its parameters.
        let on_clock = |span: Span| match params.variant {
            Variant::Linux => (span.as_nanos() >> 10) as f64,
            _ => span.as_nanos() as f64 / 1e9,
        };
        let lowest = params.ce_threshold.map_or(params.target, |mark| mark.min(params.target));
        let learns = params.variant.learns();
        let surely_short = if learns { Span::ZERO } else { lowest };
        Settings {
            // Two units of Linux's clock are more than any rounding.
            surely_short: surely_short.saturating_sub(Span::from_nanos(2 * 1024)),
            target: on_clock(params.target),
            interval: on_clock(params.interval),
            variant: params.variant,
            ecn: params.ecn,
            ce_threshold: params.ce_threshold.map(on_clock),
            // ns-2 learns the largest packet, from 256 bytes.
            smallest_backlog: if learns { 256 } else { env.mtu.get() },
            bucket: false,
            alone: false,
        }
    }

    /// For one of many queues that is compared with a full packet by itself.
    pub fn alone(self, alone: bool) -> Self {
        Settings { alone, ..self }
    }

    /// For a bucket of ns-2's sfqCoDel: a large count does not decay, and a
    /// bucket found empty forgets nothing.
    pub fn in_a_bucket(self) -> Self {
        Settings { bucket: true, ..self }
    }

    /// The clock that the algorithm reads: Linux's units, which are whole
    /// numbers, or the seconds in floating point of ns-2 and the pseudo-code.
    #[inline]
    fn clock(&self, time: Time) -> f64 {
        match self.variant {
            Variant::Linux => (time.as_nanos() >> 10) as f64,
            _ => time.as_nanos() as f64 * 1e-9,
        }
    }

    /// See [`Variant::learns`].
    #[inline]
    fn learns(&self) -> bool {
        self.variant.learns()
    }
}

impl Variant {
    /// Whether the largest packet is learned from those that leave.
    #[inline]
    fn learns(self) -> bool {
        matches!(self, Variant::Ns2Of2012 | Variant::Ns2Of2013)
    }
}

/// Where CoDel takes its packets from: a queue of its own, or one of many.
pub(crate) trait Source<P> {
    /// The next packet.
    fn pop(&mut self) -> Option<P>;
    /// The backlog that is compared with the smallest, after the pop.
    fn backlog_bytes(&self) -> u64;
    /// Of it, what is in the queue at hand, if there are many.
    fn own_bytes(&self) -> u64 {
        self.backlog_bytes()
    }
    /// The largest packet seen, for variants that learn it.
    fn largest(&mut self) -> &mut u64;
}

/// The state of the algorithm (RFC 8289, section 5.3), over any storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodelState {
    /// When the delay will have been above target for an interval.
    first_above: Option<f64>,
    /// When the next packet is dropped.
    drop_next: Option<f64>,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// Linux's 1/sqrt(count) in units of 2^-16.
    inverse_sqrt: u16,
}

impl CodelState {
    pub fn new(law: &Settings) -> Self {
        // ns-2 begins as if the delay had been too long for ever: a first
        // packet that has waited (in a bucket, for others) is dropped.
        CodelState { first_above: law.learns().then_some(0.0), ..CodelState::default() }
    }

    /// So many packets were dropped because a buffer was full (RFC 8290,
    /// section 4.1.3, and Linux: they count).
    pub fn dropped_elsewhere(&mut self, packets: u64) {
        self.count = self.count.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
    }

    /// RFC 8289, section 5.6: takes a packet and sees whether the delay has
    /// been above target for long enough.
    fn take<P: Packet>(
        &mut self,
        law: &Settings,
        now: f64,
        source: &mut impl Source<P>,
    ) -> (Option<P>, bool) {
        match source.pop() {
            Some(packet) => {
                let ok_to_drop = self.is_ok_to_drop(law, now, &packet, source);
                (Some(packet), ok_to_drop)
            }
            None => {
                self.ran_empty(law);
                (None, false)
            }
        }
    }

    #[inline]
    fn ran_empty(&mut self, law: &Settings) {
        if !law.bucket {
            self.first_above = None;
        }
    }

    /// Whether the delay, of which `packet` is the sample, has been above
    /// target for long enough.
    #[inline]
    fn is_ok_to_drop<P: Packet>(
        &mut self,
        law: &Settings,
        now: f64,
        packet: &P,
        source: &mut impl Source<P>,
    ) -> bool {
        let sojourn = now - law.clock(packet.arrival());
        if law.learns() {
            let largest = source.largest();
            *largest = (*largest).max(u64::from(packet.size()));
        }
        let smallest = if law.learns() { *source.largest() } else { law.smallest_backlog };
        let backlog = if law.alone { source.own_bytes() } else { source.backlog_bytes() };
        self.is_long_above(law, now, sojourn, backlog <= smallest)
    }

    /// Whether the delay has been above target for long enough.
    #[inline]
    fn is_long_above(&mut self, law: &Settings, now: f64, delay: f64, is_small: bool) -> bool {
        if delay < law.target || is_small {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.first_wait(law, now));
                false
            }
            // Linux compares "later than", the others "not before".
            Some(first_above) if law.variant == Variant::Linux => now > first_above,
            Some(first_above) => now >= first_above,
        }
    }

    /// The decision at the other end of the queue, for `codel_dt`: whether a
    /// packet that arrives is dropped, by the delay that is predicted for it.
    pub fn drops_arrival(
        &mut self,
        law: &Settings,
        now: Time,
        delay: Span,
        is_small: bool,
    ) -> bool {
        let now = law.clock(now);
        if !self.is_long_above(law, now, delay.as_secs_f64(), is_small) {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            self.enter(law, now);
            return true;
        }
        // The time is set on entering the state, always.
        let due = self.drop_next.filter(|due| now >= *due);
        if let Some(due) = due {
            self.increment(law);
            self.drop_next = Some(self.control_law(law, due));
        }
        due.is_some()
    }

    /// How long the delay may be above target. ns-2's later version waits
    /// less when it left the dropping state within 8 intervals.
    fn first_wait(&self, law: &Settings, now: f64) -> f64 {
        let recent =
            law.variant == Variant::Ns2Of2013 && self.count > 1 && self.left_within(law, now, 8.0);
        if recent { over_sqrt(law.interval, self.count) } else { law.interval }
    }

    /// Whether the last drop was due less than so many intervals ago.
    fn left_within(&self, law: &Settings, now: f64, intervals: f64) -> bool {
        self.drop_next.is_some_and(|due| now - due < intervals * law.interval)
    }

    /// RFC 8289, section 5.4: when the next drop is due after `time`.
    fn control_law(&self, law: &Settings, time: f64) -> f64 {
        match law.variant {
            Variant::Linux => {
                let inverse = u64::from(self.inverse_sqrt) << 16;
                time + ((law.interval as u64 * inverse) >> 32) as f64
            }
            _ => time + over_sqrt(law.interval, self.count),
        }
    }

    /// Linux's Newton step towards 1/sqrt(count), in 32 bits as there.
    fn newton_step(&mut self) {
        let inverse = u64::from(self.inverse_sqrt) << 16;
        let square = (inverse * inverse) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.inverse_sqrt = (value.wrapping_mul(inverse) >> (32 - 2 + 1 + 16)) as u16;
    }

    fn increment(&mut self, law: &Settings) {
        self.count += 1;
        if law.variant == Variant::Linux {
            self.newton_step();
        }
    }

    /// RFC 8289, section 5.5: the packet that leaves now.
    #[inline]
    pub fn dequeue<P: Packet>(
        &mut self,
        law: &Settings,
        source: &mut impl Source<P>,
        cx: &mut Context<'_, P>,
    ) -> Option<P> {
        let Some(mut packet) = source.pop() else {
            self.ran_empty(law);
            self.dropping = false;
            return None;
        };
        if cx.now - packet.arrival() < law.surely_short {
            self.first_above = None;
            self.dropping = false;
            return Some(packet);
        }
        let now = law.clock(cx.now);
        if self.is_ok_to_drop(law, now, &packet, source) {
            packet = self.signal(law, now, packet, source, cx)?;
        } else {
            self.dropping = false;
        }
        self.ce_threshold(law, now, &mut packet, cx);
        Some(packet)
    }

    /// The delay has been above target for long enough: what leaves now.
    #[inline(never)]
    fn signal<P: Packet>(
        &mut self,
        law: &Settings,
        now: f64,
        mut packet: P,
        source: &mut impl Source<P>,
        cx: &mut Context<'_, P>,
    ) -> Option<P> {
        if self.dropping {
            return self.drop_while_due(law, now, packet, source, cx);
        }
        self.enter(law, now);
        if law.ecn && packet.ecn().is_capable() {
            cx.mark(&mut packet, DropReason::Codel);
            Some(packet)
        } else {
            cx.drop(packet, DropReason::Codel);
            self.take(law, now, source).0
        }
    }

    /// In the dropping state: drops whatever is due.
    fn drop_while_due<P: Packet>(
        &mut self,
        law: &Settings,
        now: f64,
        mut packet: P,
        source: &mut impl Source<P>,
        cx: &mut Context<'_, P>,
    ) -> Option<P> {
        // The time is set on entering the state, always.
        while let Some(due) = self.drop_next.filter(|due| self.dropping && now >= *due) {
            if law.variant != Variant::Ns2Of2013 {
                self.increment(law);
            }
            if law.ecn && packet.ecn().is_capable() {
                cx.mark(&mut packet, DropReason::Codel);
                self.drop_next = Some(self.control_law(law, due));
                return Some(packet);
            }
            cx.drop(packet, DropReason::Codel);
            let (next, ok_to_drop) = self.take(law, now, source);
            if ok_to_drop {
                if law.variant == Variant::Ns2Of2013 {
                    self.increment(law);
                }
                self.drop_next = Some(self.control_law(law, due));
            } else {
                self.dropping = false;
            }
            packet = next?;
        }
        Some(packet)
    }

    /// The dropping state begins: the count is recalled or starts from 1.
    fn enter(&mut self, law: &Settings, now: f64) {
        self.dropping = true;
        let count = self.count;
        let recalled = match law.variant {
            Variant::Rfc8289 | Variant::Linux => {
                let delta = count.wrapping_sub(self.last_count);
                (delta > 1 && self.left_within(law, now, 16.0)).then_some(delta)
            }
            Variant::Ns2Of2012 => {
                (count > 1 && self.left_within(law, now, 16.0)).then(|| count - 1)
            }
            Variant::Ns2Of2013 => {
                (count > 2 && self.left_within(law, now, 8.0)).then(|| match count - 2 {
                    high if high > 126 && !law.bucket => (0.9844 * f64::from(high + 2)) as u32,
                    low => low,
                })
            }
            Variant::NoRecall => None,
        };
        match recalled {
            Some(count) => {
                self.count = count;
                if law.variant == Variant::Linux {
                    self.newton_step();
                }
            }
            None => {
                self.count = 1;
                self.inverse_sqrt = u16::MAX;
            }
        }
        self.last_count = self.count;
        self.drop_next = Some(self.control_law(law, now));
    }

    #[inline]
    fn ce_threshold<P: Packet>(
        &self,
        law: &Settings,
        now: f64,
        packet: &mut P,
        cx: &mut Context<'_, P>,
    ) {
        if let Some(threshold) = law.ce_threshold
            && now - law.clock(packet.arrival()) > threshold
            && packet.ecn().is_capable()
        {
            cx.mark(packet, DropReason::Codel);
        }
    }

    /// What the state shows in recordings.
    pub fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("count", f64::from(self.count));
        see("dropping", f64::from(u8::from(self.dropping)));
    }
}

/// `interval / sqrt(count)`.
fn over_sqrt(interval: f64, count: u32) -> f64 {
    interval / math::sqrt(f64::from(count))
}

/// What a reader has to know where a full packet takes longer than the target
/// (RFC 8289, section 5.6, comment).
pub(crate) fn target_below_packet(target: Span, largest: u64, rate: Rate) -> Option<Note> {
    let packet = rate.transmission_time(Bytes::new(largest));
    (packet >= target).then(|| Note {
        id: "codel-target-below-packet",
        text: format!(
            "A packet of {largest} bytes takes {packet} on a link of {rate}, no less than CoDel's \
             target of {target}. There it is not the target that counts but the backlog: a queue \
             of one full packet is never too long, and a longer one always is. Delays stay above \
             the target."
        ),
    })
}

/// CoDel over one queue.
struct Codel<P> {
    fifo: Fifo<P>,
    room: Room,
    law: Settings,
    state: CodelState,
    largest: u64,
    /// The sojourn time of the last packet, and the longest.
    sojourn: Span,
    longest: Span,
    target: Span,
    link_rate: Rate,
}

/// The queue as a source, with what the variants learn of it.
struct Single<'a, P> {
    fifo: &'a mut Fifo<P>,
    largest: &'a mut u64,
}

impl<P: Packet> Source<P> for Single<'_, P> {
    #[inline]
    fn pop(&mut self) -> Option<P> {
        self.fifo.pop()
    }
    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.fifo.backlog().bytes
    }
    #[inline]
    fn largest(&mut self) -> &mut u64 {
        self.largest
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Codel<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        self.fifo.push_within(self.room, packet, cx);
    }
    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let mut source = Single { fifo: &mut self.fifo, largest: &mut self.largest };
        let packet = self.state.dequeue(&self.law, &mut source, cx);
        self.sojourn = packet.as_ref().map_or(Span::ZERO, |packet| cx.now - packet.arrival());
        self.longest = self.longest.max(self.sojourn);
        packet
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.state.observe(see);
        see("sojourn", self.sojourn.as_secs_f64());
    }
    fn notes(&self) -> Vec<Note> {
        let note = target_below_packet(self.target, self.largest, self.link_rate);
        note.filter(|_| self.longest > self.target).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Stream;

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env, run};

    /// The RFC's pseudo-code with delays of 10 ms, a packet a millisecond: the
    /// times, in ms, at which one is dropped.
    #[test]
    fn drops_come_closer_with_the_root_of_their_number() {
        let mut queue = Queue::new(CodelParams::default().build(&env()), Stream::from_state(1));
        let mut drops = Vec::new();
        for ms in 0..350 {
            let now = Time::ZERO + Span::from_millis(ms);
            queue.enqueue(TestPacket::of_flow(0), now);
            if ms >= 10 {
                queue.dequeue(now).unwrap();
                queue.take_dropped(|_, _| drops.push(ms));
            }
        }
        // Above the target at 10 ms, dropped an interval later, and then
        // after 100 / sqrt n ms: 210, 280.7, 338.4.
        assert_eq!(drops, [110, 210, 281, 339]);
    }

    #[test]
    fn a_target_below_a_packet_is_noted_if_it_was_exceeded() {
        // 1514 bytes take 6.056 ms at 2 Mbit/s.
        let env = LinkEnv { rate: Rate::from_bps(2_000_000), ..env() };
        for (micros, gap, noted) in [(6056, 5, true), (6057, 5, false), (6056, 12, false)] {
            let params = CodelParams { target: Span::from_micros(micros), ..Default::default() };
            let mut queue = Queue::new(params.build(&env), Stream::from_state(1));
            run(&mut queue, Span::from_millis(gap), 5);
            let has = queue.notes().iter().any(|note| note.id == "codel-target-below-packet");
            assert_eq!(has, noted, "{micros} us, {gap} ms");
        }
    }
}
