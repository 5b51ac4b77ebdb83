//! SFQ: stochastic fairness queueing, as in Linux.
//!
//! # Model
//! Packets are hashed into buckets, each first in, first out. The buckets
//! that hold packets take turns by deficit round robin. When the buffer is
//! full, the bucket with the most packets loses one; a bucket can also be
//! bounded by itself. No packet is dropped or marked as a signal.
//!
//! # Sources
//! - McKenney, "Stochastic Fairness Queueing" (1990): buckets, drops from the
//!   longest one, the hash changed from time to time.
//! - Shreedhar and Varghese, "Efficient Fair Queueing using Deficit Round
//!   Robin" (1995): turns by bytes.
//! - Linux's qdisc as recorded in the conformance vectors; tc-sfq(8).
//!
//! # Differences
//! From McKenney, with `variant = linux` and in common with Linux:
//! 1. Turns are by bytes, not by packets; a queue has no more than `flows`
//!    buckets in use, and an arriving packet that needs one more is dropped; a
//!    bucket holds no more than `depth` packets.
//!
//! From McKenney with `variant = mckenney`:
//! 2. At which end the longest bucket loses its packet is a parameter, and the
//!    tail by default; the paper was not at hand to look it up.
//!
//! From Linux:
//! 3. The bucket is the packet's flow hash modulo `divisor`; the simulator draws new hashes in
//!    every replication. With `perturb` the hash is mixed, from its first change on, with a number
//!    drawn from the queue's stream.
//! 4. A limit in bytes is possible: packets are dropped from the longest
//!    bucket (in packets) until the rest fits.
//! 5. When the hash changes, packets are put into their new buckets in the
//!    order of the old buckets' numbers, not of Linux's slots.
//! 6. No RED inside the buckets.
//! 7. Linux has no sets of buckets and no isolation of hosts.
//! 8. A running queue can be changed.
//! 9. A limit of 127 packets is taken as not given: if it is, Linux has no more than 127 buckets in
//!    use.

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};

use aqmlab_core::words::{Dialect, Form, Word};
use aqmlab_core::{Bytes, Component, Limit, Packet, Time, choices, params};

use crate::discipline::{Backlog, Context, Discipline, LinkEnv, QueueDiscipline, Reason};
use crate::fifo::Fifo;
use crate::fq::LEAST_QUANTUM;
use crate::fq::hash::{FlowClassifier, Sharing};

choices! {
    /// Whose fairness.
    pub enum SfqTurns {
        /// Turns by bytes, with bounds on buckets in use and on their packets.
        Linux = "linux",
        /// Turns by packets, without these bounds.
        McKenney = "mckenney",
    }
}

params! {
    /// Parameters of SFQ.
    pub struct SfqParams {
        /// Total capacity of all buckets.
        limit: Limit = Limit::Packets(127), source "tc-sfq(8), limit";
        /// Unit of a turn: bytes, as in Linux, or packets.
        variant: SfqTurns = SfqTurns::Linux, source "conformance vectors; McKenney 1990";
        /// The most packets in one bucket, 127 at most (Linux's variant).
        depth: u64 = 127, in 1 => 1_000_000, source "tc-sfq(8), depth";
        /// Drops from the head of a bucket instead of its tail.
        headdrop: bool = false, source "tc-sfq(8), headdrop";
        /// The most buckets that hold packets at a time (Linux's variant).
        flows: u64 = 128, in 1 => 65_536, source "tc-sfq(8), flows";
        /// The number of buckets that flows are hashed into.
        divisor: u64 = 1024, in 1 => 65_536, source "tc-sfq(8), divisor";
        /// Bytes that a bucket may send in a turn, 256 at least; `none`: the link's largest packet
        /// (Linux's variant).
        quantum: Option<Bytes> = None, in Some(Bytes::new(1)) => Some(Bytes::new(1_000_000)),
            source "tc-sfq(8), quantum";
    } with {
        /// Units that share a bucket.
        sharing: Sharing = Sharing::default();
    } words TC
}

/// RED in each flow, which is not modelled.
const NO_RED: &str = "SFQ has no RED in its flows here";

