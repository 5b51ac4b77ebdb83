//! PIE: proportional integral controller, enhanced.
//!
//! # Model
//! A timer compares the delay of the queue with the target and with its last
//! value, and moves the drop probability by both; arriving packets meet it.
//! The steps are smaller while the probability is small, short bursts are let
//! through, and drops are kept apart from each other.
//!
//! # Sources
//! - RFC 8033: sections 4 and 5, appendices A and B.
//! - `variant = linux`: the qdisc of Linux, see the file `pie_linux.rs`.
//!
//! # Differences
//! From RFC 8033 with `variant = rfc8033`:
//! 1. The delay is zero from the moment when the link finds the queue empty;
//!    the pseudo-code would keep the delay of the last packet, however long
//!    ago that left.
//! 2. Of the optional elements, derandomisation (section 5.4) and the cap
//!    (section 5.5) can be switched off and ECN (section 5.1) on; setting PIE
//!    inactive (section 5.3) is left out.
//! 3. The queue is compared with two mean packets strictly, as in the
//!    RFC; with Linux's arithmetic as in Linux.

use aqmlab_core::{Bytes, Limit, Packet, Rate, Span, Time, choices, params};

use crate::discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, Note, QueueDiscipline};
use crate::fifo::Fifo;
use crate::pie_linux::PieLinux;

choices! {
    /// Where the delay of the queue is taken from.
    pub enum DelaySource {
        /// The time that the last packet sent has spent in the queue.
        Timestamps = "timestamps",
        /// The backlog and the average time that a threshold of bytes takes to leave.
        Rate = "rate",
    }
}

choices! {
    /// The numbers that PIE computes with.
    pub enum Variant {
        /// Floating point, as the RFC's pseudo-code reads.
        Rfc8033 = "rfc8033",
        /// Linux's integers; the probability may go above 1 there.
        Linux = "linux",
        /// The same with the probability limited to 1.
        LinuxClamped = "linux-clamped",
    }
}

params! {
    /// Parameters of PIE.
    pub struct PieParams {
        /// The delay to keep, QDELAY_REF.
        target: Span = Span::from_millis(15), in Span::from_nanos(128) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Time between two updates of the drop probability, T_UPDATE.
        tupdate: Span = Span::from_millis(15), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// How long a burst may last before anything is dropped early.
        max_burst: Span = Span::from_millis(150), in Span::ZERO => Span::from_secs(100),
            source "RFC 8033, section 4.4";
        /// Weight of the deviation from the target, per second; Linux rounds it to 1/16.
        alpha: f64 = 0.125, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Weight of the trend, per second; Linux rounds it to 1/16.
        beta: f64 = 1.25, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// How much the queue holds.
        limit: Limit = Limit::Packets(1000), source "tc-pie(8)";
        /// Where the delay is taken from.
        delay: DelaySource = DelaySource::Timestamps, source "RFC 8033, sections 4.3 and 5.2";
        /// What has to be queued, and then to leave, for a sample of the departure rate.
        dq_threshold: Bytes = Bytes::new(16_384), in Bytes::new(1) => Bytes::new(65_536),
            source "RFC 8033, section 5.2";
        /// Whether drops are kept apart from each other.
        derandomize: bool = true, source "RFC 8033, section 5.4; always in Linux";
        /// Whether the probability rises by at most 0.02 at a time once it is 0.1.
        cap: bool = true, source "RFC 8033, section 5.5; always in Linux";
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false, source "RFC 8033, section 5.1; tc-pie(8)";
        /// The drop probability from which ECN-capable packets are dropped as well.
        max_ecn: f64 = 0.1, in 0.0 => 1.0, source "RFC 8033, section 5.1; fixed in Linux";
        /// Whether larger packets are dropped with a larger probability.
        by_size: bool = false, source "tc-pie(8), bytemode";
        /// The mean packet size: nothing is dropped early from a queue of two packets;
        /// `none` for the largest packet of the link.
        mean_packet: Option<Bytes> = None, source "RFC 8033, section 4.1; the MTU in Linux";
        /// The numbers that PIE computes with.
        variant: Variant = Variant::Rfc8033, source "RFC 8033, appendix B; conformance vectors";
    }
}

impl Discipline for PieParams {
    const NAME: &'static str = "pie";
    const SUMMARY: &'static str = "a controller moves the drop probability to keep the delay";

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        if self.variant != Variant::Rfc8033 {
            return Box::new(PieLinux::new(self, env));
        }
        Box::new(Pie {
            fifo: Fifo::default(),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            next_update: Time::ZERO + self.tupdate,
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: self.max_burst,
            delay: 0.0,
            old_delay: 0.0,
            meter: Meter::new(self.dq_threshold),
            longest: Span::ZERO,
            mean_packet: self.mean_packet.unwrap_or(env.mtu).get(),
            link_rate: env.rate,
            params: self.clone(),
        })
    }
}

