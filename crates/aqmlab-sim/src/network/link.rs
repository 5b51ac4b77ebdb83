//! A link of either kind.

use std::collections::VecDeque;

use aqmlab_core::{Span, Time};

use super::Shared;
use super::carried::Carried;
use super::events::LinkEvent;
use super::queued::QueuedLink;

/// A link.
pub(crate) enum Link<P> {
    /// With a queue, which packets leave at a rate.
    Queued(Box<QueuedLink<P>>),
    /// A delay, and nothing else.
    Delay(DelayLink<P>),
}

/// A link without a queue. As all packets take the same time, they keep their
/// order.
pub(crate) struct DelayLink<P> {
    index: u32,
    delay: Span,
    packets: VecDeque<(Time, P)>,
}

impl<P: Carried> Link<P> {
    /// A link without a queue.
    pub fn delay(index: u32, delay: Span) -> Self {
        Link::Delay(DelayLink { index, delay, packets: VecDeque::new() })
    }

    /// A packet comes to it.
    #[inline]
    pub fn arrive(&mut self, packet: P, shared: &mut Shared<P>) {
        match self {
            Link::Queued(link) => link.arrive(packet, shared),
            Link::Delay(link) => link.arrive(packet, shared),
        }
    }

    /// Takes the packet that arrives at the far end now, if there is one.
    #[inline]
    pub fn deliver(&mut self, shared: &mut Shared<P>) -> Option<P> {
        match self {
            Link::Queued(link) => link.deliver(shared),
            Link::Delay(link) => link.deliver(shared),
        }
    }

    /// Packets that are somewhere in it.
    pub fn held(&self) -> u64 {
        match self {
            Link::Queued(link) => link.held(),
            Link::Delay(link) => link.packets.len() as u64,
        }
    }

    /// The link, if it has a queue.
    #[inline]
    pub fn queued(&self) -> Option<&QueuedLink<P>> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay(_) => None,
        }
    }

    /// The same, to be changed.
    #[inline]
    pub fn queued_mut(&mut self) -> Option<&mut QueuedLink<P>> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay(_) => None,
        }
    }

    /// The link of an event that only those with a queue ask for.
    #[inline]
    pub fn expect_queued(&mut self) -> &mut QueuedLink<P> {
        self.queued_mut().expect("it has asked for an event of a queue")
    }
}

impl<P: Carried> DelayLink<P> {
    #[inline(never)]
    fn arrive(&mut self, packet: P, shared: &mut Shared<P>) {
        let arrival = shared.now + self.delay;
        if self.packets.is_empty() {
            shared.events.push(arrival, LinkEvent::Delivery(self.index));
        }
        self.packets.push_back((arrival, packet));
    }

    #[inline(never)]
    fn deliver(&mut self, shared: &mut Shared<P>) -> Option<P> {
        let (_, packet) = self.packets.pop_front()?;
        if let Some((time, _)) = self.packets.front() {
            shared.events.push(*time, LinkEvent::Delivery(self.index));
        }
        Some(packet)
    }
}
