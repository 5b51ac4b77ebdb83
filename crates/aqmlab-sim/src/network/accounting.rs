//! Ownership accounting for packets in flight and their payloads.
//!
//! A packet is a value that is moved. It begins where it is injected or duplicated, and ends in one
//! of three ways: it arrives, a queue drops it, or it is lost during propagation. The receiver of a
//! packet that arrived owns it and its payload.
//!
//! Builds with debug assertions count packets in flight, and those with a payload in the store, to
//! find leaks and packets that end twice. The counts are [checked](PacketAccounting::check) at the
//! end.

use aqmlab_core::Packet;

use super::packet::{LossCause, PacketStore};

/// Store of a network, and the number of packets in flight.
#[derive(Clone)]
pub(crate) struct PacketAccounting<S: PacketStore> {
    pub store: S,
    /// Packets in flight. Only counted with debug assertions, as are the next.
    in_flight: u64,
    /// Packets in flight that have a payload in the store.
    payloads: u64,
}

impl<S: PacketStore> PacketAccounting<S> {
    pub fn new(store: S) -> Self {
        PacketAccounting { store, in_flight: 0, payloads: 0 }
    }

    /// Adds a packet.
    #[inline(always)]
    pub fn begins(&mut self, packet: &Packet) {
        if cfg!(debug_assertions) {
            self.in_flight += 1;
            self.payloads += u64::from(self.store.has_payload(packet));
        }
    }

    /// Removes a packet at the end of its route.
    #[inline(always)]
    pub fn arrives(&mut self, packet: &Packet) {
        if cfg!(debug_assertions) {
            self.in_flight -= 1;
            self.payloads -= u64::from(self.store.has_payload(packet));
        }
    }

    /// Removes a packet that does not arrive, with its payload.
    #[inline(always)]
    pub fn ends(&mut self, packet: Packet, cause: LossCause) {
        self.arrives(&packet);
        self.store.release(packet, cause);
    }

    /// Duplicates a packet.
    pub fn copy(&mut self, packet: &Packet) -> Packet {
        let copy = self.store.duplicate(packet);
        self.begins(&copy);
        copy
    }

    /// Removes packets that a replaced discipline retains and that never arrive.
    pub fn abandon(&mut self, packets: u64) {
        if cfg!(debug_assertions) {
            self.in_flight -= packets;
        }
    }

    /// Checks that the packets in flight are the `held` packets of the links, and that the store
    /// contains their payloads only.
    ///
    /// # Panics
    /// With debug assertions, if a packet or a payload leaked: a bug.
    pub fn check(&self, held: u64) {
        debug_assert_eq!(self.in_flight, held, "packets in flight, and in the links");
        let stored = self.store.live_count();
        debug_assert_eq!(stored, self.payloads, "payloads, and packets in flight that have one");
    }
}
