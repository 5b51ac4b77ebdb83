//! DualPI2: two queues coupled by one controller.
//!
//! # Model
//! L4S packets and classic packets have a queue each and share the link by a
//! weighted round robin that nearly always prefers L4S. A proportional
//! integral controller moves one base probability p'. Classic packets are
//! dropped or marked with p'^2, L4S packets are marked with k p' or when they
//! have waited longer than a step. On overload (k p' > 1) packets of either
//! queue are dropped with p'^2, and L4S packets that are not are marked.
//!
//! # Sources
//! - Linux's qdisc as recorded in the conformance vectors and their rules:
//!   the arithmetic.
//! - RFC 9332: section 2 for the structure, appendix A for the names.
//!
//! # Differences
//! From RFC 9332, and in common with Linux:
//! 1. The native L4S AQM is a step, not a ramp (appendix A.1, note c), and
//!    applies to a queue of one packet too unless `min_qlen_step` is set.
//! 2. Drops and marks are drawn; the RFC prefers the recurrence `recur`.
//! 3. The probabilities do not apply below two full packets of backlog.
//! 4. Overload begins above k p' = 1; the RFC includes 1.
//!
//! From Linux:
//! 5. There is no limit on memory; a limit in bytes is possible.
//! 6. A packet that meets the probability and the step on its way out is
//!    counted as one mark, by the probability.
//! 7. The base probability stops at its bounds however large a step is.

use std::collections::VecDeque;

use aqmlab_core::{Ecn, Limit, Packet, Span, Stream, Time, choices, params};

use crate::discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, QueueDiscipline};
use crate::fifo::Fifo;

choices! {
    /// What makes a packet an L4S packet.
    pub enum Classifier {
        /// ECT(1) and CE.
        L4s = "l4s",
        /// Any ECN-capable packet.
        AnyEct = "any-ect",
    }
}

params! {
    /// Parameters of DualPI2.
    pub struct DualPi2Params {
        /// The delay to keep in the classic queue.
        target: Span = Span::from_millis(15), in Span::ZERO => Span::from_secs(100),
            source "RFC 9332, appendix A.1";
        /// Time between two updates of the base probability, Tupdate.
        tupdate: Span = Span::from_millis(16), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 9332, appendix A.1; tc-dualpi2(8)";
        /// Integral gain in Hz, rounded to 1/256.
        alpha: f64 = 0.16, in 0.0 => 1e3, source "RFC 9332, appendix A.1";
        /// Proportional gain in Hz, rounded to 1/256.
        beta: f64 = 3.2, in 0.0 => 1e3, source "RFC 9332, appendix A.1";
        /// How much both queues hold together.
        limit: Limit = Limit::Packets(10_000), source "tc-dualpi2(8)";
        /// The coupling factor k: how many times the base probability L4S packets are marked with.
        coupling: u64 = 2, in 1 => 255, source "RFC 9332, section 2.1 and appendix A.1";
        /// L4S packets that waited longer than this are marked.
        step: Span = Span::from_millis(1), in Span::ZERO => Span::from_secs(4),
            source "RFC 9332, appendix A.1, note c; tc-dualpi2(8)";
        /// Instead of `step`: L4S packets are marked that leave more packets than this behind.
        step_packets: Option<u64> = None, source "tc-dualpi2(8)";
        /// The L4S packets that have to be queued on arrival for the step to apply.
        min_qlen_step: u64 = 0, in 0 => 1_000_000, source "tc-dualpi2(8)";
        /// Whether overload drops L4S packets; otherwise the probability of marks stops at 1.
        drop_overload: bool = true, source "RFC 9332, section 4.2.3; tc-dualpi2(8)";
        /// Whether packets meet the probability on arrival instead of on departure.
        drop_early: bool = false, source "tc-dualpi2(8)";
        /// The classic queue's share of the link while both have packets, in percent.
        c_protection: u64 = 10, in 0 => 100, source "tc-dualpi2(8)";
        /// What makes a packet an L4S packet.
        classifier: Classifier = Classifier::L4s, source "RFC 9332, section 2.3; tc-dualpi2(8)";
    }
}

