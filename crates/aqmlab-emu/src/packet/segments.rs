//! Segmentation of large packets: a frame of up to 64 kB is split into the packets that the network
//! sees; segments that leave together are joined again.
//!
//! # Model
//! Segmentation is virtual: a frame that the kernel left for the device to segment (TSO, USO)
//! remains whole, and each segment is a handle. Consecutive segments of a frame that leave
//! simultaneously with the same traffic class form a run. A run is sent as one frame with new
//! headers: length, IP identification, sequence number, flags and checksums match those of the
//! kernel's own segmentation.
//!
//! # Sources
//! The virtio specification, 1.2, section 5.1.6.2 (how a device segments a packet with `gso_type`);
//! RFC 3168, section 6.1.2 (CWR on the first segment only); RFC 1624 (incremental checksum update).

use aqmlab_core::{Packet, Span};

use crate::packet::buffers::{Buffers, Frame, place_of, segment_and_route};
use crate::packet::checksum::{fold, update};
use crate::packet::offload::{self, Offload};
use crate::packet::wire::{Headers, TCP, UDP, Unfit, be16, be32};

/// Upper bound of the headers of a large packet in bytes.
pub const MOST_HEAD: usize = 512;

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Plans the segmentation of a packet.
///
/// # Errors
/// Returns an error if the offload header does not fit the packet.
pub fn plan(packet: &[u8], headers: Headers, offload: Offload) -> Result<Frame, Unfit> {
    let whole = Frame { offload, headers, head: 0, step: 0, segments: 1, waited: Span::ZERO };
    let needs_checksum = offload.flags & offload::NEEDS_CHECKSUM != 0;
    let checksum = u32::from(offload.checksum_start) + u32::from(offload.checksum_offset) + 2;
    if needs_checksum && checksum > headers.length {
        return Err(Unfit::Offload);
    }
    let kind = offload.kind & !offload::WITH_ECN;
    if kind == offload::NONE {
        return Ok(whole);
    }
    let transport = usize::from(headers.transport);
    // Protocol, size of its shortest header, offset of its checksum.
    let (protocol, most, checksum) = match kind {
        offload::TCP_V4 | offload::TCP_V6 => (TCP, 20, 16),
        offload::UDP_L4 => (UDP, 8, 6),
        _ => return Err(Unfit::Offload),
    };
    let is_right = protocol == headers.protocol
        && (protocol == UDP || (kind == offload::TCP_V6) == headers.is_v6)
        && !headers.is_fragment
        && needs_checksum
        && usize::from(offload.checksum_start) == transport
        && offload.checksum_offset == checksum
        && offload.step > 0
        && transport + most <= headers.length as usize;
    if !is_right {
        return Err(Unfit::Offload);
    }
    let head = transport
        + match protocol {
            TCP => usize::from(packet[transport + 12] >> 4) * 4,
            _ => 8,
        };
    let step = u32::from(offload.step);
    let Some(payload) = headers.length.checked_sub(head as u32) else {
        return Err(Unfit::Offload);
    };
    if head > MOST_HEAD || head < transport + most {
        return Err(Unfit::Offload);
    }
    if payload <= step {
        let offload = Offload { kind: offload::NONE, step: 0, ..offload };
        return Ok(Frame { offload, ..whole });
    }
    let segments = payload.div_ceil(step) as u16;
    // A large packet is never a pure ACK.
    Ok(Frame { head: head as u32, step, segments, ..whole })
}

/// Segments of one frame that leave together.
#[derive(Debug)]
pub struct Run {
    /// Buffer of the frame.
    pub place: u32,
    /// Index of the first segment.
    pub first: u16,
    /// Number of segments.
    pub count: u16,
    /// DSCP and ECN field of its packets.
    traffic_class: u8,
}

impl Run {
    /// Returns a packet as a run of one segment.
    pub fn of(handle: &Packet) -> Self {
        let (first, _) = segment_and_route(handle);
        let traffic_class = handle.class() << 2 | handle.ecn() as u8;
        Run { place: place_of(handle), first, count: 1, traffic_class }
    }