/// tc-sfq(8).
const TC: &[Dialect] = &[Dialect {
    kind: "sfq",
    source: "tc-sfq(8)",
    words: &[&[
        Word::value("limit", "limit", Form::Packets),
        Word::value("perturb", "perturb", Form::Seconds),
        Word::value("quantum", "quantum", Form::Size),
        Word::value("divisor", "divisor", Form::Plain),
        Word::value("flows", "flows", Form::Plain),
        Word::value("depth", "depth", Form::Plain),
        Word::set("headdrop", "headdrop", "true"),
        Word::refused("redflowlimit", true, NO_RED),
        Word::refused("min", true, NO_RED),
        Word::refused("max", true, NO_RED),
        Word::refused("avpkt", true, NO_RED),
        Word::refused("burst", true, NO_RED),
        Word::refused("probability", true, NO_RED),
        Word::refused("ecn", false, NO_RED),
        Word::refused("harddrop", false, NO_RED),
    ]],
    ..Dialect::EMPTY
}];

impl Component for SfqParams {
    const NAME: &'static str = "sfq";
    const SUMMARY: &'static str =
        "a queue for each flow; the longest queue drops packets when full";
}

impl SfqParams {
    /// Bytes of a turn; Linux, `sfq_change`: at least 256.
    fn quantum(&self, env: &LinkEnv) -> i64 {
        self.quantum.unwrap_or(env.mtu).get().max(LEAST_QUANTUM) as i64
    }
}

impl Discipline for SfqParams {
    fn gives_signals(&self) -> bool {
        false
    }

    fn fixed(&self) -> &'static [&'static str] {
        &["divisor", "variant", "isolation", "hashing", "ways"]
    }

    fn build(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline> {
        let bounds = Bounds::new(self, env);
        Box::new(Sfq {
            buckets: (0..self.divisor).map(|_| SfqBucket::default()).collect(),
            round: VecDeque::with_capacity(bounds.active.min(self.divisor as usize)),
            by_depth: ByDepth::new(self.divisor),
            total: Backlog::default(),
            bounds,
            by_packets: self.variant == SfqTurns::McKenney,
            headdrop: self.headdrop,
            quantum: self.quantum(env),
            classifier: FlowClassifier::of(&self.sharing, self.divisor),
            moving: Fifo::default(),
        })
    }

    fn change(&self, queue: &mut dyn QueueDiscipline, env: &LinkEnv, cx: &mut Context<'_>) {
        // Linux, sfq_change: packets beyond the limit are dropped from the longest bucket; the slots
        // of buckets in use are those of the start; a hash with `perturb` changes now.
        let queue = queue.machine::<Sfq>();
        queue.bounds = Bounds { active: queue.bounds.active, ..Bounds::new(self, env) };
        queue.headdrop = self.headdrop;
        queue.quantum = self.quantum(env);
        while queue.is_over_limit() {
            queue.drop_from_longest(cx);
        }
        queue.classifier.restart(self.sharing.hashing.perturb, cx.now, cx.random);
    }
}

/// Linux, `SFQ_MAX_DEPTH`: a larger depth counts as this one.
const MAX_DEPTH: u64 = 127;

/// Upper bounds of the queue.
#[derive(Clone)]
struct Bounds {
    /// Limit of all buckets together.
    limit: Limit,
    /// Packets in a bucket.
    depth: u64,
    /// Buckets that hold packets.
    active: usize,
}

impl Bounds {
    fn new(params: &SfqParams, env: &LinkEnv) -> Self {
        let limit = params.limit.resolve(env.rate, env.base_rtt);
        let by_packets = params.variant == SfqTurns::McKenney;
        let active = match limit {
            _ if by_packets => params.divisor,
            // sfq_change: a limit that is given also bounds the buckets in use, the usual one does
            // not, and the next bucket in turn makes room.
            Limit::Packets(packets) if packets != MAX_DEPTH => params.flows.min(packets),
            Limit::Packets(_) => params.flows,
            Limit::Bytes(_) | Limit::Bdp(_) | Limit::Unlimited => params.flows,
        };
        let depth = if by_packets { u64::MAX } else { params.depth.min(MAX_DEPTH) };
        Bounds { limit, depth, active: active as usize }
    }
}

