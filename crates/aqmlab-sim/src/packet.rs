//! A packet in the simulator: a value of 40 bytes that is copied from queue
//! to pipe to queue, and the store for the few that carry more.

use aqmlab_core::{Ecn, Packet, Time};
use aqmlab_tcp::Ack;

/// What a packet is: bits of [`SimPacket::kind`].
pub(crate) mod kind {
    /// An acknowledgement, on the return path.
    pub const ACK: u8 = 1;
    /// A SYN or SYN-ACK.
    pub const SYN: u8 = 2;
    /// A retransmission.
    pub const RETRANSMISSION: u8 = 4;
    /// `seq` is a place in the [`AckStore`](super::AckStore), not a number.
    pub const STORED: u8 = 8;
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPacket {
    /// When it came to the queue it is in.
    pub arrival: Time,
    /// Of data the first byte, of a plain ACK the cumulative acknowledgement.
    pub seq: u64,
    /// The flow, as an index.
    pub flow: u32,
    /// The hash of the flow that queues see.
    pub hash: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Bits of [`kind`].
    pub kind: u8,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// Which link of its path it is on.
    pub hop: u8,
    /// The DSCP.
    pub class: u8,
    /// Its sender's and its receiver's host, by number.
    pub hosts: [u32; 2],
}

// The hot path copies these from queue to pipe: the size is a promise. (With
// 32 bytes instead, without the hosts, a run takes the same time.)
const _: () = assert!(size_of::<SimPacket>() == 40);

impl SimPacket {
    pub fn is(&self, bits: u8) -> bool {
        self.kind & bits != 0
    }
}

impl Packet for SimPacket {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }
    #[inline]
    fn flow_hash(&self) -> u32 {
        self.hash
    }
    #[inline]
    fn hosts(&self) -> [u32; 2] {
        self.hosts
    }
    #[inline]
    fn class(&self) -> u8 {
        self.class
    }
    #[inline]
    fn pure_ack(&self) -> Option<u64> {
        (self.kind == kind::ACK).then_some(self.seq)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    #[inline]
    fn arrival(&self) -> Time {
        self.arrival
    }
    #[inline]
    fn set_arrival(&mut self, now: Time) {
        self.arrival = now;
    }
}

/// Acknowledgements that carry more than a number (SACK blocks): kept aside
/// so that all other packets stay small. Places are used again.
#[derive(Default)]
pub(crate) struct AckStore {
    acks: Vec<Ack>,
    free: Vec<u32>,
}

impl AckStore {
    pub fn put(&mut self, ack: Ack) -> u64 {
        let place = match self.free.pop() {
            Some(place) => {
                self.acks[place as usize] = ack;
                place
            }
            None => {
                self.acks.push(ack);
                (self.acks.len() - 1) as u32
            }
        };
        u64::from(place)
    }
    pub fn take(&mut self, place: u64) -> Ack {
        self.free.push(place as u32);
        self.acks[place as usize]
    }
    /// The same packet once more, with what it carries.
    pub fn copy(&mut self, packet: &SimPacket) -> SimPacket {
        let mut copy = *packet;
        if packet.is(kind::STORED) {
            copy.seq = self.put(self.acks[packet.seq as usize]);
        }
        copy
    }
    /// A dropped packet takes what it carries with it.
    #[inline]
    pub fn forget(&mut self, packet: &SimPacket) {
        if packet.is(kind::STORED) {
            self.free.push(packet.seq as u32);
        }
    }
}
