//! Constructed packets, and invalid packets.

use super::*;

/// Builds an IPv4 packet with this protocol and payload.
pub(crate) fn v4(protocol: u8, load: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0x02, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(load);
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let checksum = !crate::packet::checksum::fold(crate::packet::checksum::sum(&packet[..20]));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// Builds an IPv6 packet with this next header and payload.
pub(crate) fn v6(next: u8, load: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0x20, 0, 0, 0, 0, next, 64];
    packet[4..6].copy_from_slice(&(load.len() as u16).to_be_bytes());
    packet.extend([0xFD; 16]);
    packet.extend([0xFC; 16]);
    packet.extend(load);
    packet
}

/// Builds a TCP header with these flags and options, and a payload.
pub(crate) fn tcp(ports: [u16; 2], flags: u8, options: &[u8], load: &[u8]) -> Vec<u8> {
    let mut segment = [ports[0].to_be_bytes(), ports[1].to_be_bytes()].concat();
    segment.extend([0, 0, 0, 100, 0, 0, 0, 200]);
    segment.extend([((20 + options.len()) / 4) as u8 * 16, flags, 1, 0, 0, 0, 0, 0]);
    segment.extend(options);
    segment.extend(load);
    segment
}

#[test]
fn addresses_ports_and_protocol_make_a_flow() {
    let hash = |packet: Vec<u8>| parse(&packet).unwrap().hash;
    let one = v4(TCP, &tcp([1000, 80], 0x18, &[], b"x"));
    let same = v4(TCP, &tcp([1000, 80], 0x10, &[], b"other"));
    assert_eq!(hash(one.clone()), hash(same));
    assert_ne!(hash(one.clone()), hash(v4(TCP, &tcp([1001, 80], 0x18, &[], b"x"))));
    assert_ne!(hash(one.clone()), hash(v4(UDP, &tcp([1000, 80], 0x18, &[], b"x"))));
    let mut other_host = one.clone();
    other_host[19] = 3;
    assert_ne!(hash(one.clone()), hash(other_host.clone()));
    let hosts = |packet: &[u8]| parse(packet).unwrap().hosts;
    assert_eq!(hosts(&one)[0], hosts(&other_host)[0]);
    assert_ne!(hosts(&one)[1], hosts(&other_host)[1]);
    let six = |ports| hash(v6(TCP, &tcp(ports, 0x18, &[], b"x")));
    assert_eq!(six([1, 2]), six([1, 2]));
    assert_ne!(six([1, 2]), six([2, 1]));
}

#[test]
fn fragments_of_a_packet_are_of_one_flow() {
    let mut first = v4(UDP, &[1, 2, 3, 4, 0, 8, 0, 0]);
    let mut second = v4(UDP, &[9, 9, 9, 9, 9, 9, 9, 9]);
    first[6] = 0x20;
    second[7] = 1;
    let (first, second) = (parse(&first).unwrap(), parse(&second).unwrap());
    assert!(first.is_fragment && second.is_fragment);
    assert_eq!(first.hash, second.hash);
    let fragment = [UDP, 0, 0, 1, 0, 0, 0, 7, 1, 2, 3, 4];
    assert!(parse(&v6(44, &fragment)).unwrap().is_fragment);
}

