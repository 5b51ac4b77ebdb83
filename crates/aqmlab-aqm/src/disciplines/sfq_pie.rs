//! SFQ-PIE: stochastic fair queueing with PIE.
//!
//! # Model
//! The buckets and turns of [`sfq_codel`](crate::disciplines::sfq_codel). One PIE, of the whole
//! queue, decides on arriving packets; a packet meets its probability times
//! the length of its bucket over that of the longest. So the flow that builds
//! the queue answers for it, and one that does not is spared. With
//! `variant = per-bucket` each bucket has a PIE of its own.
//!
//! # Sources
//! - White, "Active Queue Management in DOCSIS 3.x Cable Modems", CableLabs,
//!   May 2014, as described in ns-3's documentation of FQ-PIE; the paper
//!   itself was not at hand.
//! - RFC 8033 for PIE, in Linux's integers: see the file `pie/linux.rs`.
//! - ns-2's sfqCoDel for the buckets and turns.
//!
//! # Differences
//! 1. What the description leaves open is decided so: lengths are bytes; the
//!    probability is scaled before drops are kept apart from each other; PIE's
//!    rule of two packets looks at the whole queue.
//! 2. The delay of the whole queue is its length over the measured departure
//!    rate: the sojourn time of one packet says little about the other buckets.
//!    (A cable modem knows its rate.) With a PIE in each bucket it is the
//!    sojourn time, unless `delay = rate`.
//! 3. There is no recorded run of it: it is tested by unit and property tests.

use alloc::boxed::Box;

use aqmlab_core::{Bytes, Component, Limit, Packet, Span, Time, choices, params};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};
use crate::disciplines::pie::linux::{PieSettings, PieState};
use crate::disciplines::pie::{self, DelaySource, PieParams};
use crate::fq::hash::Sharing;
use crate::fq::sfqcodel_round_robin::Ring;
use crate::fq::{FIXED, Fq, FqParams, NoAqm, Overflow};

choices! {
    /// Drop probability of a packet.
    pub enum ProbabilityScope {
        /// Probability of the whole queue, by the length of the packet's bucket.
        CableLabs = "cablelabs",
        /// Probability of the packet's bucket.
        PerBucket = "per-bucket",
    }
}

params! {
    /// Parameters of SFQ-PIE.
    pub struct SfqPieParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "as for sfq_codel";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(1000), source "as for sfq_codel";
        /// The delay to keep.
        target: Span = Span::from_millis(15), in Span::from_nanos(128) => Span::from_secs(100),
            source "RFC 8033, section 4.2; 10 ms in RFC 8034, section 4.2";
        /// Time between two updates of the drop probability.
        tupdate: Span = Span::from_millis(15), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Length of a burst that passes without early drops.
        max_burst: Span = Span::from_millis(150), in Span::ZERO => Span::from_secs(100),
            source "RFC 8033, section 4.4";
        /// Weight of the deviation from the target, per second; rounded to 1/16.
        alpha: f64 = 0.125, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Weight of the trend, per second; rounded to 1/16.
        beta: f64 = 1.25, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Source of the delay estimate; `none`: the rate for the whole queue, timestamps
        /// for buckets.
        delay: Option<DelaySource> = None, source "RFC 8033, sections 4.3 and 5.2";
        /// Backlog needed to start a departure rate sample, and the amount that must leave
        /// to complete it.
        dq_threshold: Bytes = Bytes::new(16_384), in Bytes::new(1) => Bytes::new(65_536),
            source "RFC 8033, section 5.2";
        /// Marks ECN-capable packets instead of dropping them early.
        ecn: bool = false, source "RFC 8033, section 5.1";
        /// The drop probability, in percent, above which they are dropped as well.
        ecn_prob: u64 = 10, in 0 => 100, source "RFC 8033, section 5.1";
        /// Drops larger packets with a larger probability.
        by_size: bool = false, source "tc-pie(8), bytemode";
        /// Whose probability a packet meets.
        variant: ProbabilityScope = ProbabilityScope::CableLabs, source "White 2014; ns-3, FQ-PIE";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    }
}

impl Component for SfqPieParams {
    const NAME: &'static str = "sfq_pie";
    const SUMMARY: &'static str = "stochastic fair queueing, PIE by the length of the bucket";
}