/// One flow's queue, or more than one's.
#[derive(Clone, Default)]
struct SfqBucket {
    fifo: Fifo,
    /// Bytes that it may still send in its turn.
    allot: i64,
}

/// No bucket.
const NONE: u32 = u32::MAX;

/// Buckets with packets, in a list for each number of packets; the bucket that reached this number
/// last is in front.
#[derive(Clone)]
struct ByDepth {
    /// The first bucket of each list.
    first: Vec<u32>,
    /// Before and after each bucket on its list.
    links: Vec<(u32, u32)>,
    /// The longest list that is not empty; 0 if none.
    most: usize,
}

impl ByDepth {
    fn new(buckets: u64) -> Self {
        ByDepth { first: vec![NONE; 2], links: vec![(NONE, NONE); buckets as usize], most: 0 }
    }

    /// The bucket's packets changed from `old` to `new`, by one.
    fn change(&mut self, bucket: u32, old: u64, new: u64) {
        let (old, new) = (old as usize, new as usize);
        if old > 0 {
            let (before, after) = self.links[bucket as usize];
            match before {
                NONE => self.first[old] = after,
                before => self.links[before as usize].1 = after,
            }
            if after != NONE {
                self.links[after as usize].0 = before;
            }
        }
        if new > 0 {
            if new == self.first.len() {
                self.first.push(NONE);
            }
            let after = core::mem::replace(&mut self.first[new], bucket);
            self.links[bucket as usize] = (NONE, after);
            if after != NONE {
                self.links[after as usize].0 = bucket;
            }
        }
        if new > self.most || (old == self.most && self.first[old] == NONE) {
            self.most = new;
        }
    }

    /// Number of packets of the longest bucket, and its index.
    fn longest(&self) -> (usize, u32) {
        (self.most, self.first[self.most])
    }
}

/// The state machine.
#[derive(Clone)]
struct Sfq {
    buckets: Vec<SfqBucket>,
    /// The buckets that hold packets, the next one to be served in front.
    round: VecDeque<u32>,
    by_depth: ByDepth,
    total: Backlog,
    bounds: Bounds,
    by_packets: bool,
    headdrop: bool,
    quantum: i64,
    classifier: FlowClassifier,
    /// Packets between their old and new buckets.
    moving: Fifo,
}

impl Sfq {
    fn bucket_of(&mut self, packet: &Packet) -> u32 {
        let buckets = &self.buckets;
        let is_free = |bucket: u32| buckets[bucket as usize].fifo.is_empty();
        self.classifier.bucket(packet, is_free)
    }

    fn depth_of(&self, bucket: u32) -> u64 {
        self.buckets[bucket as usize].fifo.backlog().packets
    }

    /// Whether the packet would need a bucket more than there may be.
    fn needs_too_many(&self, bucket: u32) -> bool {
        self.depth_of(bucket) == 0 && self.round.len() >= self.bounds.active
    }

    fn is_over_limit(&self) -> bool {
        self.total.exceeds(self.bounds.limit)
    }

    fn push(&mut self, bucket: u32, packet: Packet) {
        self.total.packets += 1;
        self.total.bytes += u64::from(packet.size());
        let old = self.depth_of(bucket);
        let into = &mut self.buckets[bucket as usize];
        into.fifo.push(packet);
        if old == 0 {
            into.allot = self.quantum;
            self.round.push_back(bucket);
        }
        self.by_depth.change(bucket, old, old + 1);
    }

