//! Offload header before each packet of a TUN device with `IFF_VNET_HDR`: checksum and segmentation
//! left to do (virtio specification 1.2, section 5.1.6).

/// Size of the header in bytes.
pub const SIZE: usize = 10;
/// Flag: the checksum covers the pseudo header only.
pub const NEEDS_CHECKSUM: u8 = 1;

/// Kind: not a large packet.
pub const NONE: u8 = 0;
/// Kind: TCP over IPv4.
pub const TCP_V4: u8 = 1;
/// Kind: TCP over IPv6.
pub const TCP_V6: u8 = 4;
/// Kind: UDP datagrams of one size.
pub const UDP_L4: u8 = 5;
/// Modifier of a kind: only the first segment has CWR.
pub const WITH_ECN: u8 = 0x80;

/// Offload header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Flags such as [`NEEDS_CHECKSUM`].
    pub flags: u8,
    /// Kind of large packet.
    pub kind: u8,
    /// Bytes of headers.
    pub head: u16,
    /// Bytes of payload in each segment but the last.
    pub step: u16,
    /// Offset of the first byte covered by the checksum.
    pub checksum_start: u16,
    /// Offset of the checksum from there.
    pub checksum_offset: u16,
}

impl Offload {
    /// Parses a header; numbers are in the machine's byte order.
    pub fn from_bytes(bytes: &[u8; SIZE]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Offload {
            flags: bytes[0],
            kind: bytes[1],
            head: word(2),
            step: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0] = self.flags;
        bytes[1] = self.kind;
        for (i, word) in
            [self.head, self.step, self.checksum_start, self.checksum_offset].iter().enumerate()
        {
            bytes[2 + 2 * i..4 + 2 * i].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}