impl Discipline for DualPi2Params {
    const NAME: &'static str = "dualpi2";
    const SUMMARY: &'static str = "a queue for L4S and one for the rest, coupled by PI squared";

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        let mtu = env.mtu.get();
        let initial = (self.c_protection as i64 * 2 - 100) * mtu as i64;
        Box::new(DualPi2 {
            classic: Fifo::default(),
            l4s: Fifo::default(),
            may_step: VecDeque::new(),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            controller: Controller::new(self),
            next_update: Time::ZERO + self.tupdate,
            least_backlog: 2 * mtu,
            initial_credit: initial,
            credit: initial,
            params: self.clone(),
        })
    }
}

/// Probability 1.
const ONE: u64 = u32::MAX as u64;
/// The binary places by which the gains are scaled up.
const GAIN_SHIFT: u32 = 6;

/// A gain in Hz in steps of probability for each 64 ns.
fn gain(hertz: f64) -> i128 {
    let in_256ths = (hertz * 256.0).round() as u64;
    i128::from(((in_256ths * ONE) >> (8 - GAIN_SHIFT)) / 1_000_000_000)
}

/// The proportional integral controller of the base probability p'.
struct Controller {
    alpha: i128,
    beta: i128,
    target: i128,
    most: u64,
    delay: u64,
    probability: u64,
}

impl Controller {
    fn new(params: &DualPi2Params) -> Self {
        Controller {
            alpha: gain(params.alpha),
            beta: gain(params.beta),
            target: params.target.as_nanos().into(),
            most: if params.drop_overload { ONE } else { ONE / params.coupling },
            delay: 0,
            probability: 0,
        }
    }

    fn update(&mut self, delay: u64) {
        let now = i128::from(delay);
        let before = i128::from(self.delay);
        let change = self.alpha * (now - self.target) + self.beta * (now - before);
        // Rounded towards zero, unlike a shift.
        let probability = i128::from(self.probability) + change / (1 << GAIN_SHIFT);
        self.probability = probability.clamp(0, self.most.into()) as u64;
        self.delay = delay;
    }
}

/// Draws once; a draw is made also if the probability is zero.
#[inline]
fn roll(random: &mut Stream, probability: u64) -> bool {
    u64::from(random.next_u32()) <= probability
}

/// What is done with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Pass,
    Mark,
    Drop,
}

/// The state machine.
struct DualPi2<P> {
    classic: Fifo<P>,
    l4s: Fifo<P>,
    /// Whether the step applies to each L4S packet; empty if it always does.
    may_step: VecDeque<bool>,
    limit: Limit,
    params: DualPi2Params,
    controller: Controller,
    next_update: Time,
    least_backlog: u64,
    initial_credit: i64,
    /// Above zero it is the classic queue's turn.
    credit: i64,
}

impl<P: Packet> DualPi2<P> {
    fn total(&self) -> Backlog {
        let (classic, l4s) = (self.classic.backlog(), self.l4s.backlog());
        Backlog { packets: classic.packets + l4s.packets, bytes: classic.bytes + l4s.bytes }
    }

    fn is_l4s(&self, ecn: Ecn) -> bool {
        match self.params.classifier {
            Classifier::L4s => matches!(ecn, Ecn::Ect1 | Ecn::Ce),
            Classifier::AnyEct => ecn.is_capable(),
        }
    }

    /// What the probability does to a packet of a queue.
    fn decide(&self, is_l4s: bool, ecn: Ecn, random: &mut Stream) -> Action {
        if self.total().bytes < self.least_backlog {
            return Action::Pass;
        }
        let base = self.controller.probability;
        let coupled = base * self.params.coupling;
        let overload = coupled > ONE;
        let mut squared = || roll(random, base) && roll(random, base);
        if !is_l4s {
            return match squared() {
                true if overload || !ecn.is_capable() => Action::Drop,
                true => Action::Mark,
                false => Action::Pass,
            };
        }
        if overload {
            return if squared() { Action::Drop } else { Action::Mark };
        }
        if roll(random, coupled) { Action::Mark } else { Action::Pass }
    }

    /// Whether an L4S packet that was taken out has met the step.
    fn is_over_step(&self, packet: &P, now: Time) -> bool {
        match self.params.step_packets {
            Some(packets) => self.l4s.backlog().packets > packets,
            None => now - packet.arrival() > self.params.step,
        }
    }

