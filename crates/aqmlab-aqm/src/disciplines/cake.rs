//! CAKE without its shaper: flow queues with collisions avoided, COBALT in
//! each, and memory of flows that have just been active.
//!
//! # Model
//! The mode `besteffort flows unlimited` of Linux's qdisc. Three lists of
//! flows: new ones, old ones, and decaying ones, which are empty but whose
//! COBALT state still has to be forgotten. Deficit round robin serves them;
//! when there is no room, the longest queue loses its first packet.
//!
//! # Sources
//! Linux's qdisc as recorded in the conformance vectors and their rules;
//! tc-cake(8).
//!
//! # Differences
//! 1. No shaper, no tins (one for all), no isolation of hosts, no ACK filter,
//!    no overhead.
//! 2. The memory of a packet is its size on the wire; Linux counts the
//!    kernel's buffers.
//! 3. A queue shared by colliding flows keeps the mark of the one that had it
//!    first.
//! 4. The heap that finds the longest queue, once built, is kept up to date
//!    until the end; recorded is no run long enough to say whether Linux's is.

use aqmlab_core::{Bytes, Limit, Packet, Span, Stream, Time, choices, params};

use crate::cobalt::{CobaltState, Law};
use crate::discipline::{Backlog, Context, Discipline, DropReason, LinkEnv, QueueDiscipline};
use crate::fifo::Fifo;

choices! {
    /// How long the delay of a new flow may be above the target at first.
    pub enum Variant {
        /// Not at all: the next packet is dropped at once, as Linux 6.1 does.
        Linux = "linux",
        /// An interval, as the rest of the algorithm means it.
        LinuxInitfix = "linux-initfix",
    }
}

params! {
    /// Parameters of CAKE.
    pub struct CakeParams {
        /// The number of flow queues.
        flows: u64 = 1024, in 1 => 65_536, source "fixed in Linux";
        /// Bytes that a flow may send before the next is served; now and then one less.
        quantum: Bytes = Bytes::new(1514), in Bytes::new(1) => Bytes::new(1_000_000),
            source "fixed in Linux without a shaper";
        /// How much all queues hold together.
        limit: Limit = Limit::Bytes(Bytes::new(10_240 * 1514)),
            source "Linux without a shaper: 10240 packets of 1514 bytes";
        /// The sojourn time that a flow's queue may keep standing.
        target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(100),
            source "tc-cake(8)";
        /// How long it may be above the target; about the longest usual round-trip time.
        interval: Span = Span::from_millis(100), in Span::from_micros(1) => Span::from_secs(100),
            source "tc-cake(8), rtt";
        /// Linux's COBALT as it is, or with its first interval as it is meant.
        variant: Variant = Variant::LinuxInitfix, source "conformance vectors";
    }
}

impl Discipline for CakeParams {
    const NAME: &'static str = "cake";
    const SUMMARY: &'static str = "a queue for each flow, COBALT in each: CAKE without its shaper";

    fn build<P: Packet + Send + 'static>(&self, env: &LinkEnv) -> Box<dyn QueueDiscipline<P>> {
        let law = Law {
            target: self.target,
            interval: self.interval,
            hasty: self.variant == Variant::Linux,
        };
        let flow =
            || Flow { fifo: Fifo::default(), cobalt: CobaltState::new(&law), deficit: 0, tag: 0 };
        Box::new(Cake::<P> {
            flows: (0..self.flows).map(|_| flow()).collect(),
            lists: Lists::new(self.flows as usize),
            heap: Heap::default(),
            law,
            quantum: self.quantum.get(),
            limit: self.limit.resolve(env.rate, env.base_rtt),
            total: Backlog::default(),
        })
    }
}

/// A queue and its flow.
struct Flow<P> {
    fifo: Fifo<P>,
    cobalt: CobaltState,
    deficit: i64,
    /// The hash of the flow that has the queue.
    tag: u32,
}