#[test]
fn extension_headers_are_passed_over() {
    let segment = tcp([5, 6], 0x10, &[], b"");
    let plain = parse(&v6(TCP, &segment)).unwrap();
    let mut load = vec![60, 0, 0, 0, 0, 0, 0, 0];
    load.extend([TCP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    load.extend(&segment);
    let behind = parse(&v6(0, &load)).unwrap();
    assert_eq!((behind.protocol, behind.transport), (TCP, 64));
    assert_eq!(behind.hash, plain.hash);
    assert!(behind.is_pure_ack && behind.tcp(&v6(0, &load)).is_none());
    let cut = parse(&v6(0, &load[..12])).unwrap();
    assert_eq!((cut.protocol, cut.transport), (60, 48), "its length is 16");
}

#[test]
fn only_what_says_nothing_else_is_a_pure_acknowledgement() {
    let is_pure = |flags, options: &[u8], load: &[u8]| {
        parse(&v4(TCP, &tcp([1, 2], flags, options, load))).unwrap().is_pure_ack
    };
    assert!(is_pure(0x10, &[], b""));
    assert!(is_pure(0x10, &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], b""));
    assert!(is_pure(0x50, &[], b"") && is_pure(0x90, &[], b""), "ECE, CWR");
    assert!(!is_pure(0x10, &[], b"data"));
    for flags in [0x00, 0x11, 0x12, 0x14, 0x18, 0x30] {
        assert!(!is_pure(flags, &[], b""), "flags {flags:#x}");
    }
}

#[test]
fn queues_can_read_tcp_headers() {
    let read = |packet: Vec<u8>| parse(&packet).unwrap().tcp(&packet);
    let header = |flags, options: &[u8], load: &[u8]| {
        let segment = tcp([1, 2], flags, options, load);
        let four = read(v4(TCP, &segment));
        assert_eq!(four, read(v6(TCP, &segment)));
        four.unwrap()
    };
    let plain = TcpHeader { ack: 200, flags: TcpHeader::ACK, ..TcpHeader::default() };
    assert_eq!(header(0x10, &[], b""), plain);
    let data = TcpHeader { flags: 0x0D8, payload: 4, ..plain };
    assert_eq!(header(0xD8, &[], b"data"), data);
    // Timestamps and two blocks, in Linux's format.
    let options = [
        [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0].as_slice(),
        &[3, 1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 1, 4],
    ];
    let mut full = TcpHeader { timestamps: Some([7, 3]), ..plain };
    full.sack.push([1, 2]);
    full.sack.push([256, 260]);
    assert_eq!(header(0x10, &options.concat(), b""), full);
    // Signatures are skipped; unknown options and wrong lengths are not.
    let signature = [&[19, 18][..], &[0; 18]].concat();
    assert!(!header(0x10, &signature, b"").has_other_options);
    for options in [[2, 4, 5, 180], [5, 4, 0, 0], [8, 4, 0, 0], [254, 4, 0, 0]] {
        assert!(header(0x10, &options, b"").has_other_options, "{options:?}");
    }
    // Bytes after the end, or after an option without a length, are not parsed.
    for options in [[0, 2, 4, 5], [8, 0, 2, 4], [1, 1, 1, 8], [2, 40, 0, 0]] {
        assert_eq!(header(0x10, &options, b""), plain, "{options:?}");
    }
    let mut short = tcp([1, 2], 0x10, &[], b"");
    short[12] = 0x40;
    assert_eq!(read(v4(TCP, &short)), None);
    short[12] = 0x60;
    assert_eq!(read(v4(TCP, &short)), None, "longer than the packet");
    assert_eq!(read(v4(UDP, &tcp([1, 2], 0x10, &[], b""))), None);
}

#[test]
fn what_contradicts_itself_is_refused_with_its_reason() {
    let good = v4(UDP, &[0; 8]);
    assert_eq!(parse(&[]), Err(Unfit::Truncated));
    assert_eq!(parse(&good[..19]), Err(Unfit::Truncated));
    assert_eq!(parse(&good[..27]), Err(Unfit::Truncated));
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        parse(&bad)
    };
    assert_eq!(with(0, 0x55), Err(Unfit::Version));
    assert_eq!(with(0, 0x44), Err(Unfit::Length));
    assert_eq!(with(3, 19), Err(Unfit::Length));
    assert_eq!(with(16, 224).map(|headers| headers.hash), with(16, 224).map(|h| h.hash));
    let mut group = good.clone();
    group[16..20].copy_from_slice(&[224, 0, 0, 22]);
    assert_eq!(parse(&group), Err(Unfit::LinkLocal));
    let mut padded = good.clone();
    padded.extend([0; 6]);
    assert_eq!(parse(&padded).unwrap().length, 28, "trailing bytes are not part of the packet");
    let mut local = v6(58, &[0; 8]);
    assert!(parse(&local).is_ok());
    local[8..10].copy_from_slice(&[0xFE, 0x80]);
    assert_eq!(parse(&local), Err(Unfit::LinkLocal));
}

#[test]
fn the_traffic_class_is_read_in_both_versions() {
    let mut four = v4(UDP, &[0; 8]);
    four[1] = 46 << 2 | 1;
    let mut six = v6(UDP, &[0; 8]);
    six[0] = 0x60 | (46 << 2 | 3) >> 4;
    six[1] = (46 << 2 | 3) << 4;
    let (four, six) = (parse(&four).unwrap(), parse(&six).unwrap());
    assert_eq!((four.dscp, four.ecn), (46, Ecn::Ect1));
    assert_eq!((six.dscp, six.ecn), (46, Ecn::Ce));
}
