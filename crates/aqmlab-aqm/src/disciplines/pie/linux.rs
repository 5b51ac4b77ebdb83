//! PIE in Linux's integers: `variant = linux` of the discipline `pie`, and
//! what runs in each flow of `fq_pie`.
//!
//! # Sources
//! Linux's qdisc as recorded in the conformance vectors and their rules.
//!
//! # Differences
//! From RFC 8033, and in common with Linux:
//! 1. Time counts in ticks of 64 ns, the probability in units of 2^-56.
//! 2. The probability may exceed 1 (not with `linux-clamped`).
//! 3. The burst allowance shrinks by the time between departures.
//! 4. The delay is zero when the packet that leaves was the last, and the
//!    probability then decays by 1/64 instead of 2 %.
//! 5. A delay of more than 250 ms adds 2 % to the probability.
//! 6. Updates follow each other after `tupdate` in whole jiffies (of 1 ms, `CONFIG_HZ=1000`) and one
//!    more, since the kernel's timers never expire early: 16 ms by default.
//! 7. The packet that a TBF holds counts in the backlog (`qdisc_peek_dequeued`), though not in the
//!    delay.
//! 8. With `delay = rate`, 16 MiB of the backlog count as nothing: the estimate has 32 bits.
//!
//! From Linux:
//! 9. The first update is one period after the start, there 500 ms after the queue is made, which is
//!    usually long before packets arrive.
//! 10. With `delay = rate`, `dq_threshold` is a parameter; there it is fixed.

use alloc::vec::Vec;

use aqmlab_core::{Limit, Packet, Span, Time, math};

use crate::discipline::{Context, LinkEnv, Note, Reason};
use crate::disciplines::pie::{DelaySource, Memory, PieArithmetic, PieParams, no_rate_sample};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

/// Probability 1.
const ONE: u64 = u64::MAX >> 8;
const TICKS_PER_SEC: u64 = 1_000_000_000 >> 6;
/// Shift that keeps 8 binary places in a departure rate per tick.
const RATE_SHIFT: u32 = 8;
/// The delay above which the probability rises in any case.
const LONG_DELAY: u64 = 250_000_000 >> 6;

fn ticks(span: Span) -> u64 {
    span.as_nanos() >> 6
}
fn clock(time: Time) -> u64 {
    time.as_nanos() >> 6
}

/// The time between two ticks of the kernel's timers.
pub(crate) const JIFFY: Span = Span::from_millis(1);

/// Returns the period of a timer that sets itself to this time in jiffies (usecs_to_jiffies): it
/// expires at the next jiffy, or multiple of 8, 64, ... jiffies, after that (calc_wheel_index).
fn period(span: Span) -> Span {
    let jiffies = span.as_nanos().div_ceil(JIFFY.as_nanos());
    let mut shift = 0;
    while jiffies > 63 << shift {
        shift += 3;
    }
    JIFFY * (((jiffies >> shift) + 1) << shift)
}

/// Constants of a run.
#[derive(Clone, Debug)]
pub(crate) struct PieSettings {
    pub update_period: Span,
    target: u64,
    /// Per tick, before tuning.
    alpha: u64,
    beta: u64,
    mtu: u64,
    max_burst: u64,
    by_size: bool,
    ecn: bool,
    /// The probability up to which packets are marked.
    max_ecn: u64,
    /// The highest probability.
    most: u64,
    /// Bytes to measure the departure rate with; `None` for timestamps.
    dq_threshold: Option<u64>,
    /// Buckets that one run of the timer updates.
    pub buckets_at_once: u32,
}

impl PieSettings {
    pub fn new(params: &PieParams, env: &LinkEnv) -> Self {
        // Linux has weights in sixteenths.
        let weight = |value: f64| ((math::round(value * 16.0) as u64) * (ONE / TICKS_PER_SEC)) >> 4;
        let takes_rate = params.delay == DelaySource::Rate;
        PieSettings {
            update_period: params.tupdate,
            target: ticks(params.target),
            alpha: weight(params.alpha),
            beta: weight(params.beta),
            mtu: params.mean_packet.unwrap_or(env.mtu).get(),
            max_burst: ticks(params.max_burst),
            by_size: params.by_size,
            ecn: params.ecn,
            max_ecn: ONE / 10,
            most: match params.variant {
                PieArithmetic::LinuxClamped => ONE,
                _ => u64::MAX,
            },
            dq_threshold: takes_rate.then_some(params.dq_threshold.get()),
            buckets_at_once: u32::MAX,
        }
    }

