//! Stores of what packets carry.

use aqmlab_aqm::{Headers, Reason};
use aqmlab_core::Packet;

/// Outcome of a packet that does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Dropped by a queue.
    Dropped(Reason),
    /// Lost during propagation.
    Lost,
}

/// Payloads of packets, one store for each network. A packet is a descriptor that moves from queue
/// to transmitter to propagation; data that do not fit into it are in the store.
pub trait PacketStore: Headers {
    /// Returns the number of packets with a payload in the store.
    fn live_count(&self) -> u64;
    /// Whether the packet has a payload in the store.
    fn has_payload(&self, packet: &Packet) -> bool;
    /// Frees the payload of a packet that does not arrive.
    fn release(&mut self, packet: Packet, cause: LossCause);
    /// Returns a duplicate of a packet, with a payload of its own.
    fn duplicate(&mut self, packet: &Packet) -> Packet;
}

/// Packets without payloads.
impl PacketStore for () {
    fn live_count(&self) -> u64 {
        0
    }
    fn has_payload(&self, _packet: &Packet) -> bool {
        false
    }
    fn release(&mut self, _packet: Packet, _cause: LossCause) {}
    fn duplicate(&mut self, packet: &Packet) -> Packet {
        packet.clone()
    }
}
