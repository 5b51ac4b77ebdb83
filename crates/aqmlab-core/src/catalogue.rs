//! Catalogues: how a component of a kind is read from a scenario, and the macro that lists the
//! built-in ones.
//!
//! [`catalogue!`](crate::catalogue!) declares a catalogue, one line per component; this module holds
//! the code for reading and suggestions that all catalogues share.
//! [`dispatched!`](crate::dispatched!) declares a trait with a macro that forwards its methods, so
//! that no method can be forgotten.

use alloc::{format, string::String, vec::Vec};

use crate::component::{Config, Kind, Lookup};
use crate::error::{Error, Result};
use crate::params::ParamType;
use crate::value::Value;

mod text;

pub use text::{say_in_dialect, say_in_words, words_of};

/// Describes the allowed values of a parameter that names a component.
pub(crate) fn allowed<K: Kind + ?Sized>() -> String {
    format!("the name of a {}, perhaps with words after it, or a table with `{}`", K::WHAT, K::KEY)
}

impl<K: Kind + ?Sized> Config<K> {
    /// Returns the built-in component or preset of this name.
    ///
    /// # Errors
    /// Returns an error if the name is unknown.
    pub fn named(name: &str) -> Result<Self> {
        Self::named_with(name, &())
    }

    /// Returns the component or preset of this name, which may be one of `more`.
    fn named_with(name: &str, more: &dyn Lookup<K>) -> Result<Self> {
        if let Some(config) = Self::built_in(name) {
            return Ok(config);
        }
        more.find(name)?.map(Self::new).ok_or_else(|| unknown(name, more))
    }

    /// Reads a name, perhaps with words after it ([`words`](crate::words)), or a table with
    /// [`Kind::KEY`] and parameters.
    ///
    /// # Errors
    /// Returns an error for unknown names and keys, and for values that are not allowed.
    pub fn read(value: &Value) -> Result<Self> {
        Self::read_with(value, &())
    }

    /// Reads a component that may also be one of `more`.
    ///
    /// # Errors
    /// Returns the errors of [`Config::read`].
    pub fn read_with(value: &Value, more: &dyn Lookup<K>) -> Result<Self> {
        Self::apply(None, value, more)
    }

    /// Returns the component after `value` is set, which may name one of `more`. A table without a
    /// name, or with the component's own, changes some of its parameters.
    ///
    /// # Errors
    /// Returns the errors of [`Config::read`].
    pub fn updated_with(&self, value: &Value, more: &dyn Lookup<K>) -> Result<Self> {
        Self::apply(Some(self), value, more)
    }

    fn apply(before: Option<&Self>, value: &Value, more: &dyn Lookup<K>) -> Result<Self> {
        let find = |text: &str| text::read_text(text, before, more);
        let table = match value {
            Value::Text(text) => {
                let config: Self = find(text)?;
                config.check()?;
                return Ok(config);
            }
            Value::Table(table) => table,
            other => return Err(Error::not_allowed(other, allowed::<K>())),
        };
        let mut config = match (table.get(K::KEY), before) {
            (Some(name), _) => name.as_text().and_then(find).map_err(|error| error.at(K::KEY))?,
            (None, Some(before)) => before.clone(),
            (None, None) => {
                let hint = format!("{} = \"{}\"", K::KEY, K::EXAMPLE);
                return Err(Error::new(format!("the key `{}` is missing", K::KEY)).hint(hint));
            }
        };
        for (key, value) in table.iter().filter(|(key, _)| *key != K::KEY) {
            config.set(key, value)?;
        }
        config.check()?;
        Ok(config)
    }
}

