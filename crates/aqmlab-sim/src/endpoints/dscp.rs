//! Classes of service by their names.

use aqmlab_core::{ParamType, Value};

/// A DSCP: the upper six bits of the traffic class (RFC 2474, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dscp(pub u8);

/// RFC 2474 (cs), RFC 2597 (af), RFC 3246 (ef), RFC 5865 (va), RFC 8622 (le).
const NAMES: &[(&str, u8)] = &[
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

impl ParamType for Dscp {
    const KIND: &'static str = "dscp";
    fn allowed() -> String {
        "a DSCP by name (cs0 to cs7, af11 to af43, ef, va, le) or number (0 to 63)".into()
    }
    fn read(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value
            && let Some((_, number)) = NAMES.iter().find(|(name, _)| name == text)
        {
            return Some(Dscp(*number));
        }
        let number = u64::read(value)?;
        (number < 64).then_some(Dscp(number as u8))
    }
    fn to_text(&self) -> String {
        let name = NAMES.iter().find(|(_, number)| *number == self.0);
        name.map_or_else(|| self.0.to_string(), |(name, _)| (*name).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_read_back() {
        for number in 0..64 {
            let dscp = Dscp(number);
            assert_eq!(Dscp::read(&dscp.to_text().as_str().into()), Some(dscp));
        }
        assert_eq!(Dscp::read(&"ef".into()), Some(Dscp(46)));
        assert_eq!(Dscp::read(&"64".into()), None);
        assert_eq!(Dscp::read(&"eff".into()), None);
    }
}
