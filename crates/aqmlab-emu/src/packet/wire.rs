//! Parser for packets from a TUN device: IPv4 or IPv6 with any transport protocol.
//!
//! # Sources
//! RFC 791 (IPv4), RFC 8200 (IPv6 and its extension headers), RFC 9293 (TCP),
//! RFC 768 (UDP), RFC 3168 (the ECN field), RFC 6437 (not used: flow labels).
//!
//! # Differences
//! 1. Only fields that a router verifies are verified. A packet with an invalid TCP header is
//!    carried like any other payload.
//! 2. Fragments, including the first, have no ports, so that all fragments of a packet belong to
//!    one flow. Linux's flow dissector does the same.
//! 3. The flow is that of the outermost header; tunnels are not inspected.

use aqmlab_core::{Ecn, TcpHeader};

aqmlab_aqm::named! {
    /// Reason for rejecting a packet.
    pub enum Unfit {
        /// The packet is shorter than its headers specify.
        Truncated = "unfit_truncated",
        /// The packet is neither IPv4 nor IPv6.
        Version = "unfit_not_ip",
        /// Length fields contradict each other.
        Length = "unfit_bad_length",
        /// Link-local addresses and groups: the packet must stay on its own link.
        LinkLocal = "unfit_link_local",
        /// The kernel's offload header contradicts the packet.
        Offload = "unfit_bad_offload",
        /// The destination is not on this path.
        NoRoute = "unfit_no_route",
    }
}

/// Parsed headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// True if the packet is IPv6.
    pub is_v6: bool,
    /// Packet length from the header, without trailing bytes.
    pub length: u32,
    /// Offset of the transport header.
    pub transport: u16,
    /// Protocol of the transport header.
    pub protocol: u8,
    /// True if the packet is a fragment.
    pub is_fragment: bool,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// DSCP.
    pub dscp: u8,
    /// Hash of the 5-tuple, or of its known fields.
    pub hash: u32,
    /// Hashes of the source and the destination address.
    pub hosts: [u32; 2],
    /// True if the packet is a TCP segment that is a pure ACK.
    pub is_pure_ack: bool,
}

impl Headers {
    /// Returns the TCP header of a packet with these headers; `None` behind IPv6 extension headers,
    /// as in Linux's `cake_get_tcphdr`.
    pub fn tcp(&self, packet: &[u8]) -> Option<TcpHeader> {
        let is_behind = self.is_v6 && self.transport != 40;
        let is_tcp = self.protocol == TCP && !self.is_fragment && !is_behind;
        is_tcp.then(|| tcp_header(&packet[usize::from(self.transport)..]))?
    }
}

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of ICMPv6.
pub const ICMP_V6: u8 = 58;
/// Protocols whose header begins with source and destination port: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
/// Limit of the number of extension headers.
const MOST_EXTENSIONS: usize = 16;

/// Parses the headers of a packet.
///
/// # Errors
/// Returns the reason if the packet is to be rejected.
pub fn parse(packet: &[u8]) -> Result<Headers, Unfit> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => parse_v4(packet),
        Some(6) => parse_v6(packet),
        Some(_) => Err(Unfit::Version),
        None => Err(Unfit::Truncated),
    }
}

fn parse_v4(packet: &[u8]) -> Result<Headers, Unfit> {
    if packet.len() < 20 {
        return Err(Unfit::Truncated);
    }
    let header = usize::from(packet[0] & 15) * 4;
    let length = usize::from(be16(packet, 2));
    if header < 20 || length < header {
        return Err(Unfit::Length);
    }
    if length > packet.len() {
        return Err(Unfit::Truncated);
    }
    if packet[16..19] == [224, 0, 0] {
        return Err(Unfit::LinkLocal);
    }
    let packet = &packet[..length];
    let (source, destination) = (be32(packet, 12), be32(packet, 16));
    let mut headers = Headers {
        is_v6: false,
        length: length as u32,
        transport: header as u16,
        protocol: packet[9],
        is_fragment: be16(packet, 6) & 0x3FFF != 0,
        ecn: Ecn::from_bits(packet[1]),
        dscp: packet[1] >> 2,
        hash: 0,
        hosts: [source, destination].map(|address| mix(u64::from(address)) as u32),
        is_pure_ack: false,
    };
    finish(&mut headers, packet, (u64::from(source) << 32) | u64::from(destination));
    Ok(headers)
}

