//! Pending events: of a network, and of what drives one.
//!
//! Every link and flow has at most one pending event of each kind, so the
//! set stays in the hundreds and a key (time, kind, index) is unique: events
//! at one moment have one order, which does not depend on who asked first.
//!
//! A network has a set of its own, apart from the timers of its endpoints:
//! nearly all events are of the few links, and need not pass by the timers of
//! all flows, which wait for long. At one moment those of the network come
//! first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_core::{Time, choices};

choices! {
    /// Order of an arrival from another link and the end of a transmission at the same nanosecond.
    /// Packets of a sender arrive at its first link after the ends of transmissions, in either
    /// order.
    pub enum Simultaneous {
        /// The arriving packet is in the queue when the next packet is chosen: ns-2's order on
        /// paths with some delay.
        ArrivalsFirst = "arrivals-first",
        /// The next packet is chosen first: the order of the conformance vectors.
        DeparturesFirst = "departures-first",
    }
}

/// A pending event: in the order of time, kind and index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey(u128);

impl EventKey {
    /// Before all others.
    pub const MIN: EventKey = EventKey(0);
    /// That of no event: behind all others.
    pub const MAX: EventKey = EventKey(u128::MAX);

    #[inline]
    fn new(time: Time, kind: u32, index: u32) -> Self {
        let low = u64::from(kind) << 32 | u64::from(index);
        EventKey(u128::from(time.as_nanos()) << 64 | u128::from(low))
    }
    /// That of the end of a link's transmission.
    #[inline]
    pub fn transmission_end(time: Time, link: u32) -> Self {
        EventKey::new(time, TRANSMISSION_END, link)
    }
    /// Before all that happens at a moment.
    pub fn before(time: Time) -> Self {
        EventKey::new(time, 0, 0)
    }
    /// Behind all that happens at a moment in a network.
    #[inline]
    pub fn after(time: Time) -> Self {
        EventKey::new(time, u32::MAX, u32::MAX)
    }
    /// When it happens; of none, at the end of all time.
    #[inline]
    pub fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
    /// What it is.
    #[inline]
    pub fn kind(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// To whom it happens.
    #[inline]
    pub fn index(self) -> u32 {
        self.0 as u32
    }
    /// Unless it is that of none.
    #[inline]
    pub fn any(self) -> Option<Self> {
        (self != Self::MAX).then_some(self)
    }
}

/// How many of the next events are kept apart; a power of two.
const NEAR: usize = 8;

/// Events of one kind after the other at one moment, and of one kind in the
/// order of what they happen to.
///
/// The next few stand in order in a ring, the others in a heap. A small
/// network never has more than the ring holds, and an event that is later than
/// those pending, as most are, is put there with one comparison.
#[derive(Clone)]
pub struct EventQueue {
    near: [EventKey; NEAR],
    /// Where the next is, or [`EventKey::MAX`].
    first: usize,
    len: usize,
    /// All of it is later than what is near.
    far: BinaryHeap<Reverse<EventKey>>,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { near: [EventKey::MAX; NEAR], first: 0, len: 0, far: BinaryHeap::new() }
    }
}

impl EventQueue {
    /// Something that will happen.
    #[inline]
    pub fn push(&mut self, time: Time, kind: u32, index: u32) {
        let key = EventKey::new(time, kind, index);
        if self.len < NEAR && self.far.is_empty() {
            self.insert(key);
        } else {
            self.push_crowded(key);
        }
    }
    /// What happens next, which stays pending.
    #[inline(always)]
    pub fn next(&self) -> EventKey {
        self.near[self.first % NEAR]
    }
    /// Takes what happens next.
    #[inline]
    pub fn pop(&mut self) -> EventKey {
        let next = self.next();
        match self.len {
            0 => {}
            1 => self.refill(),
            _ => {
                self.first += 1;
                self.len -= 1;
            }
        }
        next
    }

    /// Puts an event where it belongs in the ring, which has room.
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

