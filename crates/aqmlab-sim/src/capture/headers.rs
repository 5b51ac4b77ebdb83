//! Packet headers as bytes.
//!
//! # Sources
//! RFC 791 (IPv4), RFC 6864 (identification 0: packets are not fragmented), RFC 9293 (TCP), RFC
//! 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 768 (UDP), RFC 3692 (protocol 253, for
//! endpoints of other crates), RFC 1071 (checksums). Options are ordered as in Linux.
//!
//! Payload is zeros; lengths and checksums include it, but it is not written.

use aqmlab_core::TcpHeader;

/// Flags of a TCP header, from the byte of the data offset.
pub(super) const ECE: u16 = TcpHeader::ECE;
pub(super) const CWR: u16 = TcpHeader::CWR;
pub(super) const AE: u16 = TcpHeader::AE;
pub(super) const SYN: u16 = TcpHeader::SYN;
pub(super) const PSH: u16 = TcpHeader::PSH;
pub(super) const ACK: u16 = TcpHeader::ACK;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Protocol number for experimentation and testing.
const EXPERIMENT: u8 = 253;
const IPV4: usize = 20;
/// Maximum size of TCP options.
const MOST_OPTIONS: usize = 40;

/// Endpoint of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub host: [u8; 4],
    pub port: u16,
}

/// Fields of the IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    pub from: Address,
    pub to: Address,
    /// DSCP and ECN codepoint.
    pub class: u8,
}

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentFields<'a> {
    pub seq: u32,
    pub ack: u32,
    pub flags: u16,
    pub window: u16,
    /// TSval and TSecr.
    pub times: Option<[u32; 2]>,
    pub sack: &'a [[u32; 2]],
    /// Options of a SYN.
    pub syn: Option<Syn>,
    /// Bytes of payload.
    pub payload: u32,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    pub mss: u16,
    /// True if SACK is permitted.
    pub sack: bool,
    pub scale: u8,
}