    /// Takes a packet out; a bucket that gets empty is still on the round.
    fn take(&mut self, bucket: u32, from_head: bool) -> Option<Packet> {
        let old = self.depth_of(bucket);
        let fifo = &mut self.buckets[bucket as usize].fifo;
        let packet = if from_head { fifo.pop() } else { fifo.pop_tail() }?;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size());
        self.by_depth.change(bucket, old, old - 1);
        Some(packet)
    }

    /// The longest bucket loses a packet; if all have one, the next in turn.
    fn drop_from_longest(&mut self, cx: &mut Context<'_>) {
        let bucket = match self.by_depth.longest() {
            (2.., bucket) => bucket,
            _ => self.round.pop_front().expect("over its limit it holds packets"),
        };
        let packet = self.take(bucket, self.headdrop).expect("it holds packets");
        cx.drop(packet, Reason::Overlimit);
    }

    /// Puts all packets where the new hash wants them.
    fn rehash(&mut self, cx: &mut Context<'_>) {
        self.round.clear();
        for bucket in 0..self.buckets.len() as u32 {
            while let Some(packet) = self.take(bucket, true) {
                self.moving.push(packet);
            }
        }
        while let Some(packet) = self.moving.pop() {
            let bucket = self.bucket_of(&packet);
            if self.needs_too_many(bucket) {
                cx.drop(packet, Reason::Overlimit);
            } else if self.depth_of(bucket) >= self.bounds.depth {
                cx.drop(packet, Reason::FlowLimit);
            } else {
                self.push(bucket, packet);
            }
        }
    }
}