    /// Takes a packet from the queue whose turn it is: the packet, whether it
    /// is an L4S packet that may step, and what its leaving changes in the
    /// credit.
    fn take(&mut self) -> Option<(P, Taken)> {
        let (classic_waits, l4s_waits) = (!self.classic.is_empty(), !self.l4s.is_empty());
        let share = self.params.c_protection as i64;
        if l4s_waits && (self.credit <= 0 || !classic_waits) {
            let packet = self.l4s.pop()?;
            let may_step = self.may_step.pop_front().unwrap_or(true);
            let credit = if classic_waits { share * i64::from(packet.size()) } else { 0 };
            return Some((packet, Taken { is_l4s: true, may_step, credit }));
        }
        let Some(packet) = self.classic.pop() else {
            self.credit = self.initial_credit;
            return None;
        };
        let credit = if l4s_waits { (share - 100) * i64::from(packet.size()) } else { 0 };
        Some((packet, Taken { is_l4s: false, may_step: false, credit }))
    }
}

/// How a packet left its queue.
struct Taken {
    is_l4s: bool,
    may_step: bool,
    credit: i64,
}

impl<P: Packet + Send> QueueDiscipline<P> for DualPi2<P> {
    fn enqueue(&mut self, mut packet: P, cx: &mut Context<'_, P>) {
        let Backlog { packets, bytes } = self.total();
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            cx.drop(packet, DropReason::Overlimit);
            return;
        }
        let is_l4s = self.is_l4s(packet.ecn());
        if self.params.drop_early {
            match self.decide(is_l4s, packet.ecn(), cx.random) {
                Action::Pass => {}
                Action::Mark => cx.mark(&mut packet, DropReason::Pi2),
                Action::Drop => {
                    cx.drop(packet, DropReason::Pi2);
                    return;
                }
            }
        }
        if !is_l4s {
            self.classic.push(packet);
            return;
        }
        if self.params.min_qlen_step > 0 {
            let queued = self.l4s.backlog().packets;
            self.may_step.push_back(queued >= self.params.min_qlen_step);
        }
        self.l4s.push(packet);
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        loop {
            let (mut packet, taken) = self.take()?;
            let mut marked = false;
            if !self.params.drop_early {
                match self.decide(taken.is_l4s, packet.ecn(), cx.random) {
                    Action::Pass => {}
                    Action::Mark => {
                        cx.mark(&mut packet, DropReason::Pi2);
                        marked = true;
                    }
                    Action::Drop => {
                        cx.drop(packet, DropReason::Pi2);
                        continue;
                    }
                }
            }
            if taken.may_step && !marked && self.is_over_step(&packet, cx.now) {
                cx.mark(&mut packet, DropReason::Step);
            }
            self.credit += taken.credit;
            return Some(packet);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_, P>) {
        self.next_update += self.params.tupdate;
        let heads = [self.classic.head(), self.l4s.head()];
        let ages = heads.into_iter().flatten().map(|head| (cx.now - head.arrival()).as_nanos());
        self.controller.update(ages.max().unwrap_or(0));
    }

    fn backlog(&self) -> Backlog {
        self.total()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let base = self.controller.probability as f64 / ONE as f64;
        see("base_probability", base);
        see("classic_probability", base * base);
        see("l4s_probability", (base * self.params.coupling as f64).min(1.0));
        see("delay_estimate", Span::from_nanos(self.controller.delay).as_secs_f64());
        see("classic_packets", self.classic.backlog().packets as f64);
        see("l4s_packets", self.l4s.backlog().packets as f64);
        see("credit", self.credit as f64);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Stream;

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env, run_with};

    fn overload(params: &DualPi2Params, ecn: Ecn) -> Queue<TestPacket> {
        let mut queue = Queue::new(params.build(&env()), Stream::from_state(1));
        run_with(&mut queue, Span::from_millis(4), 60, ecn);
        queue
    }
    fn base(queue: &Queue<TestPacket>) -> f64 {
        let mut base = f64::NAN;
        queue.observe(&mut |name, value| {
            if name == "base_probability" {
                base = value;
            }
        });
        base
    }

    #[test]
    fn the_gains_are_those_of_the_reference() {
        assert_eq!((gain(0.16), gain(3.2)), (44, 879));
    }

