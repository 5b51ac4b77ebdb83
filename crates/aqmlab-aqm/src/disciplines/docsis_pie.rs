//! DOCSIS-PIE: PIE as cable modems run it.
//!
//! # Model
//! PIE over the delay that the modem's rate shaper predicts. Small packets
//! are dropped with a smaller probability, so the probability may exceed 1.
//! A state machine of three states protects bursts: below a third of the
//! buffer nothing is dropped (inactive); above it a first packet may be
//! dropped at once (quiescent), after which nothing is for `max_burst`
//! (active).
//!
//! # Sources
//! RFC 8034, section 4 and appendix A.
//!
//! # Differences
//! 1. The shaper is the link: nothing delays packets here, the tokens are
//!    counted as if. Request and grant of the medium are not modelled.
//! 2. The sustained rate, the peak rate and the buffer are the operator's in
//!    the RFC; the defaults here are the link's rate, and 100 ms of it.
//! 3. Packet sizes are not rounded to steps (appendix A.3, an option).
//! 4. The decay follows appendix A.2 (two delays below 5 ms); section 4.5
//!    speaks of a queue below 5 ms at the peak rate.

use alloc::{format, vec::Vec};

use aqmlab_core::{Bytes, Component, Error, Limit, Packet, Rate, Result, Span, Time, math, params};

use crate::discipline::{Backlog, Context, LinkEnv, Note, OneMachine, Reason};
use crate::docsis::TokenBucket;
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

params! {
    /// Parameters of DOCSIS-PIE.
    pub struct DocsisPieParams {
        /// The delay to keep, LATENCY_TARGET.
        target: Span = Span::from_millis(10), in Span::from_nanos(128) => Span::from_secs(100),
            source "RFC 8034, section 4.1";
        /// Time between two updates of the drop probability, INTERVAL.
        tupdate: Span = Span::from_millis(16), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8034, appendix A.1.2";
        /// Weight of the deviation from the target, A, per second.
        alpha: f64 = 0.25, in 0.0 => 1e3, source "RFC 8034, appendix A.1.2";
        /// Weight of the trend, B, per second.
        beta: f64 = 2.5, in 0.0 => 1e3, source "RFC 8034, appendix A.1.2";
        /// Time without drops after the first drop, MAX_BURST.
        max_burst: Span = Span::from_millis(142), in Span::ZERO => Span::from_secs(100),
            source "RFC 8034, section 4.3 and appendix A.1.2";
        /// Time without congestion before the inactive state, BURST_RESET_TIMEOUT.
        burst_reset: Span = Span::from_secs(1), in Span::ZERO => Span::from_secs(1000),
            source "RFC 8034, section 4.3 and appendix A.1.2";
        /// Capacity of the queue, BUFFER_SIZE; `none`: 100 ms at the sustained rate.
        limit: Option<Limit> = None, source "RFC 8034, appendix A.1.1; CableLabs' ns-3 model";
        /// Maximum Sustained Traffic Rate; `none` for the rate of the link.
        sustained_rate: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "RFC 8034, section 3";
        /// Peak Traffic Rate; `none` for the sustained rate.
        peak_rate: Option<Rate> = None,
            in Some(Rate::from_bps(1)) => Some(Rate::from_bps(1_000_000_000_000_000)),
            source "RFC 8034, section 3";
        /// Maximum Traffic Burst: bytes that may be sent at the peak rate.
        traffic_burst: Bytes = Bytes::new(3044), in Bytes::new(0) => Bytes::new(1_000_000_000),
            source "RFC 8034, section 3; CableLabs' ns-3 model";
        /// The packet size whose drop probability is not scaled, MEAN_PKTSIZE.
        mean_packet: Bytes = Bytes::new(1024), in Bytes::new(1) => Bytes::new(65_536),
            source "RFC 8034, section 4.6";
        /// The smallest packet: it sets the highest drop probability, MIN_PKTSIZE.
        min_packet: Bytes = Bytes::new(64), in Bytes::new(1) => Bytes::new(65_536),
            source "RFC 8034, appendix A.1.2";
        /// The accumulated probability below which nothing is dropped, and the highest scaled
        /// probability, PROB_LOW.
        prob_low: f64 = 0.85, in 0.0 => 1.0, source "RFC 8034, section 4.6 and appendix A.1.2";
        /// The accumulated probability from which a packet is dropped for certain, PROB_HIGH.
        prob_high: f64 = 8.5, in 0.0 => 1e6, source "RFC 8034, appendix A.1.2";
        /// Two delays below this let the probability decay, LATENCY_LOW.
        latency_low: Span = Span::from_millis(5), in Span::ZERO => Span::from_secs(100),
            source "RFC 8034, section 4.5 and appendix A.1.2";
        /// A delay above this adds 0.02 to the probability, LATENCY_HIGH.
        latency_high: Span = Span::from_millis(200), in Span::ZERO => Span::from_secs(100),
            source "RFC 8034, appendix A.1.2";
    }
}

