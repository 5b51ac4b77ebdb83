//! What packets carry that does not fit into them.

use aqmlab_aqm::Headers;
use aqmlab_core::{Packet, TcpHeader, Time};
use aqmlab_tcp::{Ack, CeCount, DataSegment};

use super::{Arrived, Content, Flags, Packed, SimPacket, timestamp};
use crate::endpoints::Message;
use crate::endpoints::datagrams::Sent;
use crate::network::{LossCause, PacketStore};

/// Things kept in places that are used again.
#[derive(Clone)]
pub(crate) struct Places<T> {
    pub kept: Vec<T>,
    pub free: Vec<u32>,
}

impl<T> Places<T> {
    /// Keeps a thing. Returns its place.
    pub fn put(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.kept[place as usize] = thing;
                place
            }
            None => {
                self.kept.push(thing);
                (self.kept.len() - 1) as u32
            }
        }
    }
    /// Number of places in use.
    fn used(&self) -> u64 {
        (self.kept.len() - self.free.len()) as u64
    }
}

impl<T: Clone + Default> Places<T> {
    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        std::mem::take(&mut self.kept[place as usize])
    }
    fn copy(&mut self, place: u32) -> u32 {
        self.put(self.kept[place as usize].clone())
    }
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places { kept: Vec::new(), free: Vec::new() }
    }
}

/// Payloads that do not fit into packets: acknowledgements that carry more than a number (SACK
/// blocks, counters), data with timestamps, messages. Stored separately to keep all packets small.
#[derive(Clone, Default)]
pub(crate) struct Store {
    acks: Places<Ack>,
    /// Segments with their times of departure. The time in a segment is the one that its sender
    /// writes into the timestamp: with pacing, Linux writes the scheduled departure.
    segments: Places<(Time, DataSegment)>,
    messages: Places<(Time, Box<[u8]>)>,
}

impl Store {
    /// A segment that leaves at `now`, which carries times if `has_times`.
    #[inline(always)]
    pub fn segment(&mut self, now: Time, segment: DataSegment, has_times: bool) -> Packed {
        let flags = Flags::default()
            .with(Flags::SYN, segment.syn)
            .with(Flags::RETRANSMISSION, segment.retransmission)
            .with(Flags::CWR, segment.cwr)
            .with(Flags::PUSH, segment.push);
        if has_times {
            return self.keep_segment(now, flags, segment);
        }
        Content::Segment { flags, seq: segment.seq }.packed()
    }

    #[inline(never)]
    fn keep_segment(&mut self, now: Time, flags: Flags, segment: DataSegment) -> Packed {
        Content::KeptSegment { flags, place: self.segments.put((now, segment)) }.packed()
    }

    /// An acknowledgement, which says no more than its number if the window is `usual`, and how
    /// many marks came if it `counts_marks`.
    #[inline(always)]
    pub fn ack(&mut self, ack: Ack, usual: u64, counts_marks: bool) -> Packed {
        let flags = Flags::default()
            .with(Flags::SYN, ack.syn)
            .with(Flags::ECE, ack.ece)
            .with(Flags::ACCURATE, counts_marks);
        let is_plain = ack.sack.is_empty()
            && ack.window == usual
            && ack.ce == CeCount::default()
            && ack.timestamps.is_none();
        if is_plain {
            return Content::Ack { flags, number: ack.ack }.packed();
        }
        Content::KeptAck { flags, place: self.acks.put(ack) }.packed()
    }

    /// A datagram.
    pub fn datagram(&mut self, sent: Sent) -> Packed {
        Content::Datagram { sent: sent.at.as_nanos(), serial: sent.number }.packed()
    }

    /// A message that is sent now.
    pub fn message(&mut self, now: Time, message: Message) -> Packed {
        Content::Message { place: self.messages.put((now, message)) }.packed()
    }

    /// The segment of a packet whose headers have so many bytes.
    #[inline(always)]
    pub fn take_segment(&mut self, packet: Arrived, header: u32) -> Option<DataSegment> {
        let segment = self.segment_of(&packet, header);
        self.discard(packet);
        segment
    }

    /// The acknowledgement of a packet, with the `usual` window if it says no other.
    #[inline(always)]
    pub fn take_ack(&mut self, packet: Arrived, usual: u64) -> Option<Ack> {
        let ack = self.ack_of(&packet, usual);
        self.discard(packet);
        ack
    }

    /// The segment of a packet, which stays where it is.
    #[inline(always)]
    pub fn segment_of(&self, packet: &Packet, header: u32) -> Option<DataSegment> {
        match packet.content() {
            Content::Segment { flags, seq } => Some(plain_segment(packet, header, flags, seq)),
            Content::KeptSegment { place, .. } => {
                Some(DataSegment { ecn: packet.ecn(), ..self.segments.kept[place as usize].1 })
            }
            _ => None,
        }
    }

    /// The acknowledgement of a packet, which stays where it is.
    #[inline(always)]
    pub fn ack_of(&self, packet: &Packet, usual: u64) -> Option<Ack> {
        match packet.content() {
            Content::Ack { flags, number } => Some(plain_ack(usual, flags, number)),
            Content::KeptAck { place, .. } => Some(self.acks.kept[place as usize]),
            _ => None,
        }
    }

