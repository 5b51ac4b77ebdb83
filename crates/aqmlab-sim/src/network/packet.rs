//! Packet interface of links, for the simulator and the emulator.

use aqmlab_aqm::{Headers, Reason};
use aqmlab_core::Packet;

use super::routes::Position;

/// Cause for which a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Drop by a queue.
    Dropped(Reason),
    /// Loss in propagation.
    Lost,
}

/// Storage for payloads that are too large for the packet itself.
pub trait SidePool {
    /// Returns the number of payloads.
    fn live_count(&self) -> u64;
}

/// Storage for packets without payloads.
impl SidePool for () {
    fn live_count(&self) -> u64 {
        0
    }
}

/// A packet in a network: a value that moves from queue to transmitter to propagation. Its payload
/// is in the side pool of the network.
///
/// A packet type with payloads should be neither `Copy` nor `Clone`. The compiler then ensures that
/// a packet is in one place, and that its payload is freed once.
pub trait NetworkPacket: Packet + Sized + Send {
    /// Side pool with the payloads.
    type Store: SidePool + Headers<Self>;
    /// Returns the index of the next hop on the route.
    fn position(&self) -> Position;
    /// Sets the index of the next hop.
    fn set_position(&mut self, position: Position);
    /// Returns the flow, for recordings.
    fn flow(&self) -> u32;
    /// True for a pure acknowledgement, for recordings.
    fn is_ack(&self) -> bool;
    /// True for a packet that opens a connection, for recordings.
    fn is_syn(&self) -> bool;
    /// True if the packet has a payload in the side pool.
    #[inline]
    fn has_payload(&self) -> bool {
        false
    }
    /// Ends a packet that does not arrive, and frees its payload.
    fn end(self, store: &mut Self::Store, fate: LossCause);
    /// Duplicates the packet and its payload.
    fn copy(&self, store: &mut Self::Store) -> Self;
}
