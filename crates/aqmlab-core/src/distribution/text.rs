//! Values, tables and texts to distributions.

use alloc::{format, string::String, string::ToString, vec, vec::Vec};

use super::{Distribution, Law, Measure, unknown};
use crate::error::{Error, Result};
use crate::params::read_value;
use crate::value::{Table, Value};

pub(super) fn parse<T: Measure>(value: &Value) -> Result<Distribution<T>> {
    match value {
        Value::Table(table) => {
            let mut entries = table.iter();
            match (entries.next(), entries.next()) {
                (Some((name, arguments)), None) => {
                    of_law(name, arguments).map_err(|error| error.at(name))
                }
                _ => Err(Error::not_allowed(value, "a table with one distribution")),
            }
        }
        Value::Text(text) => match call(text) {
            Some((name, arguments)) => of_law(name, &arguments_of(arguments)),
            None => read_value(value).map(Distribution::constant),
        },
        other => read_value(other).map(Distribution::constant),
    }
}

/// Splits `pareto(shape=1.5, mean=10kb)` into the name and the rest.
fn call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim().split_once('(')?;
    Some((name.trim(), rest.strip_suffix(')')?))
}

/// Converts arguments in parentheses to a value of a table.
fn arguments_of(text: &str) -> Value {
    let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
    if parts().any(|part| part.contains('=')) {
        let pair = |part: &str| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (key.trim().to_string(), Value::from(value.trim()))
        };
        return Value::Table(parts().map(pair).collect());
    }
    let item = |part: &str| match part.split_once(':') {
        Some((value, share)) => Value::List(vec![value.trim().into(), share.trim().into()]),
        None => Value::from(part),
    };
    Value::List(parts().map(item).collect())
}

fn of_law<T: Measure>(name: &str, arguments: &Value) -> Result<Distribution<T>> {
    match name {
        "constant" => single::<T>(arguments).map(Distribution::constant),
        "exponential" => single::<T>(arguments).map(Distribution::exponential),
        "uniform" => {
            let ends = items::<T>(arguments)?;
            let [low, high] = ends[..] else {
                return Err(Error::not_allowed(arguments, "two values: the least and the largest"));
            };
            if low.to_base() > high.to_base() {
                return Err(
                    Error::new("the first value is larger than the second").given(arguments)
                );
            }
            let text = format!("{}, {}", low.to_text(), high.to_text());
            Ok(with_text(Law::Uniform(low.to_base(), high.to_base()), name, &text))
        }
        "list" => {
            let values = items::<T>(arguments)?;
            if values.is_empty() {
                return Err(Error::not_allowed(arguments, "at least one value"));
            }
            let text: Vec<String> = values.iter().map(T::to_text).collect();
            let law = Law::List(values.into_iter().map(T::to_base).collect());
            Ok(with_text(law, name, &text.join(", ")))
        }
        "cdf" => of_cdf(arguments),
        "pareto" | "weibull" | "lognormal" => of_shape(name, arguments.as_table()?),
        "extreme" => of_extreme(arguments.as_table()?),
        other => Err(unknown(other)),
    }
}

fn of_extreme<T: Measure>(table: &Table) -> Result<Distribution<T>> {
    table.only(["location", "scale", "cap"])?;
    let location = required(table, "location", read_value::<T>)?;
    let scale = required(table, "scale", T::read_spread)?;
    let text = format!("location={}, scale={}", location.to_text(), T::spread_to_text(scale));
    capped(Law::Extreme { location: location.to_base(), scale }, "extreme", &text, table)
}

/// Reads the value of a key, if it is there.
fn optional<V>(table: &Table, key: &str, read: fn(&Value) -> Result<V>) -> Result<Option<V>> {
    table.get(key).map(read).transpose().map_err(|error| error.at(key))
}

/// Reads the value of a key that must be there.
fn required<V>(table: &Table, key: &str, read: fn(&Value) -> Result<V>) -> Result<V> {
    let missing = || Error::new(format!("the key `{key}` is missing"));
    optional(table, key, read)?.ok_or_else(missing)
}

