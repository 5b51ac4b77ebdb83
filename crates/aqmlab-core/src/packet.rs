//! Packet descriptors: the form in which queues and links handle packets.

use core::mem::offset_of;
use core::num::NonZeroU64;

use crate::time::Time;

/// ECN codepoint of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion signals must be drops.
    #[default]
    NotEct = 0,
    /// ECT(1): ECN-capable, and L4S since RFC 9331.
    Ect1 = 1,
    /// ECT(0): ECN-capable, classic.
    Ect0 = 2,
    /// Congestion experienced: marked by a queue on the path.
    Ce = 3,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }
    /// Returns the codepoint with these two bits.
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// Descriptor of a packet: the fields that queues use, and 24 bytes for the owner of the packet.
///
/// Simulator, emulator and replay of recorded cases all use this type, so a queue discipline is
/// compiled once. The owner stores the packet's bytes, if any, and finds them by
/// [`key`](Self::key).
///
/// A queue moves descriptors. The type is not `Copy`: a discipline that duplicated a packet by
/// mistake would have to write `clone`. Queues are cloned with their packets for snapshots.
///
/// # Layout
/// 48 bytes, as is `Option<Packet>`. All fields are integers: with an enum as a field,
/// `Option<Packet>` would have its discriminant among the bytes, compilers would copy a packet in
/// pieces, and the next copy would wait for all of them to leave the processor's store buffer. The
/// `PacketWord`, which is never zero, provides the discriminant. It is last, with the arrival time,
/// because queues read these: the fields before them are copied as one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Packet {
    /// Key of the packet for its owner: an index of a buffer, for example.
    pub key: u64,
    hosts: [u32; 2],
    /// Number of the flow in the owner's records. Queues use the [hash](Self::flow_hash).
    pub flow: u32,
    hash: u32,
    /// Position on the packet's route, for an owner with several queues.
    pub position: u32,
    /// Second key for the owner.
    pub serial: u32,
    arrival: Time,
    word: PacketWord,
}

// Packets are copied from queue to queue on the hot path.
const _: () = assert!(size_of::<Packet>() == 48 && size_of::<Option<Packet>>() == 48);

/// Size on the wire (32 bits), DSCP (8), tag of the owner (16), ECN codepoint (2), three flags; and
/// a bit that is always set.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct PacketWord(NonZeroU64);

impl PacketWord {
    const CLASS: u32 = 32;
    const TAG: u32 = 40;
    const ECN: u32 = 56;
    const ACK: u32 = 58;
    const SYN: u32 = 59;
    const MARKED: u32 = 60;
    const ALWAYS: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a bit is set");

    #[inline(always)]
    fn has(self, bit: u32) -> bool {
        self.0.get() >> bit & 1 != 0
    }
    #[inline(always)]
    fn with(self, value: u64, shift: u32) -> Self {
        PacketWord(self.0 | value << shift)
    }
}

