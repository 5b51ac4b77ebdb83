//! DualPI2 in Linux's integers: `variant = linux` of the discipline `dualpi2`.
//!
//! # Sources
//! Linux's qdisc as recorded in the conformance vectors and their rules.
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
//! 6. A departing packet that meets the probability and the step is counted as one mark, by the
//!    probability.
//! 7. After packets are dropped for a smaller limit, the delay is that of the new head; in Linux
//!    `c_head_ts` and `l_head_ts` stay until the next departure.

use alloc::{collections::VecDeque, vec::Vec};

use aqmlab_core::{Ecn, Limit, Packet, Span, Stream, Time};

use super::{DualPi2Params, Queues, Seen, Taken};
use crate::discipline::{Backlog, Context, LinkEnv, Note, QueueDiscipline, Reason};

/// Probability 1.
const ONE: u64 = u32::MAX as u64;
/// The binary places by which the gains are scaled up.
const GAIN_SHIFT: u32 = 6;

/// A gain in Hz in steps of probability for each 64 ns. A given one is truncated as by iproute2,
/// parse_alpha_beta; the usual one is the kernel's.
fn gain(hertz: Option<f64>, usual: u64) -> i64 {
    let in_256ths = hertz.map_or(usual, |hertz| (hertz as f32 * 256.0) as u64);
    (((in_256ths * ONE) >> (8 - GAIN_SHIFT)) / 1_000_000_000) as i64
}

/// The proportional integral controller of the base probability p'.
#[derive(Clone)]
struct Controller {
    alpha: i64,
    beta: i64,
    target: i64,
    most: u64,
    delay: i64,
    probability: u64,
}

impl Controller {
    fn new(params: &DualPi2Params) -> Self {
        Controller {
            alpha: gain(params.alpha, 41),
            beta: gain(params.beta, 819),
            target: params.target.as_nanos() as i64,
            most: if params.drop_overload { ONE } else { ONE / params.coupling },
            delay: 0,
            probability: 0,
        }
    }

    /// Linux, calculate_probability: of a step only the lower 32 bits count, so one of more than a
    /// whole probability (by default, a delay that grows by 0.3 s between two updates) is too short.
    fn update(&mut self, delay: u64) {
        let delay = delay as i64;
        let proportional = self.alpha.wrapping_mul(delay - self.target);
        let change = proportional.wrapping_add(self.beta.wrapping_mul(delay - self.delay));
        // Rounded towards zero, unlike a shift of the signed number.
        let step = u64::from((change.unsigned_abs() >> GAIN_SHIFT) as u32);
        self.probability = match change > 0 {
            true => (self.probability + step).min(ONE).min(self.most),
            false => self.probability.saturating_sub(step).min(self.most),
        };
        self.delay = delay;
    }
}

/// Draws once; a draw is made also if the probability is zero.
#[inline]
fn roll(random: &mut Stream, probability: u64) -> bool {
    u64::from(random.next_u32()) <= probability
}

/// Decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Pass,
    Mark,
    Drop,
}

fn limit(params: &DualPi2Params, env: &LinkEnv) -> Limit {
    params.limit.unwrap_or(Limit::Packets(10_000)).resolve(env.rate, env.base_rtt)
}

fn step(params: &DualPi2Params) -> Span {
    params.step.unwrap_or(Span::from_millis(1))
}

/// The state machine.
#[derive(Clone)]
pub(super) struct DualPi2Linux {
    queues: Queues,
    /// Whether the step applies to each L4S packet; empty if it always does.
    may_step: VecDeque<bool>,
    limit: Limit,
    params: DualPi2Params,
    step: Span,
    controller: Controller,
    next_update: Time,
    least_backlog: u64,
    seen: Seen,
}

