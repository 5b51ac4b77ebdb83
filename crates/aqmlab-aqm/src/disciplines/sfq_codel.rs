//! SFQ CoDel: ns-2's stochastic fair queueing with CoDel in every bucket.
//!
//! # Model
//! Active buckets form a ring and are served packet by packet in turn; a
//! bucket that becomes active is served before those that were there, after
//! others that are as new. CoDel runs in each bucket.
//!
//! # Sources
//! ns-2's sfqCoDel (Nichols and Jacobson, 2013) as recorded in the conformance
//! vectors; Järvinen and Kojo (2014) for its use.
//!
//! # Differences
//! 1. Hashing as in [`fq_codel`](crate::disciplines::fq_codel), with all its
//!    options; ns-2 has none of them.

use aqmlab_core::{Component, Limit, Span, params};

use crate::discipline::{LinkEnv, OneMachine};
use crate::disciplines::codel::{CodelForm, CodelParams, CodelSettings, CodelState};
use crate::fq::hash::Sharing;
use crate::fq::sfqcodel_round_robin::Ring;
use crate::fq::{FIXED, FlowQueues, Fq, FqParams, Overflow};

params! {
    /// Parameters of SFQ CoDel.
    pub struct SfqCodelParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "ns-2, maxbins_";
        /// Total capacity of all queues.
        limit: Limit = Limit::Packets(1000), source "ns-2, limit_";
        /// The sojourn time that a bucket may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "RFC 8289, section 4.4";
        /// Time for which the delay may exceed the target.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8289, section 4.3";
        /// CoDel's count recall.
        variant: CodelForm = CodelForm::Ns2Of2013, source "ns-2's sfqCoDel of 2013";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    }
}

impl Component for SfqCodelParams {
    const NAME: &'static str = "sfq_codel";
    const SUMMARY: &'static str = "ns-2's stochastic fair queueing with CoDel in every bucket";
}

impl OneMachine for SfqCodelParams {
    type Machine = Fq<CodelState, Ring>;
    const FIXED: &'static [&'static str] = FIXED;
}

impl FlowQueues<CodelState> for SfqCodelParams {
    fn fq(&self, env: &LinkEnv) -> FqParams<'_, CodelSettings> {
        let codel = CodelParams {
            target: self.target,
            interval: self.interval,
            limit: self.limit,
            byte_limit: None,
            variant: self.variant,
            ecn: false,
            ce_threshold: None,
        };
        let settings = CodelSettings::new(&codel, env).in_a_bucket();
        FqParams {
            sharing: &self.sharing,
            buckets: self.flows,
            quantum: env.mtu,
            limit: self.limit.resolve(env.rate, env.base_rtt),
            overflow: Overflow::Tail,
            largest: settings.smallest_backlog,
            settings,
        }
    }
}