/// Checksum of numbers (FNV-1a), for layouts.
pub const fn checksum(numbers: &[usize]) -> u64 {
    let (mut sum, mut i) = (0xcbf2_9ce4_8422_2325, 0);
    while i < numbers.len() {
        sum = (sum ^ numbers[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    sum
}

impl Packet {
    /// Checksum of the layout: of the places of all fields and of the bits in the last one. Programs
    /// that share descriptors compare it.
    pub const LAYOUT: u64 = checksum(&[
        size_of::<Self>(),
        align_of::<Self>(),
        offset_of!(Packet, key),
        offset_of!(Packet, hosts),
        offset_of!(Packet, flow),
        offset_of!(Packet, hash),
        offset_of!(Packet, position),
        offset_of!(Packet, serial),
        offset_of!(Packet, arrival),
        offset_of!(Packet, word),
        PacketWord::CLASS as usize,
        PacketWord::TAG as usize,
        PacketWord::ECN as usize,
        PacketWord::ACK as usize,
        PacketWord::SYN as usize,
        PacketWord::MARKED as usize,
    ]);

    /// Returns a packet of this size on the wire in bytes. Flow, hosts, DSCP, key and tag are 0.
    #[inline(always)]
    pub fn new(size: u32, ecn: Ecn) -> Self {
        Packet {
            key: 0,
            hosts: [0; 2],
            flow: 0,
            hash: 0,
            position: 0,
            serial: 0,
            arrival: Time::ZERO,
            word: PacketWord(PacketWord::ALWAYS | u64::from(size))
                .with(ecn as u64, PacketWord::ECN),
        }
    }
    /// Sets the hash of the packet's flow (RFC 8290, section 4.1.1: of the 5-tuple), which selects
    /// queues and buckets. The flow counts as a [host](Self::with_hosts) of its own.
    #[inline(always)]
    #[must_use]
    pub fn with_flow_hash(self, hash: u32) -> Self {
        Packet { hash, hosts: [hash; 2], ..self }
    }
    /// Sets numbers, or hashes, of the source and the destination host, for queues that share a
    /// link between hosts.
    #[inline(always)]
    #[must_use]
    pub fn with_hosts(self, hosts: [u32; 2]) -> Self {
        Packet { hosts, ..self }
    }
    /// Sets the DSCP (RFC 2474) of a packet that has none.
    #[inline(always)]
    #[must_use]
    pub fn with_class(self, class: u8) -> Self {
        Packet { word: self.word.with(class.into(), PacketWord::CLASS), ..self }
    }
    /// Sets the owner's tag of a packet that has none.
    #[inline(always)]
    #[must_use]
    pub fn with_tag(self, tag: u16) -> Self {
        Packet { word: self.word.with(tag.into(), PacketWord::TAG), ..self }
    }
    /// Declares a packet that only acknowledges, if `is_ack`.
    #[inline(always)]
    #[must_use]
    pub fn with_ack(self, is_ack: bool) -> Self {
        Packet { word: self.word.with(is_ack.into(), PacketWord::ACK), ..self }
    }
    /// Declares a packet that opens a connection, if `is_syn`.
    #[inline(always)]
    #[must_use]
    pub fn with_syn(self, is_syn: bool) -> Self {
        Packet { word: self.word.with(is_syn.into(), PacketWord::SYN), ..self }
    }
    /// Sets the number of the flow in the owner's records.
    #[inline(always)]
    #[must_use]
    pub fn with_flow(self, flow: u32) -> Self {
        Packet { flow, ..self }
    }
    /// Sets the owner's second key.
    #[inline(always)]
    #[must_use]
    pub fn with_serial(self, serial: u32) -> Self {
        Packet { serial, ..self }
    }
    /// Sets the owner's key.
    #[inline(always)]
    #[must_use]
    pub fn with_key(self, key: u64) -> Self {
        Packet { key, ..self }
    }

    /// Returns the size on the wire in bytes.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.word.0.get() as u32
    }
    /// Sets the size.
    #[inline(always)]
    pub fn set_size(&mut self, size: u32) {
        let others = self.word.0.get() & !u64::from(u32::MAX);
        self.word.0 = PacketWord::ALWAYS | (others | u64::from(size));
    }
    /// Returns the hash of the packet's flow.
    #[inline(always)]
    pub fn flow_hash(&self) -> u32 {
        self.hash
    }
    /// Returns the source and the destination host.
    #[inline(always)]
    pub fn hosts(&self) -> [u32; 2] {
        self.hosts
    }
    /// Returns the DSCP.
    #[inline(always)]
    pub fn class(&self) -> u8 {
        (self.word.0.get() >> PacketWord::CLASS) as u8
    }
    /// Sets the DSCP to 0.
    #[inline(always)]
    pub fn clear_class(&mut self) {
        self.word.0 = PacketWord::ALWAYS | (self.word.0.get() & !(0xff << PacketWord::CLASS));
    }
    /// Returns the owner's tag.
    #[inline(always)]
    pub fn tag(&self) -> u16 {
        (self.word.0.get() >> PacketWord::TAG) as u16
    }
    /// Returns the ECN codepoint.
    #[inline(always)]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.word.0.get() >> PacketWord::ECN) as u8)
    }
    /// Sets CE.
    #[inline(always)]
    pub fn mark(&mut self) {
        self.word.0 |= (Ecn::Ce as u64) << PacketWord::ECN | 1 << PacketWord::MARKED;
    }
    /// True if [`mark`](Self::mark) was called. The packet may have had CE before.
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        self.word.has(PacketWord::MARKED)
    }
    /// Whether the packet only acknowledges, or is one of the reverse direction.
    #[inline(always)]
    pub fn is_ack(&self) -> bool {
        self.word.has(PacketWord::ACK)
    }
    /// Whether the packet opens a connection.
    #[inline(always)]
    pub fn is_syn(&self) -> bool {
        self.word.has(PacketWord::SYN)
    }
    /// Returns the time of arrival at the queue.
    #[inline(always)]
    pub fn arrival(&self) -> Time {
        self.arrival
    }
    /// Sets the time of arrival at the queue, once before `enqueue`.
    #[inline(always)]
    pub fn set_arrival(&mut self, now: Time) {
        self.arrival = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark and a cleared DSCP leave the other bits of the word unchanged.
    #[test]
    fn fields_are_independent() {
        for flags in 0..4 {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let (ack, syn) = (flags & 1 != 0, flags & 2 != 0);
                let packet = Packet::new(u32::MAX, ecn).with_class(0xa5).with_tag(0xbeef);
                let mut packet = packet.with_ack(ack).with_syn(syn).with_flow_hash(7);
                let rest = |packet: &Packet| {
                    (packet.size(), packet.tag(), packet.is_ack(), packet.is_syn(), packet.hosts())
                };
                let before = (u32::MAX, 0xbeef, ack, syn, [7, 7]);
                assert_eq!((packet.ecn(), packet.class(), packet.is_marked()), (ecn, 0xa5, false));
                assert_eq!(rest(&packet), before);
                packet.mark();
                assert_eq!(
                    (packet.ecn(), packet.class(), packet.is_marked()),
                    (Ecn::Ce, 0xa5, true)
                );
                packet.clear_class();
                assert_eq!((packet.ecn(), packet.class(), packet.is_marked()), (Ecn::Ce, 0, true));
                assert_eq!(rest(&packet), before);
            }
        }
    }
}
