//! The path of a recorded connection, for the closed loop.

use aqmlab_core::{Error, Result, Span, Table, Time, Value};

/// Path between the two ends of a recorded connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Bits a second of IP packets; 0 is without limit.
    pub rate: u64,
    /// From the sender to the receiver, without the time of transmission.
    pub delay: Span,
    /// Back.
    pub return_delay: Span,
    /// Packets waiting or in transmission; 0 is without limit.
    pub limit: u64,
    /// From so many waiting packets on, data are marked; 0 for never.
    pub mark_above: u64,
    /// Data segments that are lost, by number from 1, retransmissions counted, sorted.
    pub lost: Vec<u64>,
    /// Marked packets.
    pub marked: Vec<u64>,
    /// Acknowledgements that are lost, by number from 1.
    pub acks_lost: Vec<u64>,
    /// Late packets with their delays.
    pub late: Vec<(u64, Span)>,
    /// Data sent in these times are lost.
    pub blackouts: Vec<(Time, Time)>,
    /// From these times on the rate is another.
    pub rates: Vec<(Time, u64)>,
}

fn wrong(key: &str, allowed: &str) -> Error {
    Error::new(format!("expected {allowed}")).at(key).at("path")
}
fn number(key: &str, value: &Value) -> Result<f64> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::Text(text) => text.parse().map_err(|_| wrong(key, "a number")),
        _ => Err(wrong(key, "a number")),
    }
}
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
fn list<'a>(key: &str, value: &'a Value) -> Result<&'a [Value]> {
    match value {
        Value::List(values) => Ok(values),
        _ => Err(wrong(key, "a list")),
    }
}
fn numbers(key: &str, value: &Value) -> Result<Vec<u64>> {
    let numbers = list(key, value)?.iter().map(|value| Ok(number(key, value)? as u64));
    let mut numbers = numbers.collect::<Result<Vec<_>>>()?;
    numbers.sort_unstable();
    Ok(numbers)
}
fn pairs(key: &str, value: &Value) -> Result<Vec<(f64, f64)>> {
    let pair = |value: &Value| match list(key, value)? {
        [first, second] => Ok((number(key, first)?, number(key, second)?)),
        _ => Err(wrong(key, "pairs of numbers")),
    };
    list(key, value)?.iter().map(pair).collect()
}

impl Path {
    /// Parses the table `path` of a case; random losses are in `lost`.
    ///
    /// # Errors
    /// Returns an error if a key or a value is not allowed.
    pub fn read(table: &Table, lost: &[u64]) -> Result<Path> {
        let at = |seconds: f64| Time::from_nanos(nanos(seconds));
        let mut path = Path::default();
        let mut back = None;
        for (key, value) in table.iter() {
            match key {
                "rate" => path.rate = number(key, value)? as u64,
                "delay" => path.delay = Span::from_nanos(nanos(number(key, value)?)),
                "return_delay" => back = Some(Span::from_nanos(nanos(number(key, value)?))),
                "limit" => path.limit = number(key, value)? as u64,
                "mark_above" => path.mark_above = number(key, value)? as u64,
                "drop" => path.lost.extend(numbers(key, value)?),
                "loss" => path.lost.extend(lost),
                "mark" => path.marked = numbers(key, value)?,
                "drop_acks" => path.acks_lost = numbers(key, value)?,
                "late" => {
                    let Value::Table(late) = value else { return Err(wrong(key, "a table")) };
                    for (segment, seconds) in late.iter() {
                        let segment = segment.parse().map_err(|_| wrong(key, "numbers"))?;
                        let late = Span::from_nanos(nanos(number(key, seconds)?));
                        path.late.push((segment, late));
                    }
                    path.late.sort_unstable();
                }
                "blackout" => {
                    let pairs = pairs(key, value)?.into_iter();
                    path.blackouts = pairs.map(|(from, to)| (at(from), at(to))).collect();
                }
                "rates" => {
                    let pairs = pairs(key, value)?.into_iter();
                    path.rates = pairs.map(|(from, rate)| (at(from), rate as u64)).collect();
                }
                _ => return Err(wrong(key, "a key of a recorded path")),
            }
        }
        path.return_delay = back.unwrap_or(path.delay);
        path.lost.sort_unstable();
        path.lost.dedup();
        Ok(path)
    }
}
