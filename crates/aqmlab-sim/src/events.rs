//! The pending events, behind one private type.
//!
//! Every link and flow has at most one pending event of each kind, so the
//! set stays in the hundreds and a key (time, kind, index) is unique: events
//! at one moment have one order, which does not depend on who asked first.
//!
//! Links and the rest have a heap each. Nearly all events are of the few
//! links, and need not pass by the timers of all flows, which wait for long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_core::Time;

use crate::scenario::Simultaneous;

/// What happens. The order of the kinds is the order at one moment, but for
/// [`Simultaneous`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Event {
    /// The first packet on a link's way arrives at its end.
    Delivery(u32),
    /// A link's transmission ends while its queue holds packets.
    TransmissionEnd(u32),
    /// A timer of a queue discipline, a shaper or a driver.
    Wakeup(u32),
    /// A flow begins.
    FlowStart(u32),
    /// An application begins.
    AppStart(u32),
    /// An application's timer.
    App(u32),
    /// All bytes of a flow that was stopped have arrived already.
    Heard(u32),
    /// A receiver's timer (delayed acknowledgements).
    ReceiverTimer(u32),
    /// A sender's timer (retransmission).
    SenderTimer(u32),
    /// Time to record a sample of everything.
    Sample(u32),
    /// The end of the warm-up.
    WarmupEnd(u32),
}

/// Time in the high half, kind and index in the low one.
type Key = u128;

/// The kind of a delivery if arrivals are first, and if departures are.
const FIRST: u64 = 0;
const AFTER_QUEUES: u64 = 3;

#[inline(always)]
fn unpack(key: Key) -> (Time, Event) {
    (Time::from_nanos((key >> 64) as u64), unnumbered(key as u64))
}

/// An event as a number, and back.
#[inline(always)]
pub(crate) fn numbered(event: Event) -> u64 {
    let (kind, index) = match event {
        Event::Delivery(index) => (FIRST, index),
        Event::TransmissionEnd(index) => (1, index),
        Event::Wakeup(index) => (2, index),
        Event::FlowStart(index) => (4, index),
        Event::AppStart(index) => (5, index),
        Event::App(index) => (6, index),
        Event::ReceiverTimer(index) => (7, index),
        Event::SenderTimer(index) => (8, index),
        Event::Sample(index) => (9, index),
        Event::WarmupEnd(index) => (10, index),
        Event::Heard(index) => (11, index),
    };
    (kind << 32) | u64::from(index)
}

#[inline(always)]
pub(crate) fn unnumbered(number: u64) -> Event {
    let index = number as u32;
    match (number >> 32) as u32 {
        0 | 3 => Event::Delivery(index),
        1 => Event::TransmissionEnd(index),
        2 => Event::Wakeup(index),
        4 => Event::FlowStart(index),
        5 => Event::AppStart(index),
        6 => Event::App(index),
        7 => Event::ReceiverTimer(index),
        8 => Event::SenderTimer(index),
        9 => Event::Sample(index),
        11 => Event::Heard(index),
        _ => Event::WarmupEnd(index),
    }
}

/// The pending events, earliest first.
pub struct EventQueue {
    links: BinaryHeap<Reverse<Key>>,
    others: BinaryHeap<Reverse<Key>>,
    delivery: u64,
}

impl EventQueue {
    /// None yet.
    pub fn new(simultaneous: Simultaneous) -> Self {
        let delivery = match simultaneous {
            Simultaneous::ArrivalsFirst => FIRST,
            Simultaneous::DeparturesFirst => AFTER_QUEUES,
        };
        EventQueue { links: BinaryHeap::new(), others: BinaryHeap::new(), delivery }
    }

    #[inline]
    fn key(&self, time: Time, event: Event) -> Key {
        let number = match event {
            Event::Delivery(index) => (self.delivery << 32) | u64::from(index),
            other => numbered(other),
        };
        (u128::from(time.as_nanos()) << 64) | u128::from(number)
    }

    /// Something that will happen.
    #[inline]
    pub fn push(&mut self, time: Time, event: Event) {
        let key = Reverse(self.key(time, event));
        match event {
            Event::Delivery(_) | Event::TransmissionEnd(_) | Event::Wakeup(_) => {
                self.links.push(key);
            }
            _ => self.others.push(key),
        }
    }
    /// What happens next.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        // The greater of two reversed keys is the earlier; none comes last.
        let earliest = match self.others.peek() > self.links.peek() {
            true => self.others.pop(),
            false => self.links.pop(),
        };
        earliest.map(|Reverse(key)| unpack(key))
    }
    /// When that is.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        // As in `pop`: the greater of two reversed keys is the earlier.
        let earliest = self.others.peek().max(self.links.peek());
        earliest.map(|Reverse(key)| unpack(*key).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order_at_one_moment(simultaneous: Simultaneous) -> Vec<Event> {
        let mut events = EventQueue::new(simultaneous);
        let now = Time::from_nanos(5);
        events.push(now, Event::SenderTimer(0));
        events.push(now, Event::Delivery(1));
        events.push(now, Event::Wakeup(7));
        events.push(now, Event::TransmissionEnd(9));
        events.push(now, Event::Delivery(0));
        std::iter::from_fn(|| events.pop()).map(|(_, event)| event).collect()
    }

    #[test]
    fn at_one_moment_there_is_one_order_and_it_can_be_chosen() {
        use Event::{Delivery, SenderTimer, TransmissionEnd, Wakeup};
        assert_eq!(
            order_at_one_moment(Simultaneous::ArrivalsFirst),
            [Delivery(0), Delivery(1), TransmissionEnd(9), Wakeup(7), SenderTimer(0)]
        );
        assert_eq!(
            order_at_one_moment(Simultaneous::DeparturesFirst),
            [TransmissionEnd(9), Wakeup(7), Delivery(0), Delivery(1), SenderTimer(0)]
        );
    }

    proptest! {
        #[test]
        fn events_come_out_in_order_of_time(times in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut events = EventQueue::new(Simultaneous::ArrivalsFirst);
            for (i, time) in (0..).zip(&times) {
                let event = if i % 3 == 0 { Event::SenderTimer(i) } else { Event::Delivery(i) };
                events.push(Time::from_nanos(*time), event);
            }
            let out: Vec<u64> =
                std::iter::from_fn(|| events.pop()).map(|(t, _)| t.as_nanos()).collect();
            let mut sorted = times.clone();
            sorted.sort_unstable();
            prop_assert_eq!(out, sorted);
        }
    }
}