    /// Appends the next segment. Returns false if it does not belong to the run.
    pub fn join(&mut self, handle: &Packet) -> bool {
        let next = Run::of(handle);
        let follows = next.place == self.place
            && next.first == self.first + self.count
            && next.traffic_class == self.traffic_class;
        self.count += u16::from(follows);
        follows
    }

    /// Returns the frame to write: `[headers, rest]`. `room` is a buffer for changed headers.
    pub fn frame<'a>(
        &self,
        buffers: &'a Buffers,
        room: &'a mut [u8; MOST_HEAD],
    ) -> (Offload, [&'a [u8]; 2]) {
        let (bytes, frame) = buffers.get(self.place);
        let headers = &frame.headers;
        let is_whole = self.count == frame.segments;
        if is_whole && self.traffic_class == (headers.dscp << 2 | headers.ecn as u8) {
            return (frame.offload, [bytes, &[]]);
        }
        if is_whole {
            let head = if headers.is_v6 { 40 } else { usize::from(headers.transport) };
            let room = &mut room[..head];
            room.copy_from_slice(&bytes[..head]);
            set_traffic_class(room, headers.is_v6, self.traffic_class);
            return (frame.offload, [room, &bytes[head..]]);
        }
        let (head, step) = (frame.head as usize, frame.step as usize);
        let from = head + usize::from(self.first) * step;
        let payload = &bytes[from..bytes.len().min(from + usize::from(self.count) * step)];
        let room = &mut room[..head];
        room.copy_from_slice(&bytes[..head]);
        let offload = self.change(room, frame, payload.len());
        (offload, [room, payload])
    }

    /// Rewrites the headers of the frame for this run.
    fn change(&self, head: &mut [u8], frame: &Frame, payload: usize) -> Offload {
        let headers = &frame.headers;
        let transport = usize::from(headers.transport);
        set_traffic_class(head, headers.is_v6, self.traffic_class);
        let length = head.len() + payload;
        if headers.is_v6 {
            set16(head, 4, (length - 40) as u16);
        } else {
            set_v4(head, 2, length as u16);
            set_v4(head, 4, be16(head, 4).wrapping_add(self.first));
        }
        let has_last = self.first + self.count == frame.segments;
        let checksum = match headers.protocol {
            TCP => {
                let skipped = u32::from(self.first).wrapping_mul(frame.step);
                let sequence = be32(head, transport + 4).wrapping_add(skipped);
                head[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
                let cleared = if has_last { 0 } else { FIN_PSH };
                head[transport + 13] &= !(cleared | if self.first > 0 { CWR } else { 0 });
                transport + 16
            }
            _ => {
                set16(head, transport + 4, (length - transport) as u16);
                transport + 6
            }
        };
        // This checksum covers the pseudo header, which contains the length.
        let before = headers.length as u16 - headers.transport;
        let now = (length - transport) as u16;
        let sum = u64::from(be16(head, checksum)) + u64::from(!before) + u64::from(now);
        set16(head, checksum, fold(sum));
        let mut offload = Offload { head: head.len() as u16, ..frame.offload };
        if self.first > 0 {
            offload.kind &= !offload::WITH_ECN;
        }
        if payload <= frame.step as usize {
            offload = Offload { kind: offload::NONE, step: 0, head: 0, ..offload };
        }
        offload
    }
}

/// Sets DSCP and ECN.
fn set_traffic_class(head: &mut [u8], is_v6: bool, class: u8) {
    if is_v6 {
        head[0] = head[0] & 0xF0 | class >> 4;
        head[1] = head[1] & 0x0F | class << 4;
    } else {
        set_v4(head, 0, u16::from_be_bytes([head[0], class]));
    }
}

/// Sets a word of an IPv4 header, and updates its checksum.
fn set_v4(head: &mut [u8], at: usize, word: u16) {
    let checksum = update(be16(head, 10), be16(head, at), word);
    set16(head, at, word);
    set16(head, 10, checksum);
}

fn set16(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests;
