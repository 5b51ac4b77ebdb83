//! Event queue: the pending events of a network and of its users, in order.
//!
//! Every link and flow has at most one pending event of each kind, so the set has a few hundred
//! events, and a key (time, kind, index) is unique: the order of simultaneous events does not
//! depend on when they were scheduled.
//!
//! A network has its own set, separate from the timers of its endpoints. Nearly all events belong
//! to the few links, and need not be compared with the timers of all flows, which are pending for
//! longer. Of simultaneous events, those of the network are first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_core::{Time, choices};

choices! {
    /// Order of an arrival from another link and the end of a transmission at the same nanosecond.
    /// Packets of a sender arrive at its first link after the ends of transmissions, in either
    /// order.
    pub enum Simultaneous {
        /// The arriving packet is in the queue when the next packet is selected: ns-2's order on
        /// paths with some delay.
        ArrivalsFirst = "arrivals-first",
        /// The next packet is selected first: the order of the conformance vectors.
        DeparturesFirst = "departures-first",
    }
}

/// Key of a pending event, ordered by time, kind and index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

impl EventKey {
    /// Key before all others.
    pub const MIN: EventKey = EventKey(0);
    /// Key of no event, after all others.
    pub const MAX: EventKey = EventKey(u128::MAX);

    #[inline]
    fn new(time: Time, kind: u32, index: u32) -> Self {
        let low = u64::from(kind) << 32 | u64::from(index);
        EventKey(u128::from(time.as_nanos()) << 64 | u128::from(low))
    }
    /// Creates the key of the end of a link's transmission.
    #[inline]
    pub fn transmission_end(time: Time, link: u32) -> Self {
        EventKey::new(time, TRANSMISSION_END, link)
    }
    /// Creates a key before all events of a time.
    pub fn before(time: Time) -> Self {
        EventKey::new(time, 0, 0)
    }
    /// Creates a key after all events of a time in a network.
    #[inline]
    pub fn after(time: Time) -> Self {
        EventKey::new(time, u32::MAX, u32::MAX)
    }
    /// Returns the time of the event; of no event, the maximum time.
    #[inline]
    pub fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
    /// Returns the kind of the event.
    #[inline]
    pub fn kind(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// Returns the index of the event's target.
    #[inline]
    pub fn index(self) -> u32 {
        self.0 as u32
    }
    /// Returns the key, or `None` for no event.
    #[inline]
    pub fn any(self) -> Option<Self> {
        (self != Self::MAX).then_some(self)
    }
}

/// Number of events in the ring; a power of two.
const NEAR: usize = 8;

/// Set of pending events. Simultaneous events are ordered by kind, and events of one kind by the
/// index of their target.
///
/// The few after the next one are in a sorted ring, the others in a heap. A small network never has
/// more events than the ring holds. An event later than all pending ones, the usual case, is
/// appended with one comparison.
#[derive(Clone)]
pub struct EventQueue {
    /// Key of the next event, or [`EventKey::MAX`].
    next: EventKey,
    near: [EventKey; NEAR],
    /// Position of the event after the next one, or of [`EventKey::MAX`].
    first: usize,
    len: usize,
    /// Events later than those in the ring.
    far: BinaryHeap<Reverse<EventKey>>,
}

impl Default for EventQueue {
    fn default() -> Self {
        let none = EventKey::MAX;
        let far = BinaryHeap::new();
        EventQueue { next: none, near: [none; NEAR], first: 0, len: 0, far }
    }
}

impl EventQueue {
    /// Schedules an event.
    #[inline]
    pub fn push(&mut self, time: Time, kind: u32, index: u32) {
        let mut key = EventKey::new(time, kind, index);
        if key < self.next {
            std::mem::swap(&mut key, &mut self.next);
            if key == EventKey::MAX {
                return;
            }
        }
        if self.len < NEAR && self.far.is_empty() {
            self.insert(key);
        } else {
            self.push_crowded(key);
        }
    }
    /// Returns the next event without removing it.
    #[inline(always)]
    pub fn next(&self) -> EventKey {
        self.next
    }
    /// Removes and returns the next event.
    #[inline]
    pub fn pop(&mut self) -> EventKey {
        let after = self.near[self.first % NEAR];
        match self.len {
            0 => {}
            1 => self.refill(),
            _ => {
                self.first += 1;
                self.len -= 1;
            }
        }
        std::mem::replace(&mut self.next, after)
    }

    /// Postpones the next event, as removing and scheduling it would.
    #[inline]
    pub fn postpone(&mut self, to: Time) {
        let key = EventKey::new(to, self.next.kind(), self.next.index());
        let after = self.near[self.first % NEAR];
        if key < after {
            self.next = key;
            return;
        }
        self.next = after;
        let (mut place, last) = (self.first, self.first + self.len - 1);
        while place < last && self.near[(place + 1) % NEAR] < key {
            self.near[place % NEAR] = self.near[(place + 1) % NEAR];
            place += 1;
        }
        self.near[place % NEAR] = key;
        if place == last && !self.far.is_empty() {
            self.postpone_crowded(key);
        }
    }

