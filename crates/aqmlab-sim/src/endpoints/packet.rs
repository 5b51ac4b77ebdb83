//! Packets of the simulator: the encoding of their content in a packet descriptor, and the store
//! of contents that do not fit.

mod store;

use std::ops::Deref;

use aqmlab_core::{Ecn, Packet, Time};

pub(crate) use self::store::{Places, Store};
use super::End;

/// Position of the [`Flags`] byte in the tag; the kind of the content is in the byte below.
const FLAGS: u32 = 8;

/// Packets of the simulator.
pub(crate) trait SimPacket {
    /// Returns a packet that an endpoint sends.
    fn sent(header: Header, size: u32, ecn: Ecn, content: Packed) -> Self;
    /// Returns the content.
    fn content(&self) -> Content;
    /// Returns the end of the flow that the packet goes to.
    fn to(&self) -> End;
}

/// Addressing of a packet.
pub(crate) struct Header {
    pub flow: u32,
    pub hash: u32,
    pub hosts: [u32; 2],
    pub class: u8,
    /// Destination end of the flow.
    pub to: End,
}

impl SimPacket for Packet {
    #[inline(always)]
    fn sent(header: Header, size: u32, ecn: Ecn, content: Packed) -> Self {
        let Header { flow, hash, hosts, class, to } = header;
        Packet::new(size, ecn)
            .with_flow_hash(hash)
            .with_hosts(hosts)
            .with_class(class)
            .with_tag(content.tag)
            .with_ack(to == End::Source)
            .with_syn(Flags((content.tag >> FLAGS) as u8).has(Flags::SYN))
            .with_key(content.number)
            .with_flow(flow)
            .with_serial(content.serial)
    }
    #[inline(always)]
    fn content(&self) -> Content {
        let tag = self.tag();
        Content::of_parts(tag as u8, Flags((tag >> FLAGS) as u8), self.key, self.serial)
    }
    #[inline(always)]
    fn to(&self) -> End {
        if self.is_ack() { End::Source } else { End::Sink }
    }
}

/// Packet at the end of its route. It can be received once, and is borrowed because it is large.
pub(crate) struct Arrived<'a>(&'a Packet);

impl<'a> Arrived<'a> {
    /// Wraps a packet; call once per packet.
    #[inline(always)]
    pub fn new(packet: &'a mut Packet) -> Self {
        Arrived(packet)
    }
}

impl Deref for Arrived<'_> {
    type Target = Packet;
    #[inline(always)]
    fn deref(&self) -> &Packet {
        self.0
    }
}

/// Flags of a TCP header, and additional flags of the simulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// A SYN or SYN-ACK.
    pub const SYN: Flags = Flags(1);
    /// Retransmitted data.
    pub const RETRANSMISSION: Flags = Flags(2);
    /// CWR (RFC 3168).
    pub const CWR: Flags = Flags(4);
    /// ECE (RFC 3168).
    pub const ECE: Flags = Flags(8);
    /// Acknowledgement with the counter of accurate ECN.
    pub const ACCURATE: Flags = Flags(16);
    /// See [`DataSegment::push`].
    pub const PUSH: Flags = Flags(32);

    #[inline(always)]
    fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }
    #[inline(always)]
    fn with(self, flag: Flags, is_set: bool) -> Self {
        if is_set { Flags(self.0 | flag.0) } else { self }
    }
}

/// Returns the clock of timestamps: milliseconds, as in Linux. 0 would mean no timestamp.
pub(crate) fn timestamp(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32 + 1
}

/// Contents of a packet, stored in the packet or in the [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// TCP data that begins with this byte.
    Segment { flags: Flags, seq: u64 },
    /// TCP data with timestamps.
    KeptSegment { flags: Flags, place: u32 },
    /// TCP acknowledgement with the default window and no other fields.
    Ack { flags: Flags, number: u64 },
    /// TCP acknowledgement with other fields.
    KeptAck { flags: Flags, place: u32 },
    /// Datagram with its sending time and its number in the flow.
    Datagram { sent: u64, serial: u32 },
    /// Message of an endpoint of another crate.
    Message { place: u32 },
}

