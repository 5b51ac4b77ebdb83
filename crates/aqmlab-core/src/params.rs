//! Parameters, declared once: name, type, default, range, meaning, source.
//!
//! From one declaration with [`params!`](crate::params!) come the Rust
//! struct, the keys of scenario files, the Python keywords, `--set`, sweep
//! axes, the reference page and the error messages.
//!
//! ```
//! use aqmlab_core::{params, Params, Span, Table};
//!
//! params! {
//!     /// An example.
//!     pub struct Example {
//!         /// The sojourn time to keep.
//!         target: Span = Span::from_millis(5), in Span::from_nanos(1) => Span::from_secs(10),
//!             source "RFC 8289, section 4.2";
//!     }
//! }
//!
//! let mut table = Table::new();
//! table.insert("target", "7ms".into());
//! assert_eq!(Example::from_table(&table).unwrap().target, Span::from_millis(7));
//! table.insert("traget", "7ms".into());
//! assert!(Example::from_table(&table).is_err());
//! ```

use alloc::{format, string::String, string::ToString, vec::Vec};

use crate::error::{Error, Result};
use crate::value::{Table, Value};
use crate::words::{self, Dialect};

/// The declaration of one parameter, for documentation and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpec {
    /// The key.
    pub name: &'static str,
    /// Type of the value: `time`, `rate`, `probability`, ...
    pub kind: &'static str,
    /// The default in text form; `None` for a required key.
    pub default: Option<String>,
    /// The least and the largest value in text form, if the parameter has a range.
    pub range: Option<(String, String)>,
    /// The names it takes, if it takes names.
    pub choices: &'static [&'static str],
    /// Meaning, in one line.
    pub meaning: &'static str,
    /// Source of the default: an RFC section, a table of a paper.
    pub source: &'static str,
}

/// Description of a component: name, summary and parameters.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// All parameters.
    pub params: Vec<ParamSpec>,
}

/// A struct of parameters. Implemented by [`params!`](crate::params!).
///
/// A type of parameters is also a parameter type: a nested table.
pub trait Params: Default + Clone {
    /// Required keys, each with an example. `default()` has the examples as values, for reading
    /// only.
    const REQUIRED: &'static [(&'static str, &'static str)];

    /// The declarations, in order.
    fn specs() -> Vec<ParamSpec>;
    /// Sets one parameter.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the value has the wrong type or is out of range.
    fn set(&mut self, key: &str, value: &Value) -> Result<()>;
    /// All parameters with values that read back as the same, in order.
    fn entries(&self) -> Vec<(&'static str, Value)>;
    /// Like [`entries`](Self::entries), without parameters marked `[left out]` that have their
    /// default: the input of a scenario's digest.
    fn canonical(&self) -> Vec<(&'static str, Value)>;

    /// The words of other programs for these parameters.
    fn dialects() -> &'static [Dialect] {
        &[]
    }

    /// Returns the defaults with the values of `table`.
    ///
    /// # Errors
    /// Returns the errors of [`Params::set`], and an error if a required key is missing.
    fn from_table(table: &Table) -> Result<Self> {
        let mut params = Self::default();
        params.update(table)?;
        match Self::REQUIRED.iter().find(|(key, _)| table.get(key).is_none()) {
            Some((key, example)) => Err(missing_key(key, example)),
            None => Ok(params),
        }
    }
    /// Sets the values of `table`.
    ///
    /// # Errors
    /// Returns the errors of [`Params::set`].
    fn update(&mut self, table: &Table) -> Result<()> {
        table.iter().try_for_each(|(key, value)| self.set(key, value))
    }
}

/// Returns the error for a missing required key.
pub fn missing_key(key: &str, example: &str) -> Error {
    Error::new(format!("the key `{key}` is missing")).hint(format!("{key} = \"{example}\""))
}

/// A type that a parameter can have.
pub trait ParamType: Sized + Clone {
    /// The kind in one word.
    const KIND: &'static str;
    /// Allowed values with an example: completes "expected ...".
    fn allowed() -> String;
    /// Reads a value; `None` if it is not of this kind.
    fn read(value: &Value) -> Option<Self>;
    /// Reads a value.
    ///
    /// # Errors
    /// Returns an error that describes the allowed values.
    fn parse(value: &Value) -> Result<Self> {
        read_or_refuse(value)
    }
    /// The text form that reads back as the same value.
    fn to_text(&self) -> String;
    /// The names, for types that take names.
    fn choices() -> &'static [&'static str] {
        &[]
    }
    /// True if the value is a keyword (`auto`, `none`), which is exempt from the range.
    fn is_word(&self) -> bool {
        false
    }
    /// The value as a scenario holds it: text, or a table for nested types.
    fn to_value(&self) -> Value {
        Value::Text(self.to_text())
    }
    /// Returns this value after `value` is set. Types that read partial tables keep the other keys.
    ///
    /// # Errors
    /// Returns an error that describes the allowed values.
    fn updated(&self, value: &Value) -> Result<Self> {
        read_value(value)
    }
}

