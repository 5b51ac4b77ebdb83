//! Segmentation and joining, compared with segmentation packet by packet.

use super::*;
use crate::packet::checksum::sum;
use crate::packet::wire::parse;
use crate::packet::wire::tests::{tcp, v4, v6};
use aqmlab_sim::network::PacketStore;
use proptest::prelude::*;

/// Returns the one's complement sum of the pseudo header, as the kernel stores it.
fn pseudo(packet: &[u8], headers: &Headers) -> u16 {
    let addresses = if headers.is_v6 { &packet[8..40] } else { &packet[12..20] };
    let length = u64::from(headers.length) - u64::from(headers.transport);
    fold(sum(addresses) + u64::from(headers.protocol) + length)
}

/// Builds a large packet like the kernel's.
pub(crate) fn large(
    is_v6: bool,
    protocol: u8,
    flags: u8,
    step: u16,
    payload: usize,
) -> (Vec<u8>, Offload) {
    let load: Vec<u8> = (0..payload).map(|i| (i * 7 + i / 251) as u8).collect();
    let transport = match protocol {
        TCP => tcp([4000, 80], flags, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], &load),
        _ => {
            let length = (8 + load.len()) as u16;
            let ports = [4000u16.to_be_bytes(), 80u16.to_be_bytes()].concat();
            [ports, length.to_be_bytes().to_vec(), vec![0, 0], load].concat()
        }
    };
    let mut packet = if is_v6 { v6(protocol, &transport) } else { v4(protocol, &transport) };
    let headers = parse(&packet).unwrap();
    let at = usize::from(headers.transport) + if protocol == TCP { 16 } else { 6 };
    let partial = pseudo(&packet, &headers);
    packet[at..at + 2].copy_from_slice(&partial.to_be_bytes());
    let kind = match (protocol, is_v6) {
        (UDP, _) => offload::UDP_L4,
        (_, false) => offload::TCP_V4,
        (_, true) => offload::TCP_V6,
    };
    let offload = Offload {
        flags: offload::NEEDS_CHECKSUM,
        kind: kind | if flags & CWR != 0 { offload::WITH_ECN } else { 0 },
        head: headers.transport + if protocol == TCP { 32 } else { 8 },
        step,
        checksum_start: headers.transport,
        checksum_offset: if protocol == TCP { 16 } else { 6 },
    };
    (packet, offload)
}

