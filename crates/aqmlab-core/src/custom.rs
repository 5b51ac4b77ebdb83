//! Custom components: written in another crate or another language, and found by name when a
//! scenario is read.
//!
//! Each kind of component adds a trait to [`CustomParams`] that builds the component.

use alloc::{boxed::Box, format, vec::Vec};

use core::fmt;

use crate::catalogue::{Catalogue, is_free};
use crate::error::{Error, Result};
use crate::value::Value;

pub use crate::component::{AnyComponent as CustomParams, Lookup};

/// No custom components.
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

/// Custom components by name.
pub struct Added<C: ?Sized>(Vec<Box<C>>);

impl<C: CustomParams + ?Sized> Added<C> {
    /// Adds a component to those of the catalogue `K`.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
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

/// Uninhabited: for kinds without custom components.
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

/// A custom component of the kind `C`.
pub struct Custom<C: ?Sized>(Box<C>);

impl<C: ?Sized> Custom<C> {
    /// Wraps `config`.
    pub fn new(config: Box<C>) -> Self {
        Custom(config)
    }
    /// Parameters of the component.
    pub fn config(&self) -> &C {
        &self.0
    }
    /// Returns the component.
    pub fn into_config(self) -> Box<C> {
        self.0
    }
    /// Mutable parameters of the component.
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
