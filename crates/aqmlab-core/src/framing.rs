//! What a link adds to each packet: headers, a least size, cells.
//!
//! # Sources
//! - tc-stab(8): `overhead`, `mpu`, `linklayer`, and the cells of ATM.
//! - tc-cake(8): PTM's 64b/65b coding; `docsis` as 18 bytes and a least size
//!   of 64.
//!
//! # Differences
//! 1. `overhead` counts from the packet's size as the scenario states it (IP
//!    and up); `tc` counts from what the kernel sees, which on Ethernet holds
//!    14 bytes of header already. So it is never negative here.
//! 2. No tables: the size is computed for each packet.

use crate::choices;

choices! {
    /// How a link layer cuts frames.
    pub enum Cells {
        /// Not at all.
        None = "none",
        /// Into cells of 53 bytes that carry 48 each.
        Atm = "atm",
        /// With one more byte for every 64, or part of them.
        Ptm = "ptm",
    }
}

impl Cells {
    /// The bytes that a frame of this size takes.
    #[inline]
    pub fn carry(self, size: u64) -> u64 {
        match self {
            Cells::None => size,
            Cells::Atm => size.div_ceil(48) * 53,
            Cells::Ptm => size + size.div_ceil(64),
        }
    }
}

choices! {
    /// The link layers of tc-stab(8), which say how frames are cut, and cable's.
    pub enum LinkLayer {
        /// As they are.
        Ethernet = "ethernet",
        /// In cells of 53 bytes that carry 48 (ADSL).
        Atm = "atm",
        /// With one byte more for every 64 (VDSL).
        Ptm = "ptm",
        /// As Ethernet, with the cable modems' 18 bytes and 64 at least.
        Docsis = "docsis",
    }
}

impl LinkLayer {
    /// How frames are cut.
    #[inline]
    pub fn cells(self) -> Cells {
        match self {
            LinkLayer::Ethernet | LinkLayer::Docsis => Cells::None,
            LinkLayer::Atm => Cells::Atm,
            LinkLayer::Ptm => Cells::Ptm,
        }
    }
}

/// The sizes of packets on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet.
    pub overhead: u32,
    /// The least size of a packet with its overhead.
    pub mpu: u32,
    /// How frames are carried.
    pub layer: LinkLayer,
}

impl Framing {
    /// Packets as they are.
    pub const NONE: Framing = Framing { overhead: 0, mpu: 0, layer: LinkLayer::Ethernet };

    /// The framing of a link layer, with the layer's own overhead and least
    /// size where none is given.
    pub fn new(layer: LinkLayer, overhead: Option<u64>, mpu: Option<u64>) -> Self {
        let (own_overhead, own_mpu) = match layer {
            LinkLayer::Docsis => (18, 64),
            LinkLayer::Ethernet | LinkLayer::Atm | LinkLayer::Ptm => (0, 0),
        };
        Framing {
            overhead: overhead.map_or(own_overhead, |bytes| bytes as u32),
            mpu: mpu.map_or(own_mpu, |bytes| bytes as u32),
            layer,
        }
    }

    /// The bytes that a packet of this size takes on the wire.
    #[inline]
    pub fn wire_size(&self, size: u32) -> u32 {
        let framed = (size + self.overhead).max(self.mpu);
        self.layer.cells().carry(u64::from(framed)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_wire() {
        let ethernet = Framing::new(LinkLayer::Ethernet, Some(38), Some(84));
        assert_eq!((ethernet.wire_size(1500), ethernet.wire_size(40)), (1538, 84));
        // A pure acknowledgement of 40 bytes with 8 of AAL5 fits in one cell,
        // a byte more takes two; a full packet takes 32 cells.
        let atm = Framing::new(LinkLayer::Atm, Some(8), None);
        assert_eq!([40, 41, 1500].map(|size| atm.wire_size(size)), [53, 106, 32 * 53]);
        let ptm = Framing::new(LinkLayer::Ptm, Some(30), Some(64));
        assert_eq!([10, 34, 35, 1500].map(|size| ptm.wire_size(size)), [65, 65, 67, 1554]);
        let docsis = Framing::new(LinkLayer::Docsis, None, None);
        assert_eq!([40, 46, 1500].map(|size| docsis.wire_size(size)), [64, 64, 1518]);
        assert_eq!(Framing::new(LinkLayer::Docsis, Some(0), Some(0)).wire_size(40), 40);
        assert_eq!(Framing::NONE.wire_size(40), 40);
    }
}
