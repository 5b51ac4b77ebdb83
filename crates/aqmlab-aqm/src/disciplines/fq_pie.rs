//! FQ-PIE: deficit round robin between flows, PIE in each.
//!
//! # Model
//! The scheduler of [`fq_codel`](crate::disciplines::fq_codel); in place of CoDel each flow
//! has a PIE of its own, which decides on arriving packets by the delay of the
//! flow. One timer moves the drop probabilities of all flows.
//!
//! # Sources
//! Linux's qdisc as recorded in the conformance vectors; RFC 8033 and RFC 8290
//! for its parts; tc-fq_pie(8) for the parameters.
//!
//! # Differences
//! From RFC 8033: those of Linux, see [`pie`]. In common with Linux, fq_pie_timer, one run of the
//! timer updates 2048 buckets, the next run 1 ms later others: with more buckets the period is
//! longer. From Linux:
//! 1. The first update is one period after the start, there after 500 ms.
//! 2. There is no memory limit: Linux counts how often it is exceeded, and
//!    drops nothing for it.
//! 3. Hashing, and the quantum if none is given, as in
//!    [`fq_codel`](crate::disciplines::fq_codel).

use aqmlab_core::words::{Dialect, Effect, Form, Word};
use aqmlab_core::{Bytes, Component, Limit, Packet, Span, choices, params};

use crate::discipline::{Context, LinkEnv, OneMachine};
use crate::disciplines::codel::Source;
use crate::disciplines::pie::linux::{PieSettings, PieState};
use crate::disciplines::pie::{self, DelaySource, PieParams};
use crate::fq::drr::Drr;
use crate::fq::hash::Sharing;
use crate::fq::{FIXED, FlowAqm, FlowQueues, FlowSource, Fq, FqParams, LEAST_QUANTUM, Overflow};

choices! {
    /// Whose arithmetic.
    pub enum FqPieArithmetic {
        /// Linux's: the probability may go above 1.
        Linux = "linux",
        /// The same with the probability limited to 1.
        LinuxClamped = "linux-clamped",
    }
}

params! {
    /// Parameters of FQ-PIE.
    pub struct FqPieParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "tc-fq_pie(8)";
        /// Bytes that a flow may send before the next is served, 256 at least.
        quantum: Bytes = Bytes::new(1514), in Bytes::new(1) => Bytes::new(1_000_000),
            source "tc-fq_pie(8); RFC 8290, section 5.2.3";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(10_240), source "tc-fq_pie(8)";
        /// The delay to keep in each flow's queue.
        target: Span = Span::from_millis(15), in Span::from_nanos(128) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Time between two updates of the drop probabilities.
        tupdate: Span = Span::from_millis(15), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8033, section 4.2";
        /// Length of a flow's burst that passes without early drops.
        max_burst: Span = Span::from_millis(150), in Span::ZERO => Span::from_secs(100),
            source "RFC 8033, section 4.4; fixed in Linux";
        /// Source of the delay estimate.
        delay: DelaySource = DelaySource::Timestamps, source "RFC 8033, sections 4.3 and 5.2";
        /// Weight of the deviation from the target, per second; rounded to 1/16.
        alpha: f64 = 0.125, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Weight of the trend, per second; rounded to 1/16.
        beta: f64 = 1.25, in 0.0 => 1e3, source "RFC 8033, appendix A";
        /// Marks ECN-capable packets instead of dropping them early.
        ecn: bool = false, source "tc-fq_pie(8)";
        /// The drop probability, in percent, above which they are dropped as well.
        ecn_prob: u64 = 10, in 0 => 100, source "tc-fq_pie(8); RFC 8033, section 5.1";
        /// Drops larger packets with a larger probability.
        by_size: bool = false, source "tc-fq_pie(8), bytemode";
        /// Whose PIE: Linux's as it is, or with the probability limited to 1 as it is meant.
        variant: FqPieArithmetic = FqPieArithmetic::LinuxClamped, source "RFC 8033, section 4.2; conformance vectors";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    } words TC
}

