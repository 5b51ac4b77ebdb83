//! Flow classification: assigns packets to buckets, for all flow-queueing disciplines.
//!
//! # Model
//! A flow (the 5-tuple, or a host) is identified by a number; its bucket is that number modulo the
//! number of buckets. With `hashing = set-associative`, as in a cache, a flow whose bucket is in
//! use takes a free bucket of the same set; two flows share a bucket only when all buckets of the
//! set are in use. With `perturb` the number is mixed with a new random one from time to time.
//!
//! # Sources
//! - RFC 8290, section 4.1.1 (direct hashing, perturbation); McKenney 1990
//!   (the hash changed from time to time).
//! - Linux's sch_cake for the sets; Järvinen and Kojo (2014), section VI,
//!   propose them against the collisions of flow queueing.
//!
//! # Differences
//! 1. The packet carries the number of its flow, which the simulator draws in every replication. It
//!    is mixed only after the first change.

use alloc::{vec, vec::Vec};

use aqmlab_core::{Packet, Span, Stream, Time, choices, params};

choices! {
    /// Mapping of flows to buckets.
    pub enum Method {
        /// By its hash alone: flows with the same bucket share it.
        Direct = "direct",
        /// By its hash, or a free one of the same set.
        SetAssociative = "set-associative",
    }
}

choices! {
    /// Traffic that shares one queue.
    pub enum Isolation {
        /// A flow.
        Flow = "flow",
        /// All flows from one host.
        SrcHost = "src-host",
        /// All flows to one host.
        DstHost = "dst-host",
    }
}

params! {
    /// How flows are hashed into buckets.
    pub struct Hashing {
        /// Mapping of flows to buckets.
        hashing: Method = Method::Direct,
            source "RFC 8290, section 4.1.1; tc-cake(8); Järvinen and Kojo 2014, section VI";
        /// The buckets of a set, if hashing is set-associative.
        ways: u64 = 8, in 1 => 64, source "tc-cake(8)";
        /// Interval between changes of the hash; `none`: never.
        perturb: Option<Span> = None,
            in Some(Span::from_millis(1)) => Some(Span::from_secs(1_000_000)),
            source "tc-sfq(8), perturb; McKenney 1990";
    }
}

params! {
    /// Units of sharing and their classification.
    pub struct Sharing {
        /// Unit with a queue of its own: a flow or a host.
        isolation: Isolation = Isolation::Flow, source "tc-cake(8), flow isolation";
    } with {
        /// How flows are hashed into buckets.
        hashing: Hashing = Hashing::default();
    }
}

/// What a packet's number is taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Flow,
    SrcHost,
    DstHost,
    /// A pair of hosts.
    Hosts,
    /// The same number for all.
    Nothing,
}

impl From<Isolation> for Key {
    fn from(isolation: Isolation) -> Key {
        match isolation {
            Isolation::Flow => Key::Flow,
            Isolation::SrcHost => Key::SrcHost,
            Isolation::DstHost => Key::DstHost,
        }
    }
}

/// Finds the buckets of packets.
#[derive(Clone)]
pub(crate) struct FlowClassifier {
    key: Key,
    table: Table,
    /// Random number mixed into flow numbers since the first change.
    salt: Option<u32>,
    perturb: Option<Span>,
    next_change: Option<Time>,
}

/// The bucket of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub bucket: u32,
    /// True if the bucket was unused, or used by another flow, before.
    pub is_new: bool,
}

impl FlowClassifier {
    pub fn new(key: Key, hashing: &Hashing, buckets: u64) -> Self {
        let ways = match hashing.hashing {
            Method::Direct => 1,
            Method::SetAssociative => hashing.ways,
        };
        FlowClassifier {
            key,
            table: Table::new(buckets, ways),
            salt: None,
            perturb: hashing.perturb,
            next_change: hashing.perturb.map(|period| Time::ZERO + period),
        }
    }