    #[test]
    fn unresponsive_classic_packets_are_dropped_at_the_excess() {
        // 1.5 times what the link sends: a third is dropped, p' = 1 / sqrt 3.
        let queue = overload(&DualPi2Params::default(), Ecn::NotEct);
        let counts = queue.counts();
        let share = counts.dropped_total() as f64 / counts.arrived as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.03, "{share}");
        assert!((base(&queue) - 0.577).abs() < 0.15, "{}", base(&queue));
        assert_eq!(counts.marked_total(), 0);
    }

    #[test]
    fn ecn_capable_packets_are_dropped_only_on_overload() {
        for ecn in [Ecn::Ect0, Ecn::Ect1] {
            let counts = overload(&DualPi2Params::default(), ecn).counts();
            assert!(counts.marked_total() > 0, "{counts:?}");
            assert!(counts.dropped[DropReason::Pi2 as usize] > 0, "{counts:?}");
        }
    }

    #[test]
    fn without_overload_drops_the_coupled_probability_stops_at_one() {
        let params = DualPi2Params {
            drop_overload: false,
            limit: Limit::Packets(100),
            ..DualPi2Params::default()
        };
        let queue = overload(&params, Ecn::Ect1);
        let counts = queue.counts();
        assert_eq!(counts.dropped[DropReason::Pi2 as usize], 0);
        assert!(counts.dropped[DropReason::Overlimit as usize] > 0);
        assert!((base(&queue) - 0.5).abs() < 1e-6, "{}", base(&queue));
    }

    /// Marks by the step among ten L4S packets that come at once and leave
    /// one after another without waiting.
    fn step_marks(params: &DualPi2Params) -> u64 {
        let mut queue = Queue::new(params.build(&env()), Stream::from_state(1));
        for _ in 0..10 {
            queue.enqueue(TestPacket::new(Ecn::Ect1), Time::ZERO);
        }
        while queue.dequeue(Time::ZERO).is_some() {}
        queue.counts().marked[DropReason::Step as usize]
    }

    #[test]
    fn the_step_counts_what_a_packet_leaves_behind() {
        let in_time = DualPi2Params::default();
        assert_eq!(step_marks(&in_time), 0);
        // The first five leave 9, 8, 7, 6 and 5 behind; 5 is not more than 5.
        let in_packets = DualPi2Params { step_packets: Some(5), ..in_time };
        assert_eq!(step_marks(&in_packets), 4);
        // The first two found fewer than two queued.
        let not_alone = DualPi2Params { min_qlen_step: 2, ..in_packets };
        assert_eq!(step_marks(&not_alone), 2);
    }

    #[test]
    fn the_step_in_time_is_strict() {
        for (wait, marks) in [(1_000_000, 0), (1_000_001, 1)] {
            let mut queue =
                Queue::new(DualPi2Params::default().build(&env()), Stream::from_state(1));
            queue.enqueue(TestPacket::new(Ecn::Ect1), Time::ZERO);
            queue.dequeue(Time::from_nanos(wait)).unwrap();
            assert_eq!(queue.counts().marked[DropReason::Step as usize], marks);
        }
    }

    #[test]
    fn any_ect_takes_ect0_to_the_l4s_queue() {
        for (classifier, l4s) in [(Classifier::L4s, 0.0), (Classifier::AnyEct, 3.0)] {
            let params = DualPi2Params { classifier, ..DualPi2Params::default() };
            let mut queue = Queue::new(params.build(&env()), Stream::from_state(1));
            for _ in 0..3 {
                queue.enqueue(TestPacket::new(Ecn::Ect0), Time::ZERO);
            }
            queue.observe(&mut |name, value| {
                if name == "l4s_packets" {
                    assert_eq!(value, l4s);
                }
            });
        }
    }

    #[test]
    fn the_classic_queue_keeps_its_share() {
        for (c_protection, expected) in [(10, 0.1), (25, 0.25), (50, 0.5)] {
            let params = DualPi2Params { c_protection, ..DualPi2Params::default() };
            let mut queue = Queue::new(params.build(&env()), Stream::from_state(1));
            // No time passes, so nothing is dropped.
            for _ in 0..2000 {
                queue.enqueue(TestPacket::new(Ecn::Ect1), Time::ZERO);
                queue.enqueue(TestPacket::new(Ecn::NotEct), Time::ZERO);
            }
            let classic =
                (0..2000).filter(|_| queue.dequeue(Time::ZERO).unwrap().ecn == Ecn::NotEct).count();
            let share = classic as f64 / 2000.0;
            assert!((share - expected).abs() < 0.01, "{c_protection}: {share}");
        }
    }
}
