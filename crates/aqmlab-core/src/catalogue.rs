//! Catalogues: named components of one kind, such as all queue disciplines, with their parameters
//! and presets.
//!
//! [`catalogue!`](crate::catalogue!) declares a catalogue, one line per entry; this module holds
//! the code for reading, suggestions, presets and documentation that all catalogues share.
//! [`dispatched!`](crate::dispatched!) declares a trait with a macro that forwards its methods, so
//! that no method can be forgotten.

use alloc::{format, string::String, vec::Vec};

use crate::custom::{Custom, CustomParams, Lookup, Nothing};
use crate::error::{Error, Result};
use crate::params::{Entry, ParamSpec};
use crate::value::{Table, Value};
use crate::words::Dialect;

mod text;

pub use text::{say_in_dialect, say_in_words, words_of};

/// A named set of parameters of an entry: data, not code.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, used like that of an entry.
    pub name: &'static str,
    /// The entry it sets.
    pub of: &'static str,
    /// Keys and values in text form.
    pub settings: &'static [(&'static str, &'static str)],
    /// One line for `aqmlab list`.
    pub summary: &'static str,
    /// Where the values come from.
    pub source: &'static str,
}

impl Preset {
    /// The parameters of the entry that it sets.
    pub fn params<C: Catalogue>(&self) -> Vec<ParamSpec> {
        let entries = C::entries().into_iter();
        entries.filter(|entry| entry.name == self.of).flat_map(|entry| entry.params).collect()
    }
}

/// One of a catalogue with its parameters; implemented by
/// [`catalogue!`](crate::catalogue!), which also gives the type methods that
/// need no import.
pub trait Catalogue: Sized + Clone {
    /// Name of the kind, for messages: `queue discipline`.
    const WHAT: &'static str;
    /// The key of a table that holds the name.
    const KEY: &'static str;
    /// A name, for hints.
    const EXAMPLE: &'static str;
    /// Names for sets of parameters.
    const PRESETS: &'static [Preset];
    /// Parameters of components that are not in the catalogue.
    type Custom: ?Sized + CustomParams;

    /// All entries.
    fn entries() -> Vec<Entry>;
    /// Names of the entries.
    fn names() -> &'static [&'static str];
    /// The entry of this name with default parameters.
    fn default_of(name: &str) -> Option<Self>;
    /// One that is not in the catalogue.
    fn of_custom(custom: Custom<Self::Custom>) -> Self;
    /// The words of other programs for the entry of this name.
    fn dialects_of(name: &str) -> &'static [Dialect];
    /// Name of the component.
    fn name_of(&self) -> &str;
    /// All parameters with their values, in order.
    fn values(&self) -> Vec<(&str, Value)>;
    /// Sets a parameter.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the value has the wrong type or is out of range.
    fn set_key(&mut self, key: &str, value: &Value) -> Result<()>;
    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other.
    fn check_all(&self) -> Result<()>;
    /// What a name that is not known means elsewhere, and how it is said here.
    fn elsewhere(_name: &str) -> Option<&'static str> {
        None
    }
}

/// Describes the allowed values of a parameter that names an entry.
pub fn allowed<C: Catalogue>() -> String {
    format!("the name of a {}, perhaps with words after it, or a table with `{}`", C::WHAT, C::KEY)
}

/// Returns the entry or preset of this name, or the component that `more` finds.
///
/// # Errors
/// Returns an error if the name is unknown.
pub fn named<C: Catalogue>(name: &str, more: &dyn Lookup<C::Custom>) -> Result<C> {
    if let Some(config) = of_catalogue(name) {
        return Ok(config);
    }
    match more.find(name)? {
        Some(custom) => Ok(C::of_custom(Custom::new(custom))),
        None => Err(unknown::<C>(name, more)),
    }
}

/// True if no entry or preset has this name.
pub(crate) fn is_free<C: Catalogue>(name: &str) -> bool {
    of_catalogue::<C>(name).is_none()
}

/// Returns the entry or preset of this name; `-` and `_` are equivalent.
fn of_catalogue<C: Catalogue>(name: &str) -> Option<C> {
    let plain = |c: char| if c == '-' { '_' } else { c };
    let is_named = |known: &str| known.chars().map(plain).eq(name.chars().map(plain));
    if let Some(name) = C::names().iter().find(|known| is_named(known)) {
        return C::default_of(name);
    }
    let preset = C::PRESETS.iter().find(|preset| is_named(preset.name))?;
    let mut config = C::default_of(preset.of).expect("a preset is one of an entry");
    for (key, text) in preset.settings {
        config.set_key(key, &Value::from(*text)).expect("a preset's settings are valid");
    }
    Some(config)
}