fn unknown<K: Kind + ?Sized>(name: &str, more: &dyn Lookup<K>) -> Error {
    let presets = K::PRESETS.iter().map(|preset| preset.name);
    let kinds = K::built_in().iter().flat_map(|known| (known.dialects)()).map(|it| it.kind);
    let names = K::NAMES.iter().copied().chain(presets).chain(more.names()).chain(kinds);
    let names: Vec<&str> = names.collect();
    let error = Error::unknown(K::WHAT, name, names);
    match K::elsewhere(name) {
        Some(here) => error.hint(here),
        None => error,
    }
}

impl<K: Kind + ?Sized> ParamType for Config<K> {
    const KIND: &'static str = "name or table";
    fn allowed() -> String {
        allowed::<K>()
    }
    fn read(value: &Value) -> Option<Self> {
        Self::default().updated(value).ok()
    }
    fn to_text(&self) -> String {
        self.name().into()
    }
    fn choices() -> &'static [&'static str] {
        K::NAMES
    }
    fn to_value(&self) -> Value {
        Value::Table(self.to_table())
    }
    fn updated(&self, value: &Value) -> Result<Self> {
        self.updated_with(value, &())
    }
}

/// Declares a catalogue: the modules of the built-in components of a kind, one line each, and
/// their list.
///
/// A component is a module and its parameters, a type of [`params!`](crate::params!) that
/// implements [`Component`](crate::Component) and the trait of the kind.
#[macro_export]
macro_rules! catalogue {
    (
        dyn $Kind:ident;
        what $what:literal, key $key:literal, example $example:literal, default $default:literal;
        presets $presets:expr, elsewhere $elsewhere:expr;
        $( $module:ident::$Params:ident, )+
    ) => {
        $( pub mod $module; )+

        impl $crate::Kind for dyn $Kind {
            const WHAT: &'static str = $what;
            const KEY: &'static str = $key;
            const EXAMPLE: &'static str = $example;
            const DEFAULT: &'static str = $default;
            const PRESETS: &'static [$crate::Preset] = $presets;
            const NAMES: &'static [&'static str] =
                &[$( <$module::$Params as $crate::Component>::NAME ),+];

            fn built_in() -> &'static [$crate::BuiltIn<Self>] {
                static LIST: &[$crate::BuiltIn<dyn $Kind>] = &[$( $crate::BuiltIn {
                    name: <$module::$Params as $crate::Component>::NAME,
                    summary: <$module::$Params as $crate::Component>::SUMMARY,
                    params: <$module::$Params as $crate::Params>::specs,
                    dialects: <$module::$Params as $crate::Params>::dialects,
                    default: || $crate::__alloc::boxed::Box::new($module::$Params::default()),
                    has: |params| params.is::<$module::$Params>(),
                } ),+];
                LIST
            }
            fn boxed_clone(&self) -> $crate::__alloc::boxed::Box<Self> {
                self.clone_box()
            }
            fn as_any(&self) -> &dyn core::any::Any {
                self
            }
            fn elsewhere(name: &str) -> Option<&'static str> {
                $elsewhere(name)
            }
        }
    };
}

