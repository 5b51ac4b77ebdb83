//! A packet in the simulator: a value of 48 bytes that is moved from queue
//! to pipe to queue, and the store for what does not fit in.

mod store;

use std::num::NonZeroU64;
use std::ops::Deref;

use aqmlab_core::{Ecn, Packet, Time, packet_fields};

pub(crate) use self::store::Store;
use super::End;
use crate::network::{LossCause, NetworkPacket, Position};

/// A packet.
///
/// Only whole numbers, and what queues and links ask for in words of its own. With an enum in it,
/// `Option<SimPacket>` would have its discriminant among the packet's bytes, and with the bytes
/// themselves compilers copy a packet in pieces: the next copy then waits for all of them to
/// leave the processor's store buffer. So it does when the discriminant is before the packet, and
/// an option is copied as one: a word that is not zero makes it as large as the packet.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SimPacket {
    /// The number or the place of its [`Content`].
    number: u64,
    /// Its sender's and its receiver's host, by number.
    hosts: [u32; 2],
    /// The flow, as an index.
    pub flow: u32,
    /// The hash of the flow that queues see.
    pub hash: u32,
    /// How far it has come on its route.
    position: Position,
    /// The number of a datagram in its flow.
    serial: u32,
    // What queues ask for is last: what is before it is copied as one.
    /// When it came to the queue it is in.
    arrival: Time,
    what: What,
}

// The hot path copies these from queue to pipe: the size is a promise.
const _: () = assert!(size_of::<SimPacket>() == 48 && size_of::<Option<SimPacket>>() == 48);

/// What a packet is, in one word: bytes on the wire (32 bits), DSCP (8), which [`Content`] (8),
/// its [`Flags`] (8), the ECN codepoint (2), whether it goes to the source of its flow; and a
/// bit that is always set.
#[derive(Clone, Copy, Debug)]
struct What(NonZeroU64);

impl What {
    const CLASS: u32 = 32;
    const KIND: u32 = 40;
    const FLAGS: u32 = 48;
    const ECN: u32 = 56;
    const TO_SOURCE: u32 = 58;
    const ALWAYS: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a bit is set");

    #[inline(always)]
    fn byte(self, at: u32) -> u8 {
        (self.0.get() >> at) as u8
    }
    #[inline(always)]
    fn to_source(self) -> bool {
        self.0.get() >> Self::TO_SOURCE & 1 != 0
    }
}

/// Of whom a packet is.
pub(crate) struct Header {
    pub flow: u32,
    pub hash: u32,
    pub hosts: [u32; 2],
    pub class: u8,
    /// The end of the flow that it goes to.
    pub to: End,
}

impl SimPacket {
    /// A packet that an endpoint sends.
    #[inline(always)]
    pub fn new(header: Header, size: u32, ecn: Ecn, content: Packed) -> Self {
        let Header { flow, hash, hosts, class, to } = header;
        let what = content.what
            | u64::from(size)
            | u64::from(class) << What::CLASS
            | (ecn as u64) << What::ECN
            | u64::from(to == End::Source) << What::TO_SOURCE;
        SimPacket {
            what: What(What::ALWAYS | what),
            arrival: Time::ZERO,
            number: content.number,
            hosts,
            flow,
            hash,
            position: Position::default(),
            serial: content.serial,
        }
    }

    /// What it carries.
    #[inline(always)]
    pub fn content(&self) -> Content {
        let flags = Flags(self.what.byte(What::FLAGS));
        Content::of_parts(self.what.byte(What::KIND), flags, self.number, self.serial)
    }

    /// The end of the flow that it goes to.
    #[inline(always)]
    pub fn to(&self) -> End {
        if self.what.to_source() { End::Source } else { End::Sink }
    }
}

/// A packet at the end of its route. It can be received once, and stays where it is for that: it
/// is large.
pub(crate) struct Arrived<'a>(&'a SimPacket);

impl<'a> Arrived<'a> {
    /// To be made once of each packet.
    #[inline(always)]
    pub fn new(packet: &'a mut SimPacket) -> Self {
        Arrived(packet)
    }
}

impl Deref for Arrived<'_> {
    type Target = SimPacket;
    #[inline(always)]
    fn deref(&self) -> &SimPacket {
        self.0
    }
}

/// Flags of a TCP header, and what the simulator notes besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// A SYN or SYN-ACK.
    pub const SYN: Flags = Flags(1);
    /// Data that were sent before.
    pub const RETRANSMISSION: Flags = Flags(2);
    /// CWR (RFC 3168).
    pub const CWR: Flags = Flags(4);
    /// ECE (RFC 3168).
    pub const ECE: Flags = Flags(8);
    /// An acknowledgement with the counter of accurate ECN.
    pub const ACCURATE: Flags = Flags(16);

    #[inline(always)]
    fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }
    #[inline(always)]
    fn with(self, flag: Flags, is_set: bool) -> Self {
        if is_set { Flags(self.0 | flag.0) } else { self }
    }
}

/// The clock of timestamps: milliseconds, as Linux has them. 0 would mean that there is none.
pub(crate) fn timestamp(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32 + 1
}

