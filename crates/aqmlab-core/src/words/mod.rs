//! Parameters in words: `fq_codel limit 1000p`, `cake bandwidth 18mbit nat`.
//!
//! One grammar for everything that has a name and parameters, with the words of tc(8) for
//! what Linux has. The reverse, [`say`], prints parameters in these words.
//!
//! # Grammar
//! A text is a name and, separated by white space, settings of four forms:
//! 1. `key=value`: the parameter of that name, with the value that it takes in a table;
//! 2. a word of the [`Dialect`], with its value where it takes one: `limit 1000`, `ecn`;
//! 3. the name of another parameter and its value: `variant linux`;
//! 4. the name of a switch, which turns it on, or off with `no` before it: `headdrop`.
//!
//! Only the second form follows tc where the two differ (`alpha 2` is 2/16 for PIE, `alpha=2`
//! is 2). What a whole line of tc says of the place of a queue (`tc qdisc add dev eth0 root`) is
//! skipped.
//!
//! # Sources
//! tc(8), section "Parameters", for units; each dialect names its manual page.
//!
//! # Differences
//! 1. A time or rate needs its unit; tc takes microseconds and bits per second for a bare number.
//! 2. `bps` is refused: bytes per second to tc, bits per second to others.
//! 3. What tc derives or assumes for a word that is not given has the default of the parameter
//!    here, unless the dialect derives it too ([`Dialect::finish`]).

use alloc::{format, string::String, string::ToString, vec::Vec};

use crate::error::{Error, Result};
use crate::params::{Params, missing_key};
use crate::value::Value;

mod form;
mod read;
mod say;

pub use form::Form;
pub use read::{Given, Line};
pub(crate) use read::{Trouble, apply, understand};
pub use say::{Said, say};

/// The words of another program for a set of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The name there: `pfifo`.
    pub kind: &'static str,
    /// The manual page.
    pub source: &'static str,
    /// Parameters that the name alone sets.
    pub implies: &'static [(&'static str, &'static str)],
    /// Parameters that the other program cannot change, at its values.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Parameters that are always printed: without default there, or with another one.
    pub always: &'static [&'static str],
    /// Word for the rate of the link, which the other program takes as an argument, and the
    /// parameter that can set it.
    pub rate: Option<(&'static str, &'static str)>,
    /// The words, in groups that dialects share.
    pub words: &'static [&'static [Word]],
    /// Derives parameters from those that were given.
    pub finish: Option<Finish>,
}

impl Dialect {
    /// A dialect without words, to be completed.
    pub const EMPTY: Dialect = Dialect {
        kind: "",
        source: "",
        implies: &[],
        fixed: &[],
        always: &[],
        rate: None,
        words: &[],
        finish: None,
    };

    /// Returns all words, in order.
    pub fn words(&self) -> impl Iterator<Item = &'static Word> + use<> {
        self.words.iter().flat_map(|group| group.iter())
    }
}

/// Derives parameters from those that were given.
pub type Finish = fn(&mut dyn Settings, &Given<'_>) -> Result<()>;

/// One word of a dialect. A word may be declared twice, with different forms of its value.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// Effect on the parameters.
    pub effect: Effect,
}

impl Word {
    /// A word with a value for the parameter `key`.
    pub const fn value(word: &'static str, key: &'static str, form: Form) -> Word {
        Word { word, effect: Effect::Value(key, form) }
    }
    /// A word that gives the parameter `key` a value.
    pub const fn set(word: &'static str, key: &'static str, value: &'static str) -> Word {
        Word { word, effect: Effect::Set(key, value) }
    }
    /// A word, with a value or without, that changes nothing here.
    pub const fn ignored(word: &'static str, has_value: bool, why: &'static str) -> Word {
        Word { word, effect: Effect::Nothing { has_value, why } }
    }
    /// A word whose effect is not modelled.
    pub const fn refused(word: &'static str, has_value: bool, why: &'static str) -> Word {
        Word { word, effect: Effect::Refused { has_value, why } }
    }

    /// Returns true if a value follows the word.
    pub fn has_value(&self) -> bool {
        match self.effect {
            Effect::Value(..) | Effect::Derived { .. } | Effect::Same { .. } => true,
            Effect::Set(..) | Effect::Call { .. } => false,
            Effect::Nothing { has_value, .. } | Effect::Refused { has_value, .. } => has_value,
        }
    }

