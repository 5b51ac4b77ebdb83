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
    /// The order of what happens at the same nanosecond.
    pub enum Simultaneous {
        /// A packet that arrives when a transmission ends is in the queue when
        /// the next is chosen: ns-2's order on paths with some delay.
        ArrivalsFirst = "arrivals-first",
        /// The next packet is chosen first: the conformance vectors' order.
        DeparturesFirst = "departures-first",
    }
}

/// Events of one kind after the other at one moment, and of one kind in the
/// order of what they happen to.
#[derive(Clone, Default)]
pub struct Pending {
    /// Time in the high half of a key, kind and index in the low one.
    heap: BinaryHeap<Reverse<u128>>,
}

impl Pending {
    /// Something that will happen.
    #[inline]
    pub fn push(&mut self, time: Time, kind: u32, index: u32) {
        let low = u64::from(kind) << 32 | u64::from(index);
        self.heap.push(Reverse(u128::from(time.as_nanos()) << 64 | u128::from(low)));
    }
    /// What happens next: the time, the kind and the index.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32, u32)> {
        let Reverse(key) = self.heap.pop()?;
        Some((Time::from_nanos((key >> 64) as u64), (key >> 32) as u32, key as u32))
    }
    /// When that is.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(key)| Time::from_nanos((key >> 64) as u64))
    }
    /// What happens next, which stays pending.
    #[inline]
    pub fn next(&self) -> Option<(Time, u32, u32)> {
        let Reverse(key) = self.heap.peek()?;
        Some((Time::from_nanos((key >> 64) as u64), (key >> 32) as u32, *key as u32))
    }
}

/// A pending event as a number: for those who say what goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number(pub u64);

impl Number {
    const IN_NETWORK: u64 = 1 << 63;

    #[inline]
    pub fn new(kind: u32, index: u32, is_in_network: bool) -> Self {
        let of = if is_in_network { Self::IN_NETWORK } else { 0 };
        Number(of | u64::from(kind) << 32 | u64::from(index))
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
            1 => LinkEvent::TransmissionEnd(index),
            2 => LinkEvent::Wakeup(index),
            _ => LinkEvent::Delivery(index),
        }
    }
}

/// The kind of a delivery if arrivals are first, and if departures are.
const FIRST: u32 = 0;
const LAST: u32 = 3;

/// The pending events of a network's links.
#[derive(Clone)]
pub(crate) struct LinkEvents {
    pending: Pending,
    delivery: u32,
}

impl LinkEvents {
    /// None yet.
    pub fn new(simultaneous: Simultaneous) -> Self {
        let delivery = match simultaneous {
            Simultaneous::ArrivalsFirst => FIRST,
            Simultaneous::DeparturesFirst => LAST,
        };
        LinkEvents { pending: Pending::default(), delivery }
    }
    #[inline]
    pub fn push(&mut self, time: Time, event: LinkEvent) {
        let (kind, index) = match event {
            LinkEvent::Delivery(index) => (self.delivery, index),
            LinkEvent::TransmissionEnd(index) => (1, index),
            LinkEvent::Wakeup(index) => (2, index),
        };
        self.pending.push(time, kind, index);
    }
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, LinkEvent)> {
        let (time, kind, index) = self.pending.pop()?;
        Some((time, LinkEvent::new(kind, index)))
    }
    #[inline]
    pub fn next(&self) -> Option<(Time, Number)> {
        let (time, kind, index) = self.pending.next()?;
        Some((time, Number::new(kind, index, true)))
    }
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.pending.next_time()
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
            let mut events = Pending::default();
            for (i, time) in (0..).zip(&times) {
                events.push(Time::from_nanos(*time), i % 3, i);
            }
            let next = events.next_time();
            let out: Vec<u64> =
                std::iter::from_fn(|| events.pop()).map(|(t, ..)| t.as_nanos()).collect();
            let mut sorted = times.clone();
            sorted.sort_unstable();
            prop_assert_eq!(next.map(Time::as_nanos), out.first().copied());
            prop_assert_eq!(out, sorted);
        }
    }
}
