//! PIE as of 2013: with an estimate of the departure rate, before RFC 8033.
//!
//! # Model
//! The queueing delay is the queue length over the average departure rate. A timer compares it with
//! the target and with its last value and moves the drop probability, which is applied to arriving
//! packets. The rate is measured over cycles: a cycle begins when more than `dq_threshold` is
//! queued and ends when that much has left. A timer that fires within a cycle discards it, so on a
//! slow link the rate may never be known: the delay then counts as zero and nothing is dropped
//! early. The note `pie-no-rate-sample` reports this.
//!
//! # Sources
//! - Pan et al., "PIE: A Lightweight Control Scheme To Address the Bufferbloat
//!   Problem" (HPSR 2013), sections III and IV, with the Internet-Draft of the
//!   same name.
//! - Järvinen and Kojo (2014), section III (measurement cycle and burst
//!   allowance), table I (parameters) and section V (the lost cycles).
//!
//! # Differences
//! 1. This is a reconstruction: the code of 2013 was not published. Gaps of the texts are filled as
//!    stated here and, where it matters, by a parameter.
//! 2. The packet whose departure begins a cycle counts as the first that left, so a cycle of n
//!    packets lasts n - 1 transmissions. The rate counts the n - 1 packets sent in that time, and
//!    so has no bias, unless `count_first` is on.
//! 3. The drop probability is computed during the burst allowance as well,
//!    unless `p_during_burst` is off.
//! 4. The unit of `dq_threshold` is also that of the queue length and of the
//!    rate.
//! 5. The burst allowance restarts whenever the delay is below the target (Järvinen and Kojo,
//!    section III). HPSR 2013 also requires a probability of zero and half of the target; drops
//!    then continue long after the queue has emptied, and response times are two to three times
//!    those of the other queues, unlike in figures 6 and 7 of Järvinen and Kojo.
//! 6. There is no lower bound on the queue for drops, no decay and no cap on the
//!    steps: those came with the RFC.

use alloc::{format, vec, vec::Vec};

use aqmlab_core::{Component, Error, Limit, Packet, Rate, Result, Span, Time, params};

use crate::discipline::{Backlog, Context, LinkEnv, Note, OneMachine, Reason};
use crate::disciplines::pie::no_rate_sample;
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of the PIE of 2013.
    pub struct Pie2013Params {
        /// The delay to keep, delay_ref.
        target: Span = Span::from_millis(20), in Span::from_nanos(1) => Span::from_secs(100),
            source "Järvinen and Kojo 2014, table I";
        /// Time between two updates of the drop probability, tUpdate.
        tupdate: Span = Span::from_millis(30), in Span::from_micros(1) => Span::from_secs(100),
            source "Järvinen and Kojo 2014, table I";
        /// Length of a burst that passes without early drops.
        max_burst: Span = Span::from_millis(100), in Span::ZERO => Span::from_secs(100),
            source "Järvinen and Kojo 2014, table I";
        /// Weight of the deviation from the target, per second.
        alpha: f64 = 0.125, in 0.0 => 1e6, source "Järvinen and Kojo 2014, table I";
        /// Weight of the trend, per second.
        beta: f64 = 1.25, in 0.0 => 1e6, source "Järvinen and Kojo 2014, table I";
        /// Backlog needed to start a departure rate sample, and the amount that must leave
        /// to complete it: packets (10p) or bytes (10kb).
        dq_threshold: Limit = Limit::Packets(10), source "Järvinen and Kojo 2014, table I";
        /// Weight of a new sample in the average departure rate.
        rate_weight: f64 = 0.125, in 1e-6 => 1.0, source "Linux's PIE, 1/8; the papers leave it open";
        /// Whether the packet that starts a measurement counts; the rate is then too high
        /// by n/(n - 1).
        count_first: bool = false, source "left open by the papers";
        /// Whether the drop probability is computed during the burst allowance; otherwise
        /// it stays zero.
        p_during_burst: bool = true, source "left open by the papers";
        /// Capacity of the queue.
        limit: Limit = Limit::Packets(1000), source "tc-pie(8)";
        /// Marks ECN-capable packets instead of dropping them early.
        ecn: bool = false, source "HPSR 2013, section III";
    }
}

impl Component for Pie2013Params {
    const NAME: &'static str = "pie2013";
    const SUMMARY: &'static str = "PIE as of 2013, with its departure rate measurement";

