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
//!
//! From Linux:
//! 6. The first update is one period after the start, there after 500 ms.
//! 7. With `delay = rate`, `dq_threshold` is a parameter; there it is fixed.

use aqmlab_core::{Limit, Packet, Rate, Span, Time};

use crate::discipline::{Backlog, Context, DropReason, LinkEnv, Note, QueueDiscipline};
use crate::disciplines::pie::{DelaySource, PieParams, Variant, no_rate_sample};
use crate::fifo::Fifo;

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

/// What does not change during a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
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
}

impl Settings {
    pub fn new(params: &PieParams, env: &LinkEnv) -> Self {
        // Weights come in sixteenths there.
        let weight = |value: f64| (((value * 16.0).round() as u64) * (ONE / TICKS_PER_SEC)) >> 4;
        let takes_rate = params.delay == DelaySource::Rate;
        Settings {
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
                Variant::LinuxClamped => ONE,
                _ => u64::MAX,
            },
            dq_threshold: takes_rate.then_some(params.dq_threshold.get()),
        }
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
    pub fn new(settings: &Settings) -> Self {
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
    pub fn admit<P: Packet>(
        &mut self,
        settings: &Settings,
        packet: P,
        backlog: u64,
        cx: &mut Context<'_, P>,
    ) -> Option<P> {
        self.admit_scaled(settings, packet, backlog, |p| p, cx)
    }

    /// The same for a packet whose drop probability is made of that of all.
    #[inline]
    pub fn admit_scaled<P: Packet>(
        &mut self,
        settings: &Settings,
        mut packet: P,
        backlog: u64,
        scale: impl FnOnce(u64) -> u64,
        cx: &mut Context<'_, P>,
    ) -> Option<P> {
        if self.is_chosen(settings, packet.size(), backlog, scale, cx) {
            let may_mark = settings.ecn && self.probability <= settings.max_ecn;
            if !(may_mark && packet.ecn().is_capable()) {
                self.accumulated = 0;
                cx.drop(packet, DropReason::Pie);
                return None;
            }
            cx.mark(&mut packet, DropReason::Pie);
        }
        Some(packet)
    }

    /// There was no room for an arriving packet.
    pub fn refused(&mut self) {
        self.accumulated = 0;
    }

    fn is_chosen<P>(
        &mut self,
        settings: &Settings,
        size: u32,
        backlog: u64,
        scale: impl FnOnce(u64) -> u64,
        cx: &mut Context<'_, P>,
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
    pub fn departed<P: Packet>(
        &mut self,
        settings: &Settings,
        packet: &P,
        backlog: u64,
        now: Time,
    ) {
        let passed = self.time_passed(settings, packet, backlog, clock(now));
        self.burst_allowance = self.burst_allowance.saturating_sub(passed);
    }

    /// The time that reduces the burst allowance.
    fn time_passed<P: Packet>(
        &mut self,
        settings: &Settings,
        packet: &P,
        backlog: u64,
        now: u64,
    ) -> u64 {
        let Some(threshold) = settings.dq_threshold else {
            self.delay = if backlog == 0 { 0 } else { now - clock(packet.arrival()) };
            let since = self.stamp.map_or(0, |stamp| now - stamp);
            self.stamp = Some(now);
            return since;
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
        self.stamp = Some(now);
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
    pub fn update(&mut self, settings: &Settings, backlog: u64) {
        let takes_rate = settings.dq_threshold.is_some();
        let (delay, old_delay) = if takes_rate {
            ((backlog << RATE_SHIFT).checked_div(self.rate).unwrap_or(0), self.delay)
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
        self.old_delay = delay;
        let calm = delay < settings.target / 2 && old_delay < settings.target / 2;
        if calm && self.probability == 0 && (!takes_rate || self.rate > 0) {
            let ever_measured = self.ever_measured;
            let (delay, old_delay) = (self.delay, self.old_delay);
            *self = PieState { delay, old_delay, ever_measured, ..Self::new(settings) };
        }
    }
}

/// The state machine of one queue.
pub(crate) struct PieLinux<P> {
    fifo: Fifo<P>,
    limit: Limit,
    settings: Settings,
    state: PieState,
    next_update: Time,
    longest: Span,
    params: PieParams,
    link_rate: Rate,
}

impl<P: Packet> PieLinux<P> {
    pub fn new(params: &PieParams, env: &LinkEnv) -> Self {
        let settings = Settings::new(params, env);
        PieLinux {
            fifo: Fifo::default(),
            limit: params.limit.resolve(env.rate, env.base_rtt),
            state: PieState::new(&settings),
            settings,
            next_update: Time::ZERO + params.tupdate,
            longest: Span::ZERO,
            params: params.clone(),
            link_rate: env.rate,
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for PieLinux<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.fifo.backlog();
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            self.state.refused();
            cx.drop(packet, DropReason::Overlimit);
        } else if let Some(packet) = self.state.admit(&self.settings, packet, bytes, cx) {
            self.fifo.push(packet);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.fifo.pop()?;
        self.longest = self.longest.max(cx.now - packet.arrival());
        self.state.departed(&self.settings, &packet, self.fifo.backlog().bytes, cx.now);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, _cx: &mut Context<'_, P>) {
        self.next_update += self.settings.update_period;
        self.state.update(&self.settings, self.fifo.backlog().bytes);
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SEC as f64;
        see("drop_probability", self.state.probability());
        see("delay_estimate", seconds(self.state.delay));
        see("burst_allowance", seconds(self.state.burst_allowance));
    }

    fn notes(&self) -> Vec<Note> {
        let takes_rate = self.settings.dq_threshold.is_some();
        if !takes_rate || self.state.ever_measured || self.longest <= self.params.target {
            return Vec::new();
        }
        vec![no_rate_sample(Limit::Bytes(self.params.dq_threshold), None, self.link_rate)]
    }
}
