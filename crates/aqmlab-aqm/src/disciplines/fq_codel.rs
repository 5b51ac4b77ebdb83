//! FQ-CoDel: deficit round robin between flows, CoDel in each.
//!
//! # Model
//! Packets are hashed into buckets. A flow that becomes active goes to the
//! list of new flows and is served before the old ones for one quantum, so
//! that flows that build no queue do not wait for those that do.
//!
//! # Sources
//! RFC 8290; with `variant = linux`, the qdisc of Linux as recorded in the
//! conformance vectors.
//!
//! # Differences
//! 1. The bucket is the packet's flow hash modulo the number of buckets; the simulator draws new
//!    hashes in every replication (RFC 8290, section 4.1.1, perturbation). Sets of buckets, queues
//!    for hosts and changes of the hash (see the file `fq/hash.rs`) are options that Linux does not
//!    have.
//! 2. The memory of a packet is its size on the wire; Linux counts the
//!    kernel's buffers.
//! 3. The quantum is 1514 bytes if none is given; Linux takes the device's largest packet.
//! 4. A flow that CoDel has not dropped from takes up no count; in Linux, where its last drop was at
//!    0, it does in the second half of every 73 minutes of uptime (codel_time_before).
//!
//! In common with Linux 6.1.192: a flow that runs empty forgets since when its delay is above the
//! target. Linux 6.18.35 still keeps it (`codel_dequeue`), so that the first packet of a thin flow
//! after a pause may be dropped.

use aqmlab_core::words::{Dialect, Form, Word};
use aqmlab_core::{Bytes, Component, Limit, Packet, Span, Time, choices, params};

use crate::discipline::{Context, LinkEnv, OneMachine};
use crate::disciplines::codel::{CodelForm, CodelParams, CodelSettings, CodelState, DsSelector};
use crate::fq::drr::Drr;
use crate::fq::hash::Sharing;
use crate::fq::{FIXED, FlowAqm, FlowQueues, FlowSource, Fq, FqParams, LEAST_QUANTUM, Overflow};

choices! {
    /// Queue that must hold more than one full packet before CoDel drops.
    pub enum SmallBacklog {
        /// All queues together, as in Linux.
        All = "all",
        /// The flow's own queue: RFC 8289, section 5.5, for each of them, as in ns-3.
        Flow = "flow",
    }
}

params! {
    /// Parameters of FQ-CoDel.
    pub struct FqCodelParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "RFC 8290, section 5.2.4";
        /// Bytes that a flow may send before the next is served; 256 at least with `variant = linux`.
        quantum: Bytes = Bytes::new(1514), in Bytes::new(1) => Bytes::new(1_000_000),
            source "RFC 8290, section 5.2.3";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(10_240), source "RFC 8290, section 5.2.5";
        /// Memory of all queues together.
        memory_limit: Bytes = Bytes::new(32 << 20), in Bytes::new(1) => Bytes::new(1 << 40),
            source "tc-fq_codel(8)";
        /// The most packets dropped at once when there is no room.
        drop_batch: u64 = 64, in 1 => 1_000_000, source "RFC 8290, section 4.1.3; tc-fq_codel(8)";
        /// The sojourn time that a flow's queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "RFC 8290, section 5.2.2";
        /// Time for which the delay may exceed the target.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8290, section 5.2.1";
        /// CoDel's count recall.
        variant: CodelForm = CodelForm::Rfc8289, source "RFC 8289, section 5.5";
        /// Backlog that CoDel compares with one full packet before it may drop: that of all
        /// flows, or of the flow alone.
        small_backlog: SmallBacklog = SmallBacklog::All,
            source "Linux: sch_fq_codel.c, fq_codel_dequeue; RFC 8289, section 5.5, and ns-3: flow";
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = true, source "RFC 8290, section 5.2.6; on in Linux";
        /// Mark ECN-capable packets that waited longer than this; `none` for never.
        ce_threshold: Option<Span> = None, in Some(Span::ZERO) => Some(Span::from_secs(100)),
            source "RFC 8290, section 5.2.7";
        /// The packets that `ce_threshold` is for: a value and a mask of their DS field, such as
        /// 0x1/0x3 for ECT(1); `none` for all.
        ce_threshold_selector: Option<DsSelector> = None,
            source "tc-fq_codel(8); Linux: codel_impl.h, codel_dequeue";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    } words TC
}

/// tc-fq_codel(8).
const TC: &[Dialect] = &[Dialect {
    kind: "fq_codel",
    source: "tc-fq_codel(8)",
    fixed: &[("variant", "linux")],
    words: &[
        super::codel::TC_WORDS,
        &[
            Word::value("flows", "flows", Form::Plain),
            Word::value("quantum", "quantum", Form::Size),
            Word::value("memory_limit", "memory_limit", Form::Size),
            Word::value("drop_batch", "drop_batch", Form::Plain),
            Word::value("ce_threshold_selector", "ce_threshold_selector", Form::Plain),
        ],
    ],
    ..Dialect::EMPTY
}];

impl Component for FqCodelParams {
    const NAME: &'static str = "fq_codel";
    const SUMMARY: &'static str = "a queue for each flow, new flows first, CoDel in each";
}