    /// Returns the reason why the word changes nothing, or is refused.
    pub fn why(&self) -> &'static str {
        match self.effect {
            Effect::Nothing { why, .. }
            | Effect::Refused { why, .. }
            | Effect::Same { why, .. } => why,
            _ => "",
        }
    }

    /// Returns true if the word is for something that is not modelled.
    pub fn is_refused(&self) -> bool {
        matches!(self.effect, Effect::Refused { .. })
    }

    /// Returns the value that a word without one gives to its parameter.
    pub fn sets(&self) -> Option<&'static str> {
        match self.effect {
            Effect::Set(_, value) | Effect::Call { sets: Some((_, value)), .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the parameter that the word sets.
    pub fn key(&self) -> Option<&'static str> {
        match self.effect {
            Effect::Value(key, _) | Effect::Set(key, _) | Effect::Derived { key, .. } => Some(key),
            Effect::Call { sets, .. } => sets.map(|(key, _)| key),
            Effect::Nothing { .. } | Effect::Same { .. } | Effect::Refused { .. } => None,
        }
    }
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// The value that follows, in the form of the dialect, is that of a parameter.
    Value(&'static str, Form),
    /// A parameter has this value.
    Set(&'static str, &'static str),
    /// A function changes parameters.
    Call {
        /// The parameter that this is the word of, with its value, for printing.
        sets: Option<(&'static str, &'static str)>,
        /// Changes the parameters.
        call: fn(&mut dyn Settings) -> Result<()>,
    },
    /// [`Dialect::finish`] derives the parameter from the value that follows.
    Derived {
        /// The parameter.
        key: &'static str,
        /// Returns the value to print, if any, from the parameters.
        write: fn(&dyn Settings) -> Option<String>,
    },
    /// Accepted, without effect.
    Nothing {
        /// Whether a value follows.
        has_value: bool,
        /// The reason.
        why: &'static str,
    },
    /// Accepted with one value, which is the one that is modelled.
    Same {
        /// The form of the value.
        form: Form,
        /// The value, as a parameter has it.
        value: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// Not modelled.
    Refused {
        /// Whether a value follows.
        has_value: bool,
        /// The reason.
        why: &'static str,
    },
}

/// Parameters by their names.
pub trait Settings {
    /// Returns names and values, in order.
    fn values(&self) -> Vec<(&str, Value)>;
    /// Sets a parameter from its text form.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the value has the wrong type or is out of range.
    fn put(&mut self, key: &str, text: &str) -> Result<()>;

    /// Returns the names, in order.
    fn keys(&self) -> Vec<String> {
        self.values().into_iter().map(|(key, _)| key.to_string()).collect()
    }
    /// Returns the value of a parameter in text form.
    fn get(&self, key: &str) -> Option<String> {
        let found = self.values().into_iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.to_string())
    }
    /// Returns true if the parameter is a switch.
    fn is_switch(&self, key: &str) -> bool {
        self.get(key).is_some_and(|text| text == "true" || text == "false")
    }
}

impl<T: Params> Settings for T {
    fn values(&self) -> Vec<(&str, Value)> {
        self.entries()
    }
    fn put(&mut self, key: &str, text: &str) -> Result<()> {
        self.set(key, &Value::from(text))
    }
}

/// Reads parameters in words; the name may be left out.
///
/// # Errors
/// For a word that is not known, a value that is not allowed, and a required key without value.
pub fn read_params<T: Params>(text: &str) -> Result<T> {
    let line = Line::of(text)?;
    let dialects = T::dialects();
    let named = dialects.iter().find(|dialect| dialect.kind == line.name);
    let dialect = named.or(dialects.first());
    let mut words = line.words.clone();
    if named.is_none() {
        words.insert(0, line.name);
    }
    let mut params = dialect.map_or_else(T::default, usual);
    let what = dialect.map_or("", |dialect| dialect.kind);
    let items = understand(&words, what, &params, dialect).map_err(Error::from)?;
    let is_given = |key: &str| items.iter().any(|item| item.key() == Some(key));
    if let Some((key, example)) = T::REQUIRED.iter().find(|(key, _)| !is_given(key)) {
        let hint = format!("{what} {key} {example}");
        return Err(missing_key(key, example).hint(hint));
    }
    apply(&items, &mut params, dialect)?;
    Ok(params)
}

/// Returns the defaults with what the name of a dialect implies.
fn usual<T: Params>(dialect: &Dialect) -> T {
    let mut params = T::default();
    for (key, text) in dialect.implies {
        params.put(key, text).expect("what a name implies is valid");
    }
    params
}

/// Prints parameters in the words of the first dialect whose name implies their values.
///
/// # Panics
/// Panics if the parameters have no such dialect.
pub fn say_params<T: Params>(params: &T) -> Said {
    let has = |(key, value): &(&str, &str)| params.get(key).is_some_and(|has| has == *value);
    let fits = |dialect: &&Dialect| dialect.implies.iter().all(has);
    let dialect = T::dialects().iter().find(fits).expect("a dialect");
    say(params, &usual::<T>(dialect), dialect)
}

#[cfg(test)]
mod tests;
