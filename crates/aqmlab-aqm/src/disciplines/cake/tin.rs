//! A tin: flow queues and the order in which they are served.
//!
//! # Model
//! Three lists of flows: new ones, old ones, and decaying ones, which are empty
//! but whose COBALT state still has to be forgotten. Deficit round robin serves
//! them; with isolation of hosts, a flow's quantum is divided by the number of
//! flows that its host has in line, so that hosts get the same.

use alloc::{vec, vec::Vec};

use aqmlab_core::{Packet, Rate, Span, Stream, Time};

use super::CakeParams;
use super::heap::Heap;
use super::lists::{List, Lists};
use super::shaper::Schedule;
use crate::cobalt::{CobaltState, Law};
use crate::discipline::Backlog;
use crate::fifo::Fifo;
use crate::fq::hash::{FlowClassifier, Table};

/// What a flow counts as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    /// On no list.
    None,
    /// Has not used up its first quantum.
    Sparse,
    /// The same, but it is among the old flows.
    SparseWait,
    Bulk,
    Decaying,
}

/// A queue and its flow.
#[derive(Clone)]
pub(super) struct Flow {
    pub fifo: Fifo,
    pub cobalt: CobaltState,
    pub deficit: i64,
    set: Set,
    /// The hosts that it comes from and goes to, by their places.
    hosts: [u32; 2],
}

/// The hosts of one side, and how many bulk flows each has.
#[derive(Clone)]
struct Hosts {
    table: Table,
    bulk_flows: Vec<u32>,
    /// False while they do not share: the counts stay as they are.
    counts: bool,
}

impl Hosts {
    /// Linux's tables of hosts have as many places and ways as that of flows.
    const WAYS: u64 = 8;

    fn new(places: u64) -> Self {
        let table = Table::new(places, Self::WAYS);
        Hosts { table, bulk_flows: vec![0; places as usize], counts: true }
    }

    fn place(&mut self, host: u32) -> u32 {
        let bulk_flows = &self.bulk_flows;
        self.table.place(host, |place| bulk_flows[place as usize] == 0).bucket
    }
}

/// What a tin is at a bandwidth.
#[derive(Clone)]
pub(super) struct Plan {
    pub law: Law,
    pub quantum: u64,
    pub mtu_time: Span,
    /// Weight without a shaper.
    pub weight: i64,
    pub rate: Option<Rate>,
}

#[derive(Clone)]
pub(super) struct Tin {
    pub flows: Vec<Flow>,
    lists: Lists,
    classifier: FlowClassifier,
    /// The hosts on each side, if they share or have shared.
    hosts: [Option<Hosts>; 2],
    pub plan: Plan,
    pub deficit: i64,
    pub schedule: Schedule,
    pub backlog: Backlog,
    sparse_flows: u64,
    bulk_flows: u64,
}

impl Tin {
    /// A tin with so many flow queues; hosts share, on each side, or do not.
    pub fn new(
        plan: Plan,
        classifier: FlowClassifier,
        flows: u64,
        counts_hosts: [bool; 2],
    ) -> Self {
        let flow = || Flow {
            fifo: Fifo::default(),
            cobalt: CobaltState::new(&plan.law),
            deficit: 0,
            set: Set::None,
            hosts: [0; 2],
        };
        Tin {
            flows: (0..flows).map(|_| flow()).collect(),
            lists: Lists::new(flows as usize),
            classifier,
            hosts: counts_hosts.map(|counts| counts.then(|| Hosts::new(flows))),
            deficit: 0,
            schedule: Schedule::new(plan.rate),
            plan,
            backlog: Backlog::default(),
            sparse_flows: 0,
            bulk_flows: 0,
        }
    }

    /// The bandwidth is another now.
    pub fn change(&mut self, plan: Plan) {
        self.schedule.set_rate(plan.rate);
        self.plan = plan;
    }

    /// Changes how hosts share the link. As in Linux, the table of a side that does not share any
    /// more is used again if it shares later.
    pub fn share(&mut self, params: &CakeParams, now: Time) {
        self.classifier.set_key(params.isolation.key());
        self.classifier.set_perturb(params.hashing.perturb, now);
        for (hosts, counts) in self.hosts.iter_mut().zip(params.isolation.counts_hosts()) {
            match hosts {
                Some(hosts) => hosts.counts = counts,
                None => *hosts = counts.then(|| Hosts::new(self.flows.len() as u64)),
            }
        }
    }

    /// Whether flows are in line.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    #[inline]
    pub fn bytes_of(&self, index: u32) -> u64 {
        self.flows[index as usize].fifo.backlog().bytes
    }

    /// No delay up to this is too long: four of the largest packets, and if
    /// dropped packets count, two of each bulk flow.
    #[inline]
    pub fn harmless(&self, ingress: bool) -> Span {
        let packets = if ingress { (2 * self.bulk_flows).max(4) } else { 4 };
        self.plan.mtu_time * packets
    }

    /// The queue of a packet.
    pub fn queue_of(&mut self, packet: &Packet) -> u32 {
        let flows = &self.flows;
        let is_free = |bucket: u32| flows[bucket as usize].set == Set::None;
        let place = self.classifier.place(packet, is_free);
        if place.is_new && self.hosts.iter().flatten().any(|hosts| hosts.counts) {
            // A collision: the queue may be in line for the hosts it had.
            let is_bulk = self.flows[place.bucket as usize].set == Set::Bulk;
            if is_bulk {
                self.count_bulk(place.bucket, false);
            }
            for (side, host) in packet.hosts().into_iter().enumerate() {
                if let Some(hosts) = self.hosts[side].as_mut().filter(|hosts| hosts.counts) {
                    self.flows[place.bucket as usize].hosts[side] = hosts.place(host);
                }
            }
            if is_bulk {
                self.count_bulk(place.bucket, true);
            }
        }
        place.bucket
    }

