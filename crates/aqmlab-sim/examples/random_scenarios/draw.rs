//! Values drawn from what parameters declare.

use aqmlab_core::framing::Octets;
use aqmlab_core::params::read_value;
use aqmlab_core::{Bytes, ParamSpec, ParamType, Rate, Span, Stream, Table, Value};

/// Draws of all kinds.
pub struct Draw {
    stream: Stream,
    /// The chance that a parameter that may stay as it is does not.
    pub boldness: f64,
}

impl Draw {
    pub fn new(mut stream: Stream) -> Self {
        // Scenarios of which nearly everything is extreme carry hardly a packet: most are milder.
        let boldness = [0.05, 0.15, 0.3, 0.8][(stream.uniform() * 4.0) as usize];
        Draw { stream, boldness }
    }
    pub fn chance(&mut self, chance: f64) -> bool {
        self.stream.uniform() < chance
    }
    /// A whole number from `low` to `high`.
    pub fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + (self.stream.uniform() * (high - low + 1) as f64) as u64
    }
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.whole(0, items.len() as u64 - 1) as usize]
    }
    /// From `low` to `high`, as many of each order of magnitude; the ends are frequent.
    pub fn log(&mut self, low: f64, high: f64) -> f64 {
        let kind = self.stream.uniform();
        let first = if low > 0.0 { low } else { (high * 1e-9).min(1.0) };
        match kind {
            _ if kind < 0.08 => low,
            _ if kind < 0.16 => high,
            _ if first >= high => low + (high - low) * self.stream.uniform(),
            _ => first * libm::pow(high / first, self.stream.uniform()),
        }
    }
    fn log_whole(&mut self, low: u64, high: u64) -> u64 {
        (self.log(low as f64, high as f64).round() as u64).clamp(low, high)
    }

    /// Sets some of the parameters in `table`, but for those named in `not`.
    pub fn fill(&mut self, table: &mut Table, specs: &[ParamSpec], not: &[&str]) {
        for spec in specs.iter().filter(|spec| !not.contains(&spec.name)) {
            if self.chance(self.boldness)
                && let Some(value) = self.value(spec)
            {
                table.insert(spec.name, value);
            }
        }
    }

    /// Returns a random value of the parameter's kind; `None` if the kind is not specific enough.
    /// Values rejected for reasons other than the range are removed later.
    pub fn value(&mut self, spec: &ParamSpec) -> Option<Value> {
        if !spec.choices.is_empty() && spec.kind != "name or table" {
            return Some((*self.pick(spec.choices)).into());
        }
        if self.chance(0.08) {
            return Some((*self.pick(&["none", "auto", "unlimited"])).into());
        }
        let range = spec.range.as_ref().map(|(low, high)| (low.as_str(), high.as_str()));
        self.of_kind(spec.kind, range, spec.default.as_deref().unwrap_or_default())
    }

    fn of_kind(&mut self, kind: &str, range: Option<(&str, &str)>, default: &str) -> Option<Value> {
        let ends = |otherwise: (&'static str, &'static str)| range.unwrap_or(otherwise);
        Some(match kind {
            "time" => {
                let (low, high) = between::<Span>(ends(("1ns", "100s")))?;
                format!("{}ns", self.log_whole(low.as_nanos(), high.as_nanos())).into()
            }
            "rate" => {
                let (low, high) = between::<Rate>(ends(("1bit", "1tbit")))?;
                format!("{}bit", self.log_whole(low.as_bps(), high.as_bps())).into()
            }
            "size" => {
                let (low, high) = between::<Bytes>(ends(("0b", "1gb")))?;
                format!("{}b", self.log_whole(low.get(), high.get())).into()
            }
            "bytes" => {
                let (low, high) = between::<Octets>(ends(("0", "64")))?;
                Value::Integer(self.whole(0, (high.0 - low.0) as u64) as i64 + low.0)
            }
            "number" => {
                let (low, high) = between::<f64>(ends(("-10", "1000")))?;
                Value::Float(self.log(low, high))
            }
            "whole number" => {
                let (low, high) = between::<u64>(ends(("0", "9223372036854775807")))?;
                Value::Integer(i64::try_from(self.log_whole(low, high)).unwrap_or(i64::MAX))
            }
            "limit" => self.limit().into(),
            "threshold" if self.chance(0.5) => self.limit().into(),
            "threshold" => format!("{}ns", self.log_whole(1, 1_000_000_000)).into(),
            "dscp" => Value::Integer(self.whole(0, 63) as i64),
            "switch" => Value::Bool(self.chance(0.5)),
            "list" => {
                let unit = unit(default);
                let one = |draw: &mut Self| draw.with_unit(&unit);
                let count = self.whole(1, 4);
                Value::List((0..count).map(|_| one(self)).collect())
            }
            "distribution" => self.distribution(&unit(default)),
            _ => return None,
        })
    }

    fn limit(&mut self) -> String {
        match self.whole(0, 8) {
            0..=4 => format!("{}p", self.log_whole(1, 100_000)),
            5..=6 => format!("{}b", self.log_whole(1, 100_000_000)),
            7 => format!("{}bdp", self.log(0.01, 100.0)),
            _ => "unlimited".into(),
        }
    }

    fn with_unit(&mut self, unit: &str) -> Value {
        match unit {
            "" => Value::Float(self.log(0.0, 100.0)),
            "1" => Value::Integer(self.log_whole(0, 1000) as i64),
            _ => self.amount(unit).into(),
        }
    }

    /// A size, time or number of what a unit is one of.
    fn amount(&mut self, unit: &str) -> String {
        match unit {
            "b" | "kb" | "mb" | "gb" => format!("{}b", self.log_whole(1, 10_000_000)),
            "ns" | "us" | "ms" | "s" | "min" => format!("{}ns", self.log_whole(1, 5_000_000_000)),
            "bit" | "kbit" | "mbit" | "gbit" => {
                format!("{}bit", self.log_whole(1, 1_000_000_000))
            }
            _ => format!("{}", self.log_whole(1, 1000)),
        }
    }

    pub fn distribution(&mut self, unit: &str) -> Value {
        let mut amounts = [self.amount(unit), self.amount(unit)];
        let number = |text: &String| {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            digits.parse::<u64>().unwrap_or(0)
        };
        amounts.sort_by_key(number);
        let [low, high] = amounts;
        let shape = self.log(0.05, 20.0);
        let by = *self.pick(&["mean", "mean", "scale", "median"]);
        let law = match self.whole(0, 8) {
            0 => high,
            1 => format!("uniform({low}, {high})"),
            2 => format!("exponential({low})"),
            3 => format!("pareto(shape={shape}, {by}={low}, cap={high})"),
            4 => format!("pareto(shape={shape}, {by}={low})"),
            5 => format!("lognormal(sigma={shape}, {by}={low}, cap={high})"),
            6 => format!("weibull(shape={shape}, {by}={low}, cap={high})"),
            7 => format!("extreme(location={high}, scale={low})"),
            _ => format!("list({low}, {high})"),
        };
        law.into()
    }
}

/// The ends of a range, both of which may be words in other types.
fn between<T: ParamType>((low, high): (&str, &str)) -> Option<(T, T)> {
    let read = |text: &str| read_value::<T>(&text.into()).ok();
    Some((read(low)?, read(high)?))
}

/// The unit of the last number in a text: `kb` of `pareto(shape=1.2, mean=10kb)`; `1` if it is a
/// whole number without one.
fn unit(text: &str) -> String {
    let end = text.rfind(|c: char| c.is_ascii_digit()).map_or(text.len(), |at| at + 1);
    let unit: String = text[end..].chars().take_while(char::is_ascii_alphabetic).collect();
    match unit.is_empty() && !text.contains('.') {
        true => "1".into(),
        false => unit,
    }
}
