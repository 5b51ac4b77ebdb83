//! Packet captures in the pcapng format, also used by the emulator.
//!
//! # Source
//! draft-ietf-opsawg-pcapng: a section header block, an interface description block for each
//! link, and an enhanced packet block for each packet, with time in nanoseconds. Packets begin
//! with the IP header (LINKTYPE_IPV4). All numbers are little-endian.

use aqmlab_core::Time;

/// Block types, section 4.
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Option of a comment, valid in all blocks (section 3.5).
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;
/// Link type: packets begin with an IPv4 header.
pub const LINKTYPE_IPV4: u16 = 228;
/// Link type: packets begin with an IPv4 or IPv6 header.
pub const LINKTYPE_RAW: u16 = 101;
/// Maximum size of headers: 20 bytes of IPv4, 60 of TCP.
pub(super) const MOST_KEPT: u32 = 80;

/// Appends the section header of a file, with an optional comment.
pub fn section(bytes: &mut Vec<u8>, comment: Option<&str>) {
    block(bytes, SECTION_HEADER, |body| {
        body.extend_from_slice(&0x1A2B_3C4Du32.to_le_bytes());
        body.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        body.extend_from_slice(&u64::MAX.to_le_bytes()); // unknown length
        if let Some(comment) = comment {
            option(body, COMMENT, comment.as_bytes());
        }
        option(body, SHB_USERAPPL, b"aqmlab");
        option(body, 0, &[]);
    });
}

/// Interface; numbered in order, from 0.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Description of the place of capture.
    pub comment: &'a str,
    /// Link type of its packets.
    pub link_type: u16,
    /// Maximum number of bytes kept of a packet.
    pub most: u32,
}

/// Appends the description of an interface.
pub fn interface(bytes: &mut Vec<u8>, interface: &Interface) {
    block(bytes, INTERFACE, |body| {
        body.extend_from_slice(&interface.link_type.to_le_bytes());
        body.extend_from_slice(&[0, 0]);
        body.extend_from_slice(&interface.most.to_le_bytes());
        option(body, COMMENT, interface.comment.as_bytes());
        option(body, IF_NAME, interface.name.as_bytes());
        option(body, IF_TSRESOL, &[9]);
        option(body, 0, &[]);
    });
}

/// Appends a packet of this length, with an optional comment; the file contains only the parts
/// `kept`, in sequence.
pub fn packet(
    bytes: &mut Vec<u8>,
    interface: u32,
    time: Time,
    kept: [&[u8]; 2],
    length: u32,
    comment: Option<&str>,
) {
    let at = time.as_nanos();
    let most = kept[0].len() + kept[1].len();
    block(bytes, ENHANCED_PACKET, |body| {
        for word in [interface, (at >> 32) as u32, at as u32, most as u32, length] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(kept[0]);
        body.extend_from_slice(kept[1]);
        pad(body, most);
        if let Some(comment) = comment {
            option(body, COMMENT, comment.as_bytes());
            option(body, 0, &[]);
        }
    });
}

/// Appends a block: type, length, contents written by `fill`, length.
fn block(bytes: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    fill(bytes);
    let length = ((bytes.len() - start + 4) as u32).to_le_bytes();
    bytes[start + 4..start + 8].copy_from_slice(&length);
    bytes.extend_from_slice(&length);
}

/// Appends an option; omitted if too long.
fn option(bytes: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    bytes.extend_from_slice(&code.to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
    bytes.extend_from_slice(value);
    pad(bytes, value.len());
}

/// Pads to 32 bits after a field of this length.
fn pad(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&[0; 3][..length.wrapping_neg() % 4]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_length_at_both_ends_and_is_padded() {
        let mut bytes = Vec::new();
        packet(
            &mut bytes,
            3,
            Time::from_nanos(0x1_0000_0002),
            [&[0x45, 1], &[2, 3, 4]],
            1500,
            None,
        );
        let mut expected = Vec::new();
        for word in [6u32, 40, 3, 1, 2, 5, 1500] {
            expected.extend_from_slice(&word.to_le_bytes());
        }
        expected.extend_from_slice(&[0x45, 1, 2, 3, 4, 0, 0, 0]);
        expected.extend_from_slice(&40u32.to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn interfaces_count_nanoseconds() {
        let mut bytes = Vec::new();
        let link_type = LINKTYPE_IPV4;
        interface(&mut bytes, &Interface { name: "down", comment: "", link_type, most: 80 });
        assert_eq!(bytes[8..10], 228u16.to_le_bytes());
        assert_eq!(bytes[20..28], [2, 0, 4, 0, b'd', b'o', b'w', b'n']);
        let resolution = [9, 0, 1, 0, 9, 0, 0, 0];
        assert!(bytes.windows(8).any(|window| window == resolution));
        assert_eq!(bytes.len() % 4, 0);
    }
}
