//! Connections of captured packets, and the header fields that depend on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aqmlab_core::{Auto, Packet, TcpHeader, Time};
use aqmlab_tcp::params::EcnMode;
use aqmlab_tcp::{Ack, DataSegment, TcpParams};

use super::headers::{self, ACK, AE, Address, CWR, ECE, Ip, PSH, SYN, SegmentFields, Syn};
use crate::endpoints::End;
use crate::endpoints::flow::{Ends, Flow};
use crate::endpoints::packet::{Content, Places, SimPacket, Store, timestamp};
use crate::scenario::FlowGroup;

/// Ports of groups of flows; Wireshark assigns no protocol to them.
const GROUPS: std::ops::Range<u32> = 50_000..54_000;
/// Ports of the sides that open connections; likewise.
const OPENERS: std::ops::Range<u32> = 60_002..65_536;
/// The largest window scale (RFC 7323, section 2.3).
const MOST_SCALE: u8 = 14;

/// Flow that packets may belong to.
#[derive(Clone, Copy)]
struct Known {
    /// Hashes of its packets, by direction.
    hashes: [u32; 2],
    /// Index of the connection.
    connection: u32,
    /// Side that sends the data.
    from: usize,
}

/// Connection, or flow of datagrams. The first side opens it.
struct CapturedConnection {
    sides: [CapturedSide; 2],
    protocol: Protocol,
    /// ECN feedback that the SYN-ACK agreed on.
    ecn: EcnMode,
    /// Number of flow slots that refer to it.
    users: u32,
    scale: u8,
}

/// Protocol of the packets of a group of flows.
#[derive(Clone)]
struct Protocol {
    transport: Arc<TcpParams>,
    /// True if messages are the payload of UDP datagrams.
    is_udp: bool,
}

/// One side of a connection.
#[derive(Clone, Copy, Default)]
struct CapturedSide {
    address: Address,
    /// Initial sequence number.
    initial: u32,
    /// Bytes of data sent.
    sent: u64,
    /// Last acknowledgement of the other side's data.
    said: Ack,
    /// Time of the SYN.
    opened: Time,
}

/// All connections of captured packets.
#[derive(Default)]
pub(super) struct Connections {
    /// By group of flows.
    protocols: Vec<Protocol>,
    /// By slot: the current flow and the one before, whose packets may be in flight.
    places: Vec<[Option<Known>; 2]>,
    all: Places<CapturedConnection>,
    /// By host number: index in order of appearance, and number of used ports.
    hosts: BTreeMap<u32, (u32, u32)>,
}

impl Connections {
    pub fn new(groups: &[FlowGroup]) -> Self {
        let protocol = |group: &FlowGroup| Protocol {
            transport: Arc::new(group.transport.clone()),
            is_udp: group.endpoint.is_udp(),
        };
        let protocols = groups.iter().map(protocol).collect();
        Connections { protocols, ..Connections::default() }
    }

    /// Returns the port of a group of flows.
    pub fn port(group: u32) -> u16 {
        (GROUPS.start + group % GROUPS.len() as u32) as u16
    }

    /// Joins two flows as the directions of one connection, opened by the first.
    pub fn pair(&mut self, first: (u32, &Flow), second: (u32, &Flow)) {
        let connection = self.connect(first.1);
        self.place(first, connection, 0);
        self.place(second, connection, 1);
    }

    /// Records that a flow sends a packet.
    pub fn sent(&mut self, now: Time, flow: &Flow, packet: &Packet, store: &Store) {
        if self.find(packet).is_none() {
            let connection = self.connect(flow);
            self.place((packet.flow, flow), connection, 0);
        }
        let Some(known) = self.find(packet) else { return };
        let connection = &mut self.all.kept[known.connection as usize];
        let header = connection.protocol.transport.header.get() as u32;
        match packet.to() {
            End::Sink => {
                let side = &mut connection.sides[known.from];
                if let Some(segment) = store.segment_of(packet, header) {
                    side.sent = side.sent.max(segment.end());
                    side.opened = if segment.syn { now } else { side.opened };
                }
            }
            End::Source => {
                let side = &mut connection.sides[1 - known.from];
                if let Some(ack) = store.ack_of(packet, side.said.window) {
                    if ack.syn && !ack.ece {
                        connection.ecn = EcnMode::Off;
                    }
                    side.said = ack;
                    side.opened = if ack.syn { now } else { side.opened };
                }
            }
        }
    }

    fn find(&self, packet: &Packet) -> Option<Known> {
        let owns = |known: &&Known| {
            known.hashes[usize::from(packet.to() == End::Source)] == packet.flow_hash()
        };
        self.places.get(packet.flow as usize)?.iter().flatten().find(owns).copied()
    }