    fn check(&self) -> Result<()> {
        match self.dq_threshold {
            Limit::Packets(_) | Limit::Bytes(_) => Ok(()),
            other => {
                let allowed = "packets (10p) or bytes (10kb)";
                Err(Error::not_allowed(other, allowed).at("dq_threshold"))
            }
        }
    }
}

impl OneMachine for Pie2013Params {
    type Machine = OneQueue<Pie2013>;
}

/// The departure rate, measured over cycles of a threshold's length.
#[derive(Clone)]
struct Meter {
    threshold: u64,
    in_bytes: bool,
    weight: f64,
    /// Whether the packet that begins a cycle counts as transmitted in it.
    count_first: bool,
    /// When the running cycle began, and what has left since.
    cycle: Option<(Time, u64)>,
    /// The average, per second.
    rate: Option<f64>,
}

impl Meter {
    fn new(threshold: Limit, weight: f64, count_first: bool) -> Self {
        let (threshold, in_bytes) = match threshold {
            Limit::Bytes(bytes) => (bytes.get(), true),
            Limit::Packets(packets) => (packets, false),
            Limit::Bdp(_) | Limit::Unlimited => unreachable!("refused by `check`"),
        };
        Meter { threshold, in_bytes, weight, count_first, cycle: None, rate: None }
    }

    fn length(&self, backlog: Backlog) -> u64 {
        if self.in_bytes { backlog.bytes } else { backlog.packets }
    }

    /// A packet leaves and `backlog` stays. Gives the length of a cycle that
    /// ends with it.
    fn departure(&mut self, now: Time, size: u32, backlog: Backlog) -> Option<Span> {
        if self.cycle.is_none() && self.length(backlog) > self.threshold {
            self.cycle = Some((now, 0));
        }
        let (start, left) = self.cycle.as_mut()?;
        // The packet that leaves now is counted but not transmitted yet.
        let before = *left;
        *left += if self.in_bytes { u64::from(size) } else { 1 };
        let transmitted = if self.count_first { *left } else { before };
        if *left < self.threshold || now == *start {
            return None;
        }
        let lasted = now - *start;
        let sample = transmitted as f64 / lasted.as_secs_f64();
        self.rate = Some(match self.rate {
            None => sample,
            Some(rate) => (1.0 - self.weight) * rate + self.weight * sample,
        });
        // The next begins with the next packet, if there is enough.
        self.cycle = None;
        Some(lasted)
    }

    /// The delay that `backlog` means, in seconds; zero without a rate.
    fn delay(&self, backlog: Backlog) -> f64 {
        self.rate.map_or(0.0, |rate| self.length(backlog) as f64 / rate)
    }
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Pie2013 {
    params: Pie2013Params,
    next_update: Time,
    meter: Meter,
    burst_allowance: Span,
    probability: f64,
    old_delay: f64,
    longest: Span,
    link_rate: Rate,
    /// Cycles that ended with a rate, and those that the timer ended.
    measured: u64,
    lost: u64,
}

impl Aqm for Pie2013 {
    type Params = Pie2013Params;

    fn new(params: &Pie2013Params, env: &LinkEnv) -> OneQueue<Self> {
        let pie = Pie2013 {
            next_update: Time::ZERO + params.tupdate,
            meter: Meter::new(params.dq_threshold, params.rate_weight, params.count_first),
            burst_allowance: params.max_burst,
            probability: 0.0,
            old_delay: 0.0,
            longest: Span::ZERO,
            link_rate: env.rate,
            measured: 0,
            lost: 0,
            params: params.clone(),
        };
        OneQueue::new(QueueLimit::new(params.limit, None, env), pie)
    }

    fn change(&mut self, mut new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        if new.meter.in_bytes == self.meter.in_bytes {
            (new.meter.cycle, new.meter.rate) = (self.meter.cycle, self.meter.rate);
        }
        (self.meter, self.params, self.link_rate) = (new.meter, new.params, new.link_rate);
    }