impl DualPi2Linux {
    pub fn new(params: &DualPi2Params, env: &LinkEnv) -> Self {
        DualPi2Linux {
            queues: Queues::new(params, env.mtu.get()),
            may_step: VecDeque::new(),
            limit: limit(params, env),
            step: step(params),
            controller: Controller::new(params),
            next_update: Time::ZERO + params.tupdate(),
            least_backlog: 2 * env.mtu.get(),
            params: params.clone(),
            seen: Seen::default(),
        }
    }

    pub fn change(&mut self, params: &DualPi2Params, env: &LinkEnv, cx: &mut Context<'_>) {
        self.queues.change(params, env.mtu.get());
        self.limit = limit(params, env);
        self.step = step(params);
        let Controller { delay, probability, .. } = self.controller;
        self.controller = Controller { delay, probability, ..Controller::new(params) };
        if params.min_qlen_step > 0 {
            // Packets that came before there was such a condition meet the step.
            self.may_step.resize(self.queues.l4s.backlog().packets as usize, true);
        }
        self.params = params.clone();
        while self.queues.total().exceeds(self.limit) {
            if self.queues.drop_head(cx) {
                self.may_step.pop_front();
            }
        }
    }

    fn coupled(&self) -> u64 {
        self.controller.probability * self.params.coupling
    }

    /// What the probability does to a packet of a queue.
    fn decide(&self, is_l4s: bool, ecn: Ecn, random: &mut Stream) -> Action {
        if self.queues.total().bytes < self.least_backlog {
            return Action::Pass;
        }
        let base = self.controller.probability;
        let coupled = self.coupled();
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
            let drops = self.params.drop_overload && squared();
            return if drops { Action::Drop } else { Action::Mark };
        }
        if roll(random, coupled) { Action::Mark } else { Action::Pass }
    }

    /// Whether an L4S packet that was taken out has met the step.
    fn is_over_step(&self, packet: &Packet, now: Time) -> bool {
        match self.params.step_packets {
            Some(packets) => self.queues.l4s.backlog().packets > packets,
            None => now - packet.arrival() > self.step,
        }
    }
}

impl QueueDiscipline for DualPi2Linux {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        let Backlog { packets, bytes } = self.queues.total();
        self.seen.arrived += 1;
        if !self.limit.admits(packets, bytes, u64::from(packet.size())) {
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        let is_l4s = self.queues.is_l4s(packet.ecn());
        self.seen.l4s += u64::from(is_l4s);
        if self.params.drop_early {
            match self.decide(is_l4s, packet.ecn(), cx.random) {
                Action::Pass => {}
                Action::Mark => cx.mark(&mut packet, Reason::Pi2),
                Action::Drop => {
                    cx.drop(packet, Reason::Pi2);
                    return;
                }
            }
        }
        if !is_l4s {
            self.queues.classic.push(packet);
            return;
        }
        if self.params.min_qlen_step > 0 {
            let queued = self.queues.l4s.backlog().packets;
            self.may_step.push_back(queued >= self.params.min_qlen_step);
        }
        self.queues.l4s.push(packet);
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let Taken { mut packet, is_l4s, credit } = self.queues.take(cx.now)?;
            let may_step = is_l4s && self.may_step.pop_front().unwrap_or(true);
            let mut marked = false;
            if !self.params.drop_early {
                match self.decide(is_l4s, packet.ecn(), cx.random) {
                    Action::Pass => {}
                    Action::Mark => {
                        cx.mark(&mut packet, Reason::Pi2);
                        marked = true;
                    }
                    Action::Drop => {
                        cx.drop(packet, Reason::Pi2);
                        continue;
                    }
                }
            }
            if may_step && !marked && self.is_over_step(&packet, cx.now) {
                cx.mark(&mut packet, Reason::Step);
            }
            self.queues.credit += credit;
            return Some(packet);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.next_update += self.params.tupdate();
        let (classic, l4s) = self.queues.ages(cx.now);
        self.controller.update(classic.max(l4s).as_nanos());
        self.seen.updates += 1;
        self.seen.overloads += u64::from(self.coupled() > ONE);
    }

