//! The header in front of each packet of a TUN device with `IFF_VNET_HDR`:
//! what is left to do to the packet (virtio specification 1.2, section 5.1.6).

/// Bytes of the header.
pub const SIZE: usize = 10;
/// The flag that says that the checksum holds the pseudo header only.
pub const NEEDS_CHECKSUM: u8 = 1;

/// Kinds of large packets.
pub const NONE: u8 = 0;
/// TCP over IPv4.
pub const TCP_V4: u8 = 1;
/// TCP over IPv6.
pub const TCP_V6: u8 = 4;
/// UDP datagrams of one size.
pub const UDP_L4: u8 = 5;
/// Beside a kind: the first segment has CWR set, and only that.
pub const WITH_ECN: u8 = 0x80;

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Bits such as [`NEEDS_CHECKSUM`].
    pub flags: u8,
    /// Which kind of large packet it is.
    pub kind: u8,
    /// Bytes of headers.
    pub head: u16,
    /// Bytes of payload in each segment but the last.
    pub step: u16,
    /// Where the checksum begins.
    pub checksum_start: u16,
    /// Where, from there, the checksum stands.
    pub checksum_offset: u16,
}

impl Offload {
    /// Reads it; numbers are in the machine's own order.
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
    /// Writes it.
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
