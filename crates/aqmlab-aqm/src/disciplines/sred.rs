//! SRED: stabilized RED, which estimates how many flows there are.
//!
//! # Model
//! A list of recently seen flows (zombies) is kept next to the queue. An arriving packet is
//! compared with one zombie drawn at random: if it is of the same flow that is a hit; if not, it
//! replaces the zombie with some probability. One over the frequency of hits estimates the number
//! of active flows; the drop probability grows with its square, so that the queue length does not
//! depend on the number of flows. The queue's length counts in three coarse steps only.
//!
//! # Sources
//! - Ott, Lakshman and Wong, "SRED: Stabilized RED" (INFOCOM 1999). The paper
//!   was not at hand: rules and numbers are those of the public ns-3 port of
//!   ns-2's SRED, and of lecture slides on the paper.
//!
//! # Differences
//! 1. Packets are of one flow if their flow hashes are equal.
//! 2. The count and the time stamp of a zombie, which point out candidates
//!    for flows that misbehave, decide nothing and are not kept.
//! 3. A packet that does not fit is dropped for that, not drawn for, and goes
//!    into the list as any other.
//! 4. The paper has no ECN: with `ecn` capable packets are marked where others
//!    are dropped.

use alloc::vec::Vec;

use aqmlab_core::{Auto, Component, Error, Limit, Packet, Result, choices, params};

use crate::discipline::{Backlog, Context, LinkEnv, OneMachine, Reason};
use crate::fifo::{Fifo, QueueLimit};
use crate::one_queue::{Aqm, OneQueue};

choices! {
    /// Effect of a hit on the drop probability.
    pub enum SredForm {
        /// Nothing.
        Simple = "simple",
        /// A hit: its packet is dropped with a larger probability.
        Full = "full",
    }
}

params! {
    /// Parameters of SRED.
    pub struct SredParams {
        /// Capacity of the queue, B; its thirds and sixths are the steps of the
        /// probability.
        limit: Limit = Limit::Packets(1000), source "as for red";
        /// Whether a hit raises the probability for its packet.
        variant: SredForm = SredForm::Simple, source "Ott et al. 1999: simple SRED, full SRED";
        /// Number of flows in the list, M.
        zombies: u64 = 1000, in 1 => 1_000_000, source "Ott et al. 1999";
        /// The probability with which a packet replaces a zombie of another flow, p.
        replacement: f64 = 0.25, in 0.0 => 1.0, source "Ott et al. 1999";
        /// The weight of each arrival in the frequency of hits; `auto`: replacement / zombies,
        /// the rate at which the list forgets.
        alpha: Auto<f64> = Auto::Auto, in Auto::Set(1e-9) => Auto::Set(1.0),
            source "Ott et al. 1999; as in ns-2 and ns-3";
        /// The drop probability of a queue from a third of the limit on, with many flows.
        max_p: f64 = 0.15, in 0.0 => 1.0, source "Ott et al. 1999";
        /// The number of flows from which on the probability does not grow further.
        many_flows: f64 = 256.0, in 1.0 => 1e9, source "Ott et al. 1999";
        /// Marks ECN-capable packets instead of dropping them at random.
        ecn: bool = false, source "RFC 3168, section 5; not in the paper";
    }
}

impl Component for SredParams {
    const NAME: &'static str = "sred";
    const SUMMARY: &'static str = "RED stabilized by an estimate of the number of flows";

    fn check(&self) -> Result<()> {
        if self.limit == Limit::Unlimited {
            let allowed = "a limit of some length: the probability goes by its thirds";
            return Err(Error::not_allowed("unlimited", allowed).at("limit"));
        }
        if self.alpha == Auto::Auto && self.replacement == 0.0 {
            let allowed = "more than 0, or a number for `alpha`";
            return Err(Error::not_allowed(self.replacement, allowed).at("replacement"));
        }
        Ok(())
    }
}

impl OneMachine for SredParams {
    type Machine = OneQueue<Sred>;
    const FIXED: &'static [&'static str] = &["variant"];
}

/// The frequency of hits.
#[derive(Clone)]
struct Estimate {
    zombies: Vec<u32>,
    /// Maximum number of zombies.
    places: usize,
    replacement: f64,
    alpha: f64,
    /// P(t); 0 until there is a hit.
    frequency: f64,
}

impl Estimate {
    fn new(params: &SredParams) -> Self {
        Estimate {
            zombies: Vec::with_capacity(params.zombies as usize),
            places: params.zombies as usize,
            replacement: params.replacement,
            alpha: params.alpha.or_else(|| params.replacement / params.zombies as f64),
            frequency: 0.0,
        }
    }

    /// A shorter list forgets the zombies at its end; a longer one fills up first.
    fn change(&mut self, new: Estimate) {
        let mut zombies = core::mem::take(&mut self.zombies);
        zombies.truncate(new.places);
        *self = Estimate { zombies, frequency: self.frequency, ..new };
    }