    /// Assigns a slot to a flow.
    fn place(&mut self, (place, flow): (u32, &Flow), connection: u32, from: usize) {
        let place = place as usize;
        if self.places.len() <= place {
            self.places.resize(place + 1, [None; 2]);
        }
        let known = Known { hashes: flow.hashes, connection, from };
        let [last, gone] = self.places[place];
        self.places[place] = [Some(known), last];
        self.all.kept[connection as usize].users += 1;
        if let Some(gone) = gone {
            let connection = &mut self.all.kept[gone.connection as usize];
            connection.users -= 1;
            if connection.users == 0 {
                self.all.free.push(gone.connection);
            }
        }
    }

    /// Creates a connection opened by a flow's source.
    fn connect(&mut self, flow: &Flow) -> u32 {
        let protocol = self.protocols[flow.group as usize].clone();
        let (window, scale) = match &flow.ends {
            Ends::Tcp(tcp) => (tcp.usual, scale(&protocol.transport, tcp.usual)),
            _ => (0, 0),
        };
        let [opener, answerer] = flow.hosts;
        let (host, used) = self.host(opener);
        let port = (OPENERS.start + used % OPENERS.len() as u32) as u16;
        let opener = Address { host, port };
        let answerer = Address { host: self.host(answerer).0, port: Self::port(flow.group) };
        let side = |address, initial| {
            let said = Ack { window, ..Ack::default() };
            CapturedSide { address, initial, said, ..CapturedSide::default() }
        };
        let [first, second] = flow.hashes;
        let sides = [side(opener, first), side(answerer, second)];
        let ecn = protocol.transport.ecn;
        self.all.put(CapturedConnection { sides, protocol, ecn, users: 0, scale })
    }

    /// Returns the address of a host, and the number of ports it has used before.
    fn host(&mut self, number: u32) -> ([u8; 4], u32) {
        let next = self.hosts.len() as u32 + 1;
        let (place, ports) = self.hosts.entry(number).or_insert((next, 0));
        let [_, a, b, c] = place.to_be_bytes();
        *ports += 1;
        ([10, a, b, c], *ports - 1)
    }

    /// Appends the headers of a packet. Returns its length.
    pub fn write(&self, packet: &Packet, store: &Store, bytes: &mut Vec<u8>) -> u32 {
        let Some(known) = self.find(packet) else { return packet.size() };
        let connection = &self.all.kept[known.connection as usize];
        let Protocol { transport, is_udp } = &connection.protocol;
        let header = transport.header.get() as u32;
        let sender = if packet.to() == End::Sink { known.from } else { 1 - known.from };
        let [from, to] = [sender, 1 - sender].map(|side| connection.sides[side].address);
        let ip = Ip { from, to, class: packet.class() << 2 | packet.ecn() as u8 };
        let length = match packet.content() {
            Content::Segment { .. } | Content::KeptSegment { .. } => {
                let segment = store.segment_of(packet, header);
                connection.segment(bytes, &ip, sender, &segment.unwrap_or_default())
            }
            Content::Ack { .. } | Content::KeptAck { .. } => {
                let usual = connection.sides[sender].said.window;
                let ack = store.ack_of(packet, usual).unwrap_or_default();
                connection.ack(bytes, &ip, sender, &ack)
            }
            Content::Datagram { .. } => {
                headers::udp(bytes, &ip, &[], packet.size().saturating_sub(28))
            }
            Content::Message { .. } if *is_udp => {
                headers::udp(bytes, &ip, store.message_of(packet).unwrap_or_default(), 0)
            }
            Content::Message { .. } => headers::other(bytes, &ip, packet.size().saturating_sub(20)),
        };
        length.max(packet.size())
    }
}

/// Returns the window scale at which the largest window fits into 16 bits.
fn scale(transport: &TcpParams, usual: u64) -> u8 {
    let largest = match transport.receive_window {
        Auto::Auto => transport.receive_buffer_max.get(),
        Auto::Set(_) => usual,
    };
    (0..MOST_SCALE).find(|scale| largest >> scale <= 0xffff).unwrap_or(MOST_SCALE)
}