/// Returns a distribution with the cap of its table.
fn capped<T: Measure>(law: Law, name: &str, text: &str, table: &Table) -> Result<Distribution<T>> {
    let cap = optional(table, "cap", read_value::<T>)?;
    let shown = cap.map(|cap| format!(", cap={}", cap.to_text())).unwrap_or_default();
    Ok(Distribution::new(law, cap.map(T::to_base), format!("{name}({text}{shown})")))
}

fn with_text<T: Measure>(law: Law, name: &str, arguments: &str) -> Distribution<T> {
    Distribution::new(law, None, format!("{name}({arguments})"))
}

/// One argument, alone or in a list.
fn single<T: Measure>(arguments: &Value) -> Result<T> {
    match arguments {
        Value::List(items) if items.len() == 1 => read_value(&items[0]),
        other => read_value(other),
    }
}

fn items<T: Measure>(arguments: &Value) -> Result<Vec<T>> {
    match arguments {
        Value::List(items) => items.iter().map(read_value::<T>).collect(),
        other => Err(Error::not_allowed(other, "a list of values")),
    }
}

fn of_cdf<T: Measure>(arguments: &Value) -> Result<Distribution<T>> {
    let allowed = "a list of [value, probability], both rising, the last probability 1";
    let refused = || Error::not_allowed(arguments, allowed);
    let Value::List(pairs) = arguments else { return Err(refused()) };
    let mut points = Vec::new();
    let mut text = Vec::new();
    for pair in pairs {
        let Value::List(pair) = pair else { return Err(refused()) };
        let [value, share] = &pair[..] else { return Err(refused()) };
        let (value, share) = (read_value::<T>(value)?, read_value::<f64>(share)?);
        points.push((value.to_base(), share));
        text.push(format!("{}:{share}", value.to_text()));
    }
    let rises = points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1);
    let ends = points.first().is_some_and(|first| first.1 >= 0.0)
        && points.last().is_some_and(|last| last.1 == 1.0);
    if rises && ends {
        Ok(with_text(Law::Cdf(points), "cdf", &text.join(", ")))
    } else {
        Err(refused())
    }
}

/// The laws with a shape, and a mean or a scale.
fn of_shape<T: Measure>(name: &str, table: &Table) -> Result<Distribution<T>> {
    let [shape_key, scale_key] = match name {
        "lognormal" => ["sigma", "median"],
        _ => ["shape", "scale"],
    };
    table.only([shape_key, scale_key, "mean", "cap"])?;
    let number = |key: &str| optional(table, key, read_value::<T>);
    let shape = required(table, shape_key, read_value::<f64>)?;
    // So flat a law has values beyond all numbers.
    if !(0.05..=100.0).contains(&shape) {
        return Err(Error::not_allowed(shape, "0.05 to 100").at(shape_key));
    }
    let law = |scale: f64| match name {
        "pareto" => Law::Pareto { shape, scale },
        "weibull" => Law::Weibull { shape, scale },
        _ => Law::LogNormal { median: scale, sigma: shape },
    };
    let (key, given, law) = match (number("mean")?, number(scale_key)?) {
        (None, Some(scale)) => (scale_key, scale, law(scale.to_base())),
        (Some(mean), None) => {
            let of_one = Distribution::<T>::new(law(1.0), None, String::new()).mean();
            if !of_one.is_finite() {
                let error = Error::new("there is no mean with this shape; give `scale`");
                return Err(error.at(shape_key));
            }
            ("mean", mean, law(mean.to_base() / of_one))
        }
        _ => return Err(Error::new(format!("either `mean` or `{scale_key}` is needed"))),
    };
    if given.to_base() <= 0.0 {
        return Err(Error::not_allowed(given.to_text(), "more than 0").at(key));
    }
    let text = format!("{shape_key}={shape}, {key}={}", given.to_text());
    capped(law, name, &text, table)
}