/// What a reader has to know of a PIE that never had a departure rate.
pub(crate) fn no_rate_sample(threshold: Limit, update: Option<Span>, rate: Rate) -> Note {
    let why = match update {
        Some(update) => format!(
            "a measurement needs {threshold} to leave the queue before the next update, {update} \
             away, and on a link of {rate} that never happened"
        ),
        None => format!(
            "a measurement needs {threshold} to be queued, and on a link of {rate} that never \
             lasted long enough"
        ),
    };
    let remedy = match update {
        Some(_) => "raise `tupdate` or lower `dq_threshold`",
        None => "lower `dq_threshold`, or take the delay from timestamps",
    };
    Note {
        id: "pie-no-rate-sample",
        text: format!(
            "PIE never measured a departure rate: {why}. Without a rate its delay estimate is \
             zero, so it dropped nothing early and worked as a drop-tail queue. To make it work, \
             {remedy}."
        ),
    }
}

/// RFC 8033, section 5.2: the average time that a threshold of bytes takes.
struct Meter {
    threshold: u64,
    weight: f64,
    cycle: Option<(Time, u64)>,
    average: Option<f64>,
}

impl Meter {
    fn new(threshold: Bytes) -> Self {
        let weight = threshold.get() as f64 / 65_536.0;
        Meter { threshold: threshold.get(), weight, cycle: None, average: None }
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

/// The state machine, in the RFC's floating point.
struct Pie<P> {
    fifo: Fifo<P>,
    limit: Limit,
    params: PieParams,
    mean_packet: u64,
    next_update: Time,
    probability: f64,
    /// What derandomisation has added up since the last drop.
    accumulated: f64,
    burst_allowance: Span,
    /// The present and the last sample of the delay, in seconds.
    delay: f64,
    old_delay: f64,
    meter: Meter,
    longest: Span,
    link_rate: Rate,
}

impl<P: Packet> Pie<P> {
    fn target(&self) -> f64 {
        self.params.target.as_secs_f64()
    }

    /// Whether an arriving packet is chosen.
    fn is_chosen(&mut self, packet: &P, cx: &mut Context<'_, P>) -> bool {
        // Section 4.4: bursts pass.
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        // Section 4.1: the link must not run empty.
        let short_delay = self.old_delay < self.target() / 2.0 && self.probability < 0.2;
        if short_delay || self.fifo.backlog().bytes <= 2 * self.mean_packet {
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
        if self.accumulated < 0.85 {
            false
        } else {
            self.accumulated >= 8.5 || cx.random.uniform() < p
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Pie<P> {
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.fifo.backlog();
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            self.accumulated = 0.0;
            cx.drop(packet, DropReason::Overlimit);
            return;
        }
        if self.is_chosen(&packet, cx) {
            self.accumulated = 0.0;
            let may_mark = self.params.ecn && self.probability < self.params.max_ecn;
            if !(may_mark && packet.ecn().is_capable()) {
                cx.drop(packet, DropReason::Pie);
                return;
            }
            cx.mark(&mut packet, DropReason::Pie);
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        let packet = self.fifo.pop();
        let sojourn = packet.as_ref().map_or(Span::ZERO, |packet| cx.now - packet.arrival());
        self.longest = self.longest.max(sojourn);
        match self.params.delay {
            DelaySource::Timestamps => self.delay = sojourn.as_secs_f64(),
            DelaySource::Rate => {
                if let Some(packet) = &packet {
                    self.meter.departure(cx.now, packet.size(), self.fifo.backlog().bytes);
                }
            }
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    /// Sections 4.2 to 4.4: the update of the probability.
    fn on_wakeup(&mut self, _cx: &mut Context<'_, P>) {
        self.next_update += self.params.tupdate;
        if self.params.delay == DelaySource::Rate {
            self.delay = self.meter.delay(self.fifo.backlog().bytes);
        }
        let target = self.target();
        let change = self.params.alpha * (self.delay - target)
            + self.params.beta * (self.delay - self.old_delay);
        let mut change = change / tuning(self.probability);
        if self.params.cap && self.probability >= 0.1 {
            change = change.min(0.02);
        }
        self.probability += change;
        if self.delay == 0.0 && self.old_delay == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let calm = self.delay < target / 2.0 && self.old_delay < target / 2.0;
        self.burst_allowance = match calm && self.probability == 0.0 {
            true => self.params.max_burst,
            false => self.burst_allowance.saturating_sub(self.params.tupdate),
        };
        self.old_delay = self.delay;
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("drop_probability", self.probability);
        see("delay_estimate", self.delay);
        see("burst_allowance", self.burst_allowance.as_secs_f64());
    }

    fn notes(&self) -> Vec<Note> {
        let needs_rate = self.params.delay == DelaySource::Rate;
        if !needs_rate || self.meter.average.is_some() || self.longest <= self.params.target {
            return Vec::new();
        }
        vec![no_rate_sample(Limit::Bytes(self.params.dq_threshold), None, self.link_rate)]
    }
}

/// By what the steps are divided while the probability is small (section 4.2).
fn tuning(probability: f64) -> f64 {
    match probability {
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
mod tests {
    use aqmlab_core::{Ecn, Stream};

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env, run_with};

    /// 110 % of what a link of 2 Mbit/s can send, for 30 s.
    fn overload(params: &PieParams, ecn: Ecn) -> Queue<TestPacket> {
        let env = LinkEnv { rate: Rate::from_bps(2_000_000), ..env() };
        let mut queue = Queue::new(params.build(&env), Stream::from_state(1));
        run_with(&mut queue, Span::from_micros(5455), 30, ecn);
        queue
    }

    fn observed(queue: &Queue<TestPacket>, name: &str) -> f64 {
        let mut found = None;
        queue.observe(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    #[test]
    fn the_drop_probability_settles_at_the_overload() {
        // A tenth too much: 1 - 1/1.1 has to go. The target is well above two
        // packets, from which nothing is dropped early.
        let base = PieParams { target: Span::from_millis(60), ..PieParams::default() };
        for params in [
            base.clone(),
            PieParams { delay: DelaySource::Rate, ..base.clone() },
            PieParams { derandomize: false, ..base.clone() },
            PieParams { variant: Variant::LinuxClamped, ..base.clone() },
        ] {
            let queue = overload(&params, Ecn::NotEct);
            let counts = queue.counts();
            let share = counts.dropped_total() as f64 / counts.arrived as f64;
            assert!((share - 0.091).abs() < 0.02, "{params:?}: {share}");
            // Derandomised, p comes to nearly twice the share of drops.
            let p = observed(&queue, "drop_probability");
            assert!((0.02..0.3).contains(&p), "{params:?}: {p}");
            assert!(queue.notes().is_empty());
        }
    }

    #[test]
    fn steps_are_smaller_while_the_probability_is_small() {
        let table = [
            (0.0, 2048.0),
            (5e-6, 512.0),
            (5e-5, 128.0),
            (5e-4, 32.0),
            (5e-3, 8.0),
            (0.05, 2.0),
            (0.1, 1.0),
        ];
        for (probability, divisor) in table {
            assert_eq!(tuning(probability), divisor, "{probability}");
        }
    }

    #[test]
    fn ecn_marks_up_to_its_limit_and_drops_above() {
        let params = PieParams { ecn: true, ..PieParams::default() };
        let counts = overload(&params, Ecn::Ect0).counts();
        assert!(counts.marked_total() > 0, "{counts:?}");
        // No packet reacts to the marks: the probability rises above 0.1.
        assert!(counts.dropped[DropReason::Pie as usize] > 0, "{counts:?}");
        assert_eq!(overload(&params, Ecn::NotEct).counts().marked_total(), 0);
        let never = PieParams { max_ecn: 0.0, ..params };
        assert_eq!(overload(&never, Ecn::Ect0).counts().marked_total(), 0);
    }

    #[test]
    fn drops_are_spread_when_derandomised() {
        // With p about 0.09 none follows within 0.85 / p = 9 packets.
        let mut pie = Pie::<TestPacket> {
            fifo: Fifo::default(),
            limit: Limit::Unlimited,
            params: PieParams::default(),
            mean_packet: 1500,
            next_update: Time::MAX,
            probability: 0.1,
            accumulated: 0.0,
            burst_allowance: Span::ZERO,
            delay: 1.0,
            old_delay: 1.0,
            meter: Meter::new(Bytes::new(16_384)),
            longest: Span::ZERO,
            link_rate: env().rate,
        };
        for _ in 0..10 {
            pie.fifo.push(TestPacket::new(Ecn::NotEct));
        }
        let mut queue = Queue::new(Box::new(pie), Stream::from_state(3));
        let mut since = 0;
        for _ in 0..5000 {
            queue.enqueue(TestPacket::new(Ecn::NotEct), Time::from_nanos(1));
            let mut dropped = false;
            queue.take_dropped(|_, _| dropped = true);
            since += 1;
            if dropped {
                // 0.85 / 0.1 before, 8.5 / 0.1 at most.
                assert!((9..=86).contains(&since), "{since}");
                since = 0;
            }
        }
    }

    #[test]
    fn without_a_rate_sample_there_is_a_note() {
        // Ten packets are below the threshold of 16 kb and 60 ms at this rate.
        let params = PieParams {
            delay: DelaySource::Rate,
            limit: Limit::Packets(10),
            ..PieParams::default()
        };
        for variant in [Variant::Rfc8033, Variant::Linux] {
            let queue = overload(&PieParams { variant, ..params.clone() }, Ecn::NotEct);
            let notes = queue.notes();
            assert_eq!(notes.len(), 1);
            assert_eq!(notes[0].id, "pie-no-rate-sample");
            assert!(notes[0].text.contains("16384b"), "{}", notes[0].text);
            assert_eq!(queue.counts().dropped[DropReason::Pie as usize], 0);
        }
    }
}
