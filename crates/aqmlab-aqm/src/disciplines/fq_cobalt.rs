//! FQ-COBALT: deficit round robin between flows, COBALT in each.
//!
//! # Model
//! The scheduler of [`fq_codel`](crate::disciplines::fq_codel); in place of CoDel each flow has the COBALT
//! of [`cake`](crate::disciplines::cake): CoDel's control law whose count decays, and BLUE against
//! flows that do not answer.
//!
//! # Sources
//! - Palmei et al., "Design and Evaluation of COBALT Queue Discipline", IEEE
//!   LANMAN 2019, and ns-3's FqCobalt, whose parameters these are.
//! - The arithmetic of COBALT is Linux's sch_cake's, see the file `cobalt.rs`; that
//!   of the flow queues is RFC 8290's.
//!
//! # Differences
//! 1. COBALT is Linux's and not ns-3's: the last packet of a flow is never
//!    dropped, and times are nanoseconds.
//! 2. The state of an empty flow stays as it is until its next packet arrives; cake has its list of
//!    decaying flows for that.
//! 3. BLUE always runs; ns-3 can bind it to a sojourn time.
//! 4. No run of a reference implementation was recorded: unit and property tests cover it.

use aqmlab_core::{Bytes, Component, Limit, Packet, Span, Time, params};

use crate::cobalt::{CobaltState, DOWN, InitialGrace, Law, UP};
use crate::discipline::{Context, LinkEnv, OneMachine, Reason};
use crate::disciplines::codel::Source;
use crate::fq::drr::Drr;
use crate::fq::hash::Sharing;
use crate::fq::{FIXED, FlowAqm, FlowQueues, FlowSource, Fq, FqParams, Overflow};

params! {
    /// Parameters of FQ-COBALT.
    pub struct FqCobaltParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "ns-3 FqCobalt, Flows; RFC 8290, section 5.2.4";
        /// Bytes that a flow may send before the next is served.
        quantum: Bytes = Bytes::new(1514), in Bytes::new(1) => Bytes::new(1_000_000),
            source "RFC 8290, section 5.2.3";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(10_240), source "ns-3 FqCobalt, MaxSize; RFC 8290, section 5.2.5";
        /// Memory of all queues together.
        memory_limit: Bytes = Bytes::new(32 << 20), in Bytes::new(1) => Bytes::new(1 << 40),
            source "tc-fq_codel(8)";
        /// The most packets dropped at once when there is no room.
        drop_batch: u64 = 64, in 1 => 1_000_000, source "ns-3 FqCobalt, DropBatchSize; RFC 8290, section 4.1.3";
        /// The sojourn time that a flow's queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "ns-3 FqCobalt, Target; tc-cake(8)";
        /// Time for which the delay may exceed the target.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(3600),
            source "ns-3 FqCobalt, Interval; tc-cake(8)";
        /// Increment of BLUE's probability when a flow's packets do not fit.
        increment: f64 = UP, in 0.0 => 1.0, source "ns-3 FqCobalt, Increment; fixed in Linux";
        /// Decrement of BLUE's probability when a flow is empty.
        decrement: f64 = DOWN, in 0.0 => 1.0, source "ns-3 FqCobalt, Decrement; fixed in Linux";
        /// Linux's COBALT as it is, or with its first interval as it is meant.
        variant: InitialGrace = InitialGrace::LinuxInitfix, source "conformance vectors of cake";
        /// Marks ECN-capable packets where the control law would drop them.
        ecn: bool = true, source "ns-3 FqCobalt, UseEcn; always in cake";
        /// Mark ECN-capable packets that waited longer than this; `none` for never.
        ce_threshold: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(100)),
            source "ns-3 FqCobalt, CeThreshold";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    }
}

impl Component for FqCobaltParams {
    const NAME: &'static str = "fq_cobalt";
    const SUMMARY: &'static str = "a queue for each flow, new flows first, COBALT in each";
}

impl OneMachine for FqCobaltParams {
    type Machine = Fq<CobaltState, Drr>;
    const FIXED: &'static [&'static str] = FIXED;
}

impl FlowQueues<CobaltState> for FqCobaltParams {
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, CobaltSettings> {
        let law = Law::new(self.target, self.interval, self.variant)
            .with_blue(self.increment, self.decrement);
        let memory_limit = self.memory_limit.get();
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: self.quantum,
            settings: CobaltSettings { law, ecn: self.ecn, ce_threshold: self.ce_threshold },
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::LongestFlow { batch: self.drop_batch, memory_limit },
            largest: 0,
        }
    }
}

/// Constants of a run.
#[derive(Clone)]
pub(crate) struct CobaltSettings {
    law: Law,
    ecn: bool,
    ce_threshold: Option<Span>,
}

impl FlowAqm for CobaltState {
    type Settings = CobaltSettings;

    fn new(settings: &CobaltSettings) -> Self {
        CobaltState::new(&settings.law)
    }
    fn dequeue(
        &mut self,
        settings: &CobaltSettings,
        source: &mut FlowSource<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        while let Some(packet) = source.pop() {
            let is_last = source.flow_bytes() == 0;
            match self.release(&settings.law, Span::ZERO, packet, is_last, settings.ecn, cx) {
                Ok(mut packet) => {
                    let sojourn = cx.now - packet.arrival();
                    let is_late = settings.ce_threshold.is_some_and(|most| sojourn > most);
                    if is_late && packet.ecn().is_capable() {
                        cx.mark(&mut packet, Reason::Cobalt);
                    }
                    return Some(packet);
                }
                Err((packet, reason)) => cx.drop(packet, reason),
            }
        }
        self.ran_empty(&settings.law, cx.now);
        None
    }
    fn overflowed(&mut self, settings: &CobaltSettings, _packets: u64, now: Time) {
        CobaltState::overflowed(self, &settings.law, now);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Ecn;

    use super::*;
    use crate::queue::Counts;
    use crate::testing::{TestPacket, at, queue, run_with, serve};

    /// Three times the link's rate for ten seconds.
    fn counts(params: &FqCobaltParams, ecn: Ecn) -> Counts {
        let mut queue = queue(params);
        run_with(&mut queue, Span::from_millis(2), 10, ecn);
        queue.counts()
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_target() {
        // A packet every 2 ms, 6 ms to send one: packet k leaves at 6k ms and
        // arrived at 2k ms. The one that leaves at 12 ms is the first above 5 ms,
        // and an interval later, at 112 ms, a drop is due: at 114 ms.
        let mut queue = queue(&FqCobaltParams::default());
        let arrivals = (0..).map(|i| (at(2 * i), Packet::of_ecn(Ecn::NotEct)));
        let dropped = serve(&mut queue, arrivals, Span::from_millis(115));
        let times: Vec<Time> = dropped.iter().map(|(time, ..)| *time).collect();
        assert_eq!(times, [at(114)]);
    }

    #[test]
    fn all_packets_above_the_threshold_are_marked() {
        let early = FqCobaltParams { ce_threshold: Some(Span::ZERO), ..Default::default() };
        // All but the first, which leaves at once.
        let early = counts(&early, Ecn::Ect0);
        assert!(early.marked[Reason::Cobalt as usize] >= early.delivered - 1);
    }

    #[test]
    fn blue_answers_to_overflow_with_its_own_steps() {
        let blue = |increment| {
            let limit = Limit::Packets(20);
            let params = FqCobaltParams { limit, increment, ..Default::default() };
            counts(&params, Ecn::NotEct).dropped[Reason::Blue as usize]
        };
        assert_eq!(blue(0.0), 0);
        assert!(blue(UP) > 0);
        assert!(blue(0.05) > blue(UP));
    }
}
