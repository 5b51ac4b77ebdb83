//! Size of packets on the wire: headers of the link layer, minimum size, cells.
//!
//! Links, shapers and CAKE share this declaration.
//!
//! # Sources
//! - tc-cake(8), overhead compensation; the order of the steps is that of
//!   `cake_calc_overhead` in Linux's sch_cake, and of `psched_l2t_ns`.
//! - tc-stab(8): `overhead`, `mpu`, and the cells of ATM.
//!
//! # Differences
//! 1. `overhead` counts from the packet's size as the scenario states it (IP
//!    and up). `tc` counts from the size that the kernel sees, which includes
//!    14 bytes on an Ethernet device. CAKE leaves them out with a keyword or an
//!    overhead and counts them otherwise, here as in Linux.
//! 2. No tables: the size is computed for each packet.

use alloc::string::{String, ToString};

use crate::error::Result;
use crate::params::{Auto, ParamType};
use crate::quantity::Bytes;
use crate::value::Value;
use crate::words::{Effect, Form, Settings, Word};
use crate::{choices, params};

choices! {
    /// Coding of frames on the line.
    pub enum Cells {
        /// None: a frame takes its own size.
        None = "none",
        /// Cells of 53 bytes that carry 48 bytes each (ADSL).
        Atm = "atm",
        /// One more byte for every 64 bytes or part of them (VDSL2).
        Ptm = "ptm",
    }
}

impl Cells {
    /// Returns the bytes that a frame of this size takes.
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
    /// Link layers by the keywords of tc-cake(8): overhead, minimum size and cells.
    pub enum LinkLayer {
        /// The packet alone.
        Raw = "raw",
        /// More than any link in use is likely to add.
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
    /// Returns the framing of the link layer.
    pub const fn framing(self) -> Framing {
        let (overhead, mpu, cells) = match self {
            LinkLayer::Raw => (0, 0, Cells::None),
            LinkLayer::Conservative => (48, 0, Cells::Atm),
            LinkLayer::IpoaVcmux => (8, 0, Cells::Atm),
            LinkLayer::IpoaLlcsnap => (16, 0, Cells::Atm),
            LinkLayer::BridgedVcmux => (24, 0, Cells::Atm),
            LinkLayer::BridgedLlcsnap | LinkLayer::PppoeVcmux => (32, 0, Cells::Atm),
            LinkLayer::PppoaVcmux => (10, 0, Cells::Atm),
            LinkLayer::PppoaLlc => (14, 0, Cells::Atm),
            LinkLayer::PppoeLlcsnap => (40, 0, Cells::Atm),
            LinkLayer::PppoePtm => (30, 0, Cells::Ptm),
            LinkLayer::BridgedPtm => (22, 0, Cells::Ptm),
            LinkLayer::Docsis => (18, 64, Cells::None),
            LinkLayer::Ethernet => (38, 84, Cells::None),
        };
        Framing { overhead, mpu, cells }
    }
}

/// A number of bytes that is added to packets and may be negative: `38`, `38b` or `-4b`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct Octets(pub i64);

impl ParamType for Octets {
    const KIND: &'static str = "bytes";
    fn allowed() -> String {
        "a number of bytes such as 38, 38b or -4b".into()
    }
    fn read(value: &Value) -> Option<Self> {
        let text = match value {
            Value::Integer(bytes) => return Some(Octets(*bytes)),
            Value::Text(text) => text.trim(),
            _ => return None,
        };
        if let Ok(bytes) = text.parse() {
            return Some(Octets(bytes));
        }
        let (sign, size) = text.strip_prefix('-').map_or((1, text), |size| (-1, size));
        let size = Bytes::read(&Value::Text(size.to_string()))?;
        i64::try_from(size.get()).ok().map(|size| Octets(sign * size))
    }
    fn to_text(&self) -> String {
        alloc::format!("{}b", self.0)
    }
}

params! {
    /// Parameters of the size of packets on a wire.
    pub struct FramingParams {
        /// Link layer, with its overhead, minimum size and cells.
        link_layer: LinkLayer = LinkLayer::Raw, [left out], source "tc-cake(8), overhead keywords";
        /// Bytes added to each packet; `none`: those of the link layer.
        overhead: Option<Octets> = None, [left out], in Some(Octets(-64)) => Some(Octets(65_535)),
            source "tc-cake(8), overhead; tc-stab(8)";
        /// Minimum size of a packet with its overhead; `none`: that of the link layer.
        mpu: Option<Octets> = None, [left out], in Some(Octets(0)) => Some(Octets(65_535)),
            source "tc-cake(8), mpu; tc-stab(8)";
        /// Cells that carry frames; `none`: no cells; `auto`: those of the link layer.
        framing: Auto<Cells> = Auto::Auto, [left out],
            source "tc-cake(8), atm, ptm, noatm";
    }
}

impl FramingParams {
    /// Returns the sizes that these parameters give.
    pub fn resolve(&self) -> Framing {
        let usual = self.link_layer.framing();
        Framing {
            overhead: self.overhead.map_or(usual.overhead, |bytes| bytes.0 as i32),
            mpu: self.mpu.map_or(usual.mpu, |bytes| bytes.0 as u32),
            cells: self.framing.or_else(|| usual.cells),
        }
    }