impl CapturedConnection {
    /// Appends a data segment or a SYN.
    fn segment(&self, bytes: &mut Vec<u8>, ip: &Ip, sender: usize, segment: &DataSegment) -> u32 {
        let transport = &*self.protocol.transport;
        let [side, other] = [sender, 1 - sender].map(|side| &self.sides[side]);
        // The SYN of the second direction is the SYN-ACK of the first.
        let is_answer = sender == 1;
        let times = [timestamp(segment.sent_at), self.echo(segment.echo, other)];
        let asked = if segment.cwr { self.ecn } else { EcnMode::Off };
        let flags = match (segment.syn, is_answer) {
            (true, false) => SYN | opening_flags(asked, false),
            (true, true) => SYN | ACK | opening_flags(asked, true),
            // RFC 9768, section 3.2.2.1: the first one reports the ECN field of the SYN-ACK.
            (false, false) if segment.seq == 0 && !segment.retransmission => {
                ACK | self.echo_flags(side, true)
            }
            (false, _) => ACK | self.echo_flags(side, false),
        };
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        let flags = flags | flag(CWR, segment.cwr) | flag(PSH, segment.push);
        let number = side.initial.wrapping_add(u32::from(!segment.syn));
        let is_first = segment.syn && !is_answer;
        headers::tcp(
            bytes,
            ip,
            &SegmentFields {
                seq: number.wrapping_add(segment.seq as u32),
                ack: if is_first { 0 } else { other.number(side.said.ack) },
                flags,
                window: self.window(side.said.window, segment.syn),
                times: transport.timestamps.then_some(if is_first { [times[0], 0] } else { times }),
                sack: &[],
                syn: segment.syn.then(|| self.syn()),
                payload: segment.len,
            },
        )
    }

    /// Appends an acknowledgement.
    fn ack(&self, bytes: &mut Vec<u8>, ip: &Ip, sender: usize, ack: &Ack) -> u32 {
        let [side, other] = [sender, 1 - sender].map(|side| &self.sides[side]);
        // The acknowledgement of the second direction's SYN ends the handshake of the first.
        let is_syn = ack.syn && sender == 1;
        let said = CapturedSide { said: *ack, ..*side };
        let flags = match is_syn {
            true => SYN | opening_flags(self.ecn, true),
            false => self.echo_flags(&said, ack.syn),
        };
        let mut sack = [[0; 2]; aqmlab_tcp::SackBlocks::MAX];
        let blocks = ack.sack.as_slice();
        for (written, (start, end)) in sack.iter_mut().zip(blocks) {
            *written = [other.number(*start), other.number(*end)];
        }
        let times = ack.timestamps.map(|times| {
            let echo = if ack.syn { Time::ZERO } else { times.echo };
            [timestamp(times.value), self.echo(echo, other)]
        });
        headers::tcp(
            bytes,
            ip,
            &SegmentFields {
                seq: if is_syn { side.initial } else { side.number(side.sent) },
                ack: other.number(ack.ack),
                flags: flags | ACK,
                window: self.window(ack.window, is_syn),
                times,
                sack: &sack[..blocks.len()],
                syn: is_syn.then(|| self.syn()),
                payload: 0,
            },
        )
    }

    /// Returns TSecr: the latest timestamp, or else that of the other side's SYN.
    fn echo(&self, time: Time, other: &CapturedSide) -> u32 {
        timestamp(if time == Time::ZERO { other.opened } else { time })
    }

    /// Returns the options of a SYN. Its MSS excludes options (RFC 6691, section 2).
    fn syn(&self) -> Syn {
        let transport = &*self.protocol.transport;
        let options = if transport.timestamps { 12 } else { 0 };
        let mss = u16::try_from(transport.mss.get() + options).unwrap_or(u16::MAX);
        Syn { mss, sack: transport.sends_sack(), scale: self.scale }
    }

    fn window(&self, window: u64, is_syn: bool) -> u16 {
        let scale = if is_syn { 0 } else { self.scale };
        u16::try_from(window >> scale).unwrap_or(u16::MAX)
    }

    /// Returns the congestion feedback flags of a side's segments.
    fn echo_flags(&self, side: &CapturedSide, is_third: bool) -> u16 {
        match self.ecn {
            EcnMode::Off => 0,
            EcnMode::Classic | EcnMode::Dctcp if side.said.ece => ECE,
            EcnMode::Classic | EcnMode::Dctcp => 0,
            // RFC 9768, section 3.2.2.1: the SYN-ACK was not ECN-capable.
            EcnMode::Accurate if is_third => CWR,
            // Section 3.2.1: the counter starts at 5; section 3.2.2: its lower three bits are sent.
            EcnMode::Accurate => TcpHeader::accurate_ecn(5 + side.said.ce.packets),
        }
    }
}

impl CapturedSide {
    /// Returns the sequence number of a data byte.
    fn number(&self, byte: u64) -> u32 {
        self.initial.wrapping_add(1).wrapping_add(byte as u32)
    }
}

/// Returns the ECN flags of a SYN or SYN-ACK (RFC 3168, section 6.1.1; RFC 9768, section 3.1.1). With
/// accurate ECN, a SYN-ACK reports a SYN that was not ECN-capable.
fn opening_flags(ecn: EcnMode, is_answer: bool) -> u16 {
    match (ecn, is_answer) {
        (EcnMode::Off, _) => 0,
        (EcnMode::Classic | EcnMode::Dctcp, false) => ECE | CWR,
        (EcnMode::Classic | EcnMode::Dctcp, true) => ECE,
        (EcnMode::Accurate, false) => AE | CWR | ECE,
        (EcnMode::Accurate, true) => CWR,
    }
}
