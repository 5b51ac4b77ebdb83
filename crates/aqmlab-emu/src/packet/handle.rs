//! Handle of a packet: the 40-byte value that queues and pipes carry.

use aqmlab_core::{Ecn, Packet, Time, packet_fields};
use aqmlab_sim::network::{LossCause, NetworkPacket, Position};

use crate::packet::buffers::{Buffers, Frame};

/// Packet on the wire: a whole frame, or a segment of one.
#[derive(Debug)]
pub struct Handle {
    arrival: Time,
    /// Buffer of the frame.
    pub place: u32,
    /// Bytes of the IP packet.
    pub size: u32,
    hash: u32,
    hosts: [u32; 2],
    /// Index of the segment in the frame.
    pub segment: u16,
    /// Route through the links.
    pub route: u16,
    /// Position on the route.
    pub position: Position,
    ecn: Ecn,
    class: u8,
    bits: u8,
}

/// Flag of a TCP segment that is a pure ACK.
const PURE_ACK: u8 = 1;
/// Flag of a packet marked by a queue on this path.
const MARKED: u8 = 2;

// The hot path copies handles; the size must not grow.
const _: () = assert!(size_of::<Handle>() == 40);

impl Handle {
    /// Creates the handle of a segment of the frame in buffer `place`.
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

    /// Returns whether a queue on this path has marked the packet. It may have had CE before.
    pub fn is_marked(&self) -> bool {
        self.bits & MARKED != 0
    }

    /// Returns the current DSCP and ECN byte of the IP header.
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
    /// Returns the flow's hash; recordings number flows by it.
    #[inline]
    fn flow(&self) -> u32 {
        self.hash
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.bits & PURE_ACK != 0
    }
    /// Always false: no table of the emulator counts opening segments separately.
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