    /// A packet arrives: whether it hit; `None` while the list fills up.
    fn update(&mut self, packet: &Packet, cx: &mut Context<'_>) -> Option<bool> {
        let flow = packet.flow_hash();
        if self.zombies.len() < self.places {
            self.zombies.push(flow);
            return None;
        }
        // Multiply-shift: uniform but for less than 2^-32 times the list.
        let index = ((u64::from(cx.random.next_u32()) * self.places as u64) >> 32) as usize;
        let hit = self.zombies[index] == flow;
        if !hit && cx.random.uniform() < self.replacement {
            self.zombies[index] = flow;
        }
        self.frequency =
            (1.0 - self.alpha) * self.frequency + self.alpha * f64::from(u8::from(hit));
        Some(hit)
    }
}

/// The state machine.
#[derive(Clone)]
pub(crate) struct Sred {
    params: SredParams,
    /// Resolved.
    limit: Limit,
    estimate: Estimate,
}

impl Sred {
    /// By the queue alone, p_sred: nothing below a sixth of the limit, all
    /// from a third on, a quarter between.
    fn by_length(&self, backlog: Backlog) -> f64 {
        match backlog.against(self.limit) {
            (length, limit) if 3 * length >= limit => self.params.max_p,
            (length, limit) if 6 * length >= limit => self.params.max_p / 4.0,
            _ => 0.0,
        }
    }

    /// The drop probability, p_zap.
    fn probability(&self, backlog: Backlog, hit: bool) -> f64 {
        let flows = 1.0 / self.estimate.frequency;
        let load = (flows / self.params.many_flows).min(1.0);
        let simple = self.by_length(backlog) * load * load;
        match self.params.variant {
            SredForm::Full if hit => simple * (1.0 + flows),
            _ => simple,
        }
    }
}

impl Aqm for Sred {
    type Params = SredParams;

    fn new(params: &SredParams, env: &LinkEnv) -> OneQueue<Self> {
        let limit = params.limit.resolve(env.rate, env.base_rtt);
        let sred = Sred { params: params.clone(), limit, estimate: Estimate::new(params) };
        OneQueue::new(QueueLimit::new(params.limit, None, env), sred)
    }

    fn change(&mut self, new: Self, _: &mut Fifo, _: &mut Context<'_>) {
        (self.limit, self.params) = (new.limit, new.params);
        self.estimate.change(new.estimate);
    }