/// What a packet carries: in itself, or at a place in the [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Data of TCP that begin with this byte.
    Segment { flags: Flags, seq: u64 },
    /// Data of TCP with times.
    KeptSegment { flags: Flags, place: u32 },
    /// An acknowledgement of TCP, with a window as usual and nothing else.
    Ack { flags: Flags, number: u64 },
    /// An acknowledgement of TCP with more.
    KeptAck { flags: Flags, place: u32 },
    /// A datagram, with the time at which it was sent and its number in the flow.
    Datagram { sent: u64, serial: u32 },
    /// What endpoints of another crate tell each other.
    Message { place: u32 },
}

/// A [`Content`] as a packet holds it: its kind and flags, and its number or place. It is not
/// `Copy`, nor is a packet: the store gives one for a place, and takes a packet to free it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    what: u64,
    number: u64,
    serial: u32,
}

impl Content {
    #[inline(always)]
    fn packed(self) -> Packed {
        let serial = if let Content::Datagram { serial, .. } = self { serial } else { 0 };
        let (kind, flags, number) = match self {
            Content::Segment { flags, seq } => (0, flags, seq),
            Content::KeptSegment { flags, place } => (1, flags, u64::from(place)),
            Content::Ack { flags, number } => (2, flags, number),
            Content::KeptAck { flags, place } => (3, flags, u64::from(place)),
            Content::Datagram { sent, .. } => (4, Flags::default(), sent),
            Content::Message { place } => (5, Flags::default(), u64::from(place)),
        };
        Packed { what: kind << What::KIND | u64::from(flags.0) << What::FLAGS, number, serial }
    }

    #[inline(always)]
    fn of_parts(kind: u8, flags: Flags, number: u64, serial: u32) -> Self {
        let place = number as u32;
        match kind {
            0 => Content::Segment { flags, seq: number },
            1 => Content::KeptSegment { flags, place },
            2 => Content::Ack { flags, number },
            3 => Content::KeptAck { flags, place },
            4 => Content::Datagram { sent: number, serial },
            _ => Content::Message { place },
        }
    }

    /// Whether it is at a place in the store.
    pub fn has_payload(self) -> bool {
        match self {
            Content::KeptSegment { .. } | Content::KeptAck { .. } | Content::Message { .. } => true,
            Content::Segment { .. } | Content::Ack { .. } | Content::Datagram { .. } => false,
        }
    }

    pub fn is_syn(self) -> bool {
        match self {
            Content::Segment { flags, .. }
            | Content::KeptSegment { flags, .. }
            | Content::Ack { flags, .. }
            | Content::KeptAck { flags, .. } => flags.has(Flags::SYN),
            Content::Datagram { .. } | Content::Message { .. } => false,
        }
    }
}

impl Packet for SimPacket {
    packet_fields!(hash, hosts, arrival);
    #[inline]
    fn size(&self) -> u32 {
        self.what.0.get() as u32
    }
    #[inline]
    fn class(&self) -> u8 {
        self.what.byte(What::CLASS)
    }
    #[inline]
    fn clear_class(&mut self) {
        self.what.0 = What::ALWAYS | (self.what.0.get() & !(0xff << What::CLASS));
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.what.byte(What::ECN))
    }
    #[inline]
    fn mark(&mut self) {
        self.what.0 |= (Ecn::Ce as u64) << What::ECN;
    }
}