    /// The datagram of a packet.
    pub fn take_datagram(&mut self, packet: Arrived) -> Option<Sent> {
        if let Content::Datagram { sent, serial } = packet.content() {
            return Some(Sent { at: Time::from_nanos(sent), number: serial });
        }
        self.discard(packet);
        None
    }

    /// The message of a packet, which stays where it is.
    pub fn message_of(&self, packet: &Packet) -> Option<&[u8]> {
        match packet.content() {
            Content::Message { place } => Some(&self.messages.kept[place as usize].1),
            _ => None,
        }
    }

    /// The message of a packet.
    pub fn take_message(&mut self, packet: Arrived) -> Option<Message> {
        if let Content::Message { place } = packet.content() {
            return Some(self.messages.take(place).1);
        }
        self.discard(packet);
        None
    }

    /// Time at which the packet was sent, if it carries one and is no SYN.
    pub fn sent_at(&self, content: Content) -> Option<Time> {
        match content {
            Content::KeptSegment { flags, place } if !flags.has(Flags::SYN) => {
                Some(self.segments.kept[place as usize].0)
            }
            Content::Message { place } => Some(self.messages.kept[place as usize].0),
            _ => None,
        }
    }

    /// The same once more.
    fn copy(&mut self, content: Content) -> Content {
        match content {
            Content::KeptSegment { flags, place } => {
                Content::KeptSegment { flags, place: self.segments.copy(place) }
            }
            Content::KeptAck { flags, place } => {
                Content::KeptAck { flags, place: self.acks.copy(place) }
            }
            Content::Message { place } => Content::Message { place: self.messages.copy(place) },
            content => content,
        }
    }

    /// Releases the payload of a packet that has no receiver.
    #[inline(always)]
    pub fn discard(&mut self, packet: Arrived) {
        self.free(packet.content());
    }

    #[inline(always)]
    fn free(&mut self, content: Content) {
        match content {
            Content::KeptSegment { place, .. } => self.segments.free.push(place),
            Content::KeptAck { place, .. } => self.acks.free.push(place),
            Content::Message { place } => drop(self.messages.take(place)),
            _ => {}
        }
    }
}

impl PacketStore for Store {
    fn live_count(&self) -> u64 {
        self.acks.used() + self.segments.used() + self.messages.used()
    }
    #[inline]
    fn has_payload(&self, packet: &Packet) -> bool {
        packet.content().has_payload()
    }
    #[inline]
    fn release(&mut self, packet: Packet, _cause: LossCause) {
        self.free(packet.content());
    }
    fn duplicate(&mut self, packet: &Packet) -> Packet {
        packet.clone().with_key(self.copy(packet.content()).packed().number)
    }
}

/// Data segments here do not acknowledge: acknowledgements of a connection with data in both
/// directions are packets of their own.
impl Headers for Store {
    fn tcp(&self, packet: &Packet) -> Option<TcpHeader> {
        match packet.content() {
            Content::Ack { flags, number } => Some(header(flags, &plain_ack(0, flags, number))),
            Content::KeptAck { flags, place } => {
                Some(header(flags, &self.acks.kept[place as usize]))
            }
            _ => None,
        }
    }
}

/// The header of an acknowledgement.
fn header(flags: Flags, ack: &Ack) -> TcpHeader {
    let flag = |flag, is_set| if is_set { flag } else { 0 };
    // RFC 9768, section 3.2.1: the counter begins at 5.
    let ecn = match flags.has(Flags::ACCURATE) {
        true => TcpHeader::accurate_ecn(5 + ack.ce.packets),
        false => flag(TcpHeader::ECE, ack.ece),
    };
    let mut header = TcpHeader {
        ack: ack.ack as u32,
        flags: TcpHeader::ACK | flag(TcpHeader::SYN, ack.syn) | ecn,
        timestamps: ack.timestamps.map(|times| [times.value, times.echo].map(timestamp)),
        ..TcpHeader::default()
    };
    for (start, end) in ack.sack.as_slice() {
        header.sack.push([*start as u32, *end as u32]);
    }
    header
}

/// The segment that a packet carries in itself.
#[inline(always)]
fn plain_segment(packet: &Packet, header: u32, flags: Flags, seq: u64) -> DataSegment {
    DataSegment {
        seq,
        len: packet.size() - header,
        syn: flags.has(Flags::SYN),
        retransmission: flags.has(Flags::RETRANSMISSION),
        ecn: packet.ecn(),
        cwr: flags.has(Flags::CWR),
        push: flags.has(Flags::PUSH),
        sent_at: Time::ZERO,
        echo: Time::ZERO,
    }
}

/// The acknowledgement that a packet carries in itself, with the usual window.
#[inline(always)]
fn plain_ack(usual: u64, flags: Flags, number: u64) -> Ack {
    Ack {
        ack: number,
        syn: flags.has(Flags::SYN),
        ece: flags.has(Flags::ECE),
        window: usual,
        ..Ack::default()
    }
}