/// Reads a value of a parameter's type.
///
/// # Errors
/// Returns an error that describes the allowed values.
pub fn read_value<T: ParamType>(value: &Value) -> Result<T> {
    T::parse(value)
}

/// Reads a value by [`ParamType::read`].
fn read_or_refuse<T: ParamType>(value: &Value) -> Result<T> {
    T::read(value).ok_or_else(|| not_of_kind(value, T::allowed(), T::choices()))
}

fn not_of_kind(value: &Value, allowed: String, choices: &[&str]) -> Error {
    let error = Error::not_allowed(value, allowed);
    match value {
        Value::Text(name) => match crate::suggest::nearest(name, choices.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error,
        },
        _ => error,
    }
}

/// Refuses a value outside of its range; `none` is in every range.
///
/// # Errors
/// Returns an error if `value` is not in `[low, high]`. NaN is in no range.
pub fn check_range<T: ParamType + PartialOrd>(value: &T, low: &T, high: &T) -> Result<()> {
    if value.is_word() || (low <= value && value <= high) {
        return Ok(());
    }
    Err(out_of_range(value.to_text(), T::KIND, low.to_text(), high.to_text()))
}

fn out_of_range(value: String, kind: &str, low: String, high: String) -> Error {
    Error::not_allowed(value, format!("{kind} from {low} to {high}"))
}

/// The kind of a table within a table.
pub(crate) const TABLE: &str = "table";

/// A nested table: missing keys have their defaults.
impl<T: Params> ParamType for T {
    const KIND: &'static str = TABLE;
    fn allowed() -> String {
        table_with_keys(&T::specs(), T::dialects())
    }
    fn read(value: &Value) -> Option<Self> {
        Self::parse(value).ok()
    }
    fn parse(value: &Value) -> Result<Self> {
        match value {
            Value::Table(table) => T::from_table(table),
            Value::Text(text) if !T::dialects().is_empty() => words::read_params(text),
            other => Err(not_of_kind(other, Self::allowed(), &[])),
        }
    }
    fn to_text(&self) -> String {
        self.to_value().to_string()
    }
    fn to_value(&self) -> Value {
        table_of(self.canonical())
    }
}

fn table_with_keys(specs: &[ParamSpec], dialects: &[Dialect]) -> String {
    let keys: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
    let words =
        dialects.first().map(|dialect| format!(", or words such as `{} ...`", dialect.kind));
    format!("a table, with the keys {}{}", keys.join(", "), words.unwrap_or_default())
}

fn table_of(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

/// A parameter that may be absent: its text form is then `none`.
impl<T: ParamType> ParamType for Option<T> {
    const KIND: &'static str = T::KIND;
    fn allowed() -> String {
        format!("{}, or `none`", T::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "none" => Some(None),
            other => T::read(other).map(Some),
        }
    }
    fn parse(value: &Value) -> Result<Self> {
        match value {
            Value::Text(text) if text == "none" => Ok(None),
            other if T::KIND == TABLE => T::parse(other).map(Some),
            other => read_or_refuse(other),
        }
    }
    fn to_text(&self) -> String {
        self.as_ref().map_or_else(|| "none".into(), T::to_text)
    }
    fn to_value(&self) -> Value {
        match self.as_ref().map(T::to_value) {
            Some(value @ (Value::Table(_) | Value::List(_))) => value,
            _ => Value::Text(self.to_text()),
        }
    }
    fn choices() -> &'static [&'static str] {
        T::choices()
    }
    fn is_word(&self) -> bool {
        self.as_ref().is_none_or(T::is_word)
    }
}