/// Encoded [`Content`] in a packet: kind and flags, and number or store index. Neither this type
/// nor a packet is `Copy`: the store returns one for an index, and takes a packet to free it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    tag: u16,
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
        Packed { tag: kind | u16::from(flags.0) << FLAGS, number, serial }
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

    /// Returns whether the contents are in the store.
    pub fn has_payload(self) -> bool {
        use Content::{KeptAck, KeptSegment, Message};
        matches!(self, KeptSegment { .. } | KeptAck { .. } | Message { .. })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::datagrams::Sent;
    use crate::network::{LossCause, PacketStore};
    use aqmlab_aqm::{Headers, Reason};
    use aqmlab_core::{Span, TcpHeader};
    use aqmlab_tcp::{Ack, CeCount, DataSegment, Timestamps};

    const USUAL: u64 = 1000;

    fn packet(content: Packed) -> Packet {
        let header = Header { flow: 0, hash: 0, hosts: [0; 2], class: 0, to: End::Sink };
        Packet::sent(header, 1500, Ecn::NotEct, content)
    }

    #[test]
    fn a_mark_leaves_everything_else_as_it_is() {
        for to in [End::Source, End::Sink] {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let header = Header { flow: 1, hash: 2, hosts: [3, 4], class: 5, to };
                let content = Content::Datagram { sent: 6, serial: 7 };
                let mut packet = Packet::sent(header, 1500, ecn, content.packed());
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
        // RFC 9768, section 3.2.1: the counter starts at 5.
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

    /// Contents of a packet, and of its duplicate, decode unchanged.
    #[test]
    fn packets_carry_what_they_were_given() {
        let mut store = Store::default();
        let mut sacked = ack();
        sacked.sack.push(1, 2);
        for given in [ack(), Ack { syn: true, ece: true, ..ack() }, sacked] {
            let first = packet(store.ack(given, USUAL, false));
            let second = store.duplicate(&first);
            let third = store.duplicate(&second);
            assert_eq!(store.take_ack(Arrived(&first), USUAL), Some(given));
            assert_eq!(store.take_ack(Arrived(&second), USUAL), Some(given));
            assert_eq!(store.take_segment(Arrived(&third), 40), None);
        }
        let segment = DataSegment { seq: 1 << 33, len: 1460, cwr: true, ..DataSegment::default() };
        let timed = DataSegment { sent_at: Time::from_nanos(5), ..segment };
        let again = DataSegment { retransmission: true, ..segment };
        for (given, has_times) in [(again, false), (timed, true)] {
            let first = packet(store.segment(Time::ZERO, given, has_times));
            let second = store.duplicate(&first);
            assert_eq!(store.take_segment(Arrived(&first), 40), Some(given));
            assert_eq!(store.take_segment(Arrived(&second), 40), Some(given));
        }
        let sent = Sent { at: Time::from_nanos(1 << 50), number: 1 << 31 };
        let datagram = packet(store.datagram(sent));
        assert_eq!(store.take_datagram(Arrived(&datagram)), Some(sent));
        let first = packet(store.message(Time::from_nanos(9), Box::new([1, 2, 3])));
        let second = store.duplicate(&first);
        assert_eq!(store.sent_at(second.content()), Some(Time::from_nanos(9)));
        assert_eq!(store.take_message(Arrived(&first)).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(store.take_message(Arrived(&second)).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(store.live_count(), 0);
    }

    #[test]
    fn places_are_used_again_whether_packets_arrive_or_are_dropped() {
        let mut store = Store::default();
        let kept = Ack { window: 7, ..ack() };
        let place = |packet: &Packet| packet.key;
        let next = |store: &mut Store| packet(store.ack(kept, USUAL, false));
        let mut first = next(&mut store);
        let used = place(&first);
        store.take_ack(Arrived(&first), USUAL);
        for fate in [LossCause::Lost, LossCause::Dropped(Reason::Overlimit)] {
            first = next(&mut store);
            assert_eq!((place(&first), store.live_count()), (used, 1));
            store.release(first, fate);
        }
        let next = |store: &mut Store| packet(store.message(Time::ZERO, Box::new([0])));
        let message = next(&mut store);
        let used = place(&message);
        store.release(message, LossCause::Lost);
        assert_eq!((place(&next(&mut store)), store.live_count()), (used, 1));
    }
}
