//! Packets that a threshold is for, by their DS field.

use alloc::{format, string::String};

use aqmlab_core::{Packet, ParamType, Value};

/// A value of the DS field (DSCP and ECN field) under a mask: `0x1/0x3` selects ECT(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsSelector {
    value: u8,
    mask: u8,
}

impl DsSelector {
    /// Returns true for a packet whose DS field has the value; a mask of 0 selects all, as in
    /// Linux (`codel_dequeue`).
    pub fn selects(self, packet: &Packet) -> bool {
        let field = packet.class() << 2 | packet.ecn() as u8;
        self.mask == 0 || field & self.mask == self.value
    }
}

impl ParamType for DsSelector {
    const KIND: &'static str = "text";
    fn allowed() -> String {
        "a value and a mask of the DS field, such as 0x1/0x3 for ECT(1)".into()
    }
    fn read(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        let (value, mask) = text.split_once('/')?;
        let byte = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        Some(DsSelector { value: byte(value)?, mask: byte(mask)? })
    }
    fn to_text(&self) -> String {
        format!("{:#x}/{:#x}", self.value, self.mask)
    }
}
