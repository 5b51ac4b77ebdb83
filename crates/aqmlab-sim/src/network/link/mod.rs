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

use aqmlab_core::Span;

pub use self::queued::QueuedLink;
pub use self::result::{LinkColumn, LinkResult};
use super::Shared;
use super::packet::NetworkPacket;
use super::propagation::FixedDelay;

/// A link.
pub(crate) enum Link<P> {
    /// Queue, from which packets are sent at a rate.
    Queued(Box<QueuedLink<P>>),
    /// Constant delay of all packets.
    Delay { index: u32, propagation: FixedDelay<P> },
}

impl<P: NetworkPacket> Link<P> {
    /// Returns a link without a queue.
    pub fn delay(index: u32, delay: Span) -> Self {
        Link::Delay { index, propagation: FixedDelay::new(delay) }
    }

    /// Handles an arriving packet.
    #[inline]
    pub fn arrive(&mut self, packet: P, shared: &mut Shared<P>) {
        match self {
            Link::Queued(link) => link.arrive(packet, shared),
            Link::Delay { index, propagation } => {
                propagation.push(packet, shared.now, *index, shared)
            }
        }
    }

    /// Removes the packet that arrives at the far end, if any.
    #[inline]
    pub fn deliver(&mut self, shared: &mut Shared<P>) -> Option<P> {
        match self {
            Link::Queued(link) => link.deliver(shared),
            Link::Delay { index, propagation } => propagation.pop(*index, shared),
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
    pub fn queued(&self) -> Option<&QueuedLink<P>> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay { .. } => None,
        }
    }

    /// Returns the link for changes if it has a queue.
    #[inline]
    pub fn queued_mut(&mut self) -> Option<&mut QueuedLink<P>> {
        match self {
            Link::Queued(link) => Some(link),
            Link::Delay { .. } => None,
        }
    }

    /// Returns the link of an event that only links with a queue schedule.
    #[inline]
    pub fn expect_queued(&mut self) -> &mut QueuedLink<P> {
        self.queued_mut().expect("only links with a queue schedule this event")
    }
}