impl Component for DocsisPieParams {
    const NAME: &'static str = "docsis_pie";
    const SUMMARY: &'static str = "PIE of cable modems: predicted delay, scaled by packet size";

    fn check(&self) -> Result<()> {
        if self.limit == Some(Limit::Unlimited) {
            let allowed = "a limit: DOCSIS-PIE acts from a third of it";
            return Err(Error::not_allowed("unlimited", allowed).at("limit"));
        }
        Ok(())
    }
}

impl OneMachine for DocsisPieParams {
    type Machine = OneQueue<DocsisPie>;
}

impl DocsisPieParams {
    fn limit(&self, shaper: &TokenBucket, env: &LinkEnv) -> Limit {
        let buffer = math::round(shaper.sustained() * 0.1) as u64;
        let default = Limit::Bytes(Bytes::new(buffer.max(env.mtu.get())));
        self.limit.unwrap_or(default).resolve(env.rate, env.base_rtt)
    }
}

/// Section 4.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Inactive,
    Quiescent,
    Active,
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct DocsisPie {
    limit: Limit,
    params: DocsisPieParams,
    shaper: TokenBucket,
    next_update: Time,
    probability: f64,
    accumulated: f64,
    old_delay: f64,
    burst_allowance: Span,
    burst_reset: Span,
    state: State,
    longest: Span,
    was_active: bool,
}

impl DocsisPie {
    /// Appendix A.3: whether an arriving packet is dropped.
    fn drop_early(&mut self, backlog: Backlog, size: u32, cx: &mut Context<'_>) -> bool {
        let p = &self.params;
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        if self.state == State::Inactive {
            // Whether a third of the buffer is in use.
            let (length, limit) = backlog.against(self.limit);
            if 3 * length < limit {
                return false;
            }
            self.state = State::Quiescent;
            self.was_active = true;
        }
        let scaled = self.probability * f64::from(size) / p.mean_packet.get() as f64;
        let scaled = scaled.min(p.prob_low);
        self.accumulated += scaled;
        let short_delay = self.old_delay < 0.5 * p.target.as_secs_f64() && self.probability < 0.2;
        if short_delay
            || backlog.bytes <= 2 * p.mean_packet.get()
            || self.accumulated < p.prob_low
            || (self.accumulated < p.prob_high && cx.random.uniform() > scaled)
        {
            return false;
        }
        self.accumulated = 0.0;
        if self.state == State::Quiescent {
            self.state = State::Active;
            self.burst_allowance = p.max_burst;
        }
        true
    }

    /// Appendix A.2: the drop probability after an update with this delay.
    fn next_probability(&self, delay: f64) -> f64 {
        let p = &self.params;
        let change = p.alpha * (delay - p.target.as_secs_f64()) + p.beta * (delay - self.old_delay);
        let mut change = change * tuning(self.probability);
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        let mut probability = self.probability + change;
        let low = p.latency_low.as_secs_f64();
        if delay < low && self.old_delay < low {
            probability *= 0.98;
        } else if delay > p.latency_high.as_secs_f64() {
            probability += 0.02;
        }
        let most = p.prob_low * p.mean_packet.get() as f64 / p.min_packet.get() as f64;
        probability.clamp(0.0, most)
    }

    /// Appendix A.2, its second half: the state after an update.
    fn calm_down(&mut self, delay: f64) {
        let half = 0.5 * self.params.target.as_secs_f64();
        let quiet = delay < half
            && self.old_delay < half
            && self.probability == 0.0
            && self.burst_allowance == Span::ZERO;
        match self.state {
            State::Active if quiet => {
                self.state = State::Quiescent;
                self.burst_reset = Span::ZERO;
            }
            State::Quiescent if quiet => {
                self.burst_reset += self.params.tupdate;
                if self.burst_reset > self.params.burst_reset {
                    self.burst_reset = Span::ZERO;
                    self.state = State::Inactive;
                }
            }
            State::Quiescent => self.burst_reset = Span::ZERO,
            State::Active | State::Inactive => (),
        }
    }
}

