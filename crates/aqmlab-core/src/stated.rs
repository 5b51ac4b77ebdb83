//! Values that are resolved after the scenario is read, because they need a file or custom
//! components.

use alloc::string::{String, ToString};
use core::marker::PhantomData;

use crate::catalogue::allowed;
use crate::component::{Config, Kind, Lookup};
use crate::error::Result;
use crate::params::ParamType;
use crate::value::{Table, Value};

/// A plain value, or a table that describes how the value changes.
#[derive(Clone, PartialEq, Debug)]
pub enum Stated<T> {
    /// A plain value.
    Plain(T),
    /// A table that is not resolved yet.
    Table(Table),
}

impl<T: PartialOrd> PartialOrd for Stated<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        match (self, other) {
            (Stated::Plain(one), Stated::Plain(other)) => one.partial_cmp(other),
            _ => None,
        }
    }
}

/// A range applies to plain values only.
impl<T: ParamType> ParamType for Stated<T> {
    const KIND: &'static str = T::KIND;
    fn allowed() -> String {
        T::allowed()
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Table(table) => Some(Stated::Table(table.clone())),
            other => T::read(other).map(Stated::Plain),
        }
    }
    fn to_text(&self) -> String {
        self.to_value().to_string()
    }
    fn choices() -> &'static [&'static str] {
        T::choices()
    }
    fn is_word(&self) -> bool {
        matches!(self, Stated::Table(_))
    }
    fn to_value(&self) -> Value {
        match self {
            Stated::Plain(value) => value.to_value(),
            Stated::Table(table) => Value::Table(table.clone()),
        }
    }
}

/// Reference to a component of a catalogue or a custom component, by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Chosen<C>(Value, PhantomData<C>);

impl<K: Kind + ?Sized> Chosen<Config<K>> {
    /// Refers to the component of this name.
    pub fn named(name: &str) -> Self {
        Chosen(name.into(), PhantomData)
    }
    /// Refers to a component with parameters, from a table that reads back as the same.
    pub fn from_table(table: Table) -> Self {
        Chosen(Value::Table(table), PhantomData)
    }
    /// Resolves the reference among the catalogue and the custom components `more`.
    ///
    /// # Errors
    /// Returns an error for unknown names and keys, and for values that are not allowed.
    pub fn read_with(&self, more: &dyn Lookup<K>) -> Result<Config<K>> {
        Config::read_with(&self.0, more)
    }
}

impl<K: Kind + ?Sized> ParamType for Chosen<Config<K>> {
    const KIND: &'static str = "name or table";
    fn allowed() -> String {
        allowed::<K>()
    }
    fn read(value: &Value) -> Option<Self> {
        matches!(value, Value::Text(_) | Value::Table(_))
            .then(|| Chosen(value.clone(), PhantomData))
    }
    fn to_text(&self) -> String {
        self.0.to_string()
    }
    fn to_value(&self) -> Value {
        self.0.clone()
    }
}
