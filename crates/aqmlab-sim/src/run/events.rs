//! What happens outside the network: timers of endpoints and applications.

use aqmlab_core::Time;

use crate::network::events::{EventKey, EventQueue};

/// What happens, by the index of whom it happens to. The order of the kinds is
/// the order at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The next change of the scenario. What it adds begins at the same moment.
    Change,
    /// Routes change, by the number of the change over all groups.
    Reroute(u32),
    /// A flow begins.
    FlowStart(u32),
    /// An application begins.
    AppStart(u32),
    /// An application's timer.
    App(u32),
    /// A receiver's timer (delayed acknowledgements).
    ReceiverTimer(u32),
    /// A sender's timer (retransmission).
    SenderTimer(u32),
    /// Time to record a sample of everything.
    Sample,
    /// The end of the warm-up.
    WarmupEnd,
    /// All bytes of a flow that was stopped have arrived already.
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

/// The pending events.
#[derive(Default)]
pub(crate) struct Events {
    pending: EventQueue,
}

impl Events {
    /// Something that will happen.
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
    /// What happens next, which has to be something.
    #[inline]
    pub fn pop(&mut self) -> Event {
        let next = self.pending.pop();
        Event::new(next.kind(), next.index())
    }
    /// What happens next, which stays pending.
    #[inline(always)]
    pub fn next(&self) -> EventKey {
        self.pending.next()
    }
}
