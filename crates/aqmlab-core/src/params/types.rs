//! The types of single values: times, rates, sizes, limits, numbers, switches
//! and text.

use alloc::string::{String, ToString};

use super::{ParamType, TABLE};
use crate::math;
use crate::quantity::{Bytes, Limit, Rate};
use crate::time::Span;
use crate::value::{Table, Value};

/// Splits `12.5ms` into the number and the unit; `None` for a number that is
/// not finite or is negative, or where there is no unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim_start()))
}

/// `number * factor` as a whole number, if it fits.
fn scaled(number: f64, factor: f64) -> Option<u64> {
    let value = math::round(number * factor);
    (value <= 9.2e18).then_some(value as u64)
}

fn read_text_with_units(value: &Value, units: &[(&str, f64)]) -> Option<u64> {
    read_fraction(value, units).and_then(|number| scaled(number, 1.0))
}

/// A quantity in its base unit, not rounded to whole ones.
fn read_fraction(value: &Value, units: &[(&str, f64)]) -> Option<f64> {
    let Value::Text(text) = value else {
        return None;
    };
    let (number, unit) = number_and_unit(text)?;
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1;
    Some(number * factor)
}

/// A size in bytes, which need not be whole.
pub(crate) fn read_fractional_bytes(value: &Value) -> Option<f64> {
    read_fraction(value, SIZE_UNITS)
}

const TIME_UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
/// Without `bps`: that is bytes per second to tc, and bits to everybody else.
const RATE_UNITS: &[(&str, f64)] =
    &[("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("tbit", 1e12)];
const SIZE_UNITS: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kb", 1024.0),
    ("mb", 1_048_576.0),
    ("gb", 1_073_741_824.0),
    ("kbit", 125.0),
    ("mbit", 125e3),
    ("gbit", 125e6),
];

impl ParamType for Span {
    const KIND: &'static str = "time";
    fn allowed() -> String {
        "a time with its unit, such as 5ms (units: ns, us, ms, s, min)".into()
    }
    fn read(value: &Value) -> Option<Self> {
        read_text_with_units(value, TIME_UNITS).map(Span::from_nanos)
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for Rate {
    const KIND: &'static str = "rate";
    fn allowed() -> String {
        "a rate with its unit, such as 10mbit (units: bit, kbit, mbit, gbit, tbit; \
         not mbps, which is bytes per second to tc and bits to others)"
            .into()
    }
    fn read(value: &Value) -> Option<Self> {
        read_text_with_units(value, RATE_UNITS).map(Rate::from_bps)
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for Bytes {
    const KIND: &'static str = "size";
    fn allowed() -> String {
        "a size with its unit, such as 1500b (units: b, kb, mb, gb; as with tc, 1kb is 1024 bytes)"
            .into()
    }
    fn read(value: &Value) -> Option<Self> {
        read_text_with_units(value, SIZE_UNITS).map(Bytes::new)
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for Limit {
    const KIND: &'static str = "limit";
    fn allowed() -> String {
        "a limit above 0 in packets (100p), bytes (150000b, 64kb) or bandwidth-delay products \
         (2bdp), or `unlimited`"
            .into()
    }
    fn read(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else {
            return None;
        };
        if text == "unlimited" {
            return Some(Limit::Unlimited);
        }
        let (number, unit) = number_and_unit(text)?;
        let is_unit = |name: &str| name.eq_ignore_ascii_case(unit);
        match number {
            packets if is_unit("p") && packets >= 1.0 && math::floor(packets) == packets => {
                scaled(packets, 1.0).map(Limit::Packets)
            }
            multiple if is_unit("bdp") && multiple > 0.0 => Some(Limit::Bdp(multiple)),
            _ => Bytes::read(value).filter(|bytes| bytes.get() > 0).map(Limit::Bytes),
        }
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for f64 {
    const KIND: &'static str = "number";
    fn allowed() -> String {
        "a number such as 0.1".into()
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
        .filter(|number| number.is_finite())
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for u64 {
    const KIND: &'static str = "whole number";
    fn allowed() -> String {
        "a whole number such as 3".into()
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl ParamType for bool {
    const KIND: &'static str = "switch";
    fn allowed() -> String {
        "true or false".into()
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(flag) => Some(*flag),
            Value::Text(text) if text == "true" => Some(true),
            Value::Text(text) if text == "false" => Some(false),
            _ => None,
        }
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn choices() -> &'static [&'static str] {
        &["true", "false"]
    }
}

impl ParamType for String {
    const KIND: &'static str = "text";
    fn allowed() -> String {
        "text in quotes".into()
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_text().ok().map(str::to_string)
    }
    fn to_text(&self) -> String {
        self.clone()
    }
}

/// A table that is read later, by the component that it changes.
impl ParamType for Table {
    const KIND: &'static str = TABLE;
    fn allowed() -> String {
        "a table".into()
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_table().ok().cloned()
    }
    fn to_text(&self) -> String {
        self.to_value().to_string()
    }
    fn to_value(&self) -> Value {
        Value::Table(self.clone())
    }
}

/// Any value, which is read later.
impl ParamType for Value {
    const KIND: &'static str = "value";
    fn allowed() -> String {
        "a value".into()
    }
    fn read(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
    fn to_text(&self) -> String {
        self.to_string()
    }
    fn to_value(&self) -> Value {
        self.clone()
    }
}