/// By what the steps are scaled (section 4.4).
fn tuning(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 0.5,
        p if p < 1.0 => 2.0,
        p if p < 10.0 => 8.0,
        _ => 32.0,
    }
}

impl Aqm for DocsisPie {
    type Params = DocsisPieParams;

    fn new(params: &DocsisPieParams, env: &LinkEnv) -> OneQueue<Self> {
        let DocsisPieParams { sustained_rate, peak_rate, traffic_burst, .. } = *params;
        let shaper = TokenBucket::new(sustained_rate, peak_rate, traffic_burst, env);
        let pie = DocsisPie {
            limit: params.limit(&shaper, env),
            shaper,
            next_update: Time::ZERO + params.tupdate,
            probability: 0.0,
            accumulated: 0.0,
            old_delay: 0.0,
            burst_allowance: Span::ZERO,
            burst_reset: Span::ZERO,
            state: State::Inactive,
            longest: Span::ZERO,
            was_active: false,
            params: params.clone(),
        };
        OneQueue::new(QueueLimit::new(pie.limit, None, env), pie)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.limit, self.params) = (new.limit, new.params);
        self.shaper.change(&new.shaper);
    }

    fn admit(&mut self, fifo: &Fifo, packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        if self.drop_early(fifo.backlog(), packet.size(), cx) {
            cx.drop(packet, Reason::Pie);
            return None;
        }
        Some(packet)
    }

    fn refused(&mut self) {
        self.accumulated = 0.0;
    }

    fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = fifo.pop()?;
        self.longest = self.longest.max(cx.now - packet.arrival());
        self.shaper.departed(cx.now, packet.size(), fifo.backlog().bytes);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, fifo: &Fifo, cx: &mut Context<'_>) {
        self.next_update += self.params.tupdate;
        let delay = self.shaper.expected_delay(cx.now, fifo.backlog().bytes);
        if self.burst_allowance > Span::ZERO {
            self.probability = 0.0;
            self.burst_allowance = self.burst_allowance.saturating_sub(self.params.tupdate);
        } else {
            self.probability = self.next_probability(delay);
        }
        self.calm_down(delay);
        self.old_delay = delay;
    }

    fn observe(&self, _fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
        see("delay_estimate", self.old_delay);
        see("burst_allowance", self.burst_allowance.as_secs_f64());
        see("accumulated", self.accumulated);
        // 0 inactive, 1 quiescent, 2 active.
        see("state", f64::from(self.state as u8));
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = self.shaper.notes();
        if !self.was_active && self.longest > self.params.target {
            notes.push(Note {
                id: "docsis-pie-inactive",
                text: format!(
                    "DOCSIS-PIE was never active: the queue never reached a third of its limit \
                     of {}, so it worked as a drop-tail queue, although packets waited longer \
                     than its target of {}. Set `limit` to what the modem buffers.",
                    self.limit, self.params.target
                ),
            });
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Ecn;

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, queue_of, seen, slow};

    fn pie() -> OneQueue<DocsisPie> {
        DocsisPie::new(&DocsisPieParams::default(), &slow())
    }

    /// Offers a packet to a queue. Returns true if it was dropped early.
    fn is_dropped(queue: &mut Queue) -> bool {
        queue.enqueue(Packet::of_ecn(Ecn::NotEct), Time::ZERO);
        let mut dropped = false;
        queue.take_dropped(|_, reason| dropped = reason == Reason::Pie);
        dropped
    }

    #[test]
    fn updates_follow_the_pseudo_code() {
        // 25 kB at 250 kB/s without tokens are 100 ms: 0.25 * 0.09 + 2.5 * 0.1.
        let mut pie = pie().aqm;
        let cases = [
            (0.0, 0.0, 0.1, 0.2725 / 2048.0),
            // Level: only the deviation counts; from 0.1 on steps end at 0.02 and count double.
            (0.05, 0.1, 0.1, 0.05 + 0.0225 / 2.0),
            (0.5, 0.1, 0.1, 0.5 + 0.02),
            (0.5, 0.01, 0.005, 0.5 - 2.0 * (0.25 * 0.005 + 2.5 * 0.005)),
            (2.0, 0.01, 0.008, 2.0 - 8.0 * (0.25 * 0.002 + 2.5 * 0.002)),
            // Above 200 ms 0.02 more, after the cap.
            (0.5, 0.3, 0.3, 0.5 + 0.02 + 0.02),
            // Below 5 ms twice: decay.
            (0.5, 0.004, 0.004, (0.5 - 2.0 * 0.25 * 0.006) * 0.98),
            // The bound is 0.85 * 1024 / 64 = 13.6.
            (13.59, 0.3, 0.3, 13.6),
            (1e-7, 0.0, 0.0, 0.0),
        ];
        for (probability, old, delay, expected) in cases {
            (pie.probability, pie.old_delay) = (probability, old);
            let next = pie.next_probability(delay);
            assert!((next - expected).abs() < 1e-12, "{probability} {old} {delay}: {next}");
        }
    }

    #[test]
    fn the_steps_grow_with_the_probability_beyond_one() {
        let table = [(0.5, 2.0), (1.0, 8.0), (9.9, 8.0), (10.0, 32.0), (0.09, 0.5)];
        for (probability, factor) in table {
            assert_eq!(tuning(probability), factor, "{probability}");
        }
    }

    #[test]
    fn the_first_drop_comes_when_a_third_is_full_and_then_a_burst_is_let_through() {
        let mut pie = pie();
        // The buffer is 25 kB: a third is six packets. Below that nothing is dropped at any
        // probability.
        (pie.aqm.probability, pie.aqm.old_delay) = (13.6, 1.0);
        let mut queue = queue_of(1, pie);
        let dropped: Vec<bool> = (0..16).map(|_| is_dropped(&mut queue)).collect();
        // The scaled probability is 0.85: its sum reaches that at once, and a
        // draw decides. From state 1 the first is 0.57.
        assert_eq!(dropped.iter().position(|dropped| *dropped), Some(6));
        assert_eq!(dropped.iter().filter(|dropped| **dropped).count(), 1, "then the burst");
        assert_eq!((seen(&queue, "state"), seen(&queue, "burst_allowance")), (2.0, 0.142));
        // 142 ms are nine updates of 16 ms; meanwhile the probability is zero.
        for i in 1..=9 {
            let now = Time::ZERO + Span::from_millis(16) * i;
            assert!(queue.dequeue(now).is_some());
            assert!(!is_dropped(&mut queue));
            queue.on_wakeup(now);
        }
        assert_eq!((seen(&queue, "burst_allowance"), seen(&queue, "drop_probability")), (0.0, 0.0));
    }

    /// 62 intervals are 992 ms, 63 are 1008 ms: more than the second of quiet time, which begins
    /// again after a delay, and with the quiescent state.
    #[test]
    fn quiet_for_a_second_is_inactive_again() {
        let mut pie = pie().aqm;
        (pie.state, pie.burst_reset) = (State::Active, Span::from_millis(900));
        for (intervals, delay) in [(1, 0.0), (62, 0.0), (1, 0.006), (62, 0.0)] {
            (0..intervals).for_each(|_| pie.calm_down(delay));
            assert_eq!(pie.state, State::Quiescent, "{intervals} {delay}");
        }
        pie.calm_down(0.0);
        assert_eq!((pie.state, pie.burst_reset), (State::Inactive, Span::ZERO));
        (pie.state, pie.params.burst_reset) = (State::Quiescent, Span::from_millis(32));
        for state in [State::Quiescent, State::Quiescent, State::Inactive] {
            pie.calm_down(0.0);
            assert_eq!(pie.state, state, "the time has to be exceeded");
        }
    }

    #[test]
    fn the_scaled_probability_ends_at_its_bound() {
        // Behind two packets, a probability of 13.6 times 1500 / 1024: 0.85
        // of the packets go, and never one behind a single packet.
        for (behind, share) in [(2, 0.85), (1, 0.0)] {
            let mut pie = pie();
            let aqm = &mut pie.aqm;
            (aqm.state, aqm.probability, aqm.old_delay) = (State::Active, 13.6, 1.0);
            (0..behind).for_each(|_| pie.fifo.push(Packet::of_ecn(Ecn::NotEct)));
            let mut queue = queue_of(1, pie);
            let mut dropped = 0;
            for _ in 0..2000 {
                if is_dropped(&mut queue) {
                    dropped += 1;
                } else {
                    queue.dequeue(Time::ZERO).unwrap();
                }
            }
            assert!((f64::from(dropped) / 2000.0 - share).abs() < 0.03, "{behind}: {dropped}");
        }
    }

    #[test]
    fn a_full_buffer_clears_the_sum() {
        let mut pie = pie();
        pie.aqm.accumulated = 0.5;
        pie.room = QueueLimit::new(Limit::Packets(1), None, &slow());
        pie.fifo.push(Packet::of_ecn(Ecn::NotEct));
        let mut queue = queue_of(1, pie);
        is_dropped(&mut queue);
        assert_eq!(seen(&queue, "accumulated"), 0.0);
    }
}
