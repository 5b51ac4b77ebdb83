//! Entries of catalogues in words: `fq_codel limit 1000p`.

use alloc::{format, string::String, string::ToString, vec, vec::Vec};

use crate::component::{BuiltIn, Config, Kind, Lookup};
use crate::error::{Error, Result};
use crate::value::Value;
use crate::words::{Dialect, Line, Said, Settings, Trouble, Word, apply, say, understand};

/// The parameters of an entry by their names.
struct Configured<'a, K: ?Sized>(&'a mut Config<K>);

impl<K: Kind + ?Sized> Settings for Configured<'_, K> {
    fn values(&self) -> Vec<(&str, Value)> {
        self.0.settings()
    }
    fn put(&mut self, key: &str, text: &str) -> Result<()> {
        let is_here = self.0.is_built_in();
        let value = if is_here { Value::from(text) } else { Value::typed(text) };
        self.0.set(key, &value)
    }
}

/// Reads a name with the words after it. A name of a dialect (`pfifo`) stands for its entry, and
/// one that the catalogue has too (`red`) does so where only the dialect knows the words.
pub(super) fn read_text<K: Kind + ?Sized>(
    text: &str,
    before: Option<&Config<K>>,
    more: &dyn Lookup<K>,
) -> Result<Config<K>> {
    let line = Line::of(text).map_err(|_| Error::not_allowed(text, super::allowed::<K>()))?;
    let own = match before.filter(|config| config.name() == line.name) {
        Some(same) => Ok(same.clone()),
        None => Config::named_with(line.name, more),
    };
    let by_kind = of_kind::<K>(line.name);
    if by_kind.is_none() || own.is_ok() {
        let own = own?;
        let dialect = dialects_of(&own).first();
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

type Candidate<K> = (Config<K>, Option<&'static Dialect>);

fn dialects_of<K: Kind + ?Sized>(config: &Config<K>) -> &'static [Dialect] {
    BuiltIn::<K>::find(config.name()).map_or(&[], |known| (known.dialects)())
}

/// Returns the entry that a name of a dialect stands for, with what that implies.
fn of_kind<K: Kind + ?Sized>(kind: &str) -> Option<Candidate<K>> {
    K::built_in().iter().find_map(|known| {
        let dialect = (known.dialects)().iter().find(|dialect| dialect.kind == kind)?;
        Some((implied(known, dialect), Some(dialect)))
    })
}

/// Returns an entry with its defaults and what a dialect's name implies.
fn implied<K: Kind + ?Sized>(known: &BuiltIn<K>, dialect: &Dialect) -> Config<K> {
    let mut config = Config::new((known.default)());
    for (key, text) in dialect.implies {
        config.set(key, &Value::from(*text)).expect("what a name implies is valid");
    }
    config
}

/// Reads the words as those of the first candidate that knows them all.
fn first_that_knows<K: Kind + ?Sized>(
    line: &Line<'_>,
    candidates: Vec<Candidate<K>>,
) -> Result<Config<K>> {
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
pub fn say_in_dialect<K: Kind + ?Sized>(config: &Config<K>) -> Option<Said> {
    let known = BuiltIn::<K>::find(config.name())?;
    let mut config = config.clone();
    let settings = Configured(&mut config);
    let said = (known.dialects)().iter().map(|dialect| {
        let mut usual = implied(known, dialect);
        say(&settings, &Configured(&mut usual), dialect)
    });
    said.min_by_key(|said| said.left_out.len())
}

/// Prints an entry in words that read back as the same.
pub fn say_in_words<K: Kind + ?Sized>(config: &Config<K>) -> String {
    if let Some(said) = say_in_dialect(config) {
        return said.text();
    }
    let name = config.name();
    let usual = Config::<K>::built_in(name);
    let usual = usual.as_ref().map(Config::settings).unwrap_or_default();
    let differs = |pair: &(&str, Value)| !usual.contains(pair);
    let words = config.settings().into_iter().filter(differs);
    let words = words.map(|(key, value)| format!("{key}={value}"));
    vec![name.to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the words that may follow a name: those of its dialect, and its parameters.
///
/// # Errors
/// Returns an error if the name is unknown.
pub fn words_of<K: Kind + ?Sized>(
    name: &str,
) -> Result<Vec<(&'static str, Option<&'static Word>)>> {
    let (config, dialect) = match (Config::<K>::built_in(name), of_kind::<K>(name)) {
        (Some(own), _) => {
            let dialect = dialects_of(&own).first();
            (own, dialect)
        }
        (None, Some(found)) => found,
        (None, None) => return Err(super::unknown::<K>(name, &())),
    };
    let params = BuiltIn::<K>::find(config.name()).map(|known| (known.params)());
    let keys = params.into_iter().flatten().map(|spec| (spec.name, None));
    let words = dialect.into_iter().flat_map(|dialect| dialect.words());
    Ok(words.map(|word| (word.word, Some(word))).chain(keys).collect())
}
