//! PIE in floating point, as its RFC reads: `variant = rfc8033` of the
//! discipline `pie`.
//!
//! # Sources
//! RFC 8033: sections 4 (the basic scheme) and 5 (the optional elements),
//! appendices A and B (pseudo-code of either).
//!
//! # Differences
//! 1. The delay is zero from the moment when the link finds the queue empty;
//!    the pseudo-code would keep the delay of the last packet, however long
//!    ago that left.
//! 2. Where text and appendices differ: as long as the burst allowance lasts no
//!    probability accumulates (section 4.4 and appendix A; in appendix B it
//!    does), the measurement of the departure rate begins behind a packet
//!    (appendix B; in section 5.2 that packet counts), PIE becomes inactive
//!    below half the target (section 5.3; in appendix B at zero) and is active
//!    for the packet that finds a long queue (section 5.3; in appendix B for
//!    the next). `decay` chooses between the appendices.
//! 3. A long queue keeps PIE active. As written, section 5.3 and appendix B end
//!    the active state where they begin it, if the delay was never measured.
//! 4. The design without a dequeue module (section 5.2, figure 2) is left out.

use alloc::{format, vec::Vec};

use aqmlab_core::{Bytes, Limit, Packet, Span, Time};

use super::{Decay, DelaySource, Memory, PieParams, Tuning, no_rate_sample};
use crate::discipline::{Backlog, Context, LinkEnv, Note, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

/// Section 5.2: the average time that a threshold of bytes takes.
#[derive(Clone)]
struct DepartureMeter {
    threshold: u64,
    weight: f64,
    cycle: Option<(Time, u64)>,
    average: Option<f64>,
}

impl DepartureMeter {
    fn new(threshold: Bytes) -> Self {
        let weight = threshold.get() as f64 / 65_536.0;
        DepartureMeter { threshold: threshold.get(), weight, cycle: None, average: None }
    }

    /// Appendix B, deque: a packet leaves and `backlog` bytes stay.
    fn departure(&mut self, now: Time, size: u32, backlog: u64) {
        if let Some((start, left)) = &mut self.cycle {
            *left += u64::from(size);
            if *left >= self.threshold {
                let sample = (now - *start).as_secs_f64();
                self.average = Some(match self.average {
                    None => sample,
                    Some(average) => sample * self.weight + average * (1.0 - self.weight),
                });
                self.cycle = None;
            }
        }
        if self.cycle.is_none() && backlog >= self.threshold {
            self.cycle = Some((now, 0));
        }
    }

    fn delay(&self, backlog: u64) -> f64 {
        self.average.map_or(0.0, |time| backlog as f64 * time / self.threshold as f64)
    }
}

/// The state machine.
#[derive(Clone)]
pub(super) struct Pie {
    limit: Limit,
    params: PieParams,
    env: LinkEnv,
    mean_packet: u64,
    next_update: Time,
    probability: f64,
    /// Probability accumulated by derandomisation since the last drop.
    accumulated: f64,
    burst_allowance: Span,
    /// The present and the last sample of the delay, in seconds.
    delay: f64,
    old_delay: f64,
    meter: DepartureMeter,
    is_active: bool,
    memory: Memory,
    ever_active: bool,
    ever_measured: bool,
}

impl Pie {
    fn target(&self) -> f64 {
        self.params.target.as_secs_f64()
    }

    /// Whether the congestion has gone (section 4.4).
    fn is_calm(&self) -> bool {
        let half = self.target() / 2.0;
        self.probability == 0.0 && self.delay < half && self.old_delay < half
    }

    /// Section 5.3: whether the queue is long enough to make PIE active.
    fn is_long(&self, backlog: Backlog) -> bool {
        let Some(part) = self.params.activation else { return true };
        let (length, limit) = backlog.against(self.limit);
        length as f64 >= part * limit as f64
    }

    /// Appendix B, enque: PIE restarts.
    fn activate(&mut self, now: Time) {
        (self.is_active, self.ever_active) = (true, true);
        (self.probability, self.accumulated, self.old_delay) = (0.0, 0.0, 0.0);
        self.burst_allowance = self.params.max_burst;
        self.meter.average = None;
        self.meter.cycle = Some((now, 0));
    }

    /// Whether an arriving packet is chosen.
    fn is_chosen(&mut self, backlog: u64, packet: &Packet, cx: &mut Context<'_>) -> bool {
        // Section 4.4: bursts pass.
        if !self.is_active || self.burst_allowance > Span::ZERO {
            return false;
        }
        // Section 4.1: the link must not run empty.
        let short_delay = self.old_delay < self.target() / 2.0 && self.probability < 0.2;
        if short_delay || backlog <= 2 * self.mean_packet {
            return false;
        }
        let p = match self.params.by_size {
            true => self.probability * f64::from(packet.size()) / self.mean_packet as f64,
            false => self.probability,
        };
        if !self.params.derandomize {
            return p > 0.0 && cx.random.uniform() < p;
        }
        // Section 5.4.
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += p;
        if self.accumulated < self.params.prob_low {
            false
        } else {
            self.accumulated >= self.params.prob_high || cx.random.uniform() < p
        }
    }

    /// Sections 4.2 and 5.5: the probability after an update.
    fn next_probability(&self) -> f64 {
        let target = self.target();
        let change = self.params.alpha * (self.delay - target)
            + self.params.beta * (self.delay - self.old_delay);
        let mut change = change / divisor(self.params.tuning, self.probability);
        if self.params.cap && self.probability >= 0.1 {
            change = change.min(0.02);
        }
        let mut probability = self.probability + change;
        let decays = match self.params.decay {
            Decay::Zero => self.delay == 0.0 && self.old_delay == 0.0,
            Decay::HalfTarget => self.delay.max(self.old_delay) < target / 2.0,
        };
        if decays {
            probability *= 0.98;
        }
        probability.clamp(0.0, 1.0)
    }
}

impl Aqm for Pie {
    type Params = PieParams;

    fn new(params: &PieParams, env: &LinkEnv) -> OneQueue<Self> {
        let is_active = params.activation.is_none();
        let pie = Pie {
            limit: params.limit.resolve(env.rate, env.base_rtt),
            next_update: Time::ZERO + params.tupdate,
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: params.max_burst,
            delay: 0.0,
            old_delay: 0.0,
            meter: DepartureMeter::new(params.dq_threshold),
            is_active,
            memory: Memory::default(),
            ever_active: is_active,
            ever_measured: false,
            mean_packet: params.mean_packet.unwrap_or(env.mtu).get(),
            env: *env,
            params: params.clone(),
        };
        OneQueue::new(QueueLimit::new(params.limit, params.byte_limit, env), pie)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        if new.params.dq_threshold != self.params.dq_threshold {
            // Its samples are times of the old threshold.
            self.meter = new.meter;
        }
        if new.params.activation.is_none() {
            (self.is_active, self.ever_active) = (true, true);
        }
        (self.limit, self.mean_packet) = (new.limit, new.mean_packet);
        (self.params, self.env) = (new.params, new.env);
    }

    fn admit(&mut self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let is_long = self.is_long(fifo.backlog());
        if is_long && !self.is_active {
            self.activate(cx.now);
        }
        let is_chosen = self.is_chosen(fifo.backlog().bytes, &packet, cx);
        if self.is_calm() {
            self.burst_allowance = self.params.max_burst;
            self.is_active = is_long;
        }
        if !is_chosen {
            return Some(packet);
        }
        self.accumulated = 0.0;
        let (is_capable, may_mark) =
            (packet.ecn().is_capable(), self.probability < self.params.max_ecn);
        if self.params.ecn && is_capable {
            let count = if may_mark { &mut self.memory.marks } else { &mut self.memory.ecn_drops };
            *count += 1;
        }
        cx.signal(packet, self.params.ecn && may_mark, Reason::Pie)
    }

    fn refused(&mut self) {
        self.accumulated = 0.0;
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop();
        let sojourn = packet.as_ref().map_or(Span::ZERO, |packet| cx.now - packet.arrival());
        self.memory.longest = self.memory.longest.max(sojourn);
        match self.params.delay {
            DelaySource::Timestamps => self.delay = sojourn.as_secs_f64(),
            DelaySource::Rate => {
                if let Some(packet) = packet.as_ref().filter(|_| self.is_active) {
                    self.meter.departure(cx.now, packet.size(), fifo.backlog().bytes);
                    self.ever_measured |= self.meter.average.is_some();
                }
            }
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    /// Sections 4.2 to 4.4: the update of the probability.
    fn on_wakeup(&mut self, fifo: &Fifo, _cx: &mut Context<'_>) {
        self.next_update += self.params.tupdate;
        if !self.is_active {
            return;
        }
        if self.params.delay == DelaySource::Rate {
            self.delay = self.meter.delay(fifo.backlog().bytes);
        }
        self.probability = self.next_probability();
        self.old_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.params.tupdate);
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
        see("delay_estimate", self.delay);
        see("burst_allowance", self.burst_allowance.as_secs_f64());
        see("accumulated", self.accumulated);
        if self.params.delay == DelaySource::Rate {
            let rate = |time| self.params.dq_threshold.get() as f64 / time;
            see("departure_rate", self.meter.average.map_or(0.0, rate));
        }
        if self.params.activation.is_some() {
            see("active", f64::from(u8::from(self.is_active)));
        }
    }

    fn notes(&self) -> Vec<Note> {
        let params = &self.params;
        let mut notes = self.memory.notes(params, &self.env);
        if self.memory.longest <= params.target {
            return notes;
        }
        if !self.ever_active {
            notes.push(Note {
                id: "pie-inactive",
                text: format!(
                    "PIE was never active: the queue never reached {} of its limit of {}, so it \
                     worked as a drop-tail queue, although packets waited longer than its target \
                     of {}. Set `limit` to a buffer that fits the link, or `activation = none`.",
                    params.activation.unwrap_or_default(),
                    self.limit,
                    params.target
                ),
            });
        } else if params.delay == DelaySource::Rate && !self.ever_measured {
            notes.push(no_rate_sample(Limit::Bytes(params.dq_threshold), None, self.env.rate));
        }
        notes
    }
}

/// By what the steps are divided while the probability is small (section 4.2).
fn divisor(tuning: Tuning, probability: f64) -> f64 {
    match probability {
        p if p < 0.01 && tuning == Tuning::Draft => 8.0,
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests;