    fn enqueue(
        &mut self,
        fifo: &mut Fifo,
        room: QueueLimit,
        mut packet: Packet,
        cx: &mut Context<'_>,
    ) {
        let hit = self.estimate.update(&packet, cx);
        let backlog = fifo.backlog();
        if !room.admits(backlog, packet.size()) {
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        if hit.is_some_and(|hit| cx.random.uniform() < self.probability(backlog, hit)) {
            let Some(marked) = cx.signal(packet, self.params.ecn, Reason::Sred) else { return };
            packet = marked;
        }
        fifo.push(packet);
    }

    fn observe(&self, fifo: &Fifo, see: &mut dyn FnMut(&'static str, f64)) {
        see("hit_frequency", self.estimate.frequency);
        see("drop_probability", self.probability(fifo.backlog(), false));
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::{Bytes, Ecn, Stream, Time};

    use super::*;
    use crate::queue::Queue;
    use crate::testing::{self, TestPacket, env, queue, seen};

    const SRED: usize = Reason::Sred as usize;
    fn offer(queue: &mut Queue, packet: Packet) {
        testing::offer(queue, [packet]);
    }
    fn frequency(queue: &Queue) -> f64 {
        seen(queue, "hit_frequency")
    }

    #[test]
    fn one_zombie_remembers_the_last_flow_or_the_first() {
        let alpha = Auto::Set(0.5);
        for (replacement, expected) in
            [(1.0, [0.0, 0.5, 0.25, 0.625, 0.3125]), (0.0, [0.0, 0.5, 0.25, 0.125, 0.5625])]
        {
            let params = SredParams { zombies: 1, replacement, alpha, ..SredParams::default() };
            let mut queue = queue(&params);
            for (flow, expected) in [7, 7, 8, 8, 7].into_iter().zip(expected) {
                offer(&mut queue, Packet::of_flow(flow));
                assert_eq!(frequency(&queue), expected, "{replacement}, flow {flow}");
            }
        }
    }

    /// Packets at random of n flows hit once in n times, and of one that
    /// sends half and 20 that send the rest: 1/4 + 20/40^2.
    #[test]
    fn one_over_the_frequency_is_the_number_of_flows() {
        let measured = |flow: &mut dyn FnMut(&mut Stream) -> u32| {
            let mut queue = queue(&SredParams::default());
            let mut random = Stream::from_state(5);
            let (mut sum, mut count) = (0.0, 0);
            for i in 0..120_000 {
                offer(&mut queue, Packet::of_flow(flow(&mut random)));
                queue.dequeue(Time::ZERO);
                if i >= 40_000 {
                    sum += frequency(&queue);
                    count += 1;
                }
            }
            sum / f64::from(count)
        };
        for flows in [5, 20, 100] {
            let frequency = measured(&mut |random| random.next_u32() % flows);
            let estimated = 1.0 / frequency / f64::from(flows);
            assert!((estimated - 1.0).abs() < 0.1, "{flows} flows: {estimated}");
        }
        let greedy = |random: &mut Stream| match random.next_u32() % 40 {
            it @ 0..20 => it,
            _ => 20,
        };
        let frequency = measured(&mut { greedy });
        assert!((frequency - 0.2625).abs() < 0.02, "{frequency}");
    }

    /// The drop probability with a queue of packets and a frequency of hits.
    fn probability(packets: u64, frequency: f64, params: &SredParams, hit: bool) -> f64 {
        let mut sred = Sred::new(params, &env()).aqm;
        sred.estimate.frequency = frequency;
        sred.probability(Backlog { packets, bytes: 1500 * packets }, hit)
    }

    #[test]
    fn the_probability_goes_by_sixths_and_thirds_of_the_limit() {
        let packets = SredParams { limit: Limit::Packets(60), ..SredParams::default() };
        let limit = Limit::Bytes(Bytes::new(90_000));
        let bytes = SredParams { limit, ..SredParams::default() };
        for params in [packets, bytes] {
            for (length, expected) in
                [(0, 0.0), (9, 0.0), (10, 0.0375), (19, 0.0375), (20, 0.15), (59, 0.15)]
            {
                assert_eq!(probability(length, 0.0, &params, false), expected, "{length}");
            }
        }
    }

    #[test]
    fn the_probability_goes_by_the_square_of_the_flows_up_to_256() {
        let simple = SredParams { limit: Limit::Packets(60), ..SredParams::default() };
        let full = SredParams { variant: SredForm::Full, ..simple.clone() };
        for (flows, factor) in [(1.0, 1.0 / 65_536.0), (64.0, 1.0 / 16.0), (256.0, 1.0)] {
            for (hit, variant, more) in
                [(true, &simple, 1.0), (false, &full, 1.0), (true, &full, 1.0 + flows)]
            {
                let p = probability(30, 1.0 / flows, variant, hit);
                assert!((p / (0.15 * factor * more) - 1.0).abs() < 1e-12, "{flows}, {hit}: {p}");
            }
        }
        assert_eq!(probability(30, 1.0 / 1000.0, &simple, true), 0.15);
    }

    /// Without any hits, as every packet is a flow of its own, max_p applies:
    /// of 1, at a third of the limit.
    #[test]
    fn many_flows_are_kept_below_a_third() {
        let params = SredParams {
            limit: Limit::Packets(60),
            max_p: 1.0,
            zombies: 10,
            ..SredParams::default()
        };
        let mut dropping = queue(&params);
        let mut marking = queue(&SredParams { ecn: true, ..params });
        for flow in 0..200 {
            offer(&mut dropping, Packet::of_flow(flow));
            offer(&mut marking, Packet::of_flow(flow).with_ecn(Ecn::Ect0));
        }
        assert_eq!(dropping.backlog().packets, 20);
        assert_eq!(dropping.counts().dropped[SRED], 180);
        let counts = marking.counts();
        assert_eq!((marking.backlog().packets, counts.dropped[SRED]), (60, 0));
        // From 20 to 59 packets all, before that a quarter.
        assert!((40..50).contains(&counts.marked[SRED]), "{counts:?}");
    }

    /// Share delivered of a flow that sends as much as 60 others, where the link sends two packets
    /// of three.
    fn share_of_the_greedy(variant: SredForm) -> f64 {
        let limit = Limit::Packets(90);
        let params = SredParams { variant, limit, many_flows: 4.0, ..SredParams::default() };
        let mut random = Stream::from_state(3);
        // The numbers of flows are those of the list: all that matters is which are equal.
        let flows = (0..90_000).map(|_| (random.next_u32() % 120).saturating_sub(59));
        testing::share_of_the_first(queue(&params), flows)
    }

    #[test]
    fn full_sred_takes_more_from_a_greedy_flow() {
        let (simple, full) =
            (share_of_the_greedy(SredForm::Simple), share_of_the_greedy(SredForm::Full));
        assert!((simple - 0.5).abs() < 0.03, "simple {simple}");
        assert!(full < simple - 0.05, "simple {simple}, full {full}");
    }
}