/// Segments a frame like a device: returns the packets on the wire with checksums.
pub(crate) fn segmented(offload: Offload, packet: &[u8]) -> Vec<Vec<u8>> {
    let headers = parse(packet).unwrap();
    let transport = usize::from(headers.transport);
    let head = match headers.protocol {
        TCP => transport + usize::from(packet[transport + 12] >> 4) * 4,
        _ => transport + 8,
    };
    let step = match offload.kind {
        offload::NONE => packet.len(),
        _ => usize::from(offload.step),
    };
    let payload = &packet[head..];
    let count = payload.len().div_ceil(step).max(1);
    (0..count)
        .map(|number| {
            let part = &payload[number * step..payload.len().min((number + 1) * step)];
            let mut out = [&packet[..head], part].concat();
            let length = out.len();
            if headers.is_v6 {
                out[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
            } else {
                out[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                let id = be16(packet, 4).wrapping_add(number as u16);
                out[4..6].copy_from_slice(&id.to_be_bytes());
                out[10..12].fill(0);
                let checksum = !fold(sum(&out[..transport]));
                out[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            let at = if headers.protocol == TCP {
                let sequence = be32(packet, transport + 4) + (number * step) as u32;
                out[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
                if number + 1 < count {
                    out[transport + 13] &= !FIN_PSH;
                }
                if number > 0 {
                    out[transport + 13] &= !CWR;
                }
                transport + 16
            } else {
                out[transport + 4..transport + 6]
                    .copy_from_slice(&((length - transport) as u16).to_be_bytes());
                transport + 6
            };
            out[at..at + 2].fill(0);
            let headers = parse(&out).unwrap();
            let checksum = !fold(u64::from(pseudo(&out, &headers)) + sum(&out[transport..]));
            out[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
            out
        })
        .collect()
}

/// Checks a frame: each checksum must contain the sum of its pseudo header, and the IPv4 header
/// checksum must be correct.
fn check(offload: Offload, packet: &[u8]) {
    let headers = parse(packet).unwrap();
    assert_eq!(headers.length as usize, packet.len());
    if !headers.is_v6 {
        assert_eq!(fold(sum(&packet[..usize::from(headers.transport)])), 0xFFFF, "IPv4 header");
    }
    if offload.flags & offload::NEEDS_CHECKSUM != 0 {
        let at = usize::from(offload.checksum_start + offload.checksum_offset);
        let (found, expected) = (be16(packet, at), pseudo(packet, &headers));
        assert!(found % 0xFFFF == expected % 0xFFFF, "pseudo header {found:x} {expected:x}");
    }
}

fn kept(packet: &[u8], offload: Offload) -> (Buffers, u32, Frame) {
    let mut buffers = Buffers::default();
    buffers.scratch()[..packet.len()].copy_from_slice(packet);
    let frame = plan(packet, parse(packet).unwrap(), offload).unwrap();
    let place = buffers.keep(frame);
    (buffers, place, frame)
}

#[test]
fn an_offload_header_that_does_not_fit_is_refused() {
    let (packet, right) = large(true, TCP, 0x10, 100, 1000);
    let headers = parse(&packet).unwrap();
    assert!(plan(&packet, headers, right).is_ok());
    for wrong in [
        Offload { step: 0, ..right },
        Offload { kind: offload::TCP_V4, ..right },
        Offload { kind: offload::UDP_L4, ..right },
        Offload { flags: 0, ..right },
        Offload { checksum_start: right.checksum_start + 2, ..right },
        Offload { checksum_offset: 6, ..right },
    ] {
        assert!(matches!(plan(&packet, headers, wrong), Err(Unfit::Offload)), "{wrong:?}");
    }
}

proptest! {
    /// The packets on the wire do not depend on how segments leave: alone or in runs, with marks or
    /// without.
    #[test]
    fn runs_are_the_packets_that_the_device_would_have_made(
        is_v6 in any::<bool>(),
        is_udp in any::<bool>(),
        flags in prop::sample::select(vec![0x10u8, 0x18, 0x19, 0x90, 0x98]),
        step in 1u16..1449,
        payload in 1usize..20_000,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        marks in any::<u64>(),
    ) {
        let payload = payload.min(usize::from(step) * 300);
        let protocol = if is_udp { UDP } else { TCP };
        let (packet, offload) = large(is_v6, protocol, flags, step, payload);
        let (mut buffers, place, frame) = kept(&packet, offload);
        let expected = segmented(offload, &packet);
        prop_assert_eq!(expected.len(), usize::from(frame.segments));
        let breaks: Vec<u16> =
            cuts.iter().map(|cut| cut.index(usize::from(frame.segments)) as u16).collect();
        let mut runs: Vec<Run> = Vec::new();
        let mut marked = Vec::new();
        for segment in 0..frame.segments {
            let mut handle = frame.packet(place, segment, 0);
            prop_assert_eq!(handle.size() as usize, expected[usize::from(segment)].len());
            if marks >> (segment / 3 % 64) & 1 == 1 {
                handle.mark();
            }
            let alone = Run::of(&handle);
            marked.push(alone.traffic_class);
            let joined = runs.last_mut().filter(|_| !breaks.contains(&segment));
            if !joined.is_some_and(|run| run.join(&handle)) {
                runs.push(alone);
            }
        }
        let mut out = Vec::new();
        for run in &runs {
            let mut room = [0; MOST_HEAD];
            let (offload, parts) = run.frame(&buffers, &mut room);
            let packet = parts.concat();
            check(offload, &packet);
            out.extend(segmented(offload, &packet));
        }
        prop_assert_eq!(out.len(), expected.len());
        for ((out, expected), class) in out.iter().zip(&expected).zip(&marked) {
            let mut expected = expected.clone();
            set_traffic_class(&mut expected, is_v6, *class);
            prop_assert_eq!(out, &expected);
        }
        for run in runs {
            buffers.free_run(run);
        }
        prop_assert_eq!(buffers.live_count(), 0);
    }
}