fn unknown<C: Catalogue>(name: &str, more: &dyn Lookup<C::Custom>) -> Error {
    let presets = C::PRESETS.iter().map(|preset| preset.name);
    let kinds = C::names().iter().flat_map(|name| C::dialects_of(name)).map(|it| it.kind);
    let names = C::names().iter().copied().chain(presets).chain(more.names()).chain(kinds);
    let names: Vec<&str> = names.collect();
    let error = Error::unknown(C::WHAT, name, names);
    match C::elsewhere(name) {
        Some(here) => error.hint(here),
        None => error,
    }
}

/// Reads a name, perhaps with words after it ([`words`](crate::words)), or a table with
/// [`Catalogue::KEY`] and parameters.
///
/// # Errors
/// For unknown names and keys, and values that are not allowed.
pub fn read<C: Catalogue>(value: &Value, more: &dyn Lookup<C::Custom>) -> Result<C> {
    apply(None, value, more)
}

/// Returns `config` after `value` is set. A table without a name, or with the name of `config`,
/// changes parameters of `config`.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn updated<C: Catalogue>(config: &C, value: &Value, more: &dyn Lookup<C::Custom>) -> Result<C> {
    apply(Some(config), value, more)
}

fn apply<C: Catalogue>(
    before: Option<&C>,
    value: &Value,
    more: &dyn Lookup<C::Custom>,
) -> Result<C> {
    let find = |text: &str| text::read_text(text, before, more);
    let table = match value {
        Value::Text(text) => {
            let config: C = find(text)?;
            config.check_all()?;
            return Ok(config);
        }
        Value::Table(table) => table,
        other => return Err(Error::not_allowed(other, allowed::<C>())),
    };
    let mut config = match (table.get(C::KEY), before) {
        (Some(name), _) => name.as_text().and_then(find).map_err(|error| error.at(C::KEY))?,
        (None, Some(before)) => before.clone(),
        (None, None) => {
            let hint = format!("{} = \"{}\"", C::KEY, C::EXAMPLE);
            return Err(Error::new(format!("the key `{}` is missing", C::KEY)).hint(hint));
        }
    };
    for (key, value) in table.iter().filter(|(key, _)| *key != C::KEY) {
        config.set_key(key, value)?;
    }
    config.check_all()?;
    Ok(config)
}

/// A table that reads back as the same: the name, and then all parameters.
pub fn to_table(key: &str, name: &str, settings: Vec<(&str, Value)>) -> Table {
    let mut table = Table::new();
    table.insert(key, name.into());
    for (key, value) in settings {
        table.insert(key, value);
    }
    table
}

/// Returns the entry or preset of this name, without custom components.
///
/// # Errors
/// Returns an error if the name is unknown.
pub fn named_here<C: Catalogue>(name: &str) -> Result<C> {
    named(name, &Nothing)
}

