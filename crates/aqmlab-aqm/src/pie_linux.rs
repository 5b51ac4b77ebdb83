//! PIE in Linux's integers: `arithmetic = linux` of the discipline `pie`.
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
//!
//! From Linux:
//! 6. The first update is one period after the start, there after 500 ms.
//! 7. With `delay = rate`, `dq_threshold` is a parameter; there it is fixed.

use aqmlab_core::{Limit, Packet, Rate, Span, Time};

use crate::discipline::{Backlog, Context, DropReason, LinkEnv, Note, QueueDiscipline};
use crate::fifo::Fifo;
use crate::pie::{Arithmetic, DelaySource, PieParams, no_rate_sample};

/// Probability 1.
const ONE: u64 = u64::MAX >> 8;
const TICKS_PER_SEC: u64 = 1_000_000_000 >> 6;
/// What keeps 8 binary places in a departure rate per tick.
const RATE_SHIFT: u32 = 8;
/// The delay above which the probability rises in any case.
const LONG_DELAY: u64 = 250_000_000 >> 6;

fn ticks(span: Span) -> u64 {
    span.as_nanos() >> 6
}
fn clock(time: Time) -> u64 {
    time.as_nanos() >> 6
}

/// The state machine.
pub(crate) struct PieLinux<P> {
    fifo: Fifo<P>,
    limit: Limit,
    params: PieParams,
    target: u64,
    /// Per tick, before tuning.
    alpha: u64,
    beta: u64,
    mtu: u64,
    next_update: Time,
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
    longest: Span,
    link_rate: Rate,
}

impl<P: Packet> PieLinux<P> {
    pub fn new(params: &PieParams, env: &LinkEnv) -> Self {
        // Weights come in sixteenths there.
        let weight = |value: f64| (((value * 16.0).round() as u64) * (ONE / TICKS_PER_SEC)) >> 4;
        PieLinux {
            fifo: Fifo::default(),
            limit: params.limit.resolve(env.rate, env.base_rtt),
            target: ticks(params.target),
            alpha: weight(params.alpha),
            beta: weight(params.beta),
            mtu: params.mean_packet.unwrap_or(env.mtu).get(),
            next_update: Time::ZERO + params.tupdate,
            probability: 0,
            accumulated: 0,
            burst_allowance: ticks(params.max_burst),
            delay: 0,
            old_delay: 0,
            stamp: None,
            measured: None,
            rate: 0,
            ever_measured: false,
            longest: Span::ZERO,
            link_rate: env.rate,
            params: params.clone(),
        }
    }

    fn takes_rate(&self) -> bool {
        self.params.delay == DelaySource::Rate
    }

    fn is_chosen(&mut self, packet: &P, cx: &mut Context<'_, P>) -> bool {
        if self.burst_allowance > 0
            || (self.delay < self.target / 2 && self.probability < ONE / 5)
            || self.fifo.backlog().bytes < 2 * self.mtu
        {
            return false;
        }
        let size = u64::from(packet.size());
        let p = match self.params.by_size && size <= self.mtu {
            true => size * (self.probability / self.mtu),
            false => self.probability,
        };
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

    /// A packet has left: the time that reduces the burst allowance.
    fn departure(&mut self, now: u64, packet: &P) -> u64 {
        let backlog = self.fifo.backlog().bytes;
        if !self.takes_rate() {
            self.delay = if backlog == 0 { 0 } else { now - clock(packet.arrival()) };
            let since = self.stamp.map_or(0, |stamp| now - stamp);
            self.stamp = Some(now);
            return since;
        }
        let threshold = self.params.dq_threshold.get();
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
        self.stamp = Some(now);
        lasted
    }

    /// The weights' right shift while the probability is small.
    fn tuning(&self) -> u32 {
        if self.probability >= ONE / 10 {
            return 0;
        }
        let powers = [100, 1_000, 10_000, 100_000, 1_000_000];
        1 + 2 * powers.iter().filter(|power| self.probability < ONE / **power).count() as u32
    }

    fn update(&mut self) {
        let backlog = self.fifo.backlog().bytes;
        let (delay, old_delay) = if self.takes_rate() {
            ((backlog << RATE_SHIFT).checked_div(self.rate).unwrap_or(0), self.delay)
        } else {
            (self.delay, self.old_delay)
        };
        let mut may_decay = delay != 0 || backlog == 0;
        let shift = self.tuning();
        let difference = |a: u64, b: u64| i128::from(a) - i128::from(b);
        let (alpha, beta) = (i128::from(self.alpha >> shift), i128::from(self.beta >> shift));
        let mut change =
            alpha * difference(delay, self.target) + beta * difference(delay, old_delay);
        if change > i128::from(ONE / 50) && self.probability >= ONE / 10 {
            change = i128::from(ONE / 100 * 2);
        }
        if delay > LONG_DELAY {
            change += i128::from(ONE / 50);
        }
        let most = match self.params.arithmetic {
            Arithmetic::LinuxClamped => ONE,
            _ => u64::MAX,
        };
        let probability = i128::from(self.probability) + change;
        if probability > i128::from(most) {
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
        self.old_delay = delay;
        let calm = delay < self.target / 2 && old_delay < self.target / 2;
        if calm && self.probability == 0 && (!self.takes_rate() || self.rate > 0) {
            self.burst_allowance = ticks(self.params.max_burst);
            self.accumulated = 0;
            self.stamp = None;
            self.measured = None;
            self.rate = 0;
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for PieLinux<P> {
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.fifo.backlog();
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            self.accumulated = 0;
            cx.drop(packet, DropReason::Overlimit);
            return;
        }
        if self.is_chosen(&packet, cx) {
            let may_mark = self.params.ecn && self.probability <= ONE / 10;
            if !(may_mark && packet.ecn().is_capable()) {
                self.accumulated = 0;
                cx.drop(packet, DropReason::Pie);
                return;
            }
            cx.mark(&mut packet, DropReason::Pie);
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.fifo.pop()?;
        self.longest = self.longest.max(cx.now - packet.arrival());
        let passed = self.departure(clock(cx.now), &packet);
        self.burst_allowance = self.burst_allowance.saturating_sub(passed);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, _cx: &mut Context<'_, P>) {
        self.next_update += self.params.tupdate;
        self.update();
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SEC as f64;
        see("drop_probability", self.probability as f64 / ONE as f64);
        see("delay_estimate", seconds(self.delay));
        see("burst_allowance", seconds(self.burst_allowance));
    }

    fn notes(&self) -> Vec<Note> {
        if !self.takes_rate() || self.ever_measured || self.longest <= self.params.target {
            return Vec::new();
        }
        vec![no_rate_sample(Limit::Bytes(self.params.dq_threshold), None, self.link_rate)]
    }
}