/// A parameter that can be left to the program, which computes it from the
/// link: its text form is then `auto`.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Auto<T> {
    /// Computed.
    Auto,
    /// Given.
    Set(T),
}

impl<T> Auto<T> {
    /// The value given, or the one that `compute` makes.
    pub fn or_else(self, compute: impl FnOnce() -> T) -> T {
        match self {
            Auto::Auto => compute(),
            Auto::Set(value) => value,
        }
    }
}

impl<T: ParamType> ParamType for Auto<T> {
    const KIND: &'static str = T::KIND;
    fn allowed() -> String {
        format!("{}, or `auto`", T::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "auto" => Some(Auto::Auto),
            other => T::read(other).map(Auto::Set),
        }
    }
    fn parse(value: &Value) -> Result<Self> {
        match value {
            Value::Table(_) => T::parse(value).map(Auto::Set),
            other => read_or_refuse(other),
        }
    }
    fn to_text(&self) -> String {
        match self {
            Auto::Auto => "auto".into(),
            Auto::Set(value) => value.to_text(),
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Auto::Auto => self.to_text().into(),
            Auto::Set(value) => value.to_value(),
        }
    }
    fn choices() -> &'static [&'static str] {
        T::choices()
    }
    fn is_word(&self) -> bool {
        match self {
            Auto::Auto => true,
            Auto::Set(value) => value.is_word(),
        }
    }
}

