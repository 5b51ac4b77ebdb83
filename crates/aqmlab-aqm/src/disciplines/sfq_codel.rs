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
//! 1. Hashing as in [`fq_codel`](crate::disciplines::fq_codel).

use std::collections::VecDeque;

use aqmlab_core::{Limit, Packet, Span, params};

use crate::discipline::{Discipline, LinkEnv, QueueDiscipline};
use crate::disciplines::codel::{CodelParams, CodelState, Settings, Variant};
use crate::fq::{Fq, Overflow, Scheduler};

params! {
    /// Parameters of SFQ CoDel.
    pub struct SfqCodelParams {
        /// The number of buckets that flows are hashed into.
        flows: u64 = 1024, in 1 => 65_536, source "ns-2, maxbins_";
        /// How much all queues hold together.
        limit: Limit = Limit::Packets(1000), source "ns-2, limit_";
        /// The sojourn time that a bucket may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "RFC 8289, section 4.4";
        /// How long it may be above the target.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "RFC 8289, section 4.3";
        /// CoDel's count recall.
        variant: Variant = Variant::Ns2Of2013, source "ns-2's sfqCoDel of 2013";
    }
}

impl Discipline for SfqCodelParams {
    const NAME: &'static str = "sfq_codel";
    const SUMMARY: &'static str = "ns-2's stochastic fair queueing with CoDel in every bucket";

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        let codel = CodelParams {
            target: self.target,
            interval: self.interval,
            limit: self.limit,
            variant: self.variant,
            ecn: false,
            ce_threshold: None,
        };
        let settings = Settings::new(&codel, env).in_a_bucket();
        let largest = settings.smallest_backlog;
        Box::new(Fq::<P, CodelState, Ring>::new(
            self.flows,
            Ring::new(self.flows),
            settings,
            self.limit.resolve(env.rate, env.base_rtt),
            Overflow::Tail,
            largest,
        ))
    }
}

/// The ring of active buckets, turned so that the next one is in front.
struct Ring {
    ring: VecDeque<u32>,
    active: Vec<bool>,
    /// Not served since it became active.
    new: Vec<bool>,
}

impl Ring {
    fn new(buckets: u64) -> Self {
        let none = || vec![false; buckets as usize];
        Ring { ring: VecDeque::new(), active: none(), new: none() }
    }
}

impl Scheduler for Ring {
    #[inline]
    fn is_active(&self, bucket: u32) -> bool {
        self.active[bucket as usize]
    }
    fn activate(&mut self, bucket: u32) {
        self.active[bucket as usize] = true;
        self.new[bucket as usize] = true;
        let last = self.ring.len().saturating_sub(1);
        let new = &self.new;
        let place = self.ring.iter().take_while(|other| new[**other as usize]).count().min(last);
        if place == last {
            self.ring.push_back(bucket);
        } else {
            self.ring.insert(place, bucket);
        }
    }
    fn pick(&mut self, is_empty: impl Fn(u32) -> bool) -> Option<u32> {
        // An empty bucket stays until its turn comes.
        while let Some(&bucket) = self.ring.front() {
            if !is_empty(bucket) {
                self.new[bucket as usize] = false;
                return Some(bucket);
            }
            self.ring.pop_front();
            self.active[bucket as usize] = false;
            self.new[bucket as usize] = false;
        }
        None
    }
    #[inline]
    fn served(&mut self, _bucket: u32, _size: u32) {
        self.ring.rotate_left(1);
    }
    fn gave_none(&mut self, _bucket: u32) {
        // CoDel emptied it: `pick` takes it off.
    }
}
