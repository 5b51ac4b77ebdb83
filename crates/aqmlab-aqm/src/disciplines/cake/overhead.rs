//! How much of a link a packet takes: the headers and the framing that a link
//! layer adds to it.
//!
//! # Sources
//! tc-cake(8), overhead compensation; Linux's sch_cake for the order of the steps.

use alloc::{format, string::String, string::ToString};

use aqmlab_core::params::ParamType;
use aqmlab_core::{Bytes, Cells, Value, choices};

choices! {
    /// tc-cake(8)'s keywords: the overhead, the least packet and the cells of link layers.
    pub enum Keyword {
        /// Nothing but the packet.
        Raw = "raw",
        /// More than is likely on any link in use.
        Conservative = "conservative",
        /// ADSL: IP over ATM, VC multiplexed.
        IpoaVcmux = "ipoa-vcmux",
        /// ADSL: IP over ATM with LLC and SNAP.
        IpoaLlcsnap = "ipoa-llcsnap",
        /// ADSL: Ethernet bridged over ATM, VC multiplexed.
        BridgedVcmux = "bridged-vcmux",
        /// ADSL: Ethernet bridged over ATM with LLC and SNAP.
        BridgedLlcsnap = "bridged-llcsnap",
        /// ADSL: PPP over ATM, VC multiplexed.
        PppoaVcmux = "pppoa-vcmux",
        /// ADSL: PPP over ATM with LLC.
        PppoaLlc = "pppoa-llc",
        /// ADSL: PPP over Ethernet, VC multiplexed.
        PppoeVcmux = "pppoe-vcmux",
        /// ADSL: PPP over Ethernet with LLC and SNAP.
        PppoeLlcsnap = "pppoe-llcsnap",
        /// VDSL2: PPP over Ethernet over PTM.
        PppoePtm = "pppoe-ptm",
        /// VDSL2: Ethernet over PTM.
        BridgedPtm = "bridged-ptm",
        /// Cable: an Ethernet frame with its check sequence.
        Docsis = "docsis",
        /// Ethernet with preamble, check sequence and the gap between frames.
        Ethernet = "ethernet",
    }
}

impl Keyword {
    /// Bytes added, the least size, the cells.
    fn values(self) -> (i64, u64, Cells) {
        match self {
            Keyword::Raw => (0, 0, Cells::None),
            Keyword::Conservative => (48, 0, Cells::Atm),
            Keyword::IpoaVcmux => (8, 0, Cells::Atm),
            Keyword::IpoaLlcsnap => (16, 0, Cells::Atm),
            Keyword::BridgedVcmux => (24, 0, Cells::Atm),
            Keyword::BridgedLlcsnap | Keyword::PppoeVcmux => (32, 0, Cells::Atm),
            Keyword::PppoaVcmux => (10, 0, Cells::Atm),
            Keyword::PppoaLlc => (14, 0, Cells::Atm),
            Keyword::PppoeLlcsnap => (40, 0, Cells::Atm),
            Keyword::PppoePtm => (30, 0, Cells::Ptm),
            Keyword::BridgedPtm => (22, 0, Cells::Ptm),
            Keyword::Docsis => (18, 64, Cells::None),
            Keyword::Ethernet => (38, 84, Cells::None),
        }
    }
}

/// A number of bytes that may be negative: `-4b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Extra(pub i64);

impl ParamType for Extra {
    const KIND: &'static str = "size";
    fn allowed() -> String {
        "a size with its unit, such as 38b or -4b (units: b, kb)".into()
    }
    fn read(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        let (sign, size) = match text.trim().strip_prefix('-') {
            Some(size) => (-1, size),
            None => (1, text.as_str()),
        };
        let size = Bytes::read(&Value::Text(size.to_string()))?;
        i64::try_from(size.get()).ok().map(|size| Extra(sign * size))
    }
    fn to_text(&self) -> String {
        format!("{}b", self.0)
    }
}

/// The size of packets on the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    added: i64,
    least: i64,
    cells: Cells,
}

impl Overhead {
    /// What the link layer says, with what is given besides it: further bytes,
    /// another least size, other cells.
    pub fn new(layer: Keyword, extra: Extra, mpu: Option<Bytes>, cells: Option<Cells>) -> Self {
        let (added, least, usual) = layer.values();
        Overhead {
            added: added + extra.0,
            least: mpu.map_or(least, Bytes::get) as i64,
            cells: cells.unwrap_or(usual),
        }
    }

    /// The bytes that a packet of `size` bytes takes.
    #[inline]
    pub fn on_the_link(&self, size: u32) -> u64 {
        let size = (i64::from(size) + self.added).max(self.least).max(0) as u64;
        self.cells.carry(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layer: Keyword) -> Overhead {
        Overhead::new(layer, Extra(0), None, None)
    }

    #[test]
    fn atm_fills_whole_cells() {
        let overhead = of(Keyword::IpoaVcmux);
        // 1508 bytes are 31.4 cells.
        assert_eq!(overhead.on_the_link(1500), 32 * 53);
        // An acknowledgement of 40 bytes just fills one; a byte more takes two.
        assert_eq!(overhead.on_the_link(40), 53);
        assert_eq!(overhead.on_the_link(41), 106);
        // PPPoE over LLC: 52 bytes are two cells.
        assert_eq!(of(Keyword::PppoeLlcsnap).on_the_link(12), 106);
    }

    #[test]
    fn ptm_adds_a_byte_for_every_64_begun() {
        // 1530 bytes are 23.9 times 64.
        assert_eq!(of(Keyword::PppoePtm).on_the_link(1500), 1530 + 24);
        assert_eq!(of(Keyword::BridgedPtm).on_the_link(42), 64 + 1);
        assert_eq!(of(Keyword::BridgedPtm).on_the_link(43), 65 + 2);
    }

    #[test]
    fn ethernet_frames_have_a_least_size() {
        let ethernet = of(Keyword::Ethernet);
        assert_eq!(ethernet.on_the_link(1500), 1538);
        assert_eq!(ethernet.on_the_link(40), 84);
        assert_eq!(of(Keyword::Docsis).on_the_link(40), 64);
        assert_eq!(of(Keyword::Docsis).on_the_link(1500), 1518);
    }

    #[test]
    fn single_values_add_to_a_link_layer_or_replace_its_own() {
        // One VLAN tag.
        let vlan = Overhead::new(Keyword::Ethernet, Extra(4), None, None);
        assert_eq!(vlan.on_the_link(1500), 1542);
        let least = Some(Bytes::new(100));
        let replaced = Overhead::new(Keyword::Ethernet, Extra(-64), least, Some(Cells::Atm));
        assert_eq!(replaced.on_the_link(40), 3 * 53);
        assert_eq!(Overhead::new(Keyword::Raw, Extra(-64), None, None).on_the_link(40), 0);
    }

    #[test]
    fn what_is_added_may_be_negative() {
        for (text, value) in [("38b", Some(38)), ("-4b", Some(-4)), ("4", None), ("--4b", None)] {
            assert_eq!(Extra::read(&text.into()), value.map(Extra), "{text}");
        }
        assert_eq!(Extra(-4).to_text(), "-4b");
    }
}