    /// Returns the sizes that CAKE counts on a device whose packets have a header of so many
    /// bytes: with neither a keyword nor an overhead it is part of them (`CAKE_FLAG_OVERHEAD` in
    /// Linux's sch_cake).
    pub fn resolve_on_device(&self, header: u32) -> Framing {
        let framing = self.resolve();
        if self.link_layer != LinkLayer::Raw || self.overhead.is_some() {
            return framing;
        }
        Framing { overhead: header as i32, ..framing }
    }
}

/// The parameters of the same sizes without a link layer.
impl From<Framing> for FramingParams {
    fn from(framing: Framing) -> Self {
        framing.with_layer(LinkLayer::Raw)
    }
}

/// The words of tc-cake(8) for the size of packets; `overhead` and `mpu` with its limits.
pub const CAKE_WORDS: &[Word] = &[
    keyword("raw", |settings| put_keyword(settings, LinkLayer::Raw)),
    keyword("conservative", |settings| put_keyword(settings, LinkLayer::Conservative)),
    keyword("ipoa-vcmux", |settings| put_keyword(settings, LinkLayer::IpoaVcmux)),
    keyword("ipoa-llcsnap", |settings| put_keyword(settings, LinkLayer::IpoaLlcsnap)),
    keyword("bridged-vcmux", |settings| put_keyword(settings, LinkLayer::BridgedVcmux)),
    keyword("bridged-llcsnap", |settings| put_keyword(settings, LinkLayer::BridgedLlcsnap)),
    keyword("pppoa-vcmux", |settings| put_keyword(settings, LinkLayer::PppoaVcmux)),
    keyword("pppoa-llc", |settings| put_keyword(settings, LinkLayer::PppoaLlc)),
    keyword("pppoe-vcmux", |settings| put_keyword(settings, LinkLayer::PppoeVcmux)),
    keyword("pppoe-llcsnap", |settings| put_keyword(settings, LinkLayer::PppoeLlcsnap)),
    keyword("pppoe-ptm", |settings| put_keyword(settings, LinkLayer::PppoePtm)),
    keyword("bridged-ptm", |settings| put_keyword(settings, LinkLayer::BridgedPtm)),
    keyword("docsis", |settings| put_keyword(settings, LinkLayer::Docsis)),
    keyword("ethernet", |settings| put_keyword(settings, LinkLayer::Ethernet)),
    Word { word: "ether-vlan", effect: Effect::Call { sets: None, call: put_vlan } },
    Word::ignored("via-ethernet", false, "sizes are those of IP packets"),
    Word::value("overhead", "overhead", Form::Octets(-64, 256)),
    Word::value("mpu", "mpu", Form::Octets(0, 256)),
    Word::set("atm", "framing", "atm"),
    Word::set("ptm", "framing", "ptm"),
    Word::set("noatm", "framing", "none"),
];

/// The words of tc(8) for the size of packets in the rate of a class.
pub const CLASS_WORDS: &[Word] = &[
    Word::value("overhead", "overhead", Form::Octets(0, 65_535)),
    Word::value("mpu", "mpu", Form::Octets(0, 65_535)),
    Word::value(
        "linklayer",
        "framing",
        Form::Choice(&[("ethernet", "none"), ("atm", "atm"), ("adsl", "atm")]),
    ),
];

const fn keyword(word: &'static str, call: fn(&mut dyn Settings) -> Result<()>) -> Word {
    Word { word, effect: Effect::Call { sets: Some(("link_layer", word)), call } }
}

/// Does what `cake_parse_opt` of iproute2 does for a link layer's keyword.
fn put_keyword(settings: &mut dyn Settings, layer: LinkLayer) -> Result<()> {
    let (before, own) = (given(settings).resolve(), layer.framing());
    let after = match layer {
        LinkLayer::Raw | LinkLayer::Conservative => Framing { mpu: before.mpu, ..own },
        _ => Framing {
            overhead: before.overhead + own.overhead,
            mpu: if own.mpu > 0 { own.mpu } else { before.mpu },
            // All but Ethernet have their own.
            cells: if layer == LinkLayer::Ethernet { before.cells } else { own.cells },
        },
    };
    put(settings, &after.with_layer(layer))
}

/// One more tag of a virtual LAN.
fn put_vlan(settings: &mut dyn Settings) -> Result<()> {
    let mut params = given(settings);
    params.overhead = Some(Octets(i64::from(params.resolve().overhead) + 4));
    put(settings, &params)
}

/// Returns the parameters of the size of packets among others.
fn given(settings: &dyn Settings) -> FramingParams {
    let mut params = FramingParams::default();
    for key in params.keys() {
        let text = settings.get(&key).unwrap_or_default();
        params.put(&key, &text).expect("a value that was read");
    }
    params
}

fn put(settings: &mut dyn Settings, params: &FramingParams) -> Result<()> {
    let entries = params.keys().into_iter();
    entries
        .map(|key| (params.get(&key).unwrap_or_default(), key))
        .try_for_each(|(text, key)| settings.put(&key, &text))
}

/// Size of packets on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to each packet.
    pub overhead: i32,
    /// Minimum size of a packet with its overhead.
    pub mpu: u32,
    /// Cells that carry frames.
    pub cells: Cells,
}