    /// Moves an event from the end of the ring to its place, which may be in the heap.
    #[inline(never)]
    fn postpone_crowded(&mut self, key: EventKey) {
        if self.len == 1 {
            self.refill();
        } else {
            self.len -= 1;
        }
        self.push_crowded(key);
    }

    /// Inserts an event into the ring, which must have room.
    #[inline(always)]
    fn insert(&mut self, key: EventKey) {
        let mut place = self.first + self.len;
        while place > self.first && key < self.near[(place - 1) % NEAR] {
            self.near[place % NEAR] = self.near[(place - 1) % NEAR];
            place -= 1;
        }
        self.near[place % NEAR] = key;
        self.len += 1;
    }

    #[inline(never)]
    fn push_crowded(&mut self, key: EventKey) {
        let last = (self.first + self.len - 1) % NEAR;
        if key > self.near[last] {
            self.far.push(Reverse(key));
        } else {
            if self.len == NEAR {
                self.far.push(Reverse(self.near[last]));
                self.len -= 1;
            }
            self.insert(key);
        }
    }

    /// Refills the empty ring from the heap.
    #[inline(never)]
    fn refill(&mut self) {
        (self.first, self.len) = (0, 0);
        self.near[0] = EventKey::MAX;
        while self.len < NEAR / 2
            && let Some(Reverse(key)) = self.far.pop()
        {
            self.insert(key);
        }
    }
}

/// Pending event as a number, to report the progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EventTag(pub u64);

impl EventTag {
    const IN_NETWORK: u64 = 1 << 63;

    #[inline]
    pub fn new(event: EventKey, is_in_network: bool) -> Self {
        let of = if is_in_network { Self::IN_NETWORK } else { 0 };
        EventTag(of | event.0 as u64)
    }
    #[inline]
    pub fn is_in_network(self) -> bool {
        self.0 & Self::IN_NETWORK != 0
    }
    pub fn kind(self) -> u32 {
        ((self.0 & !Self::IN_NETWORK) >> 32) as u32
    }
    pub fn index(self) -> u32 {
        self.0 as u32
    }
}

/// Kind of the event of a link at the end of a transmission while packets are queued. The index of a
/// link's event is that of the link.
pub(crate) const TRANSMISSION_END: u32 = 1;
/// Kind of the event of a timer of queue discipline, shaper or driver.
pub(crate) const WAKEUP: u32 = 2;

impl Simultaneous {
    /// Returns the kind of the event at which the first packet in propagation arrives at the far
    /// end.
    pub(crate) fn delivery(self) -> u32 {
        match self {
            Simultaneous::ArrivalsFirst => 0,
            Simultaneous::DeparturesFirst => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Span;
    use proptest::prelude::*;

    use super::*;

    fn order_at_one_moment(simultaneous: Simultaneous) -> Vec<u32> {
        let mut events = EventQueue::default();
        let delivery = simultaneous.delivery();
        for (kind, link) in [(delivery, 1), (WAKEUP, 7), (TRANSMISSION_END, 9), (delivery, 0)] {
            events.push(Time::from_nanos(5), kind, link);
        }
        std::iter::from_fn(|| events.pop().any()).map(EventKey::index).collect()
    }

    #[test]
    fn at_one_moment_there_is_one_order_and_it_can_be_chosen() {
        assert_eq!(order_at_one_moment(Simultaneous::ArrivalsFirst), [0, 1, 9, 7]);
        assert_eq!(order_at_one_moment(Simultaneous::DeparturesFirst), [9, 7, 0, 1]);
    }

    proptest! {
        #[test]
        fn events_come_out_in_order_of_time(times in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut events = EventQueue::default();
            for (i, time) in (0..).zip(&times) {
                events.push(Time::from_nanos(*time), i % 3, i);
            }
            let next = events.next().any().map(|next| next.time().as_nanos());
            let out: Vec<u64> = std::iter::from_fn(|| events.pop().any())
                .map(|event| event.time().as_nanos())
                .collect();
            let mut sorted = times.clone();
            sorted.sort_unstable();
            prop_assert_eq!(next, out.first().copied());
            prop_assert_eq!(out, sorted);
        }

        /// For any contents and changes of ring and heap, the set equals a sorted set.
        #[test]
        fn events_that_come_and_go_keep_their_order(
            steps in prop::collection::vec((0..3, 0u64..1000), 0..400),
        ) {
            let (mut events, mut model) = (EventQueue::default(), std::collections::BTreeSet::new());
            for ((kind_of_step, time), index) in steps.into_iter().zip(0..) {
                match (kind_of_step, model.first().copied()) {
                    (0, first) => {
                        prop_assert!(events.pop().any() == first);
                        model.pop_first();
                    }
                    (1, Some(first)) => {
                        let later = first.time() + Span::from_nanos(time);
                        events.postpone(later);
                        model.remove(&first);
                        model.insert(EventKey::new(later, first.kind(), first.index()));
                    }
                    _ => {
                        events.push(Time::from_nanos(time), time as u32 % 3, index);
                        model.insert(EventKey::new(Time::from_nanos(time), time as u32 % 3, index));
                    }
                }
                prop_assert!(events.next().any() == model.first().copied());
            }
        }
    }
}
