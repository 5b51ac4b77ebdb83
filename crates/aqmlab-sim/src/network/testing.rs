//! Packets for tests.

use aqmlab_core::{Ecn, Packet};

/// Returns a packet of this size with a number as its key.
pub(crate) fn numbered(number: u64, size: u32) -> Packet {
    Packet::new(size, Ecn::NotEct).with_key(number)
}

/// Returns a packet of this flow.
pub(crate) fn of_flow(flow: u32) -> Packet {
    numbered(0, 1500).with_flow(flow)
}

/// Returns an acknowledgement of this flow.
pub(crate) fn ack_of(flow: u32, is_syn: bool) -> Packet {
    of_flow(flow).with_ack(true).with_syn(is_syn)
}
