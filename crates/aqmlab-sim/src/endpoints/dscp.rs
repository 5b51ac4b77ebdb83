//! Classes of service by their names.

use aqmlab_core::{ParamType, Value};

/// A DSCP: the upper six bits of the traffic class (RFC 2474, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dscp(pub u8);

/// Returns all names with their numbers: RFC 2474 (cs), RFC 2597 (af, with class and drop precedence),
/// RFC 3246 (ef), RFC 5865 (va), RFC 8622 (le).
fn names() -> impl Iterator<Item = (String, u8)> {
    let selectors = (0..8).map(|class| (format!("cs{class}"), 8 * class));
    let assured = (1..5).flat_map(|class| (1..4).map(move |precedence| (class, precedence)));
    let assured = assured
        .map(|(class, precedence)| (format!("af{class}{precedence}"), 8 * class + 2 * precedence));
    let others = [("le", 1), ("va", 44), ("ef", 46)].map(|(name, dscp)| (name.to_string(), dscp));
    selectors.chain(assured).chain(others)
}

impl ParamType for Dscp {
    const KIND: &'static str = "dscp";
    fn allowed() -> String {
        "a DSCP by name (cs0 to cs7, af11 to af43, ef, va, le) or number (0 to 63)".into()
    }
    fn read(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value
            && let Some((_, number)) = names().find(|(name, _)| name == text)
        {
            return Some(Dscp(number));
        }
        let number = u64::read(value)?;
        (number < 64).then_some(Dscp(number as u8))
    }
    fn to_text(&self) -> String {
        let name = names().find(|(_, number)| *number == self.0);
        name.map_or_else(|| self.0.to_string(), |(name, _)| name)
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
