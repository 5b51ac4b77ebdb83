//! A packet for tests: nothing but what links ask for.

use aqmlab_core::{Ecn, Packet, Time, packet_fields};

use super::{LossCause, NetworkPacket, Position};

#[derive(Debug)]
pub(crate) struct Plain {
    arrival: Time,
    pub number: u64,
    pub flow: u32,
    hash: u32,
    size: u32,
    class: u8,
    ecn: Ecn,
    is_ack: bool,
    is_syn: bool,
    hosts: [u32; 2],
    position: Position,
}

impl Plain {
    pub fn new(number: u64, size: u32) -> Self {
        Plain {
            arrival: Time::ZERO,
            number,
            flow: 0,
            hash: 0,
            size,
            class: 0,
            ecn: Ecn::NotEct,
            is_ack: false,
            is_syn: false,
            hosts: [0, 0],
            position: Position::default(),
        }
    }
    /// A packet of this flow.
    pub fn of(flow: u32) -> Self {
        Plain { flow, ..Plain::new(0, 1500) }
    }
    /// An acknowledgement of this flow.
    pub fn ack_of(flow: u32, is_syn: bool) -> Self {
        Plain { is_ack: true, is_syn, ..Plain::of(flow) }
    }
}

impl Packet for Plain {
    packet_fields!(size, hash, hosts, class, ecn, mark, arrival);
}

impl NetworkPacket for Plain {
    type Store = ();
    fn position(&self) -> Position {
        self.position
    }
    fn set_position(&mut self, position: Position) {
        self.position = position;
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn is_ack(&self) -> bool {
        self.is_ack
    }
    fn is_syn(&self) -> bool {
        self.is_syn
    }
    fn end(self, (): &mut (), _cause: LossCause) {}
    fn copy(&self, (): &mut ()) -> Self {
        Plain { ..*self }
    }
}