    /// The settings of the qdiscs: timers count jiffies, and that of fq_pie (fq_pie_timer) updates
    /// 2048 buckets at once.
    pub fn of_linux(params: &PieParams, env: &LinkEnv) -> Self {
        let update_period = period(params.tupdate);
        PieSettings { update_period, buckets_at_once: 2048, ..Self::new(params, env) }
    }

    /// Packets are marked up to this probability, in percent.
    pub fn marking_up_to(mut self, percent: u64) -> Self {
        self.max_ecn = ONE / 100 * percent;
        self
    }
}

/// The state of one queue: of all packets, or of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieState {
    probability: u64,
    accumulated: u64,
    burst_allowance: u64,
    delay: u64,
    old_delay: u64,
    /// The last departure (timestamps) or the start of a measurement (rate).
    stamp: Option<u64>,
    /// Bytes that have left in the running measurement.
    measured: Option<u64>,
    rate: u64,
    ever_measured: bool,
}

impl PieState {
    pub fn new(settings: &PieSettings) -> Self {
        PieState {
            probability: 0,
            accumulated: 0,
            burst_allowance: settings.max_burst,
            delay: 0,
            old_delay: 0,
            stamp: None,
            measured: None,
            rate: 0,
            ever_measured: false,
        }
    }

    /// Lets an arriving packet in, marked or not, or drops it; `backlog` are
    /// the bytes before it.
    #[inline]
    pub fn admit(
        &mut self,
        settings: &PieSettings,
        packet: Packet,
        backlog: u64,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        self.admit_scaled(settings, packet, backlog, |p| p, cx)
    }

    /// The same for a packet whose drop probability is made of that of all.
    #[inline]
    pub fn admit_scaled(
        &mut self,
        settings: &PieSettings,
        mut packet: Packet,
        backlog: u64,
        scale: impl FnOnce(u64) -> u64,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        if self.is_chosen(settings, packet.size(), backlog, scale, cx) {
            let may_mark = settings.ecn && self.probability <= settings.max_ecn;
            if !(may_mark && packet.ecn().is_capable()) {
                self.accumulated = 0;
                cx.drop(packet, Reason::Pie);
                return None;
            }
            cx.mark(&mut packet, Reason::Pie);
        }
        Some(packet)
    }

    /// There was no room for an arriving packet.
    pub fn refused(&mut self) {
        self.accumulated = 0;
    }

    fn is_chosen(
        &mut self,
        settings: &PieSettings,
        size: u32,
        backlog: u64,
        scale: impl FnOnce(u64) -> u64,
        cx: &mut Context<'_>,
    ) -> bool {
        if self.burst_allowance > 0
            || (self.delay < settings.target / 2 && self.probability < ONE / 5)
            || backlog < 2 * settings.mtu
        {
            return false;
        }
        let size = u64::from(size);
        let p = match settings.by_size && size <= settings.mtu {
            true => size * (self.probability / settings.mtu),
            false => self.probability,
        };
        let p = scale(p);
        self.accumulated = if p == 0 { 0 } else { self.accumulated + p };
        if self.accumulated < ONE / 100 * 85 {
            return false;
        }
        if self.accumulated >= ONE / 2 * 17 {
            return true;
        }
        let low = u64::from(cx.random.next_u32());
        let high = u64::from(cx.random.next_u32());
        let chosen = (high << 32 | low) >> 8 < p;
        if chosen {
            self.accumulated = 0;
        }
        chosen
    }