    /// The last in the ring was taken: some of the heap come there.
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

/// A pending event as a number: for those who say what goes on.
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

/// What happens at a link, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkEvent {
    /// The first packet on its way arrives at the end of it.
    Delivery(u32),
    /// Its transmission ends while its queue holds packets.
    TransmissionEnd(u32),
    /// A timer of its queue discipline, shaper or driver.
    Wakeup(u32),
}

impl LinkEvent {
    #[inline]
    pub fn new(kind: u32, index: u32) -> Self {
        match kind {
            TRANSMISSION_END => LinkEvent::TransmissionEnd(index),
            2 => LinkEvent::Wakeup(index),
            _ => LinkEvent::Delivery(index),
        }
    }
}

/// The kind of a delivery if arrivals are first, and if departures are.
const FIRST: u32 = 0;
const LAST: u32 = 3;
/// That of an end of a transmission.
const TRANSMISSION_END: u32 = 1;

/// The pending events of a network's links.
#[derive(Clone)]
pub(crate) struct LinkEvents {
    pending: EventQueue,
    delivery: u32,
}

impl LinkEvents {
    /// None yet.
    pub fn new(simultaneous: Simultaneous) -> Self {
        let delivery = match simultaneous {
            Simultaneous::ArrivalsFirst => FIRST,
            Simultaneous::DeparturesFirst => LAST,
        };
        LinkEvents { pending: EventQueue::default(), delivery }
    }
    #[inline]
    pub fn push(&mut self, time: Time, event: LinkEvent) {
        let (kind, index) = match event {
            LinkEvent::Delivery(index) => (self.delivery, index),
            LinkEvent::TransmissionEnd(index) => (TRANSMISSION_END, index),
            LinkEvent::Wakeup(index) => (2, index),
        };
        self.pending.push(time, kind, index);
    }
    #[inline]
    pub fn pop(&mut self) -> Option<(EventKey, LinkEvent)> {
        let next = self.pending.pop().any()?;
        Some((next, LinkEvent::new(next.kind(), next.index())))
    }
    /// What happens next, which stays pending.
    #[inline(always)]
    pub fn next(&self) -> EventKey {
        self.pending.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order_at_one_moment(simultaneous: Simultaneous) -> Vec<LinkEvent> {
        let mut events = LinkEvents::new(simultaneous);
        let now = Time::from_nanos(5);
        events.push(now, LinkEvent::Delivery(1));
        events.push(now, LinkEvent::Wakeup(7));
        events.push(now, LinkEvent::TransmissionEnd(9));
        events.push(now, LinkEvent::Delivery(0));
        std::iter::from_fn(|| events.pop()).map(|(_, event)| event).collect()
    }

    #[test]
    fn at_one_moment_there_is_one_order_and_it_can_be_chosen() {
        use LinkEvent::{Delivery, TransmissionEnd, Wakeup};
        assert_eq!(
            order_at_one_moment(Simultaneous::ArrivalsFirst),
            [Delivery(0), Delivery(1), TransmissionEnd(9), Wakeup(7)]
        );
        assert_eq!(
            order_at_one_moment(Simultaneous::DeparturesFirst),
            [TransmissionEnd(9), Wakeup(7), Delivery(0), Delivery(1)]
        );
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

        /// Whatever is in the ring and in the heap, and however the two change: as a sorted set.
        #[test]
        fn events_that_come_and_go_keep_their_order(
            steps in prop::collection::vec((any::<bool>(), 0u64..1000), 0..400),
        ) {
            let (mut events, mut model) = (EventQueue::default(), std::collections::BTreeSet::new());
            for ((is_push, time), index) in steps.into_iter().zip(0..) {
                if is_push {
                    events.push(Time::from_nanos(time), time as u32 % 3, index);
                    model.insert(EventKey::new(Time::from_nanos(time), time as u32 % 3, index));
                } else {
                    prop_assert!(events.pop().any() == model.pop_first());
                }
                prop_assert!(events.next().any() == model.first().copied());
            }
        }
    }
}
