//! Events outside the network: timers of endpoints and applications.

use aqmlab_core::Time;

use crate::network::events::{EventKey, EventQueue};

/// Event, with the index of its target. The order of the kinds is the order of simultaneous events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Next change of the scenario. Groups that it adds may start at the same time.
    Change,
    /// Route change, by its number over all groups.
    Reroute(u32),
    /// Start of a flow.
    FlowStart(u32),
    /// Start of an application.
    AppStart(u32),
    /// Timer of an application.
    App(u32),
    /// Timer of a receiver (delayed acknowledgements).
    ReceiverTimer(u32),
    /// Timer of a sender (retransmission).
    SenderTimer(u32),
    /// Sample of all links and flows.
    Sample,
    /// End of the warm-up.
    WarmupEnd,
    /// Notification that a stopped flow has delivered all its bytes before.
    Heard(u32),
}

impl Event {
    #[inline]
    pub fn new(kind: u32, index: u32) -> Self {
        match kind {
            0 => Event::Change,
            1 => Event::Reroute(index),
            2 => Event::FlowStart(index),
            3 => Event::AppStart(index),
            4 => Event::App(index),
            5 => Event::ReceiverTimer(index),
            6 => Event::SenderTimer(index),
            7 => Event::Sample,
            8 => Event::WarmupEnd,
            _ => Event::Heard(index),
        }
    }
}

/// Pending events.
#[derive(Clone, Default)]
pub(crate) struct Events {
    pending: EventQueue,
}

impl Events {
    /// Schedules an event.
    #[inline]
    pub fn push(&mut self, time: Time, event: Event) {
        let (kind, index) = match event {
            Event::Change => (0, 0),
            Event::Reroute(index) => (1, index),
            Event::FlowStart(index) => (2, index),
            Event::AppStart(index) => (3, index),
            Event::App(index) => (4, index),
            Event::ReceiverTimer(index) => (5, index),
            Event::SenderTimer(index) => (6, index),
            Event::Sample => (7, 0),
            Event::WarmupEnd => (8, 0),
            Event::Heard(index) => (9, index),
        };
        self.pending.push(time, kind, index);
    }
    /// Removes and returns the next event, which must exist.
    #[inline]
    pub fn pop(&mut self) -> Event {
        let next = self.pending.pop();
        Event::new(next.kind(), next.index())
    }
    /// Returns the next event without removing it.
    #[inline(always)]
    pub fn next(&self) -> EventKey {
        self.pending.next()
    }
}