    /// A packet has left and `backlog` bytes stay.
    #[inline]
    pub fn departed(&mut self, settings: &PieSettings, packet: &Packet, backlog: u64, now: Time) {
        let passed = self.time_passed(settings, packet, backlog, clock(now));
        self.burst_allowance = self.burst_allowance.saturating_sub(passed);
    }

    /// The time that reduces the burst allowance.
    fn time_passed(
        &mut self,
        settings: &PieSettings,
        packet: &Packet,
        backlog: u64,
        now: u64,
    ) -> u64 {
        let Some(threshold) = settings.dq_threshold else {
            self.delay = if backlog == 0 { 0 } else { now - clock(packet.arrival()) };
            let since = self.stamp.map_or(0, |stamp| now - stamp);
            self.stamp = Some(now);
            return u64::from(since as u32); // 32 bits there, 275 s
        };
        if backlog >= threshold && self.measured.is_none() {
            self.stamp = Some(now);
            self.measured = Some(0);
        }
        let Some(measured) = &mut self.measured else { return 0 };
        *measured += u64::from(packet.size());
        if *measured < threshold {
            return 0;
        }
        let lasted = now - self.stamp.expect("set with the measurement");
        if lasted == 0 {
            return 0;
        }
        let sample = (*measured << RATE_SHIFT) / lasted;
        self.rate = match self.rate {
            0 => sample,
            rate => rate - (rate >> 3) + (sample >> 3),
        };
        self.ever_measured = true;
        self.measured = (backlog >= threshold).then_some(0);
        if self.measured.is_some() {
            self.stamp = Some(now);
        }
        lasted
    }

    /// The drop probability.
    pub fn probability(&self) -> f64 {
        self.probability as f64 / ONE as f64
    }

    /// The weights' right shift while the probability is small.
    fn tuning(&self) -> u32 {
        if self.probability >= ONE / 10 {
            return 0;
        }
        let powers = [100, 1_000, 10_000, 100_000, 1_000_000];
        1 + 2 * powers.iter().filter(|power| self.probability < ONE / **power).count() as u32
    }

    /// The timer ran out: moves the probability.
    pub fn update(&mut self, settings: &PieSettings, backlog: u64) {
        let takes_rate = settings.dq_threshold.is_some();
        let (delay, old_delay) = if takes_rate {
            let scaled = u64::from((backlog as u32) << RATE_SHIFT); // 32 bits there
            (scaled.checked_div(self.rate).unwrap_or(0), self.delay)
        } else {
            (self.delay, self.old_delay)
        };
        let mut may_decay = delay != 0 || backlog == 0;
        let shift = self.tuning();
        let difference = |a: u64, b: u64| i128::from(a) - i128::from(b);
        let (alpha, beta) =
            (i128::from(settings.alpha >> shift), i128::from(settings.beta >> shift));
        let mut change =
            alpha * difference(delay, settings.target) + beta * difference(delay, old_delay);
        if change > i128::from(ONE / 50) && self.probability >= ONE / 10 {
            change = i128::from(ONE / 100 * 2);
        }
        if delay > LONG_DELAY {
            change += i128::from(ONE / 50);
        }
        let probability = i128::from(self.probability) + change;
        if probability > i128::from(settings.most) {
            // Where the variable wraps, Linux goes back to 1.
            self.probability = ONE;
            may_decay = false;
        } else {
            self.probability = u64::try_from(probability).unwrap_or(0);
        }
        if delay == 0 && old_delay == 0 && may_decay {
            self.probability -= self.probability / 64;
        }
        self.delay = delay;
        self.old_delay = if takes_rate { old_delay } else { delay };
        let calm = delay < settings.target / 2 && old_delay < settings.target / 2;
        if calm && self.probability == 0 && (!takes_rate || self.rate > 0) {
            let ever_measured = self.ever_measured;
            let (delay, old_delay) = (self.delay, self.old_delay);
            *self = PieState { delay, old_delay, ever_measured, ..Self::new(settings) };
        }
    }
}

/// The state machine of one queue.
#[derive(Clone)]
pub(crate) struct PieLinux {
    settings: PieSettings,
    state: PieState,
    next_update: Time,
    params: PieParams,
    env: LinkEnv,
    memory: Memory,
    /// Updates after which the probability was above 1, and all.
    above_one: u64,
    updates: u64,
}

