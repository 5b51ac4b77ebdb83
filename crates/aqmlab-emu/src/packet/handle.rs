//! A packet as queues and pipes see it: a value of 40 bytes that says where
//! the bytes are.

use aqmlab_core::{Ecn, Packet, Time, packet_fields};
use aqmlab_sim::network::{LossCause, NetworkPacket, Position};

use crate::packet::buffers::{Buffers, Frame};

/// One packet on the wire: a whole frame, or a segment of one.
#[derive(Debug)]
pub struct Handle {
    arrival: Time,
    /// Where its frame is kept.
    pub place: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    hash: u32,
    hosts: [u32; 2],
    /// Which segment of the frame it is.
    pub segment: u16,
    /// Its way through the links.
    pub route: u16,
    /// How far it has come.
    pub position: Position,
    ecn: Ecn,
    class: u8,
    bits: u8,
}

/// It is a TCP segment that only acknowledges.
const PURE_ACK: u8 = 1;
/// A queue on this path has marked it.
const MARKED: u8 = 2;

// The hot path copies these: the size is a promise.
const _: () = assert!(size_of::<Handle>() == 40);

impl Handle {
    /// A segment of the frame that is kept at `place`.
    pub fn new(place: u32, frame: &Frame, segment: u16, route: u16) -> Self {
        let headers = &frame.headers;
        let size = match frame.step {
            0 => headers.length,
            step => {
                let begun = u32::from(segment) * step;
                frame.head + (headers.length - frame.head - begun).min(step)
            }
        };
        Handle {
            arrival: Time::ZERO,
            place,
            size,
            hash: headers.hash,
            hosts: headers.hosts,
            segment,
            route,
            position: Position::default(),
            ecn: headers.ecn,
            class: headers.dscp,
            bits: if headers.is_pure_ack { PURE_ACK } else { 0 },
        }
    }

    /// Whether a queue on this path has marked it; it may have had CE before.
    pub fn is_marked(&self) -> bool {
        self.bits & MARKED != 0
    }

    /// The byte of the IP header that holds DSCP and ECN, as it is now.
    pub fn traffic_class(&self) -> u8 {
        self.class << 2 | self.ecn as u8
    }
}

impl Packet for Handle {
    packet_fields!(size, hash, hosts, class, ecn, arrival);
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
        self.bits |= MARKED;
    }
}

impl NetworkPacket for Handle {
    type Store = Buffers;
    #[inline]
    fn position(&self) -> Position {
        self.position
    }
    #[inline]
    fn set_position(&mut self, position: Position) {
        self.position = position;
    }
    /// The flow's hash: recordings number flows by it.
    #[inline]
    fn flow(&self) -> u32 {
        self.hash
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.bits & PURE_ACK != 0
    }
    /// Opening segments are not counted apart: no table here shows them.
    #[inline]
    fn is_syn(&self) -> bool {
        false
    }
    #[inline]
    fn has_payload(&self) -> bool {
        true
    }
    #[inline]
    fn end(self, store: &mut Buffers, fate: LossCause) {
        store.ended(self, fate);
    }
    fn copy(&self, store: &mut Buffers) -> Self {
        store.copied(self);
        Handle { ..*self }
    }
}