/// Declares a catalogue: an enum with a variant for each entry and one for custom components, the
/// modules of the entries, and a macro that runs an expression on the parameters of any variant.
///
/// An entry is a module and its parameters, a type of
/// [`params!`](crate::params!) that implements the trait named, which has at
/// least `NAME`, `SUMMARY` and `check`.
#[macro_export]
macro_rules! catalogue {
    (
        $(#[$attr:meta])*
        pub enum $Config:ident of $Kind:path, or $Custom:ty;
        what $what:literal, key $key:literal, example $example:literal;
        presets $presets:expr, elsewhere $elsewhere:expr;
        each $each:ident;
        $( $Variant:ident($module:ident::$Params:ident), )+
    ) => {
        $( pub mod $module; )+

        $(#[$attr])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $Config {
            $(
                #[allow(missing_docs)]
                $Variant($module::$Params),
            )+
            /// One that is not in the catalogue.
            Custom($crate::Custom<$Custom>),
        }

        /// Runs an expression on the parameters of any variant.
        macro_rules! $each {
            ($self:ident, $params:ident => $call:expr) => {
                $each!($self, $params => $call, $params => $call)
            };
            ($self:ident, $params:ident => $call:expr, $custom:ident => $other:expr) => {
                match $self {
                    $( $Config::$Variant($params) => $call, )+
                    $Config::Custom($custom) => { let $custom = $custom.config(); $other }
                }
            };
        }

        impl $crate::catalogue::Catalogue for $Config {
            const WHAT: &'static str = $what;
            const KEY: &'static str = $key;
            const EXAMPLE: &'static str = $example;
            const PRESETS: &'static [$crate::catalogue::Preset] = $presets;
            type Custom = $Custom;

            fn entries() -> $crate::__alloc::vec::Vec<$crate::Entry> {
                $crate::__alloc::vec![$($crate::Entry {
                    name: <$module::$Params as $Kind>::NAME,
                    summary: <$module::$Params as $Kind>::SUMMARY,
                    params: <$module::$Params as $crate::Params>::specs(),
                }),+]
            }
            fn names() -> &'static [&'static str] {
                &[$( <$module::$Params as $Kind>::NAME ),+]
            }
            fn default_of(name: &str) -> Option<Self> {
                $( if name == <$module::$Params as $Kind>::NAME {
                    return Some($Config::$Variant(<$module::$Params>::default()));
                } )+
                None
            }
            fn dialects_of(name: &str) -> &'static [$crate::words::Dialect] {
                $( if name == <$module::$Params as $Kind>::NAME {
                    return <$module::$Params as $crate::Params>::dialects();
                } )+
                &[]
            }
            fn of_custom(custom: $crate::Custom<$Custom>) -> Self {
                $Config::Custom(custom)
            }
            fn name_of(&self) -> &str {
                match self {
                    $( $Config::$Variant(_) => <$module::$Params as $Kind>::NAME, )+
                    $Config::Custom(custom) => $crate::CustomParams::name(custom.config()),
                }
            }
            fn values(&self) -> $crate::__alloc::vec::Vec<(&str, $crate::Value)> {
                self.settings()
            }
            fn set_key(&mut self, key: &str, value: &$crate::Value) -> $crate::Result<()> {
                match self {
                    $( $Config::$Variant(params) => $crate::Params::set(params, key, value), )+
                    $Config::Custom(custom) => {
                        $crate::CustomParams::set(custom.config_mut(), key, value)
                    }
                }
            }
            fn check_all(&self) -> $crate::Result<()> {
                $each!(self, params => params.check(), custom => $crate::CustomParams::check(custom))
            }
            fn elsewhere(name: &str) -> Option<&'static str> {
                $elsewhere(name)
            }
        }

        impl $Config {
            /// All of the catalogue.
            pub fn entries() -> $crate::__alloc::vec::Vec<$crate::Entry> {
                <Self as $crate::catalogue::Catalogue>::entries()
            }
            /// Names for sets of parameters.
            pub const PRESETS: &'static [$crate::catalogue::Preset] = $presets;
            /// Returns the entry or preset of this name.
            ///
            /// # Errors
            /// Returns an error if the name is not in the catalogue.
            pub fn named(name: &str) -> $crate::Result<Self> {
                $crate::catalogue::named_here(name)
            }
            /// Name of the component.
            pub fn name(&self) -> &str {
                $crate::catalogue::Catalogue::name_of(self)
            }
            /// All parameters with their values, in order.
            pub fn settings(&self) -> $crate::__alloc::vec::Vec<(&str, $crate::Value)> {
                $each!(
                    self,
                    params => $crate::Params::entries(params),
                    custom => $crate::CustomParams::entries(custom)
                )
            }
            /// The parameters whose values differ from those of `other`, which has the same name.
            pub fn differing(&self, other: &Self) -> $crate::__alloc::vec::Vec<&str> {
                match (self, other) {
                    $(
                        ($Config::$Variant(params), $Config::$Variant(other)) => {
                            $crate::Params::differing(params, other)
                        }
                    )+
                    _ => {
                        let settings = self.settings().into_iter().zip(other.settings());
                        let differing = settings.filter(|(own, other)| own != other);
                        differing.map(|((key, _), _)| key).collect()
                    }
                }
            }
            /// Returns a table that reads back as the same component.
            pub fn to_table(&self) -> $crate::Table {
                $crate::catalogue::to_table($key, self.name(), self.settings())
            }
            /// Checks the parameters against each other.
            ///
            /// # Errors
            /// Returns an error if parameters contradict each other.
            pub fn check(&self) -> $crate::Result<()> {
                $crate::catalogue::Catalogue::check_all(self)
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