    /// The flow's hosts have a bulk flow more, or less.
    fn count_bulk(&mut self, index: u32, more: bool) {
        let places = self.flows[index as usize].hosts;
        for (hosts, place) in self.hosts.iter_mut().zip(places) {
            if let Some(hosts) = hosts.as_mut().filter(|hosts| hosts.counts) {
                let count = &mut hosts.bulk_flows[place as usize];
                *count = if more { *count + 1 } else { count.saturating_sub(1) };
            }
        }
    }

    /// Changes what a flow counts as.
    fn turn(&mut self, index: u32, set: Set) {
        let before = core::mem::replace(&mut self.flows[index as usize].set, set);
        match before {
            Set::Sparse | Set::SparseWait => self.sparse_flows -= 1,
            Set::Bulk => {
                self.bulk_flows -= 1;
                self.count_bulk(index, false);
            }
            Set::None | Set::Decaying => (),
        }
        match set {
            Set::Sparse | Set::SparseWait => self.sparse_flows += 1,
            Set::Bulk => {
                self.bulk_flows += 1;
                self.count_bulk(index, true);
            }
            Set::None | Set::Decaying => (),
        }
    }

    /// A flow's quantum, with its fraction dithered.
    fn draw_quantum(&self, index: u32, random: &mut Stream) -> i64 {
        let places = self.flows[index as usize].hosts;
        let counts = self.hosts.iter().zip(places).filter_map(|(hosts, place)| {
            hosts
                .as_ref()
                .filter(|hosts| hosts.counts)
                .map(|hosts| hosts.bulk_flows[place as usize])
        });
        let load = u64::from(counts.max().unwrap_or(0).max(1));
        // Most flows are alone, and a division costs as much as all the rest.
        let part = if load == 1 { 0xFFFF } else { 0xFFFF / load };
        let dither = u64::from(random.next_u32() & 0xFFFF);
        ((self.plan.quantum * part + dither) >> 16) as i64
    }

    /// A packet was put into a queue: its flow gets in line.
    pub fn arrived(&mut self, index: u32, random: &mut Stream) {
        match self.flows[index as usize].set {
            Set::None | Set::Decaying => {
                self.turn(index, Set::Sparse);
                self.lists.move_to(index, List::New);
                self.flows[index as usize].deficit = self.draw_quantum(index, random);
            }
            Set::SparseWait => self.turn(index, Set::Bulk),
            Set::Sparse | Set::Bulk => (),
        }
    }

    /// The next flow to look at; with `decaying` one of those first.
    pub fn next(&self, decaying: bool) -> u32 {
        let first = decaying.then(|| self.lists.head(List::Decaying)).flatten();
        let by_rank = || {
            [List::New, List::Old, List::Decaying]
                .into_iter()
                .find_map(|list| self.lists.head(list))
        };
        first.or_else(by_rank).expect("a busy tin has flows on its lists")
    }

    /// The flow has used up its quantum: it gets another and goes to the end.
    pub fn used_up(&mut self, index: u32, random: &mut Stream) {
        if self.flows[index as usize].set == Set::Sparse {
            let is_empty = self.flows[index as usize].fifo.is_empty();
            self.turn(index, if is_empty { Set::SparseWait } else { Set::Bulk });
        }
        self.flows[index as usize].deficit += self.draw_quantum(index, random);
        self.lists.move_to(index, List::Old);
    }

    /// An empty flow goes, at once or when its state is forgotten.
    pub fn ran_empty(&mut self, index: u32, now: Time) {
        let cobalt = &mut self.flows[index as usize].cobalt;
        cobalt.ran_empty(&self.plan.law, now);
        if cobalt.is_at_rest(now) {
            self.turn(index, Set::None);
            self.lists.remove(index);
        } else {
            self.turn(index, Set::Decaying);
            self.lists.move_to(index, List::Decaying);
        }
    }

    /// When the hash changes next, or the other time if that is earlier.
    #[inline]
    pub fn next_change_or(&self, other: Option<Time>) -> Option<Time> {
        self.classifier.next_change_or(other)
    }

    /// Changes the hash if it is due. Returns all packets, to be enqueued in their new queues. The
    /// states of the queues stay.
    pub fn rehash_if_due(&mut self, now: Time, random: &mut Stream) -> Vec<Packet> {
        let mut packets = Vec::new();
        if self.classifier.change_if_due(now, random) {
            for index in 0..self.flows.len() as u32 {
                self.turn(index, Set::None);
                self.lists.remove(index);
                while let Some(packet) = self.flows[index as usize].fifo.pop() {
                    packets.push(packet);
                }
            }
        }
        packets
    }
}

/// The bytes of a queue in a tin, for the heap; none where there is no tin.
pub(super) fn bytes_in(tins: &[Tin]) -> impl Fn(u32, u32) -> u64 + '_ {
    debug_assert!(tins.len() <= Heap::TINS as usize);
    |tin, index| tins.get(tin as usize).map_or(0, |tin| tin.bytes_of(index))
}
