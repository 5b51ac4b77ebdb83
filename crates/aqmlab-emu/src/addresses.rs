//! Addresses of the two ends of a path.
//!
//! Each shell has a block of addresses: the first for its far end, the second for its near end, the
//! rest for shells started inside. The device at the far end has the whole block as its connected
//! network. Packets therefore reach every nested shell without additional routes or address
//! translation.
//!
//! Each outermost shell has a number. The first shell inside it takes the upper half of its block,
//! the second the upper half of the rest, and so on. Each level of nesting uses one bit of the
//! prefix: shells nest 14 deep, and several may run inside one.
//!
//! # Sources
//! RFC 6598 (100.64.0.0/10, for networks inside providers) and RFC 4193 (unique local IPv6
//! addresses).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Address block, for both IP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    v4: u32,
    /// Length of the IPv4 prefix.
    pub v4_bits: u32,
    v6: u128,
    /// Length of the IPv6 prefix.
    pub v6_bits: u32,
    /// Number of enclosing blocks, including `ALL`.
    level: u64,
}

/// Bits of the number of an outermost block.
const OUTERMOST: u32 = 7;
/// Longest IPv4 prefix with room for two ends.
const LONGEST: u32 = 30;

impl Block {
    /// The whole range available to shells.
    pub const ALL: Block = Block {
        v4: u32::from_be_bytes([100, 64, 0, 0]),
        v4_bits: 10,
        v6: 0xFD61_716D_6C61 << 80,
        v6_bits: 48,
        level: 0,
    };

    /// Returns the block of the shell whose near end has this IPv4 address and prefix; `None` if
    /// the emulator did not assign it.
    pub fn of(address: Ipv4Addr, bits: u32) -> Option<Block> {
        if !Block::ALL.holds(address) {
            return None;
        }
        let address = u32::from(address);
        let mut block = Block::ALL.inner(address << Block::ALL.v4_bits >> (32 - OUTERMOST))?;
        while block.v4_bits < bits {
            block = block.inner(1 + (address << block.v4_bits).leading_zeros())?;
        }
        (block.v4_bits == bits).then_some(block)
    }

    /// Returns the valid numbers of blocks inside this one.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        match self.level {
            0 => 0..1 << OUTERMOST,
            _ => 1..LONGEST - self.v4_bits + 1,
        }
    }

    /// Returns a block inside this one; `None` if no space is left.
    pub fn inner(&self, number: u32) -> Option<Block> {
        if !self.numbers().contains(&number) {
            return None;
        }
        // Inside a shell, the number is the count of bits by which the prefix grows: zeros, then a
        // one.
        let (bits, place) = match self.level {
            0 => (OUTERMOST, number),
            _ => (number, 1),
        };
        let (v4_bits, v6_bits) = (self.v4_bits + bits, self.v6_bits + bits);
        Some(Block {
            v4: self.v4 | place << (32 - v4_bits),
            v4_bits,
            v6: self.v6 | u128::from(place) << (128 - v6_bits),
            v6_bits,
            level: self.level + 1,
        })
    }

    /// Returns the number of the outermost block that contains the destination of an IP packet, if
    /// any.
    pub fn of_packet(packet: &[u8]) -> Option<usize> {
        match packet.first()? >> 4 {
            4 => Self::number_v4(packet.get(16..20)?.try_into().ok()?),
            6 => Self::number_v6(packet.get(24..40)?.try_into().ok()?),
            _ => None,
        }
    }

    /// Returns the number of enclosing blocks, without `ALL`.
    pub fn depth(&self) -> u64 {
        self.level.saturating_sub(1)
    }

    /// Returns the number of the outermost block that contains an IPv4 address, if any.
    fn number_v4(address: [u8; 4]) -> Option<usize> {
        let address = u32::from_be_bytes(address);
        let number = (address ^ Block::ALL.v4) >> (32 - Block::ALL.v4_bits - OUTERMOST);
        (number < 1 << OUTERMOST).then_some(number as usize)
    }

    /// Returns the number of the outermost block that contains an IPv6 address, if any.
    fn number_v6(address: [u8; 16]) -> Option<usize> {
        let address = u128::from_be_bytes(address);
        let number = (address ^ Block::ALL.v6) >> (128 - Block::ALL.v6_bits - OUTERMOST);
        (number < 1 << OUTERMOST).then_some(number as usize)
    }

    /// Returns true if the block contains the address.
    pub fn holds(&self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ self.v4) >> (32 - self.v4_bits) == 0
    }

    /// Returns the addresses of the far end.
    pub fn far(&self) -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::from(self.v4 + 1), Ipv6Addr::from(self.v6 + 1))
    }
    /// Returns the addresses of the near end.
    pub fn near(&self) -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::from(self.v4 + 2), Ipv6Addr::from(self.v6 + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_shells_nests_fourteen_deep_and_every_block_is_found_again() {
        let mut block = Block::ALL.inner(127).unwrap();
        let mut depth = 0;
        loop {
            assert_eq!(Block::of(block.near().0, block.v4_bits), Some(block));
            assert_eq!(block.depth(), depth);
            let Some(inner) = block.inner(1) else { break };
            assert!(block.holds(inner.far().0) && block.holds(inner.near().0));
            (block, depth) = (inner, depth + 1);
        }
        assert_eq!((depth, block.v4_bits), (13, 30));
        assert!(block.numbers().is_empty());
        assert_eq!(Block::of(Ipv4Addr::new(10, 0, 0, 2), 17), None);
        assert_eq!(Block::of(Ipv4Addr::new(100, 64, 0, 2), 16), None);
    }

    #[test]
    fn blocks_of_one_shell_are_apart_from_each_other_and_from_its_ends() {
        let shell = Block::ALL.inner(3).unwrap();
        assert_eq!(shell.far().0, Ipv4Addr::new(100, 65, 128, 1));
        let inner: Vec<Block> =
            shell.numbers().map(|number| shell.inner(number).unwrap()).collect();
        assert_eq!(inner.len(), 13);
        for (i, block) in inner.iter().enumerate() {
            assert_eq!(Block::of(block.near().0, block.v4_bits), Some(*block));
            assert!(!block.holds(shell.far().0) && !block.holds(shell.near().0));
            assert!(inner.iter().skip(i + 1).all(|other| !other.holds(block.far().0)));
            assert!(inner.iter().skip(i + 1).all(|other| !block.holds(other.far().0)));
            assert!(inner.iter().skip(i + 1).all(|other| other.far().1 != block.far().1));
        }
    }

    #[test]
    fn outermost_blocks_have_the_number_of_their_addresses() {
        for number in Block::ALL.numbers() {
            let block = Block::ALL.inner(number).unwrap();
            let (v4, v6) = block.near();
            assert_eq!(Block::number_v4(v4.octets()), Some(number as usize));
            assert_eq!(Block::number_v6(v6.octets()), Some(number as usize));
            assert_eq!(Block::of(v4, block.v4_bits), Some(block));
        }
        assert_eq!(Block::number_v4([100, 63, 255, 255]), None);
    }
}
