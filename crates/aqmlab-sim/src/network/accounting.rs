//! Ownership accounting for packets in flight and their payloads.
//!
//! A packet is a value that is moved, never copied, so it is in one place. It enters the network
//! where it is injected or duplicated, and leaves it in one of three ways: it arrives, a queue
//! drops it, or a link loses it. The caller that receives an arrived packet owns it.
//!
//! The type system ensures that no packet leaves twice. Leaks of packets and payloads are counted
//! in builds with debug assertions, and [checked](PacketAccounting::check) at the end.

use super::packet::{LossCause, NetworkPacket, SidePool};

/// Side pool of a network, with the number of packets in flight.
pub(crate) struct PacketAccounting<P: NetworkPacket> {
    pub store: P::Store,
    /// Packets in flight; counted with debug assertions only, like the next field.
    in_flight: u64,
    /// Packets in flight that have a payload in the side pool.
    with_payload: u64,
}

impl<P: NetworkPacket> PacketAccounting<P> {
    pub fn new(store: P::Store) -> Self {
        PacketAccounting { store, in_flight: 0, with_payload: 0 }
    }

    /// Counts a packet that enters the network.
    #[inline(always)]
    pub fn begins(&mut self, packet: &P) {
        if cfg!(debug_assertions) {
            self.in_flight += 1;
            self.with_payload += u64::from(packet.has_payload());
        }
    }

    /// Counts a packet that arrives at the end of its route.
    #[inline(always)]
    pub fn arrives(&mut self, packet: &P) {
        if cfg!(debug_assertions) {
            self.in_flight -= 1;
            self.with_payload -= u64::from(packet.has_payload());
        }
    }

    /// Ends a packet that does not arrive, and frees its payload.
    #[inline(always)]
    pub fn ends(&mut self, packet: P, fate: LossCause) {
        self.arrives(&packet);
        packet.end(&mut self.store, fate);
    }

    /// Duplicates a packet with its payload.
    pub fn copy(&mut self, packet: &P) -> P {
        let copy = packet.copy(&mut self.store);
        self.begins(&copy);
        copy
    }

    /// Removes packets that a replaced discipline keeps: they are never delivered.
    pub fn abandon(&mut self, packets: u64) {
        if cfg!(debug_assertions) {
            self.in_flight -= packets;
        }
    }

    /// Checks that the packets in flight are those that the links hold, and that the side pool
    /// contains payloads of no others.
    ///
    /// # Panics
    /// With debug assertions, if a packet or a payload leaked: a bug.
    pub fn check(&self, held: u64) {
        debug_assert_eq!(self.in_flight, held, "packets in flight, and in the links");
        let live = self.store.live_count();
        debug_assert_eq!(live, self.with_payload, "payloads, and packets in flight with one");
    }
}