/// Appends the headers of a segment. Returns its length with payload.
pub(super) fn tcp(bytes: &mut Vec<u8>, ip: &Ip, tcp: &SegmentFields) -> u32 {
    let start = ipv4(bytes, ip, TCP);
    bytes.extend_from_slice(&ip.from.port.to_be_bytes());
    bytes.extend_from_slice(&ip.to.port.to_be_bytes());
    bytes.extend_from_slice(&tcp.seq.to_be_bytes());
    bytes.extend_from_slice(&tcp.ack.to_be_bytes());
    let after = bytes.len();
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(&tcp.window.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    options(bytes, tcp);
    let words = (bytes.len() - start - IPV4) as u16 / 4;
    bytes[after..after + 2].copy_from_slice(&(words << 12 | tcp.flags).to_be_bytes());
    finish(bytes, start, ip, TCP, tcp.payload, Some(IPV4 + 16))
}

/// Appends the options of a segment, each aligned to four bytes.
fn options(bytes: &mut Vec<u8>, tcp: &SegmentFields) {
    let start = bytes.len();
    let times = tcp.times.map(|[value, echo]| {
        let (value, echo) = (value.to_be_bytes(), echo.to_be_bytes());
        [8, 10, value[0], value[1], value[2], value[3], echo[0], echo[1], echo[2], echo[3]]
    });
    if let Some(syn) = tcp.syn {
        bytes.extend_from_slice(&[2, 4]);
        bytes.extend_from_slice(&syn.mss.to_be_bytes());
        // SACK permitted, or padding.
        match (syn.sack, &times) {
            (true, _) => bytes.extend_from_slice(&[4, 2]),
            (false, Some(_)) => bytes.extend_from_slice(&[1, 1]),
            (false, None) => {}
        }
        match (syn.sack, &times) {
            (_, Some(times)) => bytes.extend_from_slice(times),
            (true, None) => bytes.extend_from_slice(&[1, 1]),
            (false, None) => {}
        }
        bytes.extend_from_slice(&[1, 3, 3, syn.scale]);
    } else if let Some(times) = &times {
        bytes.extend_from_slice(&[1, 1]);
        bytes.extend_from_slice(times);
    }
    let room = (MOST_OPTIONS - (bytes.len() - start)).saturating_sub(4) / 8;
    let blocks = &tcp.sack[..tcp.sack.len().min(room)];
    if !blocks.is_empty() {
        bytes.extend_from_slice(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for edge in blocks.iter().flatten() {
            bytes.extend_from_slice(&edge.to_be_bytes());
        }
    }
}

/// Appends a UDP datagram with the known part of its payload, and `rest` bytes after it. Returns its
/// length.
pub(super) fn udp(bytes: &mut Vec<u8>, ip: &Ip, payload: &[u8], rest: u32) -> u32 {
    let start = ipv4(bytes, ip, UDP);
    let length = u16::try_from(payload.len() as u32 + rest + 8).unwrap_or(0);
    for word in [ip.from.port, ip.to.port, length, 0] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    bytes.extend_from_slice(payload);
    finish(bytes, start, ip, UDP, rest, Some(IPV4 + 6))
}

/// Appends the header of a packet of another transport. Returns its length with payload.
pub(super) fn other(bytes: &mut Vec<u8>, ip: &Ip, payload: u32) -> u32 {
    let start = ipv4(bytes, ip, EXPERIMENT);
    finish(bytes, start, ip, EXPERIMENT, payload, None)
}

/// Appends an IPv4 header without length and checksum. Returns its offset.
fn ipv4(bytes: &mut Vec<u8>, ip: &Ip, protocol: u8) -> usize {
    let start = bytes.len();
    // Version and length, class, length; identification, "don't fragment"; time to live.
    bytes.extend_from_slice(&[0x45, ip.class, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend_from_slice(&ip.from.host);
    bytes.extend_from_slice(&ip.to.host);
    start
}

/// Fills in lengths and checksums; the transport checksum is at offset `checksum`.
fn finish(
    bytes: &mut [u8],
    start: usize,
    ip: &Ip,
    protocol: u8,
    payload: u32,
    checksum: Option<usize>,
) -> u32 {
    let packet = &mut bytes[start..];
    let length = packet.len() as u32 + payload;
    // Packets longer than IPv4 allows have no length, as in captures of segments left to the
    // device.
    let stated = u16::try_from(length).unwrap_or(0);
    packet[2..4].copy_from_slice(&stated.to_be_bytes());
    let sum = fold(sum(&packet[..IPV4]));
    packet[10..12].copy_from_slice(&(!sum).to_be_bytes());
    if let Some(at) = checksum {
        let above = length - IPV4 as u32;
        let pseudo = sum_of_addresses(ip) + u64::from(protocol) + u64::from(above);
        let sum = !fold(pseudo + self::sum(&packet[IPV4..]));
        // RFC 768: a sum of 0 would mean no checksum.
        let sum = if protocol == UDP && sum == 0 { 0xffff } else { sum };
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    length
}

fn sum_of_addresses(ip: &Ip) -> u64 {
    sum(&ip.from.host) + sum(&ip.to.host)
}

/// Returns the sum of the 16-bit words of an even number of bytes.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(class: u8) -> Ip {
        let from = Address { host: [10, 0, 0, 1], port: 49152 };
        Ip { from, to: Address { host: [10, 0, 0, 2], port: 49153 }, class }
    }

    /// Checks that the checksum of the covered bytes is correct (RFC 1071, section 1).
    fn check(packet: &[u8], length: u32) {
        assert_eq!(fold(sum(&packet[..20])), 0xffff, "IPv4");
        let above = u64::from(length) - 20;
        let pseudo = sum(&packet[12..20]) + u64::from(packet[9]) + above;
        assert_eq!(fold(pseudo + sum(&packet[20..])), 0xffff, "transport");
    }

    #[test]
    fn a_syn_has_the_options_of_linux() {
        let mut bytes = Vec::new();
        let syn = Some(Syn { mss: 1460, sack: true, scale: 7 });
        let segment =
            SegmentFields { seq: 9, flags: SYN, window: 64240, syn, ..SegmentFields::default() };
        let times = Some([1, 0]);
        assert_eq!(tcp(&mut bytes, &ip(0), &SegmentFields { times, ..segment }), 60);
        check(&bytes, 60);
        assert_eq!(bytes[32..34], [0xa0, 0x02], "ten words, SYN");
        assert_eq!(bytes[40..46], [2, 4, 0x05, 0xb4, 4, 2]);
        assert_eq!(bytes[46..60], [8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
        for (sack, times, length) in [(true, None, 52), (false, None, 48), (false, times, 60)] {
            bytes.clear();
            let syn = Some(Syn { mss: 1460, sack, scale: 7 });
            assert_eq!(tcp(&mut bytes, &ip(0), &SegmentFields { times, syn, ..segment }), length);
            assert_eq!(bytes.len(), length as usize);
            check(&bytes, length);
        }
    }

    #[test]
    fn data_count_their_payload_and_keep_the_ecn_codepoint() {
        let mut bytes = vec![1, 2, 3]; // earlier bytes are unchanged
        let segment = SegmentFields {
            seq: 1,
            ack: 2,
            flags: ACK | CWR,
            payload: 1460,
            ..SegmentFields::default()
        };
        assert_eq!(tcp(&mut bytes, &ip(46 << 2 | 2), &segment), 1500);
        let packet = &bytes[3..];
        assert_eq!((packet.len(), packet[1]), (40, 0xba));
        assert_eq!(packet[2..4], 1500u16.to_be_bytes());
        assert_eq!(packet[32..34], [0x50, 0x90]);
        check(packet, 1500);
    }

    /// RFC 2018, section 3: forty bytes hold four blocks, or three with timestamps.
    #[test]
    fn blocks_beyond_the_room_are_left_out() {
        let sack = [[1, 2], [3, 4], [5, 6], [7, 8]];
        let mut bytes = Vec::new();
        let ack = SegmentFields { flags: ACK, sack: &sack, ..SegmentFields::default() };
        assert_eq!(tcp(&mut bytes, &ip(0), &ack), 40 + 36);
        assert_eq!(bytes[40..48], [1, 1, 5, 34, 0, 0, 0, 1]);
        check(&bytes, 76);
        bytes.clear();
        assert_eq!(
            tcp(&mut bytes, &ip(0), &SegmentFields { times: Some([5, 6]), ..ack }),
            40 + 12 + 28
        );
        assert_eq!(bytes[40..44], [1, 1, 8, 10]);
        assert_eq!(bytes[52..56], [1, 1, 5, 26]);
        check(&bytes, 80);
    }

    #[test]
    fn accurate_ecn_has_the_bit_beside_the_offset() {
        let mut bytes = Vec::new();
        tcp(
            &mut bytes,
            &ip(1),
            &SegmentFields { flags: ACK | AE | ECE, ..SegmentFields::default() },
        );
        assert_eq!(bytes[32..34], [0x51, 0x50]);
    }

    #[test]
    fn datagrams_have_a_checksum_that_is_never_none() {
        let mut bytes = Vec::new();
        assert_eq!(udp(&mut bytes, &ip(0), &[], 172), 200);
        assert_eq!(bytes[24..26], 180u16.to_be_bytes());
        check(&bytes, 200);
        // The payload is chosen for a sum of 0.
        let rest = fold(sum(&bytes[12..24]) + 17);
        let payload = (0..60_000)
            .find(|payload: &u32| fold(u64::from(rest) + 2 * u64::from(payload + 8)) == 0xffff);
        bytes.clear();
        let length = udp(&mut bytes, &ip(0), &[], payload.unwrap());
        assert_eq!(bytes[26..28], [0xff, 0xff]);
        check(&bytes, length);
        bytes.clear();
        assert_eq!(udp(&mut bytes, &ip(0), &[7, 8, 9], 0), 31);
        check(&bytes, 31);
        assert_eq!((bytes[24..26].as_ref(), &bytes[28..]), (&[0, 11][..], &[7, 8, 9][..]));
    }

    #[test]
    fn other_transports_have_a_header_of_ip_alone() {
        let mut bytes = Vec::new();
        assert_eq!(other(&mut bytes, &ip(0), 80_000), 80_020);
        assert_eq!((bytes.len(), bytes[9]), (20, 253));
        assert_eq!(bytes[2..4], [0, 0], "longer than IPv4 allows");
        assert_eq!(fold(sum(&bytes)), 0xffff);
    }
}