impl Discipline for SfqPieParams {
    fn fixed(&self) -> &'static [&'static str] {
        FIXED
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        let settings = self.pie(env);
        match self.variant {
            ProbabilityScope::PerBucket => {
                Box::new(Fq::<PieState, Ring>::with(self.fq(settings, env)))
            }
            ProbabilityScope::CableLabs => Box::new(SfqPie {
                fq: Fq::with(self.fq((), env)),
                state: PieState::new(&settings),
                next_update: Time::ZERO + settings.update_period,
                settings,
            }),
        }
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        let settings = self.pie(env);
        match self.variant {
            ProbabilityScope::PerBucket => {
                queue.machine::<Fq<PieState, Ring>>().rewrite(self.fq(settings, env), cx);
            }
            ProbabilityScope::CableLabs => {
                let queue = queue.machine::<SfqPie>();
                queue.fq.rewrite(self.fq((), env), cx);
                queue.settings = settings;
            }
        }
    }
}

impl SfqPieParams {
    fn pie(&self, env: &LinkEnv) -> PieSettings {
        let usual = match self.variant {
            ProbabilityScope::CableLabs => DelaySource::Rate,
            ProbabilityScope::PerBucket => DelaySource::Timestamps,
        };
        let pie = PieParams {
            target: self.target,
            tupdate: self.tupdate,
            max_burst: self.max_burst,
            alpha: self.alpha,
            beta: self.beta,
            delay: self.delay.unwrap_or(usual),
            dq_threshold: self.dq_threshold,
            ecn: self.ecn,
            by_size: self.by_size,
            variant: pie::PieArithmetic::LinuxClamped,
            ..PieParams::default()
        };
        PieSettings::new(&pie, env).marking_up_to(self.ecn_prob)
    }

    fn fq<S>(&self, settings: S, env: &LinkEnv) -> FqParams<'_, S> {
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: env.mtu,
            settings,
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::Tail,
            largest: 0,
        }
    }
}

/// One PIE in front of all buckets.
#[derive(Clone)]
struct SfqPie {
    fq: Fq<NoAqm, Ring>,
    state: PieState,
    settings: PieSettings,
    next_update: Time,
}

impl QueueDiscipline for SfqPie {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if !self.fq.has_room(packet.size()) {
            self.state.refused();
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        let backlog = self.fq.backlog().bytes;
        let bucket = self.fq.bucket_of(&packet);
        let fq = &self.fq;
        let scale = |p: u64| match p {
            0 => 0,
            p => {
                let (own, most) = fq.bytes_and_most(bucket);
                (u128::from(p) * u128::from(own) / u128::from(most.max(1))) as u64
            }
        };
        if let Some(packet) = self.state.admit_scaled(&self.settings, packet, backlog, scale, cx) {
            self.fq.enqueue(packet, cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = self.fq.dequeue(cx)?;
        self.state.departed(&self.settings, &packet, self.fq.backlog().bytes, cx.now);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        let change = self.fq.next_wakeup();
        Some(change.map_or(self.next_update, |change| change.min(self.next_update)))
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        self.fq.on_wakeup(cx);
        if self.next_update <= cx.now {
            self.next_update += self.settings.update_period;
            self.state.update(&self.settings, self.fq.backlog().bytes);
        }
    }

    fn backlog(&self) -> Backlog {
        self.fq.backlog()
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.fq.observe(see);
        see("drop_probability", self.state.probability());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPacket, at, queue, serve};

    /// A flow of twice the link's rate and one of a tenth, for a minute. All drops are early.
    #[test]
    fn the_flow_that_builds_the_queue_answers_for_it() {
        for variant in [ProbabilityScope::CableLabs, ProbabilityScope::PerBucket] {
            let mut queue = queue(&SfqPieParams { variant, ..SfqPieParams::default() });
            let flows = (0..).flat_map(|ms| [(0, 3), (1, 60)].map(|(flow, gap)| (ms, flow, gap)));
            let arrivals = flows.filter(|(ms, _, gap)| ms % gap == 0);
            let arrivals = arrivals.map(|(ms, flow, _)| (at(ms), Packet::of_flow(flow)));
            let dropped = serve(&mut queue, arrivals, Span::from_secs(60));
            assert!(dropped.iter().all(|(_, _, reason)| *reason == Reason::Pie));
            // 20,000 packets of the one arrive, and 9,000 of them can leave.
            let light = dropped.iter().filter(|(_, packet, _)| packet.flow_hash() == 1).count();
            let heavy = dropped.len() - light;
            assert!((10_500..11_500).contains(&heavy), "{variant:?}: {heavy}");
            assert_eq!(light, 0, "{variant:?}");
        }
    }
}