impl OneMachine for FqCodelParams {
    type Machine = Fq<CodelState, Drr>;
    const FIXED: &'static [&'static str] = FIXED;
}

impl FlowQueues<CodelState> for FqCodelParams {
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, CodelSettings> {
        let codel = CodelParams {
            target: self.target,
            interval: self.interval,
            limit: self.limit,
            byte_limit: None,
            variant: self.variant,
            ecn: self.ecn,
            ce_threshold: self.ce_threshold,
        };
        let alone = self.small_backlog == SmallBacklog::Flow;
        let settings =
            CodelSettings::new(&codel, env).alone(alone).selecting(self.ce_threshold_selector);
        let memory_limit = self.memory_limit.get();
        let least = if self.variant == CodelForm::Linux { LEAST_QUANTUM } else { 1 };
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: self.quantum.max(Bytes::new(least)),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::LongestFlow { batch: self.drop_batch, memory_limit },
            largest: settings.smallest_backlog,
            settings,
        }
    }
}

impl FlowAqm for CodelState {
    type Settings = CodelSettings;

    fn new(settings: &CodelSettings) -> Self {
        CodelState::new(settings)
    }
    fn dequeue(
        &mut self,
        settings: &CodelSettings,
        source: &mut FlowSource<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        CodelState::dequeue(self, settings, source, cx)
    }
    fn overflowed(&mut self, _settings: &CodelSettings, packets: u64, _now: Time) {
        self.dropped_elsewhere(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPacket, queue};
    use aqmlab_core::{Ecn, Params};

    /// Ten flows keep two packets each, and a packet leaves every 1.2 ms: each waits 24 ms, always
    /// above the target, and leaves one behind it.
    fn dropped(small_backlog: SmallBacklog) -> u64 {
        let mut queue = queue(&FqCodelParams { small_backlog, ..FqCodelParams::default() });
        for flow in (0..10).chain(0..10) {
            queue.enqueue(Packet::of_flow(flow), Time::ZERO);
        }
        for step in 1..1000 {
            let now = Time::ZERO + Span::from_micros(1200) * step;
            let sent = queue.dequeue(now).expect("there are packets");
            let flow = sent.flow_hash();
            // Dropped packets are sent again, too.
            let mut missing = vec![flow];
            queue.take_dropped(|packet, _| missing.push(packet.flow_hash()));
            for flow in missing {
                queue.enqueue(Packet::of_flow(flow), now);
            }
        }
        queue.counts().dropped_total()
    }

    #[test]
    fn two_packets_of_a_flow_are_too_many_only_if_all_queues_are_compared() {
        assert_eq!(dropped(SmallBacklog::Flow), 0);
        assert!(dropped(SmallBacklog::All) > 10, "{}", dropped(SmallBacklog::All));
    }

    #[test]
    fn turns_have_at_least_256_bytes_in_linux() {
        let order = |variant| {
            let quantum = Bytes::new(1);
            let mut queue = queue(&FqCodelParams { quantum, variant, ..FqCodelParams::default() });
            for flow in [1, 1, 1, 1, 2] {
                queue.enqueue(Packet::of_flow(flow).with_size(100), Time::ZERO);
            }
            core::iter::from_fn(|| queue.dequeue(Time::ZERO))
                .map(|p| p.flow_hash())
                .collect::<Vec<_>>()
        };
        assert_eq!(order(CodelForm::Linux), [1, 1, 1, 2, 1]);
        assert_eq!(order(CodelForm::Rfc8289), [1, 2, 1, 1, 1]);
    }

    #[test]
    fn a_threshold_may_be_for_some_packets() {
        let marked = |selector: &str| {
            let set = [("ce_threshold", "1ms"), ("ce_threshold_selector", selector)];
            let mut params = FqCodelParams::default();
            for (key, text) in set {
                params.set(key, &text.into()).unwrap();
            }
            let mut queue = queue(&params);
            let packets = [(Ecn::Ect0, 0), (Ecn::Ect1, 0), (Ecn::Ect0, 46), (Ecn::NotEct, 46)];
            for (flow, (ecn, class)) in packets.into_iter().enumerate() {
                let packet = Packet::new(1000, ecn).with_class(class);
                queue.enqueue(packet.with_flow_hash(flow as u32), Time::ZERO);
            }
            let late = Time::ZERO + Span::from_millis(2);
            core::iter::from_fn(|| queue.dequeue(late)).map(|p| p.is_marked()).collect::<Vec<_>>()
        };
        assert_eq!(marked("none"), [true, true, true, false]);
        assert_eq!(marked("0x1/0x3"), [false, true, false, false]);
        assert_eq!(marked("0xb8/252"), [false, false, true, false], "EF");
        assert_eq!(marked("1/0"), [true, true, true, false], "Linux asks for the mask alone");
    }

    #[test]
    fn the_memory_limit_is_exact() {
        let memory_limit = Bytes::new(4500);
        let mut queue = queue(&FqCodelParams { memory_limit, ..FqCodelParams::default() });
        let mut dropped = Vec::new();
        for flow in 0..4 {
            queue.enqueue(Packet::of_flow(flow), Time::ZERO);
            queue.take_dropped(|_, reason| dropped.push((flow, reason)));
        }
        assert_eq!(dropped, [(3, crate::Reason::Overmemory)], "three packets are 4500 bytes");
    }
}