impl Aqm for PieLinux {
    type Params = PieParams;

    fn new(params: &PieParams, env: &LinkEnv) -> OneQueue<Self> {
        let settings = PieSettings::of_linux(params, env);
        let pie = PieLinux {
            state: PieState::new(&settings),
            next_update: Time::ZERO + settings.update_period,
            settings,
            params: params.clone(),
            env: *env,
            memory: Memory::default(),
            above_one: 0,
            updates: 0,
        };
        OneQueue::new(QueueLimit::new(params.limit, params.byte_limit, env), pie)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.settings, self.params, self.env) = (new.settings, new.params, new.env);
    }

    fn admit(&mut self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let before = packet.ecn();
        let packet = self.state.admit(&self.settings, packet, fifo.backlog().bytes + cx.held, cx);
        let Some(packet) = packet else {
            let is_capable = self.settings.ecn && before.is_capable();
            self.memory.ecn_drops += u64::from(is_capable);
            return None;
        };
        self.memory.marks += u64::from(packet.ecn() != before);
        Some(packet)
    }

    fn refused(&mut self) {
        self.state.refused();
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop()?;
        self.memory.longest = self.memory.longest.max(cx.now - packet.arrival());
        self.state.departed(&self.settings, &packet, fifo.backlog().bytes, cx.now);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, fifo: &Fifo, cx: &mut Context<'_>) {
        self.next_update += self.settings.update_period;
        self.state.update(&self.settings, fifo.backlog().bytes + cx.held);
        self.updates += 1;
        self.above_one += u64::from(self.state.probability > ONE);
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SEC as f64;
        see("drop_probability", self.state.probability());
        see("delay_estimate", seconds(self.state.delay));
        see("burst_allowance", seconds(self.state.burst_allowance));
        see("accumulated", self.state.accumulated as f64 / ONE as f64);
        if self.settings.dq_threshold.is_some() {
            let per_tick = self.state.rate as f64 / f64::from(1 << RATE_SHIFT);
            see("departure_rate", per_tick * TICKS_PER_SEC as f64);
        }
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = self.memory.notes(&self.params, &self.env);
        if self.above_one * 100 > self.updates {
            notes.push(Note {
                id: "pie-probability-above-one",
                text:
                    "PIE's drop probability was above 1 for more than a hundredth of the time, as \
                       it may be in Linux: every packet was dropped, and still when there was no \
                       more reason to. `variant = linux-clamped` limits it to 1."
                        .into(),
            });
        }
        let takes_rate = self.settings.dq_threshold.is_some();
        if takes_rate && !self.state.ever_measured && self.memory.longest > self.params.target {
            let threshold = Limit::Bytes(self.params.dq_threshold);
            notes.push(no_rate_sample(threshold, None, self.env.rate));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Bytes, Ecn};

    use super::*;
    use crate::testing::{TestPacket, at, env, ids, queue_of, seen};

    fn settings(change: impl FnOnce(&mut PieParams)) -> PieSettings {
        let mut params = PieParams { variant: PieArithmetic::Linux, ..PieParams::default() };
        change(&mut params);
        PieSettings::new(&params, &env())
    }

    #[test]
    fn the_rate_is_averaged_by_eighths_in_units_of_bytes_per_tick() {
        let settings = settings(|params| {
            params.delay = DelaySource::Rate;
            params.dq_threshold = Bytes::new(3000);
        });
        let mut state = PieState::new(&settings);
        let packet = Packet::of_ecn(Ecn::NotEct);
        // A short queue measures nothing, and takes nothing off the allowance.
        state.departed(&settings, &packet, 1500, at(0));
        assert_eq!((state.rate, state.measured, state.ever_measured), (0, None, false));
        // The packet that starts a measurement counts in it: 3000 bytes in
        // 6 ms, which are 93750 ticks; 3000 * 256 / 93750 = 8.192.
        state.departed(&settings, &packet, 4500, at(10));
        assert_eq!(state.measured, Some(1500));
        state.departed(&settings, &packet, 3000, at(16));
        assert_eq!((state.rate, state.measured), (8, Some(0)));
        assert_eq!(state.burst_allowance, ticks(Span::from_millis(144)));
        // 4500 bytes at 8/256 per tick are 144000 ticks.
        state.update(&settings, 4500);
        assert_eq!(state.delay, 144_000);
        // The next one goes on: 3000 bytes in 12 ms, 4.096; 8 - 1 + 0 is 7.
        state.departed(&settings, &packet, 3000, at(22));
        state.departed(&settings, &packet, 2999, at(28));
        assert_eq!((state.rate, state.measured), (7, None));
        assert_eq!(state.burst_allowance, ticks(Span::from_millis(132)));
        // And one of no time at all waits for time to pass.
        state.departed(&settings, &packet, 9000, at(30));
        state.departed(&settings, &packet, 9000, at(30));
        assert_eq!((state.rate, state.measured), (7, Some(3000)));
    }

    #[test]
    fn the_estimate_from_the_rate_has_32_bits() {
        let settings = settings(|params| params.delay = DelaySource::Rate);
        let mut state = PieState { rate: 256, ..PieState::new(&settings) };
        for (backlog, delay) in [((1 << 24) - 1, (1 << 24) - 1), (1 << 24, 0), ((1 << 24) + 5, 5)] {
            state.update(&settings, backlog);
            assert_eq!(state.delay, delay);
        }
    }

    /// sch_pie.c: sch->qstats.backlog, with the packet that qdisc_peek_dequeued took.
    #[test]
    fn a_packet_that_a_tbf_holds_counts_in_the_backlog() {
        let params = PieParams { max_burst: Span::ZERO, ..PieParams::default() };
        let settings = PieSettings::of_linux(&params, &env());
        let fallen = ONE - settings.alpha * settings.target;
        for (held, dropped, left) in [(0, 0, fallen - fallen / 64), (1514, 1, fallen)] {
            let pie_at = |probability| {
                let mut pie = PieLinux::new(&params, &env());
                pie.aqm.state.probability = probability;
                let mut queue = queue_of(1, pie);
                queue.hold(held);
                queue
            };
            // Packets are dropped with two before them.
            let mut queue = pie_at(9 * ONE);
            (0..2).for_each(|_| queue.enqueue(Packet::new(1514, Ecn::NotEct), at(1)));
            assert_eq!(queue.backlog().packets, 2 - dropped);
            // The probability decays only while nothing waits.
            let mut queue = pie_at(ONE);
            queue.on_wakeup(at(15));
            assert_eq!(seen(&queue, "drop_probability"), left as f64 / ONE as f64);
        }
    }

    #[test]
    fn updates_come_a_jiffy_after_their_time() {
        let times = [(1, 2), (1000, 2), (1001, 3), (15_000, 16), (63_000, 64), (64_000, 72)];
        for (micros, millis) in times {
            let params = PieParams { tupdate: Span::from_micros(micros), ..PieParams::default() };
            let mut queue = queue_of(1, PieLinux::new(&params, &env()));
            queue.on_wakeup(at(millis));
            assert_eq!(queue.next_wakeup(), Some(at(2 * millis)), "{micros} us");
        }
    }

    #[test]
    fn a_probability_above_one_is_noted_unless_clamped() {
        for (variant, noted) in [(PieArithmetic::Linux, true), (PieArithmetic::LinuxClamped, false)]
        {
            let params = PieParams { variant, ..PieParams::default() };
            let mut pie = PieLinux::new(&params, &env());
            pie.aqm.state.probability = ONE - 1;
            (0..10).for_each(|_| pie.fifo.push(Packet::of_ecn(Ecn::NotEct)));
            let mut queue = queue_of(1, pie);
            queue.dequeue(at(400)).unwrap();
            queue.on_wakeup(at(400));
            assert_eq!(ids(&queue).contains(&"pie-probability-above-one"), noted);
        }
    }
}