/// Declares a trait and a macro that implements the trait for a type by forwarding every method.
/// The macro takes the type and a second macro; that one, called with `(self, inner => call)`,
/// makes the call on the value inside `self`. A method added to the trait is forwarded everywhere.
///
/// Methods take `&self` or `&mut self` first and are not generic.
///
/// ```
/// aqmlab_core::dispatched! {
///     /// Something with a size.
///     pub trait Sized2 {
///         /// How large it is.
///         fn size(&self) -> u32;
///         /// Whether it may grow.
///         fn grows(&self, _by: u32) -> bool {
///             false
///         }
///     }
///     passed on by pass_size
/// }
///
/// struct Fixed;
/// impl Sized2 for Fixed {
///     fn size(&self) -> u32 { 3 }
/// }
/// struct Elastic(u32);
/// impl Sized2 for Elastic {
///     fn size(&self) -> u32 { self.0 }
///     fn grows(&self, by: u32) -> bool { by > 0 }
/// }
///
/// enum Either { Fixed(Fixed), Elastic(Elastic) }
/// macro_rules! each {
///     ($self:ident, $inner:ident => $call:expr) => {
///         match $self { Either::Fixed($inner) => $call, Either::Elastic($inner) => $call }
///     };
/// }
/// pass_size!(Either, each);
///
/// assert_eq!((Either::Fixed(Fixed).size(), Either::Fixed(Fixed).grows(1)), (3, false));
/// assert_eq!((Either::Elastic(Elastic(5)).size(), Either::Elastic(Elastic(5)).grows(1)), (5, true));
/// ```
#[macro_export]
macro_rules! dispatched {
    (
        $(#[$attr:meta])*
        $vis:vis trait $Trait:ident $(: $Super:ident)? { $($items:tt)* }
        passed on by $pass:ident
    ) => {
        $(#[$attr])*
        $vis trait $Trait $(: $Super)? { $($items)* }
        $crate::passed_on! { $pass $Trait [] [] $($items)* }
    };
}

/// Part of [`dispatched!`](crate::dispatched!): collects the methods, separately for `&self` and
/// `&mut self`, and declares the macro.
#[doc(hidden)]
#[macro_export]
macro_rules! passed_on {
    // Default bodies belong to the trait alone; forwarding is the same with and without them.
    (
        $pass:ident $Trait:ident [$($shared:tt)*] [$($changing:tt)*]
        $(#[$attr:meta])*
        fn $name:ident(&self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)? $body:block
        $($rest:tt)*
    ) => {
        $crate::passed_on! { $pass $Trait
            [$($shared)* { $name ($($arg: $ty),*) ($(-> $ret)?) }] [$($changing)*] $($rest)*
        }
    };
    (
        $pass:ident $Trait:ident [$($shared:tt)*] [$($changing:tt)*]
        $(#[$attr:meta])*
        fn $name:ident(&self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)?;
        $($rest:tt)*
    ) => {
        $crate::passed_on! { $pass $Trait
            [$($shared)* { $name ($($arg: $ty),*) ($(-> $ret)?) }] [$($changing)*] $($rest)*
        }
    };
    (
        $pass:ident $Trait:ident [$($shared:tt)*] [$($changing:tt)*]
        $(#[$attr:meta])*
        fn $name:ident(&mut self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)? $body:block
        $($rest:tt)*
    ) => {
        $crate::passed_on! { $pass $Trait
            [$($shared)*] [$($changing)* { $name ($($arg: $ty),*) ($(-> $ret)?) }] $($rest)*
        }
    };
    (
        $pass:ident $Trait:ident [$($shared:tt)*] [$($changing:tt)*]
        $(#[$attr:meta])*
        fn $name:ident(&mut self $(, $arg:ident: $ty:ty)* $(,)?) $(-> $ret:ty)?;
        $($rest:tt)*
    ) => {
        $crate::passed_on! { $pass $Trait
            [$($shared)*] [$($changing)* { $name ($($arg: $ty),*) ($(-> $ret)?) }] $($rest)*
        }
    };
    (
        $pass:ident $Trait:ident
        [$({ $shared:ident ($($shared_arg:ident: $shared_ty:ty),*) ($($shared_ret:tt)*) })*]
        [$({ $changing:ident ($($arg:ident: $ty:ty),*) ($($ret:tt)*) })*]
    ) => {
        macro_rules! $pass {
            ($Type:ty, $each:ident) => {
                impl $Trait for $Type {
                    $(
                        #[inline]
                        fn $shared(&self $(, $shared_arg: $shared_ty)*) $($shared_ret)* {
                            $each!(self, inner => inner.$shared($($shared_arg),*))
                        }
                    )*
                    $(
                        #[inline]
                        fn $changing(&mut self $(, $arg: $ty)*) $($ret)* {
                            $each!(self, inner => inner.$changing($($arg),*))
                        }
                    )*
                }
            };
        }
    };
}
