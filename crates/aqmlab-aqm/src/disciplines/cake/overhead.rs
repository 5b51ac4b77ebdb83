//! How much of a link a packet takes: the headers and the framing that a link
//! layer adds to it.
//!
//! # Sources
//! tc-cake(8), overhead compensation; Linux's sch_cake for the order of the steps.

use alloc::{format, string::String, string::ToString};

use aqmlab_core::params::ParamType;
use aqmlab_core::{Bytes, Value, choices};

choices! {
    /// How a link layer cuts packets.
    pub enum Framing {
        /// Not at all.
        None = "none",
        /// Into cells of 53 bytes that carry 48 each.
        Atm = "atm",
        /// With one more byte for every 64, or part of them.
        Ptm = "ptm",
    }
}

choices! {
    /// The overhead, the least packet and the framing of link layers.
    pub enum LinkLayer {
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

impl LinkLayer {
    /// Bytes added, the least size, the framing.
    fn values(self) -> (i64, u64, Framing) {
        match self {
            LinkLayer::Raw => (0, 0, Framing::None),
            LinkLayer::Conservative => (48, 0, Framing::Atm),
            LinkLayer::IpoaVcmux => (8, 0, Framing::Atm),
            LinkLayer::IpoaLlcsnap => (16, 0, Framing::Atm),
            LinkLayer::BridgedVcmux => (24, 0, Framing::Atm),
            LinkLayer::BridgedLlcsnap | LinkLayer::PppoeVcmux => (32, 0, Framing::Atm),
            LinkLayer::PppoaVcmux => (10, 0, Framing::Atm),
            LinkLayer::PppoaLlc => (14, 0, Framing::Atm),
            LinkLayer::PppoeLlcsnap => (40, 0, Framing::Atm),
            LinkLayer::PppoePtm => (30, 0, Framing::Ptm),
            LinkLayer::BridgedPtm => (22, 0, Framing::Ptm),
            LinkLayer::Docsis => (18, 64, Framing::None),
            LinkLayer::Ethernet => (38, 84, Framing::None),
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
    framing: Framing,
}

impl Overhead {
    /// What the link layer says, with what is given besides it: further bytes,
    /// another least size, another framing.
    pub fn new(
        layer: LinkLayer,
        extra: Extra,
        mpu: Option<Bytes>,
        framing: Option<Framing>,
    ) -> Self {
        let (added, least, usual) = layer.values();
        Overhead {
            added: added + extra.0,
            least: mpu.map_or(least, Bytes::get) as i64,
            framing: framing.unwrap_or(usual),
        }
    }

    /// The bytes that a packet of `size` bytes takes.
    #[inline]
    pub fn on_the_link(&self, size: u32) -> u64 {
        let size = (i64::from(size) + self.added).max(self.least).max(0) as u64;
        match self.framing {
            Framing::None => size,
            Framing::Atm => size.div_ceil(48) * 53,
            Framing::Ptm => size + size.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(layer: LinkLayer) -> Overhead {
        Overhead::new(layer, Extra(0), None, None)
    }

    #[test]
    fn atm_fills_whole_cells() {
        let overhead = of(LinkLayer::IpoaVcmux);
        // 1508 bytes are 31.4 cells.
        assert_eq!(overhead.on_the_link(1500), 32 * 53);
        // An acknowledgement of 40 bytes just fills one; a byte more takes two.
        assert_eq!(overhead.on_the_link(40), 53);
        assert_eq!(overhead.on_the_link(41), 106);
        // PPPoE over LLC: 52 bytes are two cells.
        assert_eq!(of(LinkLayer::PppoeLlcsnap).on_the_link(12), 106);
    }

    #[test]
    fn ptm_adds_a_byte_for_every_64_begun() {
        // 1530 bytes are 23.9 times 64.
        assert_eq!(of(LinkLayer::PppoePtm).on_the_link(1500), 1530 + 24);
        assert_eq!(of(LinkLayer::BridgedPtm).on_the_link(42), 64 + 1);
        assert_eq!(of(LinkLayer::BridgedPtm).on_the_link(43), 65 + 2);
    }

    #[test]
    fn ethernet_frames_have_a_least_size() {
        let ethernet = of(LinkLayer::Ethernet);
        assert_eq!(ethernet.on_the_link(1500), 1538);
        assert_eq!(ethernet.on_the_link(40), 84);
        assert_eq!(of(LinkLayer::Docsis).on_the_link(40), 64);
        assert_eq!(of(LinkLayer::Docsis).on_the_link(1500), 1518);
    }

    #[test]
    fn single_values_add_to_a_link_layer_or_replace_its_own() {
        // One VLAN tag.
        let vlan = Overhead::new(LinkLayer::Ethernet, Extra(4), None, None);
        assert_eq!(vlan.on_the_link(1500), 1542);
        let least = Some(Bytes::new(100));
        let replaced = Overhead::new(LinkLayer::Ethernet, Extra(-64), least, Some(Framing::Atm));
        assert_eq!(replaced.on_the_link(40), 3 * 53);
        assert_eq!(Overhead::new(LinkLayer::Raw, Extra(-64), None, None).on_the_link(40), 0);
    }

    #[test]
    fn what_is_added_may_be_negative() {
        for (text, value) in [("38b", Some(38)), ("-4b", Some(-4)), ("4", None), ("--4b", None)] {
            assert_eq!(Extra::read(&text.into()), value.map(Extra), "{text}");
        }
        assert_eq!(Extra(-4).to_text(), "-4b");
    }
}
