//! Links: with a queue, or a plain delay.

mod fast;
#[cfg(test)]
mod fast_tests;
mod general;
mod queued;
#[cfg(test)]
mod queued_tests;
mod result;
mod transmitter;

use aqmlab_core::{Packet, Span};

pub use self::queued::QueuedLink;
pub use self::result::{LinkColumn, LinkResult};
use super::Shared;
use super::packet::PacketStore;
use super::propagation::FixedDelay;

/// A link.
#[derive(Clone)]
pub(crate) enum Link {
    /// Queue, from which packets are sent at a rate.
    Queued(Box<QueuedLink>),
    /// Constant delay of all packets.
    Delay { index: u32, propagation: FixedDelay },
}

impl Link {
    /// Returns a link without a queue.
    pub fn delay(index: u32, delay: Span) -> Self {
        Link::Delay { index, propagation: FixedDelay::new(delay) }
    }

    /// Handles an arriving packet.
    #[inline]
    pub fn arrive<S: PacketStore>(&mut self, packet: Packet, shared: &mut Shared<S>) {
        match self {
            Link::Queued(link) => link.arrive(packet, shared),
            Link::Delay { index, propagation } => {
                propagation.push(packet, shared.now, *index, shared)
            }
        }
    }

    /// Removes the packet that arrives at the far end, if any, and its event, the next of all.
    #[inline]
    pub fn deliver<S: PacketStore>(&mut self, shared: &mut Shared<S>) -> Option<Packet> {
        match self {
            Link::Queued(link) => link.deliver(shared),
            Link::Delay { propagation, .. } => propagation.pop(shared),
        }
    }

    /// Returns the number of packets anywhere in the link.
    pub fn held(&self) -> u64 {
        match self {
            Link::Queued(link) => link.held(),
            Link::Delay { propagation, .. } => propagation.held(),
        }
    }

    /// Returns the link if it has a queue.
    #[inline]
    pub fn queued(&self) -> Option<&QueuedLink> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay { .. } => None,
        }
    }

    /// Returns the link for changes if it has a queue.
    #[inline]
    pub fn queued_mut(&mut self) -> Option<&mut QueuedLink> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay { .. } => None,
        }
    }

    /// Returns the link of an event that only links with a queue schedule.
    #[inline]
    pub fn expect_queued(&mut self) -> &mut QueuedLink {
        self.queued_mut().expect("only links with a queue schedule this event")
    }
}
