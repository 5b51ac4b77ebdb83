//! What is not in a catalogue: written in another crate, or in another
//! language, and found by its name when a scenario is read.
//!
//! Queue disciplines and congestion controls have this in common. What is
//! built from such parameters is the business of the trait that a kind adds to
//! [`CustomParams`].

use alloc::{boxed::Box, format, vec::Vec};

use core::fmt;

use crate::catalogue::{Catalogue, is_free};
use crate::error::{Error, Result};
use crate::value::Value;

/// The parameters of something that is not in a catalogue.
pub trait CustomParams: fmt::Debug + Send + Sync {
    /// The name in scenario files.
    fn name(&self) -> &str;
    /// Sets one parameter.
    ///
    /// # Errors
    /// If the key is not known, or the value is not of its kind or range.
    fn set(&mut self, key: &str, value: &Value) -> Result<()>;
    /// Checks what single parameters cannot say.
    ///
    /// # Errors
    /// If the parameters contradict each other.
    fn check(&self) -> Result<()>;
    /// All parameters with their values, in order. Parameters of the same name
    /// and entries are the same.
    fn entries(&self) -> Vec<(&str, Value)>;
}

/// What there is of the kind `C` besides its catalogue, for whoever reads a
/// scenario; asked for the names that are not in the catalogue.
pub trait Lookup<C: ?Sized> {
    /// What has this name, with its default parameters, if there is such.
    ///
    /// # Errors
    /// If the name is of this sort, but there is something wrong with it.
    fn find(&self, name: &str) -> Result<Option<Box<C>>>;
    /// The names it knows.
    fn names(&self) -> Vec<&str>;
}

/// Knows nothing: there is only the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl<C: ?Sized> Lookup<C> for Nothing {
    fn find(&self, _: &str) -> Result<Option<Box<C>>> {
        Ok(None)
    }
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// What other crates add to a catalogue, by its own names.
pub struct Added<C: ?Sized>(Vec<Box<C>>);

impl<C: CustomParams + ?Sized> Added<C> {
    /// Adds one to what is known besides the catalogue `K`.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn with<K: Catalogue<Custom = C>>(mut self, config: Box<C>) -> Result<Self> {
        let name = config.name();
        if !is_free::<K>(name) || self.0.iter().any(|each| each.name() == name) {
            let allowed = format!("a name that no other {} has", K::WHAT);
            return Err(Error::not_allowed(name, allowed));
        }
        self.0.push(config);
        Ok(self)
    }
}

impl<C: ?Sized> Default for Added<C> {
    fn default() -> Self {
        Added(Vec::new())
    }
}

impl<C: CustomParams + ?Sized> Lookup<C> for Added<C>
where
    Box<C>: Clone,
{
    fn find(&self, name: &str) -> Result<Option<Box<C>>> {
        Ok(self.0.iter().find(|each| each.name() == name).cloned())
    }
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|each| each.name()).collect()
    }
}

/// Of a kind that has nothing but its catalogue.
#[derive(Clone, Debug)]
pub enum Never {}

impl CustomParams for Never {
    fn name(&self) -> &str {
        match *self {}
    }
    fn set(&mut self, _: &str, _: &Value) -> Result<()> {
        match *self {}
    }
    fn check(&self) -> Result<()> {
        match *self {}
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        match *self {}
    }
}

/// Something of the kind `C`, beside those of a catalogue.
pub struct Custom<C: ?Sized>(Box<C>);

impl<C: ?Sized> Custom<C> {
    /// Holds `config`.
    pub fn new(config: Box<C>) -> Self {
        Custom(config)
    }
    /// What it holds.
    pub fn config(&self) -> &C {
        &self.0
    }
    /// The same, to be changed.
    pub fn config_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: ?Sized> Clone for Custom<C>
where
    Box<C>: Clone,
{
    fn clone(&self) -> Self {
        Custom(self.0.clone())
    }
}
impl<C: CustomParams + ?Sized> PartialEq for Custom<C> {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name() && self.0.entries() == other.0.entries()
    }
}
impl<C: fmt::Debug + ?Sized> fmt::Debug for Custom<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