    fn backlog(&self) -> Backlog {
        self.queues.total()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let base = self.controller.probability as f64 / ONE as f64;
        see("base_probability", base);
        see("classic_probability", base * base);
        see("l4s_probability", (base * self.params.coupling as f64).min(1.0));
        see("delay_estimate", Span::from_nanos(self.controller.delay as u64).as_secs_f64());
        self.queues.observe(see);
    }

    fn notes(&self) -> Vec<Note> {
        super::notes(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disciplines::dualpi2::DualPi2Form;
    use crate::testing::{TestPacket, env, fill, queue, queue_of, run_with, seen};

    fn linux() -> DualPi2Params {
        DualPi2Params { variant: DualPi2Form::Linux, ..DualPi2Params::default() }
    }
    #[test]
    fn the_gains_are_those_of_the_reference() {
        assert_eq!((gain(None, 41), gain(None, 819)), (44, 879));
        // tc makes 40/256 of 0.16.
        assert_eq!((gain(Some(0.16), 41), gain(Some(41.0 / 256.0), 0)), (42, 44));
    }

    /// Linux, calculate_probability: 44 * 385 ms + 879 * 400 ms and 44 * 15 ms + 879 * 400 ms, in 64ths,
    /// less 2^32.
    #[test]
    fn steps_of_more_than_one_wrap_around() {
        let mut controller = Controller::new(&linux());
        controller.update(400_000_000);
        assert_eq!(controller.probability, 5_758_437_500 - (1 << 32));
        controller.update(0);
        assert_eq!(controller.probability, 1_463_470_204 - 1_209_095_204);
    }

    /// Linux, dualpi2_scalable_marking: overload that a change left behind drops no L4S packets if
    /// it is not to drop.
    #[test]
    fn overload_without_drops_marks_all_l4s_packets() {
        for drop_overload in [false, true] {
            let mut machine =
                DualPi2Linux::new(&DualPi2Params { drop_overload, ..linux() }, &env());
            machine.controller.probability = ONE;
            let mut queue = queue_of(1, machine);
            fill(&mut queue, 10, Ecn::Ect1);
            while queue.dequeue(Time::ZERO).is_some() {}
            queue.take_dropped(|_, _| ());
            let counts = queue.counts();
            // The last three leave fewer bytes behind than two full packets have.
            let (dropped, marked) = if drop_overload { (7, 0) } else { (0, 7) };
            let reason = Reason::Pi2 as usize;
            assert_eq!((counts.dropped[reason], counts.marked[reason]), (dropped, marked));
        }
    }

    #[test]
    fn without_overload_drops_the_coupled_probability_stops_at_one() {
        let params =
            DualPi2Params { drop_overload: false, limit: Some(Limit::Packets(100)), ..linux() };
        let mut queue = queue(&params);
        run_with(&mut queue, Span::from_millis(4), 60, Ecn::Ect1);
        let counts = queue.counts();
        assert_eq!(counts.dropped[Reason::Pi2 as usize], 0);
        assert!(counts.dropped[Reason::Overlimit as usize] > 0);
        assert!((seen(&queue, "base_probability") - 0.5).abs() < 1e-6);
    }

    /// Marks by the step among ten L4S packets that come at once and leave
    /// one after another without waiting.
    fn step_marks(params: &DualPi2Params) -> u64 {
        let mut queue = queue(params);
        fill(&mut queue, 10, Ecn::Ect1);
        while queue.dequeue(Time::ZERO).is_some() {}
        queue.counts().marked[Reason::Step as usize]
    }

    #[test]
    fn the_step_counts_what_a_packet_leaves_behind() {
        let in_time = linux();
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
            let mut queue = queue(&linux());
            queue.enqueue(Packet::of_ecn(Ecn::Ect1), Time::ZERO);
            queue.dequeue(Time::from_nanos(wait)).unwrap();
            assert_eq!(queue.counts().marked[Reason::Step as usize], marks);
        }
    }
}