    #[inline(always)]
    fn admit(&mut self, _fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        // One draw for each packet that may be dropped: none at probability zero or within an
        // allowance.
        let chosen = self.burst_allowance == Span::ZERO
            && self.probability > 0.0
            && cx.random.uniform() < self.probability;
        match chosen {
            true => cx.signal(packet, self.params.ecn, Reason::Pie),
            false => Some(packet),
        }
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop()?;
        self.longest = self.longest.max(cx.now - packet.arrival());
        if let Some(lasted) = self.meter.departure(cx.now, packet.size(), fifo.backlog()) {
            // Järvinen and Kojo, section III: a successful measurement
            // reduces the allowance; HPSR 2013: by the time that it took.
            self.burst_allowance = self.burst_allowance.saturating_sub(lasted);
            self.measured += 1;
        }
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, fifo: &Fifo, _cx: &mut Context<'_>) {
        self.next_update += self.params.tupdate;
        // Section V: the timer ends a cycle that is still running.
        self.lost += u64::from(self.meter.cycle.take().is_some());
        let target = self.params.target.as_secs_f64();
        let delay = self.meter.delay(fifo.backlog());
        if self.params.p_during_burst || self.burst_allowance == Span::ZERO {
            let change =
                self.params.alpha * (delay - target) + self.params.beta * (delay - self.old_delay);
            // HPSR 2013, section IV: weaker while the probability is small.
            let tuned = match self.probability {
                p if p < 0.01 => change / 8.0,
                p if p < 0.1 => change / 2.0,
                _ => change,
            };
            self.probability = (self.probability + tuned).clamp(0.0, 1.0);
        } else {
            self.probability = 0.0;
        }
        if delay < target {
            self.burst_allowance = self.params.max_burst;
        }
        self.old_delay = delay;
    }

    fn observe(&self, fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
        see("delay_estimate", self.meter.delay(fifo.backlog()));
        see("departure_rate", self.meter.rate.unwrap_or(0.0));
        see("burst_allowance", self.burst_allowance.as_secs_f64());
    }

    fn notes(&self) -> Vec<Note> {
        let Pie2013Params { dq_threshold, tupdate, target, .. } = self.params;
        if self.longest <= target {
            return Vec::new();
        }
        if self.measured == 0 {
            return vec![no_rate_sample(dq_threshold, Some(tupdate), self.link_rate)];
        }
        if self.lost <= 9 * self.measured {
            return Vec::new();
        }
        vec![Note {
            id: "pie-few-rate-samples",
            text: format!(
                "PIE lost more than nine in ten of its measurements of the departure rate: \
                 {dq_threshold} seldom leave before the next update, {tupdate} away, on a link \
                 of {}. Between them its delay estimate follows the queue, but not the rate. \
                 Raise `tupdate` or lower `dq_threshold`.",
                self.link_rate
            ),
        }]
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Bytes;

    use super::*;
    use crate::testing::{assert_near, env, queue_of, seen};

    fn meter(threshold: Limit) -> Meter {
        Meter::new(threshold, 0.125, false)
    }

    #[test]
    fn the_departure_rate_has_no_bias() {
        let backlog = Backlog { packets: 50, bytes: 75_000 };
        for (threshold, per_second) in
            [(Limit::Packets(5), 1000.0 / 6.0), (Limit::Bytes(Bytes::new(7500)), 250_000.0)]
        {
            let mut meter = meter(threshold);
            let ends: Vec<Option<Span>> = (0..5)
                .map(|i| meter.departure(Time::from_nanos(i * 6_000_000), 1500, backlog))
                .collect();
            assert_eq!(ends[..4], [None; 4]);
            assert_eq!(ends[4], Some(Span::from_millis(24)));
            assert!((meter.rate.unwrap() - per_second).abs() < 1e-6);
        }
    }

    #[test]
    fn a_short_queue_is_not_measured() {
        let mut meter = meter(Limit::Packets(5));
        let backlog = Backlog { packets: 5, bytes: 7500 };
        for i in 0..20 {
            assert_eq!(meter.departure(Time::from_nanos(i * 6_000_000), 1500, backlog), None);
        }
        assert!(meter.cycle.is_none() && meter.rate.is_none());
    }

    /// Unless `p_during_burst`: a burst begins again with the probability at 0.
    #[test]
    fn a_burst_has_no_probability() {
        for (p_during_burst, expected) in [(false, 0.0), (true, 0.5)] {
            let params = Pie2013Params { p_during_burst, ..Pie2013Params::default() };
            let mut pie = Pie2013::new(&params, &env());
            pie.aqm.probability = 0.5;
            let mut queue = queue_of(1, pie);
            queue.on_wakeup(Time::ZERO + params.tupdate);
            let steered = 0.5 - params.alpha * params.target.as_secs_f64();
            let expected = if expected > 0.0 { steered } else { 0.0 };
            assert_near(seen(&queue, "drop_probability"), expected);
        }
    }
}
