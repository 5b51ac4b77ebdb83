//! Components: everything with a name and parameters, such as queue disciplines, congestion
//! controls, endpoints and workloads.
//!
//! The parameters of a component implement [`Component`]. Each kind adds a trait that builds the
//! component from them, such as `Discipline`; [`Kind`], which [`catalogue!`](crate::catalogue!)
//! implements for `dyn Discipline`, lists the built-in components of the kind. A [`Config`] is one
//! component with its parameters, as a scenario names it. A [`Lookup`] finds custom components,
//! written in another crate or another language; a [`Registry`] holds those of other crates.

use alloc::{boxed::Box, format, vec::Vec};
use core::any::Any;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::error::{Error, Result};
use crate::params::{Entry, ParamSpec, Params};
use crate::value::{Table, Value};
use crate::words::Dialect;

/// Parameters with a name: those of a queue discipline, a congestion control, an endpoint or a
/// workload.
pub trait Component: Params + fmt::Debug + Send + Sync + 'static {
    /// Name in scenario files.
    const NAME: &'static str;
    /// One line for `aqmlab list`.
    const SUMMARY: &'static str;

    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A component of any type. Every [`Component`] is one; those of other languages implement it.
pub trait AnyComponent: Any + fmt::Debug + Send + Sync {
    /// Name in scenario files.
    fn name(&self) -> &str;
    /// Sets one parameter.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the value has the wrong type or is out of range.
    fn set(&mut self, key: &str, value: &Value) -> Result<()>;
    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other.
    fn check(&self) -> Result<()>;
    /// All parameters with their values, in order. Components with equal names and entries are
    /// equal.
    fn entries(&self) -> Vec<(&str, Value)>;
}

impl<T: Component> AnyComponent for T {
    fn name(&self) -> &str {
        T::NAME
    }
    fn set(&mut self, key: &str, value: &Value) -> Result<()> {
        Params::set(self, key, value)
    }
    fn check(&self) -> Result<()> {
        Component::check(self)
    }
    fn entries(&self) -> Vec<(&str, Value)> {
        Params::entries(self)
    }
}

/// A built-in component, in the list of its kind.
#[derive(Debug)]
pub struct BuiltIn<K: ?Sized + 'static> {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for `aqmlab list`.
    pub summary: &'static str,
    /// Returns the declarations of its parameters.
    pub params: fn() -> Vec<ParamSpec>,
    /// Returns the words of other programs for its parameters.
    pub dialects: fn() -> &'static [Dialect],
    /// Returns it with default parameters.
    pub default: fn() -> Box<K>,
    /// True for its parameters.
    pub has: fn(&dyn Any) -> bool,
}

impl<K: Kind + ?Sized> BuiltIn<K> {
    /// Returns the component of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        K::built_in().iter().find(|known| known.name == name)
    }
}

/// A named set of parameters of a built-in component: data, not code.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, used like that of a component.
    pub name: &'static str,
    /// The component whose parameters it sets.
    pub of: &'static str,
    /// Keys and values in text form.
    pub settings: &'static [(&'static str, &'static str)],
    /// One line for `aqmlab list`.
    pub summary: &'static str,
    /// Where the values come from.
    pub source: &'static str,
}

impl Preset {
    /// Declarations of the parameters of its component.
    pub fn params<K: Kind + ?Sized>(&self) -> Vec<ParamSpec> {
        BuiltIn::<K>::find(self.of).map_or_else(Vec::new, |known| (known.params)())
    }
}

/// A kind of component. [`catalogue!`](crate::catalogue!) implements it for `dyn Trait`, where
/// `Trait` builds the components.
pub trait Kind: AnyComponent {
    /// Name of the kind, for messages: `queue discipline`.
    const WHAT: &'static str;
    /// The key of a table that holds the name of a component.
    const KEY: &'static str;
    /// A name, for hints.
    const EXAMPLE: &'static str;
    /// Name of the default component.
    const DEFAULT: &'static str;
    /// Names of the built-in components.
    const NAMES: &'static [&'static str];
    /// Names for sets of parameters.
    const PRESETS: &'static [Preset];

    /// Returns the built-in components. A function of the crate that declares them: a constant would
    /// compile them all again in every crate that reads one.
    fn built_in() -> &'static [BuiltIn<Self>];
    /// Returns a copy.
    fn boxed_clone(&self) -> Box<Self>;
    /// Returns the component for comparisons of its type.
    fn as_any(&self) -> &dyn Any;
    /// Returns what an unknown name means elsewhere, and how it is called here.
    fn elsewhere(name: &str) -> Option<&'static str>;

    /// True if the component is built in.
    fn is_built_in(&self) -> bool {
        Self::built_in().iter().any(|known| (known.has)(self.as_any()))
    }
}