/// Declares a struct of parameters; see the [module](mod@crate::params).
///
/// Every field: documentation, name, type, default, an optional range
/// (`in low => high`), the source. A field without documentation or source
/// does not compile. A key that has to be there has no default, but an example:
/// `rate: Rate, required "10mbit", source "...";`. One marked `[left out]` is
/// not in the canonical form where it has its default.
///
/// A type of parameters is itself a type that a parameter can have: a table
/// within the table, `Option` of it one that may be absent, `Vec` of it a list
/// of tables.
///
/// A struct can hold parameters that several structs share. Those structs include it under a name
/// of their own, with their own defaults: `with { hashing: Hashing = Hashing::default(); }`. In
/// scenario files the shared parameters look like the others.
///
/// Words of another program for the parameters ([`Dialect`]) follow as
/// `words TC`, a list of dialects.
#[macro_export]
macro_rules! params {
    (
        $(#[$struct_attr:meta])*
        pub struct $Name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident : $Type:ty $(= $default:expr)?,
                    $(required $example:literal,)?
                    $([$($mark:ident)+],)?
                    $(in $low:expr => $high:expr,)?
                    source $source:literal;
            )*
        }
        $(with {
            $(
                $(#[doc = $group_doc:literal])+
                $group:ident : $Group:ty = $group_default:expr;
            )*
        })?
        $(words $dialects:expr)?
    ) => {
        $(#[$struct_attr])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Name {
            $( $(#[doc = $doc])+ pub $field: $Type, )*
            $($( $(#[doc = $group_doc])+ pub $group: $Group, )*)?
        }

        impl Default for $Name {
            fn default() -> Self {
                $Name {
                    $( $field: $crate::usual!($Type $(= $default)? $(, required $example)?), )*
                    $($( $group: $group_default, )*)? }
            }
        }

        impl $crate::params::Params for $Name {
            const REQUIRED: &'static [(&'static str, &'static str)] =
                &[$( $( (stringify!($field), $example), )? )*];

            $(
                fn dialects() -> &'static [$crate::words::Dialect] {
                    $dialects
                }
            )?

            fn specs() -> $crate::__alloc::vec::Vec<$crate::params::ParamSpec> {
                #[allow(unused_mut)]
                let mut specs = $crate::__alloc::vec![$(
                    $crate::params::spec_of::<$Type>(
                        stringify!($field),
                        $crate::usual!(@told $Type $(= $default)?),
                        $crate::usual!(@range $Type $(, $low => $high)?),
                        concat!($($doc),+),
                        $source,
                    ),
                )*];
                $($( specs.extend($crate::params::specs_of_group::<$Group>(&$group_default)); )*)?
                specs
            }

            fn set(&mut self, key: &str, value: &$crate::Value) -> $crate::Result<()> {
                match key {
                    $(
                        stringify!($field) => {
                            $crate::usual!(@set self.$field, key, value $(, $low => $high)?)
                        }
                    )*
                    _ => {
                        $($(
                            if $crate::params::set_in_group(&mut self.$group, key, value)? {
                                return Ok(());
                            }
                        )*)?
                        Err($crate::params::unknown_key(key, &Self::specs()))
                    }
                }
            }

            fn entries(&self) -> $crate::__alloc::vec::Vec<(&'static str, $crate::Value)> {
                #[allow(unused_mut)]
                let mut entries = $crate::__alloc::vec![$( (
                    stringify!($field),
                    <$Type as $crate::params::ParamType>::to_value(&self.$field),
                ), )*];
                $($( entries.extend(self.$group.entries()); )*)?
                entries
            }

            fn canonical(&self) -> $crate::__alloc::vec::Vec<(&'static str, $crate::Value)> {
                let usual = Self::default();
                let mut entries = $crate::__alloc::vec::Vec::new();
                $(
                    let marks: &[&str] = &[$($( stringify!($mark) ),+)?];
                    if $crate::params::is_told(marks, self.$field == usual.$field) {
                        let value = <$Type as $crate::params::ParamType>::to_value(&self.$field);
                        entries.push((stringify!($field), value));
                    }
                )*
                $($( entries.extend(self.$group.canonical()); )*)?
                entries
            }
        }
    };
}

/// Parts of [`params!`](crate::params!) that depend on whether there is a default or a range; alone, the
/// default, or the example of a required key.
#[doc(hidden)]
#[macro_export]
macro_rules! usual {
    ($Type:ty = $default:expr) => {
        $default
    };
    ($Type:ty, required $example:literal) => {
        $crate::params::example::<$Type>($example)
    };
    (@told $Type:ty = $default:expr) => {
        Some($default)
    };
    (@told $Type:ty) => {
        None
    };
    (@range $Type:ty, $low:expr => $high:expr) => {
        Some(($low, $high))
    };
    (@range $Type:ty) => {
        None
    };
    (@set $at:expr, $key:ident, $value:ident, $low:expr => $high:expr) => {
        $crate::params::set_in_range(&mut $at, $key, $value, &$low, &$high)
    };
    (@set $at:expr, $key:ident, $value:ident) => {
        $crate::params::set_parameter(&mut $at, $key, $value)
    };
}

/// Declares an enum whose values have names in scenario files.
#[macro_export]
macro_rules! choices {
    (
        $(#[$enum_attr:meta])*
        pub enum $Name:ident {
            $( $(#[$attr:meta])* $Variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$enum_attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name {
            $( $(#[$attr])* $Variant, )+
        }

        impl $crate::params::ParamType for $Name {
            const KIND: &'static str = "name";
            fn allowed() -> $crate::__alloc::string::String {
                $crate::__alloc::format!("one of {}", Self::choices().join(", "))
            }
            fn read(value: &$crate::Value) -> Option<Self> {
                match value {
                    $( $crate::Value::Text(text) if text == $text => Some($Name::$Variant), )+
                    _ => None,
                }
            }
            fn to_text(&self) -> $crate::__alloc::string::String {
                match self {
                    $( $Name::$Variant => $text.into(), )+
                }
            }
            fn choices() -> &'static [&'static str] {
                &[$($text),+]
            }
        }
    };
}

mod declared;
mod types;
pub use self::declared::{
    example, is_told, set_in_group, set_in_range, set_parameter, spec_of, specs_of_group,
    unknown_key,
};
pub(crate) use self::types::read_fractional_bytes;

#[cfg(test)]
mod tests;