    pub fn of(sharing: &Sharing, buckets: u64) -> Self {
        FlowClassifier::new(sharing.isolation.into(), &sharing.hashing, buckets)
    }

    /// Another time between changes of the hash; the time until the next begins now. The hash
    /// stays.
    pub fn set_perturb(&mut self, perturb: Option<Span>, now: Time) {
        if perturb != self.perturb {
            self.perturb = perturb;
            self.next_change = perturb.map(|period| now + period);
        }
    }

    /// The same, and the hash changes at once; packets in the queue stay where they are (Linux,
    /// sfq_change).
    pub fn restart(&mut self, perturb: Option<Span>, now: Time, random: &mut Stream) {
        self.perturb = perturb;
        self.next_change = perturb.map(|period| now + period);
        if perturb.is_some() {
            self.salt = Some(random.next_u32());
        }
    }

    /// Packets are known by something else from now on.
    pub fn set_key(&mut self, key: Key) {
        self.key = key;
    }

    /// What the packet is known by.
    #[inline]
    fn number(&self, packet: &Packet) -> u32 {
        let number = match self.key {
            Key::Flow => packet.flow_hash(),
            Key::SrcHost => packet.hosts()[0],
            Key::DstHost => packet.hosts()[1],
            Key::Hosts => {
                let [source, destination] = packet.hosts();
                mix(source, destination)
            }
            Key::Nothing => 0,
        };
        self.salt.map_or(number, |salt| mix(number, salt))
    }

    /// Returns the packet's bucket, which becomes that of its flow. `is_free` returns true for
    /// unused buckets.
    #[inline]
    pub fn place(&mut self, packet: &Packet, is_free: impl Fn(u32) -> bool) -> Place {
        match self.key {
            // As in Linux, cake_hash: the bucket keeps the number that it belongs to.
            Key::Nothing => Place { bucket: 0, is_new: false },
            _ => self.table.place(self.number(packet), is_free),
        }
    }

    /// The same for those who need not know whose bucket it was.
    #[inline]
    pub fn bucket(&mut self, packet: &Packet, is_free: impl Fn(u32) -> bool) -> u32 {
        match self.table.ways {
            1 => self.number(packet) % self.table.tags.len() as u32,
            _ => self.place(packet, is_free).bucket,
        }
    }

    /// When the hash changes next, or the other time if that is earlier.
    #[inline]
    pub fn next_change_or(&self, other: Option<Time>) -> Option<Time> {
        match (self.next_change, other) {
            (Some(change), Some(other)) => Some(change.min(other)),
            (change, other) => change.or(other),
        }
    }

    /// Changes the hash if it is due. Returns true if it changed.
    pub fn change_if_due(&mut self, now: Time, random: &mut Stream) -> bool {
        let (Some(period), Some(next)) = (self.perturb, self.next_change) else { return false };
        if now < next {
            return false;
        }
        self.next_change = Some(now + period);
        self.salt = Some(random.next_u32());
        true
    }
}

/// Buckets in sets, each with the number that it belongs to.
#[derive(Clone)]
pub(crate) struct Table {
    ways: u32,
    tags: Vec<u32>,
}

impl Table {
    pub fn new(buckets: u64, ways: u64) -> Self {
        Table { ways: ways as u32, tags: vec![0; buckets as usize] }
    }

    /// Returns the bucket of a number: its own, otherwise one of the same set that it already has
    /// or that is free, otherwise its own.
    #[inline]
    pub fn place(&mut self, number: u32, is_free: impl Fn(u32) -> bool) -> Place {
        let count = self.tags.len() as u32;
        let own = number % count;
        let bucket = match self.tags[own as usize] == number || self.ways == 1 {
            true => own,
            false => self.search(number, own, &is_free),
        };
        let tag = &mut self.tags[bucket as usize];
        let is_new = *tag != number || is_free(bucket);
        *tag = number;
        Place { bucket, is_new }
    }