/// Custom components of the kind `K`, asked for names that are not built in.
pub trait Lookup<K: ?Sized> {
    /// Returns the component of this name with default parameters; `None` if the name is unknown.
    ///
    /// # Errors
    /// Returns an error if the name is known but its component is invalid.
    fn find(&self, name: &str) -> Result<Option<Box<K>>>;
    /// Names of all components, for suggestions.
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// No custom components.
impl<K: ?Sized> Lookup<K> for () {
    fn find(&self, _name: &str) -> Result<Option<Box<K>>> {
        Ok(None)
    }
}

/// Components of other crates, by name. The default has none.
#[derive(Debug)]
pub struct Registry<K: ?Sized>(Vec<Box<K>>);

impl<K: Kind + ?Sized> Registry<K> {
    /// Adds a component with its default parameters, under its own name.
    ///
    /// # Errors
    /// Returns an error if the name is taken.
    pub fn with(mut self, default: Box<K>) -> Result<Self> {
        let name = default.name();
        if Config::<K>::built_in(name).is_some() || self.0.iter().any(|each| each.name() == name) {
            let allowed = format!("a name that no other {} has", K::WHAT);
            return Err(Error::not_allowed(name, allowed));
        }
        self.0.push(default);
        Ok(self)
    }
}

impl<K: ?Sized> Default for Registry<K> {
    fn default() -> Self {
        Registry(Vec::new())
    }
}

impl<K: Kind + ?Sized> Lookup<K> for Registry<K> {
    fn find(&self, name: &str) -> Result<Option<Box<K>>> {
        Ok(self.0.iter().find(|each| each.name() == name).map(|each| each.boxed_clone()))
    }
    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|each| each.name()).collect()
    }
}

/// A component of the kind `K` with its parameters.
pub struct Config<K: ?Sized>(Box<K>);

impl<K: Kind + ?Sized> Config<K> {
    /// Returns the component with these parameters.
    pub fn new(params: Box<K>) -> Self {
        Config(params)
    }

    /// Returns the built-in component or preset of this name; `-` and `_` are equivalent.
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        let plain = |c: char| if c == '-' { '_' } else { c };
        let is_named = |known: &str| known.chars().map(plain).eq(name.chars().map(plain));
        if let Some(known) = K::built_in().iter().find(|known| is_named(known.name)) {
            return Some(Config((known.default)()));
        }
        let preset = K::PRESETS.iter().find(|preset| is_named(preset.name))?;
        let mut config = Self::built_in(preset.of).expect("a preset is one of a component");
        for (key, text) in preset.settings {
            config.set(key, &Value::from(*text)).expect("a preset's settings are valid");
        }
        Some(config)
    }

    /// Names, summaries and parameters of the built-in components.
    pub fn entries() -> Vec<Entry> {
        let entry = |known: &BuiltIn<K>| Entry {
            name: known.name,
            summary: known.summary,
            params: (known.params)(),
        };
        K::built_in().iter().map(entry).collect()
    }

    /// All parameters with their values, in order.
    pub fn settings(&self) -> Vec<(&str, Value)> {
        self.0.entries()
    }

    /// A table that reads back as the same: the name, and then all parameters.
    pub fn to_table(&self) -> Table {
        let mut table = Table::new();
        table.insert(K::KEY, self.name().into());
        for (key, value) in self.settings() {
            table.insert(key, value);
        }
        table
    }

    /// True if the component is built in.
    pub fn is_built_in(&self) -> bool {
        K::is_built_in(&self.0)
    }

    /// The parameters, if they are of this type.
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }
}

impl<K: Kind + ?Sized> Default for Config<K> {
    fn default() -> Self {
        Self::built_in(K::DEFAULT).expect("the default component is built in")
    }
}

impl<K: ?Sized> Deref for Config<K> {
    type Target = K;
    fn deref(&self) -> &K {
        &self.0
    }
}

impl<K: ?Sized> DerefMut for Config<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.0
    }
}

impl<K: Kind + ?Sized> Clone for Config<K> {
    fn clone(&self) -> Self {
        Config(self.0.boxed_clone())
    }
}

impl<K: Kind + ?Sized> PartialEq for Config<K> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.entries() == other.entries()
    }
}

impl<K: Kind + ?Sized> fmt::Debug for Config<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Makes boxes of a trait cloneable: declares the supertrait by which its implementations copy
/// themselves, and implements it for those that are `Clone`.
///
/// ```
/// aqmlab_core::cloneable!(pub trait CloneShape of Shape);
/// pub trait Shape: CloneShape {
///     fn corners(&self) -> u32;
/// }
///
/// #[derive(Clone)]
/// struct Polygon(u32);
/// impl Shape for Polygon {
///     fn corners(&self) -> u32 { self.0 }
/// }
///
/// let shape: Box<dyn Shape> = Box::new(Polygon(5));
/// assert_eq!(shape.clone().corners(), 5);
/// ```
#[macro_export]
macro_rules! cloneable {
    ($vis:vis trait $Clone:ident of $Trait:ident) => {
        #[doc = concat!("Copies of a [`", stringify!($Trait), "`] of unknown type.")]
        $vis trait $Clone {
            /// Returns a copy.
            fn clone_box(&self) -> $crate::__alloc::boxed::Box<dyn $Trait>;
        }

        impl<T: $Trait + Clone + 'static> $Clone for T {
            fn clone_box(&self) -> $crate::__alloc::boxed::Box<dyn $Trait> {
                $crate::__alloc::boxed::Box::new(self.clone())
            }
        }

        impl Clone for $crate::__alloc::boxed::Box<dyn $Trait> {
            fn clone(&self) -> Self {
                (**self).clone_box()
            }
        }
    };
}