fn parse_v6(packet: &[u8]) -> Result<Headers, Unfit> {
    if packet.len() < 40 {
        return Err(Unfit::Truncated);
    }
    let length = 40 + usize::from(be16(packet, 4));
    if length > packet.len() {
        return Err(Unfit::Truncated);
    }
    let is_local = |address: &[u8]| address[0] == 0xFE && address[1] & 0xC0 == 0x80;
    let is_local_group = packet[24] == 0xFF && packet[25] & 0x0F <= 2;
    if is_local(&packet[8..]) || is_local(&packet[24..]) || is_local_group {
        return Err(Unfit::LinkLocal);
    }
    let packet = &packet[..length];
    let address = |at: usize| mix(be64(packet, at)) ^ be64(packet, at + 8);
    let (source, destination) = (mix(address(8)), mix(address(24)));
    let (protocol, transport, is_fragment) = skip_extensions(packet);
    let mut headers = Headers {
        is_v6: true,
        length: length as u32,
        transport: transport as u16,
        protocol,
        is_fragment,
        ecn: Ecn::from_bits(packet[1] >> 4),
        dscp: (packet[0] & 15) << 2 | packet[1] >> 6,
        hash: 0,
        hosts: [source as u32, destination as u32],
        is_pure_ack: false,
    };
    finish(&mut headers, packet, mix(source) ^ destination);
    Ok(headers)
}

/// Returns the transport protocol, the offset of its header, and whether the packet has a fragment
/// header. An incomplete extension header is returned as the protocol.
fn skip_extensions(packet: &[u8]) -> (u8, usize, bool) {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    const DESTINATION: u8 = 60;
    let (mut next, mut at, mut is_fragment) = (packet[6], 40, false);
    for _ in 0..MOST_EXTENSIONS {
        let Some(head) = packet.get(at..at + 2) else { break };
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION => 8 + usize::from(head[1]) * 8,
            AUTHENTICATION => 8 + usize::from(head[1]) * 4,
            FRAGMENT => 8,
            _ => break,
        };
        if at + length > packet.len() {
            break;
        }
        is_fragment |= next == FRAGMENT;
        next = head[0];
        at += length;
    }
    (next, at.min(packet.len()), is_fragment)
}

/// Completes the fields that depend on the transport header.
fn finish(headers: &mut Headers, packet: &[u8], addresses: u64) {
    let transport = &packet[usize::from(headers.transport)..];
    let has_ports = !headers.is_fragment && WITH_PORTS.contains(&headers.protocol);
    let ports = match transport.get(..4) {
        Some(_) if has_ports => be32(transport, 0),
        _ => 0,
    };
    let rest = u64::from(ports) << 8 | u64::from(headers.protocol);
    headers.hash = (mix(mix(addresses) ^ rest) >> 32) as u32;
    if headers.protocol == TCP && !headers.is_fragment {
        headers.is_pure_ack = is_pure_ack(transport);
    }
}

/// Returns whether a segment has no payload, and no flags other than ACK and ECN.
fn is_pure_ack(segment: &[u8]) -> bool {
    let plain = || Some(TcpHeader { payload: payload(segment)?, ..of_flags(segment) });
    plain().is_some_and(|header| header.is_pure_ack())
}

/// Returns the bytes of payload of a segment; `None` if its header is invalid.
fn payload(segment: &[u8]) -> Option<u32> {
    let length = usize::from(segment.get(12)? >> 4) * 4;
    if length < 20 { None } else { segment.len().checked_sub(length).map(|bytes| bytes as u32) }
}

/// Returns the fields of a TCP header before the options.
fn of_flags(segment: &[u8]) -> TcpHeader {
    let (ack, flags) = (be32(segment, 8), be16(segment, 12) & 0xFFF);
    TcpHeader { ack, flags, ..TcpHeader::default() }
}

/// Parses a TCP header and its options, as `cake_tcph_may_drop` does.
fn tcp_header(segment: &[u8]) -> Option<TcpHeader> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const SACK: u8 = 5;
    const TIMESTAMPS: u8 = 8;
    const SIGNATURE: u8 = 19;
    let payload = payload(segment)?;
    let mut header = TcpHeader { payload, ..of_flags(segment) };
    let mut options = &segment[20..segment.len() - payload as usize];
    while let [kind, rest @ ..] = options {
        if *kind == NOTHING {
            options = rest;
            continue;
        }
        // An option with an invalid length ends the list.
        let Some(size) = rest.first().map(|size| usize::from(*size)) else { break };
        let Some(option) = options.get(2..size).filter(|_| *kind != END) else { break };
        match *kind {
            SIGNATURE => (),
            SACK if size % 8 == 2 => {
                let blocks = option.chunks_exact(8);
                blocks.for_each(|block| header.sack.push([be32(block, 0), be32(block, 4)]));
            }
            TIMESTAMPS if size == 10 => {
                header.timestamps = Some([be32(option, 0), be32(option, 4)]);
            }
            _ => header.has_other_options = true,
        }
        options = &options[size..];
    }
    Some(header)
}

/// Reads a big-endian 16-bit number.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
/// Reads a big-endian 32-bit number.
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Mixes 64 bits so that each input bit affects all output bits (the finaliser of SplitMix64, as in
/// `aqmlab_core::random`).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
pub(crate) mod tests;
