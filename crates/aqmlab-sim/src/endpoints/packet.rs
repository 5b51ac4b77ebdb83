//! A packet in the simulator: a value of 48 bytes that is copied from queue
//! to pipe to queue, and the store for the few that carry more.

use aqmlab_core::{Ecn, Packet, Time, packet_fields};
use aqmlab_tcp::{Ack, DataSegment};

use crate::network::{Carried, Position};

/// What a packet is: bits of [`SimPacket::kind`].
pub(crate) mod kind {
    /// An acknowledgement, on the return path.
    pub const ACK: u8 = 1;
    /// A SYN or SYN-ACK.
    pub const SYN: u8 = 2;
    /// A retransmission.
    pub const RETRANSMISSION: u8 = 4;
    /// `seq` is a place in the [`Store`](super::Store), not a number.
    pub const STORED: u8 = 8;
    /// Of data: CWR (RFC 3168).
    pub const CWR: u8 = 16;
    /// Of an acknowledgement: ECE (RFC 3168).
    pub const ECE: u8 = 32;
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
    /// How far it has come on its route.
    pub position: Position,
    /// The DSCP.
    pub class: u8,
    /// Its sender's and its receiver's host, by number.
    pub hosts: [u32; 2],
}

// The hot path copies these from queue to pipe: the size is a promise.
const _: () = assert!(size_of::<SimPacket>() == 48);

impl SimPacket {
    pub fn is(&self, bits: u8) -> bool {
        self.kind & bits != 0
    }
}

impl Packet for SimPacket {
    packet_fields!(size, hash, hosts, class, ecn, mark, arrival);
    #[inline]
    fn pure_ack(&self) -> Option<u64> {
        (self.kind == kind::ACK).then_some(self.seq)
    }
}

impl Carried for SimPacket {
    type Store = Store;
    #[inline]
    fn position(&self) -> Position {
        self.position
    }
    #[inline]
    fn set_position(&mut self, position: Position) {
        self.position = position;
    }
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }
    #[inline]
    fn is_ack(&self) -> bool {
        self.is(kind::ACK)
    }
    #[inline]
    fn is_syn(&self) -> bool {
        self.is(kind::SYN)
    }
    #[inline]
    fn forget(&self, store: &mut Store) {
        store.forget(self);
    }
    fn copy(&self, store: &mut Store) -> Self {
        store.copy(self)
    }
}

/// Things kept in places that are used again.
struct Places<T> {
    kept: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Places<T> {
    fn put(&mut self, thing: T) -> u64 {
        let place = match self.free.pop() {
            Some(place) => {
                self.kept[place as usize] = thing;
                place
            }
            None => {
                self.kept.push(thing);
                (self.kept.len() - 1) as u32
            }
        };
        u64::from(place)
    }
    fn take(&mut self, place: u64) -> T {
        self.free.push(place as u32);
        self.kept[place as usize]
    }
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places { kept: Vec::new(), free: Vec::new() }
    }
}

/// Acknowledgements that carry more than a number (SACK blocks, counters), and
/// data with timestamps: kept aside so that all other packets stay small.
#[derive(Default)]
pub(crate) struct Store {
    acks: Places<Ack>,
    data: Places<DataSegment>,
}

impl Store {
    pub fn put_ack(&mut self, ack: Ack) -> u64 {
        self.acks.put(ack)
    }
    pub fn take_ack(&mut self, place: u64) -> Ack {
        self.acks.take(place)
    }
    pub fn put_data(&mut self, segment: DataSegment) -> u64 {
        self.data.put(segment)
    }
    pub fn take_data(&mut self, place: u64) -> DataSegment {
        self.data.take(place)
    }
    /// The same packet once more, with what it carries.
    pub fn copy(&mut self, packet: &SimPacket) -> SimPacket {
        let mut copy = *packet;
        if packet.is(kind::STORED) {
            copy.seq = match packet.is(kind::ACK) {
                true => self.acks.put(self.acks.kept[packet.seq as usize]),
                false => self.data.put(self.data.kept[packet.seq as usize]),
            };
        }
        copy
    }
    /// A dropped packet takes what it carries with it.
    #[inline]
    pub fn forget(&mut self, packet: &SimPacket) {
        if packet.is(kind::STORED) {
            let place = packet.seq as u32;
            match packet.is(kind::ACK) {
                true => self.acks.free.push(place),
                false => self.data.free.push(place),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8) -> SimPacket {
        SimPacket {
            arrival: Time::ZERO,
            seq: 7000,
            flow: 0,
            hash: 0,
            size: 40,
            kind,
            ecn: Ecn::NotEct,
            position: Position::default(),
            class: 0,
            hosts: [0; 2],
        }
    }

    /// A queue that thins acknowledgements must not lose what a later one
    /// would not say.
    #[test]
    fn only_plain_acknowledgements_are_pure() {
        assert_eq!(packet(kind::ACK).pure_ack(), Some(7000));
        for more in [kind::SYN, kind::ECE, kind::STORED] {
            assert_eq!(packet(kind::ACK | more).pure_ack(), None);
        }
        assert_eq!(packet(0).pure_ack(), None);
        assert_eq!(packet(kind::CWR).pure_ack(), None);
    }

    #[test]
    fn places_are_used_again_whether_packets_arrive_or_are_dropped() {
        let mut store = Store::default();
        let place = store.put_ack(Ack { ack: 1, ..Ack::default() });
        assert_eq!(store.take_ack(place).ack, 1);
        let again = store.put_ack(Ack { ack: 2, ..Ack::default() });
        assert_eq!(again, place);
        store.forget(&SimPacket { seq: again, ..packet(kind::ACK | kind::STORED) });
        assert_eq!(store.put_ack(Ack::default()), place);
        let place = store.put_data(DataSegment::default());
        store.forget(&SimPacket { seq: place, ..packet(kind::STORED) });
        assert_eq!(store.put_data(DataSegment::default()), place);
    }
}
