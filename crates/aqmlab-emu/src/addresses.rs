//! Which addresses the two ends of a path have.
//!
//! Each shell has a block of addresses: its far end is the first, its near end
//! the second, and the rest is for shells that are started inside. The device
//! at the far end has the whole block as its connected network, so that
//! packets to any shell inside find their way without a route being added,
//! and without translation.
//!
//! # Sources
//! RFC 6598 (100.64.0.0/10, for the inside of networks of providers) and
//! RFC 4193 (IPv6 addresses that are nobody else's).

use std::net::{Ipv4Addr, Ipv6Addr};

/// A block of addresses, of both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    v4: u32,
    /// Bits of the IPv4 prefix.
    pub v4_bits: u32,
    v6: u128,
    /// Bits of the IPv6 prefix.
    pub v6_bits: u32,
}

/// Bits by which the IPv6 prefix grows from a shell to one inside it.
const V6_STEP: u32 = 8;

impl Block {
    /// All that there is for shells.
    pub const ALL: Block = Block {
        v4: u32::from_be_bytes([100, 64, 0, 0]),
        v4_bits: 10,
        v6: 0xFD61_716D_6C61 << 80,
        v6_bits: 48,
    };

    /// The block of a shell whose near end has this IPv4 address and prefix;
    /// `None` if that is none of ours.
    pub fn of(address: Ipv4Addr, bits: u32) -> Option<Block> {
        let address = u32::from(address);
        let mut block = Block::ALL;
        while block.v4_bits < bits {
            let step = block.step();
            if step == 0 || !block.holds(address.into()) {
                return None;
            }
            let index = (address - block.v4) >> (32 - block.v4_bits - step);
            block = block.inner(index)?;
        }
        (block.v4_bits == bits && block.v4_bits > Block::ALL.v4_bits).then_some(block)
    }

    /// Bits by which the IPv4 prefix grows from here; 0 where there is no room
    /// for the two ends of another path.
    fn step(&self) -> u32 {
        match self.v4_bits {
            10 => 7,
            bits if bits + 4 <= 29 => 4,
            _ => 0,
        }
    }

    /// The numbers that blocks inside this one may have.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        // The first of a shell's blocks holds its own two addresses.
        let first = u32::from(*self != Block::ALL);
        if self.step() == 0 { 0..0 } else { first..1 << self.step() }
    }

    /// A block inside this one; `None` if it has no room.
    pub fn inner(&self, number: u32) -> Option<Block> {
        let step = self.step();
        if step == 0 || number >= 1 << step {
            return None;
        }
        let (v4_bits, v6_bits) = (self.v4_bits + step, self.v6_bits + V6_STEP);
        Some(Block {
            v4: self.v4 | number << (32 - v4_bits),
            v4_bits,
            v6: self.v6 | u128::from(number) << (128 - v6_bits),
            v6_bits,
        })
    }

    /// In how many others it is, all that there is not counted.
    pub fn depth(&self) -> u64 {
        u64::from((self.v6_bits - Block::ALL.v6_bits) / V6_STEP).saturating_sub(1)
    }

    /// The number of the outermost block that holds an address, if one does.
    pub fn number_v4(address: [u8; 4]) -> Option<usize> {
        let address = u32::from_be_bytes(address);
        let bits = Block::ALL.v4_bits + Block::ALL.step();
        let number = (address ^ Block::ALL.v4) >> (32 - bits);
        (number < 1 << Block::ALL.step()).then_some(number as usize)
    }

    /// The same for an IPv6 address.
    pub fn number_v6(address: [u8; 16]) -> Option<usize> {
        let address = u128::from_be_bytes(address);
        let number = (address ^ Block::ALL.v6) >> (128 - Block::ALL.v6_bits - V6_STEP);
        (number < 1 << Block::ALL.step()).then_some(number as usize)
    }

    /// Whether it holds an address.
    pub fn holds(&self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ self.v4) >> (32 - self.v4_bits) == 0
    }

    /// The far end.
    pub fn far(&self) -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::from(self.v4 + 1), Ipv6Addr::from(self.v6 + 1))
    }
    /// The near end.
    pub fn near(&self) -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::from(self.v4 + 2), Ipv6Addr::from(self.v6 + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_nest_and_are_found_again() {
        let mut block = Block::ALL;
        let mut depth = 0;
        while let Some(number) = block.numbers().next_back() {
            let inner = block.inner(number).unwrap();
            assert!(block.holds(inner.far().0) && block.holds(inner.near().0));
            assert_eq!(Block::of(inner.near().0, inner.v4_bits), Some(inner));
            assert_eq!(inner.depth(), depth);
            block = inner;
            depth += 1;
        }
        assert_eq!(depth, 4);
        assert_eq!(Block::of(Ipv4Addr::new(10, 0, 0, 2), 17), None);
        assert_eq!(Block::of(Ipv4Addr::new(100, 64, 0, 2), 16), None);
    }

    #[test]
    fn blocks_of_one_shell_are_apart_from_each_other_and_from_its_ends() {
        let shell = Block::ALL.inner(3).unwrap();
        assert_eq!(shell.far().0, Ipv4Addr::new(100, 65, 128, 1));
        let inner: Vec<Block> =
            shell.numbers().map(|number| shell.inner(number).unwrap()).collect();
        assert_eq!(inner.len(), 15);
        for (i, block) in inner.iter().enumerate() {
            assert!(!block.holds(shell.far().0) && !block.holds(shell.near().0));
            assert!(inner.iter().skip(i + 1).all(|other| !other.holds(block.far().0)));
            assert!(inner.iter().skip(i + 1).all(|other| other.far().1 != block.far().1));
        }
    }
}
