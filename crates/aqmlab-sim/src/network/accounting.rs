//! Who answers for a packet on its way, and for what it keeps in the store.
//!
//! A packet is a value that is moved, never copied: it is in one place. It begins where it is
//! injected (or comes twice), and ends here in one of three ways: it arrives, a queue drops it, or
//! the way loses it. Whoever gets one that has arrived answers for it from then on.
//!
//! The compiler sees to it that no packet ends twice. That none is just let go of, and that what
//! ended has given back what it kept, is counted in builds with debug assertions, and
//! [checked](PacketAccounting::check) at the end.

use super::packet::{LossCause, NetworkPacket, SidePool};

/// The store of a network, and how many packets are on their way.
pub(crate) struct PacketAccounting<P: NetworkPacket> {
    pub store: P::Store,
    /// Only counted with debug assertions, as the next.
    under_way: u64,
    /// Those of them that keep something in the store.
    keepers: u64,
}

impl<P: NetworkPacket> PacketAccounting<P> {
    pub fn new(store: P::Store) -> Self {
        PacketAccounting { store, under_way: 0, keepers: 0 }
    }

    /// A packet begins its way.
    #[inline(always)]
    pub fn begins(&mut self, packet: &P) {
        if cfg!(debug_assertions) {
            self.under_way += 1;
            self.keepers += u64::from(packet.has_payload());
        }
    }

    /// A packet is at the end of its route, and is handed over.
    #[inline(always)]
    pub fn arrives(&mut self, packet: &P) {
        if cfg!(debug_assertions) {
            self.under_way -= 1;
            self.keepers -= u64::from(packet.has_payload());
        }
    }

    /// A packet does not arrive.
    #[inline(always)]
    pub fn ends(&mut self, packet: P, fate: LossCause) {
        self.arrives(&packet);
        packet.end(&mut self.store, fate);
    }

    /// The same packet once more.
    pub fn copy(&mut self, packet: &P) -> P {
        let copy = packet.copy(&mut self.store);
        self.begins(&copy);
        copy
    }

    /// A discipline that was replaced has kept so many packets for itself: they are under way for
    /// ever.
    pub fn abandon(&mut self, packets: u64) {
        if cfg!(debug_assertions) {
            self.under_way -= packets;
        }
    }

    /// Checks that the packets under way are those that the links hold, and that nobody else keeps
    /// anything in the store.
    ///
    /// # Panics
    /// If not, with debug assertions: a bug.
    pub fn check(&self, held: u64) {
        debug_assert_eq!(self.under_way, held, "packets under way, and in the links");
        debug_assert_eq!(
            self.store.live_count(),
            self.keepers,
            "kept, and under way with something kept"
        );
    }
}
