//! Values as another program takes them.

use alloc::borrow::Cow;
use alloc::{format, string::String, string::ToString};

use crate::params::ParamType;
use crate::quantity::{Bytes, Limit, Rate};
use crate::time::Span;
use crate::value::Value;

/// The form of a value in a dialect: that of tc(8).
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Same form as the parameter: a number, a name, text.
    Plain,
    /// A time with its unit (`5ms`, `5msec`).
    Time,
    /// A number of seconds, or a time with its unit.
    Seconds,
    /// A number of milliseconds, or a time with its unit.
    Millis,
    /// A rate with its unit.
    Rate,
    /// A number of bytes, or a size with its unit (`1514`, `32Mb`, `64k`).
    Size,
    /// A size, also with the cells of a table of rates (`15k/8`), which Linux no longer has.
    Burst,
    /// A number of packets (`1000`, `1000p`), or what else the parameter takes.
    Packets,
    /// A number with `p`, `pkt`, `pkts`, `packet` or `packets`.
    CountOfPackets,
    /// A whole number of bytes within limits.
    Octets(i64, i64),
    /// A whole number of sixteenths, up to 32.
    Sixteenths,
    /// A whole number of percent, with or without `%`.
    Percent,
    /// Words there, and the values of the parameter.
    Choice(&'static [(&'static str, &'static str)]),
}

/// Spellings of the units of time in tc(8).
const TIMES: [(&str, &str); 8] = [
    ("secs", "s"),
    ("sec", "s"),
    ("msecs", "ms"),
    ("msec", "ms"),
    ("usecs", "us"),
    ("usec", "us"),
    ("nsecs", "ns"),
    ("nsec", "ns"),
];

impl Form {
    /// Converts a value of the other program to the parameter's text form; the error lists allowed
    /// values.
    pub(super) fn read(self, text: &str) -> Result<Cow<'_, str>, String> {
        let is_bare = is_number(text);
        let bare = |unit: &str| Cow::from(format!("{text}{unit}"));
        Ok(match self {
            Form::Plain | Form::Rate => text.into(),
            Form::Seconds if is_bare => bare("s"),
            Form::Millis if is_bare => bare("ms"),
            Form::Time | Form::Seconds | Form::Millis => {
                let (number, unit) = text.split_at(end_of_number(text));
                let known = TIMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
                known.map_or(text.into(), |(_, unit)| format!("{number}{unit}").into())
            }
            Form::Size if is_bare => bare("b"),
            Form::Size if is_number(&text[..end_of_number(text)]) => {
                let unit = &text[end_of_number(text)..];
                let is_short = ["k", "m", "g"].iter().any(|short| short.eq_ignore_ascii_case(unit));
                if is_short { bare("b") } else { text.into() }
            }
            Form::Burst => match text.split_once('/') {
                Some((size, cell)) if is_number(cell) => return Form::Size.read(size),
                _ => return Form::Size.read(text),
            },
            Form::Packets if is_bare => bare("p"),
            Form::Size | Form::Packets => text.into(),
            Form::CountOfPackets => {
                let (number, unit) = text.split_at(end_of_number(text));
                match unit {
                    "p" | "pkt" | "pkts" | "packet" | "packets" if !number.is_empty() => {
                        number.into()
                    }
                    _ => return Err("a number of packets such as 5packets".into()),
                }
            }
            Form::Octets(low, high) => {
                let allowed = || format!("a whole number of bytes from {low} to {high}");
                let bytes = text.parse::<i64>().ok().filter(|bytes| (low..=high).contains(bytes));
                bytes.map(|_| text.into()).ok_or_else(allowed)?
            }
            Form::Sixteenths => {
                let sixteenths = text.parse::<u32>().ok().filter(|number| *number <= 32);
                let number = sixteenths.ok_or(
                    "a whole number of sixteenths from 0 to 32, as tc has it; KEY=VALUE takes the \
                     number itself",
                )?;
                (f64::from(number) / 16.0).to_string().into()
            }
            Form::Percent => text.strip_suffix('%').unwrap_or(text).into(),
            Form::Choice(words) => {
                let allowed = || {
                    let names: alloc::vec::Vec<&str> =
                        words.iter().map(|(word, _)| *word).collect();
                    format!("one of {}", names.join(", "))
                };
                let found = words.iter().find(|(word, _)| *word == text);
                found.map(|(_, value)| (*value).into()).ok_or_else(allowed)?
            }
        })
    }

    /// Returns the value as the other program takes it; `None` if it cannot.
    pub(super) fn write(self, text: &str) -> Option<String> {
        let value = Value::from(text);
        let whole = |unit: u64| {
            let nanos = Span::read(&value)?.as_nanos();
            (nanos % unit == 0).then(|| (nanos / unit).to_string())
        };
        match self {
            Form::Plain => (text != "none" && text != "auto").then(|| text.into()),
            // tc counts microseconds in 32 bits.
            Form::Time => {
                let nanos = Span::read(&value)?.as_nanos();
                let fits = nanos % 1000 == 0 && nanos / 1000 <= u64::from(u32::MAX);
                fits.then(|| text.into())
            }
            Form::Seconds => whole(1_000_000_000),
            Form::Millis => whole(1_000_000),
            Form::Rate => Rate::read(&value).map(|_| text.into()),
            Form::Size | Form::Burst => {
                let bytes = match Limit::read(&value) {
                    Some(Limit::Bytes(bytes)) => bytes,
                    Some(_) => return None,
                    None => Bytes::read(&value)?,
                };
                (bytes.get() <= u64::from(u32::MAX)).then(|| bytes.get().to_string())
            }
            Form::Packets => match Limit::read(&value)? {
                Limit::Packets(packets) if packets <= u64::from(u32::MAX) => {
                    Some(packets.to_string())
                }
                _ => None,
            },
            Form::CountOfPackets => is_number(text).then(|| format!("{text}packets")),
            Form::Octets(low, high) => {
                let bytes = crate::framing::Octets::read(&value)?.0;
                (low..=high).contains(&bytes).then(|| bytes.to_string())
            }
            Form::Sixteenths => {
                let sixteenths = f64::read(&value)? * 16.0;
                let is_whole = crate::math::round(sixteenths) == sixteenths;
                (is_whole && sixteenths <= 32.0).then(|| sixteenths.to_string())
            }
            Form::Percent => {
                let percent = f64::read(&value)?;
                (crate::math::round(percent) == percent).then(|| percent.to_string())
            }
            Form::Choice(words) => {
                let found = words.iter().find(|(_, value)| *value == text);
                found.map(|(word, _)| (*word).into())
            }
        }
    }
}

/// Returns true for digits alone, perhaps with a point.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && end_of_number(text) == text.len()
}

/// Returns the end of the digits at the beginning of a text.
fn end_of_number(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len())
}