/// The state machine.
struct Cake<P> {
    flows: Vec<Flow<P>>,
    lists: Lists,
    heap: Heap,
    law: Law,
    quantum: u64,
    limit: Limit,
    total: Backlog,
}

impl<P: Packet> Cake<P> {
    /// A queue may be used by so many flow hashes next to its own.
    const WAYS: u32 = 8;

    /// The queue of a flow: its own, or else one of the same set that it has
    /// already or that nobody has.
    fn queue_of(&self, hash: u32) -> u32 {
        let count = self.flows.len() as u32;
        let own = hash % count;
        let has = |i: u32| self.flows[i as usize].tag == hash;
        let first = own - own % Self::WAYS;
        let ways = Self::WAYS.min(count - first);
        let set = || (0..ways).map(|i| first + (own - first + i) % ways);
        let free = || set().find(|i| self.lists.of(*i).is_none());
        set().find(|i| has(*i)).or_else(free).unwrap_or(own)
    }

    /// A quantum with its fraction dithered.
    fn draw_quantum(&self, random: &mut Stream) -> i64 {
        let dither = u64::from(random.next_u32() & 0xFFFF);
        ((self.quantum * 0xFFFF + dither) >> 16) as i64
    }

    fn is_over_limit(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => self.total.packets > limit,
            Limit::Bytes(limit) => self.total.bytes > limit.get(),
            Limit::Bdp(_) | Limit::Unlimited => false,
        }
    }

    /// Takes the first packet of a queue.
    fn pop(&mut self, index: u32) -> Option<P> {
        let packet = self.flows[index as usize].fifo.pop()?;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size());
        let flows = &self.flows;
        self.heap.shrunk(index, |i| flows[i as usize].fifo.backlog().bytes);
        Some(packet)
    }

    /// Drops the first packet of what the heap holds for the longest queue.
    fn drop_from_longest(&mut self, cx: &mut Context<'_, P>) {
        let flows = &self.flows;
        let longest = self.heap.top(flows.len(), |i| flows[i as usize].fifo.backlog().bytes);
        let packet = self.pop(longest).expect("something is over the limit");
        cx.drop(packet, DropReason::Overlimit);
        self.flows[longest as usize].cobalt.overflowed(&self.law, cx.now);
    }

    /// The next packet of a queue that passes COBALT, if there is any.
    fn take(&mut self, index: u32, cx: &mut Context<'_, P>) -> Option<P> {
        loop {
            let mut packet = self.pop(index)?;
            let flow = &mut self.flows[index as usize];
            let may_mark = packet.ecn().is_capable();
            let verdict =
                flow.cobalt.judge(&self.law, cx.now, packet.arrival(), may_mark, cx.random);
            if verdict.mark {
                cx.mark(&mut packet, DropReason::Cobalt);
            }
            // The last packet stays.
            if let Some(reason) = verdict.drop.filter(|_| !flow.fifo.is_empty()) {
                cx.drop(packet, reason);
                continue;
            }
            flow.deficit -= i64::from(packet.size());
            return Some(packet);
        }
    }

    /// An empty flow goes, at once or when its state is forgotten.
    fn ran_empty(&mut self, index: u32, now: Time) {
        let cobalt = &mut self.flows[index as usize].cobalt;
        cobalt.ran_empty(&self.law, now);
        self.lists.remove(index);
        if !cobalt.is_at_rest(now) {
            self.lists.push(index, List::Decaying);
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Cake<P> {
    fn enqueue(&mut self, packet: P, cx: &mut Context<'_, P>) {
        let hash = packet.flow_hash();
        let index = self.queue_of(hash);
        self.flows[index as usize].tag = hash;
        self.total.packets += 1;
        self.total.bytes += u64::from(packet.size());
        self.flows[index as usize].fifo.push(packet);
        let flows = &self.flows;
        self.heap.grown(index, |i| flows[i as usize].fifo.backlog().bytes);
        let list = self.lists.of(index);
        if matches!(list, None | Some(List::Decaying)) {
            self.lists.remove(index);
            self.flows[index as usize].deficit = self.draw_quantum(cx.random);
            self.lists.push(index, List::New);
        }
        while self.is_over_limit() {
            self.drop_from_longest(cx);
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_, P>) -> Option<P> {
        // One look at a decaying flow before the others have their turn.
        let mut head = self.lists.head(List::Decaying);
        while self.total.packets > 0 {
            let lists = &self.lists;
            let by_rank = || {
                [List::New, List::Old, List::Decaying].into_iter().find_map(|list| lists.head(list))
            };
            let index = head.take().or_else(by_rank).expect("packets are in flows on lists");
            if self.flows[index as usize].deficit <= 0 {
                self.flows[index as usize].deficit += self.draw_quantum(cx.random);
                self.lists.remove(index);
                self.lists.push(index, List::Old);
            } else if let Some(packet) = self.take(index, cx) {
                return Some(packet);
            } else {
                self.ran_empty(index, cx.now);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn observe(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let active = || self.flows.iter().filter(|flow| !flow.fifo.is_empty());
        see("active_flows", active().count() as f64);
        see("dropping_flows", active().filter(|flow| flow.cobalt.is_dropping()).count() as f64);
        let blue = self.flows.iter().map(|flow| flow.cobalt.probability());
        see("blue_probability", blue.fold(0.0, f64::max));
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum List {
    New,
    Old,
    Decaying,
}

/// The three lists, linked through one array: flows leave them in any place.
struct Lists {
    links: Vec<Link>,
    /// First and last of each.
    ends: [(u32, u32); 3],
}

#[derive(Clone, Copy)]
struct Link {
    list: Option<List>,
    before: u32,
    after: u32,
}

/// No flow.
const NOBODY: u32 = u32::MAX;

impl Lists {
    fn new(flows: usize) -> Self {
        let link = Link { list: None, before: NOBODY, after: NOBODY };
        Lists { links: vec![link; flows], ends: [(NOBODY, NOBODY); 3] }
    }
    #[inline]
    fn of(&self, index: u32) -> Option<List> {
        self.links[index as usize].list
    }
    #[inline]
    fn head(&self, list: List) -> Option<u32> {
        let (first, _) = self.ends[list as usize];
        (first != NOBODY).then_some(first)
    }
    /// Adds a flow that is on no list at the tail of one.
    fn push(&mut self, index: u32, list: List) {
        let (first, last) = &mut self.ends[list as usize];
        let before = std::mem::replace(last, index);
        self.links[index as usize] = Link { list: Some(list), before, after: NOBODY };
        match before {
            NOBODY => *first = index,
            _ => self.links[before as usize].after = index,
        }
    }
    /// Takes a flow from its list.
    fn remove(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        let Some(list) = link.list.take() else { return };
        let Link { before, after, .. } = *link;
        let (first, last) = &mut self.ends[list as usize];
        match before {
            NOBODY => *first = after,
            _ => self.links[before as usize].after = after,
        }
        match after {
            NOBODY => *last = before,
            _ => self.links[after as usize].before = before,
        }
    }
}

/// Linux's heap of queues by their bytes. It has room for eight tins, of which
/// only the first is used, and an entry that sinks compares the next levels
/// with what took its place: so the top is not always the longest queue, and
/// which one it is depends on the entries of the unused tins.
#[derive(Default)]
struct Heap {
    /// Entry `8 i` is queue `i`. Empty until the buffer is full for the first time.
    entries: Vec<u32>,
    /// Where in the heap each entry is.
    places: Vec<u32>,
}

impl Heap {
    const TINS: u32 = 8;

    fn value(&self, place: usize, bytes: impl Fn(u32) -> u64) -> u64 {
        let entry = self.entries[place];
        if entry.is_multiple_of(Self::TINS) { bytes(entry / Self::TINS) } else { 0 }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        self.places[self.entries[a] as usize] = a as u32;
        self.places[self.entries[b] as usize] = b as u32;
    }

    fn sink(&mut self, mut place: usize, bytes: impl Fn(u32) -> u64) {
        let mut most = self.value(place, &bytes);
        loop {
            let mut best = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.entries.len() && self.value(child, &bytes) > most {
                    best = child;
                    most = self.value(child, &bytes);
                }
            }
            if best == place {
                return;
            }
            self.swap(place, best);
            place = best;
        }
    }

    /// The queue got a packet.
    #[inline]
    fn grown(&mut self, index: u32, bytes: impl Fn(u32) -> u64) {
        let Some(place) = self.places.get((index * Self::TINS) as usize) else { return };
        let mut place = *place as usize;
        while place > 0 && self.value(place, &bytes) > self.value((place - 1) / 2, &bytes) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// The queue lost a packet.
    #[inline]
    fn shrunk(&mut self, index: u32, bytes: impl Fn(u32) -> u64) {
        if let Some(place) = self.places.get((index * Self::TINS) as usize) {
            self.sink(*place as usize, bytes);
        }
    }

    /// The queue at the top; the heap is built if there is none or if it has
    /// an empty queue there.
    fn top(&mut self, queues: usize, bytes: impl Fn(u32) -> u64) -> u32 {
        if self.entries.is_empty() {
            self.entries = (0..queues as u32 * Self::TINS).collect();
            self.places.clone_from(&self.entries);
            self.build(&bytes);
        } else if self.value(0, &bytes) == 0 {
            self.build(&bytes);
        }
        self.entries[0] / Self::TINS
    }

    fn build(&mut self, bytes: impl Fn(u32) -> u64) {
        for place in (0..=self.entries.len() / 2).rev() {
            self.sink(place, &bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;
    use crate::testing::{TestPacket, env, run};

    #[test]
    fn a_set_gives_eight_flows_their_own_queues() {
        let mut lists = Lists::new(16);
        let law =
            Law { target: Span::from_millis(5), interval: Span::from_millis(100), hasty: true };
        let flow =
            |_| Flow { fifo: Fifo::default(), cobalt: CobaltState::new(&law), deficit: 0, tag: 0 };
        lists.push(12, List::Old);
        let mut cake = Cake::<TestPacket> {
            flows: (0..16).map(flow).collect(),
            lists,
            heap: Heap::default(),
            law,
            quantum: 1514,
            limit: Limit::Unlimited,
            total: Backlog::default(),
        };
        cake.flows[12].tag = 12;
        // Hashes that all belong into queue 13: the others of its set follow
        // in turn, without that of the flow that is there already.
        for (i, queue) in [13, 14, 15, 8, 9, 10, 11].into_iter().enumerate() {
            let hash = 13 + 16 * i as u32;
            assert_eq!(cake.queue_of(hash), queue);
            cake.lists.push(queue, List::New);
            cake.flows[queue as usize].tag = hash;
        }
        assert_eq!(cake.queue_of(12), 12);
        assert_eq!(cake.queue_of(13 + 16 * 3), 8);
        assert_eq!(cake.queue_of(13 + 16 * 99), 13, "a collision");
    }

    #[test]
    fn blue_comes_with_overflow() {
        let params = CakeParams { limit: Limit::Packets(20), ..CakeParams::default() };
        let mut queue = Queue::new(params.build(&env()), Stream::from_state(1));
        let blue = |queue: &Queue<TestPacket>| {
            let mut probability = 0.0;
            queue.observe(&mut |name, value| {
                if name == "blue_probability" {
                    probability = value;
                }
            });
            probability
        };
        run(&mut queue, Span::from_millis(1), 10);
        assert!(blue(&queue) > 0.05, "{}", blue(&queue));
        let counts = queue.counts();
        assert!(counts.dropped[DropReason::Blue as usize] > 0, "{counts:?}");
        assert!(counts.dropped[DropReason::Overlimit as usize] > 0, "{counts:?}");
    }
}