impl QueueDiscipline for Sfq {
    fn enqueue(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let bucket = self.bucket_of(&packet);
        if self.needs_too_many(bucket) {
            cx.drop(packet, Reason::Overlimit);
            return;
        }
        if self.depth_of(bucket) >= self.bounds.depth {
            if !self.headdrop {
                cx.drop(packet, Reason::FlowLimit);
                return;
            }
            // The bucket keeps its number of packets, and its place.
            let fifo = &mut self.buckets[bucket as usize].fifo;
            let before = fifo.backlog().bytes;
            let head = fifo.pop().expect("it is at its depth");
            fifo.push(packet);
            self.total.bytes = self.total.bytes - before + fifo.backlog().bytes;
            cx.drop(head, Reason::FlowLimit);
        } else {
            self.push(bucket, packet);
        }
        while self.is_over_limit() {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, _cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            let &bucket = self.round.front()?;
            let allot = &mut self.buckets[bucket as usize].allot;
            if *allot <= 0 && !self.by_packets {
                *allot += self.quantum;
                self.round.rotate_left(1);
                continue;
            }
            let packet = self.take(bucket, true)?;
            let served = &mut self.buckets[bucket as usize];
            if served.fifo.is_empty() {
                self.round.pop_front();
            } else if self.by_packets {
                self.round.rotate_left(1);
            } else {
                served.allot -= i64::from(packet.size());
            }
            return Some(packet);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.classifier.next_change_or(None)
    }

    fn on_wakeup(&mut self, cx: &mut Context<'_>) {
        if self.classifier.change_if_due(cx.now, cx.random) && !self.round.is_empty() {
            self.rehash(cx);
        }
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        see("active_flows", self.round.len() as f64);
        see("longest_flow", self.by_depth.longest().0 as f64);
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;

    use super::*;
    use crate::fq::hash::Hashing;
    use crate::queue::Queue;
    use crate::testing::{self, TestPacket, queue};

    fn packet(flow: u32, size: u32) -> Packet {
        Packet::of_flow(flow).with_size(size)
    }

    fn perturbed(period: Span) -> Sharing {
        let hashing = Hashing { perturb: Some(period), ..Hashing::default() };
        Sharing { hashing, ..Sharing::default() }
    }

    /// Offers packets and gives the flows of those dropped.
    fn offer(queue: &mut Queue, packets: impl IntoIterator<Item = Packet>) -> Vec<u32> {
        testing::offer(queue, packets).iter().map(Packet::flow_hash).collect()
    }

    fn drain(queue: &mut Queue) -> Vec<u32> {
        testing::drain(queue).iter().map(Packet::flow_hash).collect()
    }

    #[test]
    fn mckenneys_turns_are_by_packets_and_without_bounds() {
        let variant = SfqTurns::McKenney;
        let params = SfqParams { variant, flows: 1, depth: 1, ..SfqParams::default() };
        let mut queue = queue(&params);
        let small = (0..3).map(|_| packet(2, 40));
        let dropped = offer(&mut queue, (0..3).map(|_| packet(1, 1500)).chain(small));
        assert!(dropped.is_empty());
        assert_eq!(drain(&mut queue), [1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn the_longest_makes_room_as_often_as_it_must() {
        let limit = Limit::Bytes(Bytes::new(3000));
        let mut queue = queue(&SfqParams { limit, ..SfqParams::default() });
        let dropped = offer(&mut queue, (0..6).map(|_| packet(1, 500)).chain([packet(2, 1200)]));
        assert_eq!(dropped, [1, 1, 1]);
        assert_eq!(offer(&mut queue, [packet(3, 1200)]), [1, 1]);
        // One packet each: the next in turn has to go.
        assert_eq!(offer(&mut queue, [packet(4, 600)]), [1]);
        assert_eq!(drain(&mut queue), [2, 3, 4]);
    }

    #[test]
    fn buckets_in_use_are_bounded() {
        let mut queue = queue(&SfqParams { flows: 2, ..SfqParams::default() });
        let arrivals = [1, 2, 3, 1, 3].map(|flow| packet(flow, 1000));
        assert_eq!(offer(&mut queue, arrivals), [3, 3]);
    }

    /// sfq_init, sfq_change: as the kernel's code decided on packets of 130 flows that came at once.
    #[test]
    fn only_a_limit_that_is_given_bounds_the_buckets_in_use() {
        let dropped = |limit| {
            let limit = Limit::Packets(limit);
            let mut queue = queue(&SfqParams { limit, ..SfqParams::default() });
            offer(&mut queue, (0..130).map(|flow| packet(flow, 1000)))
        };
        assert_eq!(dropped(127), [0, 1, 2]);
        assert_eq!(dropped(126), [126, 127, 128, 129]);
    }

    #[test]
    fn depth_and_quantum_have_the_bounds_of_linux() {
        let limit = Limit::Packets(1000);
        let mut deep = queue(&SfqParams { depth: 500, limit, ..SfqParams::default() });
        assert_eq!(offer(&mut deep, (0..129).map(|_| packet(1, 100))), [1, 1]);
        let quantum = Some(Bytes::new(1));
        let mut small = queue(&SfqParams { quantum, ..SfqParams::default() });
        offer(&mut small, [1, 1, 1, 1, 2].map(|flow| packet(flow, 100)));
        // Turns of 256 bytes.
        assert_eq!(drain(&mut small), [1, 1, 1, 2, 1]);
    }

    #[test]
    fn a_change_of_the_hash_parts_flows_that_collided() {
        let sharing = perturbed(Span::from_secs(10));
        let quantum = Some(Bytes::new(1500));
        let params = SfqParams { divisor: 64, sharing, quantum, ..SfqParams::default() };
        let mut queue = queue(&params);
        let arrivals = || [0, 0, 0, 64, 64, 64].map(|flow| packet(flow, 1500));
        offer(&mut queue, arrivals());
        assert_eq!(drain(&mut queue), [0, 0, 0, 64, 64, 64]);
        offer(&mut queue, arrivals());
        let change = queue.next_wakeup().unwrap();
        assert_eq!(change, Time::ZERO + Span::from_secs(10));
        queue.on_wakeup(change);
        queue.assert_conservation("sfq");
        assert_eq!(queue.next_wakeup(), Some(Time::ZERO + Span::from_secs(20)));
        let order = drain(&mut queue);
        assert!(order == [0, 64, 0, 64, 0, 64] || order == [64, 0, 64, 0, 64, 0], "{order:?}");
    }

    #[test]
    fn what_a_new_bucket_cannot_hold_is_dropped_with_the_change() {
        let sharing = perturbed(Span::from_secs(1));
        let params = SfqParams { divisor: 2, depth: 4, sharing, ..SfqParams::default() };
        let mut queue = queue(&params);
        offer(&mut queue, (0..8).map(|i| packet(i, 1500)));
        let mut dropped = 0;
        for second in 1..20 {
            queue.on_wakeup(Time::ZERO + Span::from_secs(second));
            queue.take_dropped(|_, reason| {
                assert_eq!(reason, Reason::FlowLimit);
                dropped += 1;
            });
            queue.assert_conservation("sfq");
        }
        assert!(dropped > 0 && dropped <= 4, "{dropped}");
        assert_eq!(drain(&mut queue).len(), 8 - dropped);
    }
}
