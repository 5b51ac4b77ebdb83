//! Fields of TCP headers that a queue may compare.
//!
//! # Sources
//! RFC 9293, section 3.1 (flags); RFC 7323, section 3.2 (timestamps); RFC 2018,
//! section 3 (SACK); RFC 9768, section 3.2 (accurate ECN).

/// Header of a TCP segment, without ports, sequence number and window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// Acknowledgement number.
    pub ack: u32,
    /// The twelve bits from the reserved ones to FIN.
    pub flags: u16,
    /// Bytes of payload.
    pub payload: u32,
    /// TSval and TSecr.
    pub timestamps: Option<[u32; 2]>,
    /// True if the header has options other than padding, timestamps, SACK and the MD5 signature,
    /// or options with an invalid length.
    pub has_other_options: bool,
    /// SACK blocks.
    pub sack: SackOption,
}

/// SACK blocks of a segment in the order of the option: first number, and the one after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackOption {
    pub(crate) blocks: [[u32; 2]; Self::MOST],
    pub(crate) count: u32,
}

impl SackOption {
    /// The 40 bytes of options hold four blocks (RFC 2018, section 3).
    pub const MOST: usize = 4;

    /// Adds a block. Those beyond the fourth are left out.
    pub fn push(&mut self, block: [u32; 2]) {
        if let Some(place) = self.blocks.get_mut(self.count as usize) {
            *place = block;
            self.count += 1;
        }
    }

    /// Returns the blocks.
    pub fn as_slice(&self) -> &[[u32; 2]] {
        &self.blocks[..self.count as usize]
    }
}

impl TcpHeader {
    /// SYN.
    pub const SYN: u16 = 0x002;
    /// PSH.
    pub const PSH: u16 = 0x008;
    /// ACK.
    pub const ACK: u16 = 0x010;
    /// ECE (RFC 3168).
    pub const ECE: u16 = 0x040;
    /// CWR (RFC 3168).
    pub const CWR: u16 = 0x080;
    /// AE, the first bit of accurate ECN.
    pub const AE: u16 = 0x100;

    /// Returns the flags of a counter of accurate ECN: its three lower bits.
    pub fn accurate_ecn(counter: u64) -> u16 {
        let flag = |bit, flag| if counter & bit != 0 { flag } else { 0 };
        flag(4, Self::AE) | flag(2, Self::CWR) | flag(1, Self::ECE)
    }

    /// True if the segment only acknowledges: no payload, and no flags other than ACK and those of
    /// ECN.
    pub fn is_pure_ack(&self) -> bool {
        self.payload == 0 && self.flags & !(Self::ECE | Self::CWR | Self::AE) == Self::ACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_segments_without_payload_and_other_flags_are_pure() {
        let ack = TcpHeader { flags: TcpHeader::ACK, ..TcpHeader::default() };
        assert!(ack.is_pure_ack());
        assert!(TcpHeader { flags: ack.flags | TcpHeader::ECE, ..ack }.is_pure_ack());
        assert!(!TcpHeader { payload: 1, ..ack }.is_pure_ack());
        for flags in [0x000, 0x011, 0x012, 0x014, 0x018, 0x030, 0x210] {
            assert!(!TcpHeader { flags, ..ack }.is_pure_ack(), "{flags:#x}");
        }
    }

    #[test]
    fn blocks_beyond_the_fourth_are_left_out() {
        let mut sack = SackOption::default();
        (0..6).for_each(|start| sack.push([start, start + 1]));
        assert_eq!(sack.as_slice(), [[0, 1], [1, 2], [2, 3], [3, 4]]);
    }

    #[test]
    fn the_counter_of_accurate_ecn_has_three_bits() {
        assert_eq!(TcpHeader::accurate_ecn(5), TcpHeader::AE | TcpHeader::ECE);
        assert_eq!(TcpHeader::accurate_ecn(8 + 2), TcpHeader::CWR);
    }
}