impl NetworkPacket for SimPacket {
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
        self.what.to_source()
    }
    #[inline]
    fn is_syn(&self) -> bool {
        self.content().is_syn()
    }
    #[inline]
    fn has_payload(&self) -> bool {
        self.content().has_payload()
    }
    #[inline]
    fn end(self, store: &mut Store, _cause: LossCause) {
        store.free(self.content());
    }
    fn copy(&self, store: &mut Store) -> Self {
        SimPacket { number: store.copy(self.content()).packed().number, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::datagrams::Sent;
    use crate::network::SidePool;
    use aqmlab_aqm::{Headers, Reason};
    use aqmlab_core::{Span, TcpHeader};
    use aqmlab_tcp::{Ack, CeCount, DataSegment, Timestamps};

    const USUAL: u64 = 1000;

    fn packet(content: Packed) -> SimPacket {
        let header = Header { flow: 0, hash: 0, hosts: [0; 2], class: 0, to: End::Sink };
        SimPacket::new(header, 1500, Ecn::NotEct, content)
    }

    #[test]
    fn a_mark_leaves_everything_else_as_it_is() {
        for to in [End::Source, End::Sink] {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let header = Header { flow: 1, hash: 2, hosts: [3, 4], class: 5, to };
                let content = Content::Datagram { sent: 6, serial: 7 };
                let mut packet = SimPacket::new(header, 1500, ecn, content.packed());
                assert_eq!((packet.ecn(), packet.to()), (ecn, to));
                packet.mark();
                assert_eq!((packet.ecn(), packet.to()), (Ecn::Ce, to));
                assert_eq!((packet.content(), packet.class()), (content, 5));
                packet.clear_class();
                assert_eq!((packet.size(), packet.class()), (1500, 0));
            }
        }
    }

    fn ack() -> Ack {
        Ack { ack: 1 << 40, window: USUAL, ..Ack::default() }
    }

    #[test]
    fn queues_can_read_acknowledgements() {
        let mut store = Store::default();
        let mut read = |ack, counts_marks| {
            let packet = packet(store.ack(ack, USUAL, counts_marks));
            store.tcp(&packet).unwrap()
        };
        let plain = read(Ack { ack: (1 << 32) + 9, ..ack() }, false);
        assert_eq!(plain, TcpHeader { ack: 9, flags: TcpHeader::ACK, ..TcpHeader::default() });
        assert_eq!(read(Ack { window: 7, ..ack() }, false), read(ack(), false));
        let mut flags = |ack, counts_marks| read(ack, counts_marks).flags & !TcpHeader::ACK;
        assert_eq!(flags(Ack { syn: true, ..ack() }, false), TcpHeader::SYN);
        assert_eq!(flags(Ack { ece: true, ..ack() }, false), TcpHeader::ECE);
        // RFC 9768, section 3.2.1: the counter begins at 5.
        assert_eq!(flags(ack(), true), TcpHeader::AE | TcpHeader::ECE);
        let ce = CeCount { packets: 2, bytes: 3000 };
        assert_eq!(
            flags(Ack { ce, ..ack() }, true),
            TcpHeader::AE | TcpHeader::CWR | TcpHeader::ECE
        );
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let timestamps = Some(Timestamps { value: at(80), echo: at(40) });
        let mut full = Ack { timestamps, ..ack() };
        full.sack.push((1 << 32) + 20, (1 << 32) + 30);
        full.sack.push(1, 2);
        let full = read(full, false);
        assert_eq!(full.timestamps, Some([81, 41]));
        assert_eq!(full.sack.as_slice(), [[20, 30], [1, 2]]);
        assert!(full.is_pure_ack());
        let data = packet(store.segment(Time::ZERO, DataSegment::default(), false));
        assert_eq!(store.tcp(&data), None);
        let message = packet(store.message(Time::ZERO, Box::new([1])));
        assert_eq!(store.tcp(&message), None);
    }

    /// Whatever goes into a packet comes out of it, and out of its copy.
    #[test]
    fn packets_carry_what_they_were_given() {
        let mut store = Store::default();
        let mut sacked = ack();
        sacked.sack.push(1, 2);
        for given in [ack(), Ack { syn: true, ece: true, ..ack() }, sacked] {
            let first = packet(store.ack(given, USUAL, false));
            let second = first.copy(&mut store);
            let third = second.copy(&mut store);
            assert_eq!(store.take_ack(Arrived(&first), USUAL), Some(given));
            assert_eq!(store.take_ack(Arrived(&second), USUAL), Some(given));
            assert_eq!(store.take_segment(Arrived(&third), 40), None);
        }
        let segment = DataSegment { seq: 1 << 33, len: 1460, cwr: true, ..DataSegment::default() };
        let timed = DataSegment { sent_at: Time::from_nanos(5), ..segment };
        let again = DataSegment { retransmission: true, ..segment };
        for (given, has_times) in [(again, false), (timed, true)] {
            let first = packet(store.segment(Time::ZERO, given, has_times));
            let second = first.copy(&mut store);
            assert_eq!(store.take_segment(Arrived(&first), 40), Some(given));
            assert_eq!(store.take_segment(Arrived(&second), 40), Some(given));
        }
        let sent = Sent { at: Time::from_nanos(1 << 50), number: 1 << 31 };
        let datagram = packet(store.datagram(sent));
        assert_eq!(store.take_datagram(Arrived(&datagram)), Some(sent));
        let first = packet(store.message(Time::from_nanos(9), Box::new([1, 2, 3])));
        let second = first.copy(&mut store);
        assert_eq!(store.sent_at(second.content()), Some(Time::from_nanos(9)));
        assert_eq!(store.take_message(Arrived(&first)).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(store.take_message(Arrived(&second)).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(store.live_count(), 0);
    }

    #[test]
    fn places_are_used_again_whether_packets_arrive_or_are_dropped() {
        let mut store = Store::default();
        let kept = Ack { window: 7, ..ack() };
        let place = |packet: &SimPacket| packet.number;
        let next = |store: &mut Store| packet(store.ack(kept, USUAL, false));
        let mut first = next(&mut store);
        let used = place(&first);
        store.take_ack(Arrived(&first), USUAL);
        for fate in [LossCause::Lost, LossCause::Dropped(Reason::Overlimit)] {
            first = next(&mut store);
            assert_eq!((place(&first), store.live_count()), (used, 1));
            first.end(&mut store, fate);
        }
        let next = |store: &mut Store| packet(store.message(Time::ZERO, Box::new([0])));
        let message = next(&mut store);
        let used = place(&message);
        message.end(&mut store, LossCause::Lost);
        assert_eq!((place(&next(&mut store)), store.live_count()), (used, 1));
    }
}
