//! Functions that `params!` calls. Each has one copy for each type, or is not generic at all: code for
//! each parameter was a quarter of what `aqmlab-aqm` had to compile.

use alloc::{string::ToString, vec::Vec};

use super::{ParamSpec, ParamType, Params, check_range};
use crate::error::{Error, Result};
use crate::value::Value;

/// Sets a parameter.
///
/// # Errors
/// Returns an error at the key that describes the allowed values.
pub fn set_parameter<T: ParamType>(at: &mut T, key: &str, value: &Value) -> Result<()> {
    *at = at.updated(value).map_err(|error| error.at(key))?;
    Ok(())
}

/// Sets a parameter that has a range.
///
/// # Errors
/// Returns an error at the key that describes the allowed values.
pub fn set_in_range<T: ParamType + PartialOrd>(
    at: &mut T,
    key: &str,
    value: &Value,
    low: &T,
    high: &T,
) -> Result<()> {
    let read = at.updated(value).map_err(|error| error.at(key))?;
    check_range(&read, low, high).map_err(|error| error.given(value).at(key))?;
    *at = read;
    Ok(())
}

/// Returns the error for a key that none of the declarations has.
pub fn unknown_key(key: &str, specs: &[ParamSpec]) -> Error {
    let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    let mut error = Error::unknown("key", key, known);
    error.given = None;
    error.at(key)
}

/// The declaration of a parameter of type `T`.
pub fn spec_of<T: ParamType>(
    name: &'static str,
    default: Option<T>,
    range: Option<(T, T)>,
    meaning: &'static str,
    source: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        kind: T::KIND,
        default: default.map(|value| value.to_text()),
        range: range.map(|(low, high)| (low.to_text(), high.to_text())),
        choices: T::choices(),
        // Each line of a documentation comment begins with a space.
        meaning: meaning.trim(),
        source,
    }
}

/// The declarations of a group as a struct has it: with that struct's
/// defaults in place of the group's own.
pub fn specs_of_group<T: Params>(group: &T) -> Vec<ParamSpec> {
    with_defaults(T::specs(), group.entries())
}

fn with_defaults(
    mut specs: Vec<ParamSpec>,
    defaults: Vec<(&'static str, Value)>,
) -> Vec<ParamSpec> {
    for (spec, (_, default)) in specs.iter_mut().zip(defaults) {
        spec.default = spec.default.take().map(|_| default.to_string());
    }
    specs
}

/// Sets the parameter if the group has it. Returns true if so.
///
/// # Errors
/// Returns the errors of [`Params::set`].
pub fn set_in_group<T: Params>(group: &mut T, key: &str, value: &Value) -> Result<bool> {
    let has = has_key(&T::specs(), key);
    if has {
        group.set(key, value)?;
    }
    Ok(has)
}

fn has_key(specs: &[ParamSpec], key: &str) -> bool {
    specs.iter().any(|spec| spec.name == key)
}

/// True if a parameter is serialised: one marked `left out` only if it differs from its default.
pub fn is_told(marks: &[&str], is_usual: bool) -> bool {
    marks.is_empty() || !is_usual
}

/// The value in `default()` of a required key: its example.
///
/// # Panics
/// Panics if the example of the declaration is invalid.
pub fn example<T: ParamType>(text: &str) -> T {
    T::parse(&Value::from(text)).expect("the example of a required key is valid")
}