impl Framing {
    /// Packets without any addition.
    pub const NONE: Framing = LinkLayer::Raw.framing();

    /// Returns these parameters with a link layer, which leaves out the sizes that it sets.
    fn with_layer(self, link_layer: LinkLayer) -> FramingParams {
        let own = link_layer.framing();
        let other = |value: i64, usual: i64| (value != usual).then_some(Octets(value));
        FramingParams {
            link_layer,
            overhead: other(self.overhead.into(), own.overhead.into()),
            mpu: other(self.mpu.into(), own.mpu.into()),
            framing: if self.cells == own.cells { Auto::Auto } else { Auto::Set(self.cells) },
        }
    }

    /// Returns the bytes that a packet of this size takes on the wire.
    #[inline]
    pub fn wire_size(&self, size: u32) -> u32 {
        let framed = size.saturating_add_signed(self.overhead).max(self.mpu);
        self.cells.carry(u64::from(framed)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    fn sizes<const N: usize>(layer: LinkLayer, packets: [u32; N]) -> [u32; N] {
        packets.map(|size| layer.framing().wire_size(size))
    }

    #[test]
    fn atm_fills_whole_cells() {
        // 1508 bytes are 31.4 cells; an acknowledgement of 40 bytes with 8 of AAL5 fits in one,
        // a byte more takes two.
        assert_eq!(sizes(LinkLayer::IpoaVcmux, [1500, 40, 41]), [32 * 53, 53, 106]);
        // PPPoE over LLC: 52 bytes are two cells.
        assert_eq!(sizes(LinkLayer::PppoeLlcsnap, [12]), [106]);
    }

    #[test]
    fn ptm_adds_a_byte_for_every_64_begun() {
        // 1530 bytes are 23.9 times 64.
        assert_eq!(sizes(LinkLayer::PppoePtm, [1500]), [1530 + 24]);
        assert_eq!(sizes(LinkLayer::BridgedPtm, [42, 43]), [64 + 1, 65 + 2]);
    }

    #[test]
    fn ethernet_frames_have_a_minimum_size() {
        assert_eq!(sizes(LinkLayer::Ethernet, [1500, 40]), [1538, 84]);
        assert_eq!(sizes(LinkLayer::Docsis, [40, 46, 1500]), [64, 64, 1518]);
        assert_eq!(sizes(LinkLayer::Raw, [0, 40]), [0, 40]);
    }

    #[test]
    fn single_values_replace_those_of_the_link_layer() {
        let params = |settings: &[(&str, &str)]| {
            let mut params = FramingParams::default();
            for (key, value) in settings {
                params.set(key, &(*value).into()).unwrap();
            }
            params
        };
        assert_eq!(FramingParams::default().resolve(), Framing::NONE);
        let vlan = params(&[("link_layer", "ethernet"), ("overhead", "42b")]);
        assert_eq!([1500, 40].map(|size| vlan.resolve().wire_size(size)), [1542, 84]);
        let cells = params(&[("overhead", "-64"), ("mpu", "100"), ("framing", "atm")]);
        assert_eq!(cells.resolve().wire_size(40), 3 * 53);
        let none = params(&[("link_layer", "pppoe-ptm"), ("framing", "none"), ("overhead", "0")]);
        assert_eq!((none.resolve(), none.framing), (Framing::NONE, Auto::Set(Cells::None)));
        assert_eq!(params(&[("overhead", "-64b")]).resolve().wire_size(40), 0);
    }

    #[test]
    fn bytes_may_be_negative_and_need_no_unit() {
        for (text, value) in
            [("38b", Some(38)), ("-4b", Some(-4)), ("4", Some(4)), ("--4b", None), ("4p", None)]
        {
            assert_eq!(Octets::read(&text.into()), value.map(Octets), "{text}");
        }
        assert_eq!(Octets::read(&Value::Integer(-4)), Some(Octets(-4)));
        assert_eq!(Octets(-4).to_text(), "-4b");
    }
}