    fn search(&self, number: u32, own: u32, is_free: impl Fn(u32) -> bool) -> u32 {
        let first = own - own % self.ways;
        let ways = self.ways.min(self.tags.len() as u32 - first);
        let set = || (0..ways).map(|i| first + (own - first + i) % ways);
        let has = |bucket: &u32| self.tags[*bucket as usize] == number;
        set().find(has).or_else(|| set().find(|bucket| is_free(*bucket))).unwrap_or(own)
    }
}

/// Spreads a number differently for every salt (a multiply and shift mixer).
fn mix(number: u32, salt: u32) -> u32 {
    let mut value = (u64::from(salt) << 32 | u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    value ^= value >> 32;
    value = value.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (value >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Flows that share a bucket with one that came before, of 100 with random
    /// hashes in 1024 buckets, over many draws: the mean.
    fn collisions(ways: u64) -> f64 {
        let draws = 400;
        let mut random = Stream::for_component(7, 0, "collisions");
        let mut collisions = 0;
        for _ in 0..draws {
            let mut table = Table::new(1024, ways);
            let mut used = HashSet::new();
            for _ in 0..100 {
                let number = random.next_u32();
                let Place { bucket, .. } = table.place(number, |bucket| !used.contains(&bucket));
                collisions += u32::from(!used.insert(bucket));
            }
        }
        f64::from(collisions) / f64::from(draws)
    }

    #[test]
    fn sets_avoid_the_collisions_of_direct_hashing() {
        // n flows use m (1 - (1 - 1/m)^n) of m buckets on average: 100 flows
        // 95.32 of 1024, so 4.68 collide (RFC 8290, section 5.3, has the same
        // sum). Standard error of the mean over 400 draws: about 0.1.
        let expected = 100.0 - 1024.0 * (1.0 - libm::pow(1.0 - 1.0 / 1024.0, 100.0));
        assert!((expected - 4.68).abs() < 0.01);
        let direct = collisions(1);
        assert!((direct - expected).abs() < 0.4, "{direct}");
        // Of 128 sets with 8 ways, a set collides with its ninth flow: the
        // flows beyond 8 of a binomial (100, 1/128) are 8.0e-7 a set.
        let (mut mean, mut share) = (0.0, libm::pow(127.0 / 128.0, 100.0));
        for flows in 0..100 {
            mean += 128.0 * share * (f64::from(flows) - 8.0).max(0.0);
            share *= f64::from(100 - flows) / f64::from(flows + 1) / 127.0;
        }
        assert!(mean < 1e-3, "{mean}");
        assert_eq!(collisions(8), 0.0);
    }

    #[test]
    fn a_set_gives_eight_flows_their_own_buckets() {
        let mut table = Table::new(16, 8);
        let mut used = vec![false; 16];
        let mut place = |number: u32, used: &mut Vec<bool>| {
            let place = table.place(number, |bucket| !used[bucket as usize]);
            used[place.bucket as usize] = true;
            (place.bucket, place.is_new)
        };
        assert_eq!(place(12, &mut used), (12, true));
        // All belong into 13: the others of its set follow in turn, without
        // the one of the flow that is there already.
        for (i, bucket) in [13, 14, 15, 8, 9, 10, 11].into_iter().enumerate() {
            assert_eq!(place(13 + 16 * i as u32, &mut used), (bucket, true));
        }
        assert_eq!(place(12, &mut used), (12, false));
        assert_eq!(place(13 + 16 * 3, &mut used), (8, false));
        assert_eq!(place(13 + 16 * 99, &mut used), (13, true), "a collision");
        // The bucket is that of the flow that came last.
        assert_eq!(place(13 + 16 * 99, &mut used), (13, false));
        // A flow that left returns to its previous bucket.
        used[8] = false;
        assert_eq!(place(13 + 16 * 3, &mut used), (8, true));
    }
}
