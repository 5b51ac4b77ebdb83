//! Entries of catalogues in words: `fq_codel limit 1000p`.

use alloc::{format, string::String, string::ToString, vec, vec::Vec};

use super::{Catalogue, named, of_catalogue};
use crate::custom::Lookup;
use crate::error::{Error, Result};
use crate::value::Value;
use crate::words::{Dialect, Line, Said, Settings, Trouble, Word, apply, say, understand};

/// The parameters of an entry by their names.
struct Configured<'a, C>(&'a mut C);

impl<C: Catalogue> Settings for Configured<'_, C> {
    fn keys(&self) -> Vec<String> {
        self.0.values().into_iter().map(|(key, _)| key.to_string()).collect()
    }
    fn get(&self, key: &str) -> Option<String> {
        let found = self.0.values().into_iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.to_string())
    }
    fn put(&mut self, key: &str, text: &str) -> Result<()> {
        let is_here = C::names().contains(&self.0.name_of());
        let value = if is_here { Value::from(text) } else { Value::typed(text) };
        self.0.set_key(key, &value)
    }
}

/// Reads a name with the words after it. A name of a dialect (`pfifo`) stands for its entry, and
/// one that the catalogue has too (`red`) does so where only the dialect knows the words.
pub(super) fn read_text<C: Catalogue>(
    text: &str,
    before: Option<&C>,
    more: &dyn Lookup<C::Custom>,
) -> Result<C> {
    let line = Line::of(text).map_err(|_| Error::not_allowed(text, super::allowed::<C>()))?;
    let own = match before.filter(|config| config.name_of() == line.name) {
        Some(same) => Ok(same.clone()),
        None => named(line.name, more),
    };
    let by_kind = of_kind::<C>(line.name);
    if by_kind.is_none() || own.is_ok() {
        let own = own?;
        let dialect = C::dialects_of(own.name_of()).first();
        let candidates = by_kind.into_iter();
        let own = core::iter::once((own, dialect));
        return if line.is_tc {
            first_that_knows(&line, candidates.chain(own).collect())
        } else {
            first_that_knows(&line, own.chain(candidates).collect())
        };
    }
    first_that_knows(&line, by_kind.into_iter().collect())
}

type Candidate<C> = (C, Option<&'static Dialect>);

/// Returns the entry that a name of a dialect stands for, with what that implies.
fn of_kind<C: Catalogue>(kind: &str) -> Option<Candidate<C>> {
    C::names().iter().find_map(|name| {
        let dialect = C::dialects_of(name).iter().find(|dialect| dialect.kind == kind)?;
        Some((implied(name, dialect), Some(dialect)))
    })
}

/// Returns an entry with its defaults and what a dialect's name implies.
fn implied<C: Catalogue>(name: &str, dialect: &Dialect) -> C {
    let mut config = C::default_of(name).expect("an entry of the catalogue");
    for (key, text) in dialect.implies {
        config.set_key(key, &Value::from(*text)).expect("what a name implies is valid");
    }
    config
}

/// Reads the words as those of the first candidate that knows them all.
fn first_that_knows<C: Catalogue>(line: &Line<'_>, candidates: Vec<Candidate<C>>) -> Result<C> {
    let mut problem: Option<Error> = None;
    for (mut config, dialect) in candidates {
        let mut settings = Configured(&mut config);
        match understand(&line.words, line.name, &settings, dialect) {
            Ok(items) => {
                apply(&items, &mut settings, dialect)?;
                return Ok(config);
            }
            Err(Trouble::Wrong(error)) => return Err(error),
            Err(Trouble::Unknown(error)) => match &problem {
                Some(before) if before.given == error.given => {}
                _ => problem = Some(error),
            },
        }
    }
    Err(problem.expect("there is a candidate"))
}

/// Prints an entry in the words of the dialect that leaves out the fewest parameters; `None`
/// without a dialect.
pub fn say_in_dialect<C: Catalogue>(config: &C) -> Option<Said> {
    let name = config.name_of();
    let mut config = config.clone();
    let settings = Configured(&mut config);
    let said = C::dialects_of(name).iter().map(|dialect| {
        let mut usual: C = implied(name, dialect);
        say(&settings, &Configured(&mut usual), dialect)
    });
    said.min_by_key(|said| said.left_out.len())
}

/// Prints an entry in words that read back as the same.
pub fn say_in_words<C: Catalogue>(config: &C) -> String {
    if let Some(said) = say_in_dialect(config) {
        return said.text();
    }
    let name = config.name_of();
    let usual = C::default_of(name);
    let usual = usual.as_ref().map(Catalogue::values).unwrap_or_default();
    let differs = |pair: &(&str, Value)| !usual.contains(pair);
    let words = config.values().into_iter().filter(differs);
    let words = words.map(|(key, value)| format!("{key}={value}"));
    vec![name.to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the words that may follow a name: those of its dialect, and its parameters.
///
/// # Errors
/// Returns an error if the name is unknown.
pub fn words_of<C: Catalogue>(name: &str) -> Result<Vec<(&'static str, Option<&'static Word>)>> {
    let (config, dialect) = match (of_catalogue::<C>(name), of_kind::<C>(name)) {
        (Some(own), _) => {
            let dialect = C::dialects_of(own.name_of()).first();
            (own, dialect)
        }
        (None, Some(found)) => found,
        (None, None) => return Err(super::named_here::<C>(name).err().expect("it is unknown")),
    };
    let entry = C::entries().into_iter().find(|entry| entry.name == config.name_of());
    let keys = entry.into_iter().flat_map(|entry| entry.params).map(|spec| (spec.name, None));
    let words = dialect.into_iter().flat_map(|dialect| dialect.words());
    Ok(words.map(|word| (word.word, Some(word))).chain(keys).collect())
}