/// tc-fq_pie(8).
const TC: &[Dialect] = &[Dialect {
    kind: "fq_pie",
    source: "tc-fq_pie(8)",
    fixed: &[("variant", "linux")],
    words: &[
        super::pie::TC_WORDS,
        &[
            Word::value("flows", "flows", Form::Plain),
            Word::value("quantum", "quantum", Form::Size),
            Word::value("ecn_prob", "ecn_prob", Form::Plain),
            Word {
                word: "memory_limit",
                effect: Effect::Same {
                    form: Form::Size,
                    value: "33554432b",
                    why: "Linux's default; the memory of packets is not modelled",
                },
            },
        ],
    ],
    ..Dialect::EMPTY
}];

impl Component for FqPieParams {
    const NAME: &'static str = "fq_pie";
    const SUMMARY: &'static str = "a queue for each flow, new flows first, PIE in each";
}

impl OneMachine for FqPieParams {
    type Machine = Fq<PieState, Drr>;
    const FIXED: &'static [&'static str] = FIXED;
}

impl FlowQueues<PieState> for FqPieParams {
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, PieSettings> {
        let pie = PieParams {
            target: self.target,
            tupdate: self.tupdate,
            max_burst: self.max_burst,
            delay: self.delay,
            alpha: self.alpha,
            beta: self.beta,
            ecn: self.ecn,
            by_size: self.by_size,
            variant: match self.variant {
                FqPieArithmetic::Linux => pie::PieArithmetic::Linux,
                FqPieArithmetic::LinuxClamped => pie::PieArithmetic::LinuxClamped,
            },
            ..PieParams::default()
        };
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: self.quantum.max(Bytes::new(LEAST_QUANTUM)),
            settings: PieSettings::of_linux(&pie, env).marking_up_to(self.ecn_prob),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::Tail,
            largest: 0,
        }
    }
}

impl FlowAqm for PieState {
    type Settings = PieSettings;

    fn new(settings: &PieSettings) -> Self {
        PieState::new(settings)
    }
    #[inline]
    fn enqueue(
        &mut self,
        settings: &PieSettings,
        packet: Packet,
        backlog: u64,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        self.admit(settings, packet, backlog, cx)
    }
    #[inline]
    fn dequeue(
        &mut self,
        settings: &PieSettings,
        source: &mut FlowSource<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        let packet = source.pop()?;
        self.departed(settings, &packet, source.flow_bytes(), cx.now);
        Some(packet)
    }
    fn refused(&mut self) {
        PieState::refused(self);
    }
    fn period(settings: &PieSettings) -> Option<Span> {
        Some(settings.update_period)
    }
    fn buckets_at_once(settings: &PieSettings) -> u32 {
        settings.buckets_at_once
    }
    fn tick(&mut self, settings: &PieSettings, backlog: u64) -> bool {
        // What an update does to an empty queue depends on nothing else: a
        // state that it left as it was will stay.
        let before = *self;
        self.update(settings, backlog);
        *self != before
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Time;

    use super::*;
    use crate::testing::{TestPacket, at, offer, queue};

    #[test]
    fn a_turn_has_256_bytes_at_least() {
        // fq_pie_change of Linux 6.1.192. Two packets of 128 bytes are one turn.
        for (quantum, expected) in [(1, [0, 0, 1, 1]), (256, [0, 0, 1, 1]), (128, [0, 0, 1, 1])] {
            let params = FqPieParams { quantum: Bytes::new(quantum), ..FqPieParams::default() };
            let mut queue = queue(&params);
            offer(&mut queue, [0, 1, 0, 1].map(|flow| Packet::of_flow(flow).with_size(128)));
            let order = [(); 4].map(|()| queue.dequeue(Time::ZERO).unwrap().flow_hash());
            assert_eq!(order, expected, "{quantum}");
        }
    }

    #[test]
    fn more_than_2048_buckets_are_updated_in_several_runs() {
        for (flows, times) in [(2048, [16, 32, 48]), (2049, [16, 17, 33]), (5000, [16, 17, 18])] {
            let mut queue = queue(&FqPieParams { flows, ..FqPieParams::default() });
            for millis in times {
                assert_eq!(queue.next_wakeup(), Some(at(millis)), "{flows}");
                queue.on_wakeup(at(millis));
            }
        }
    }
}
