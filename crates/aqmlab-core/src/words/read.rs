//! From words to parameters.

use super::*;

/// A text, split into its name and the words after it.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Whether the text is a line of tc, whose names go first.
    pub is_tc: bool,
    /// The name.
    pub name: &'a str,
    /// The words after it.
    pub words: Vec<&'a str>,
}

/// Words of a tc command line, without value, that place the queue.
const PLACES: [&str; 12] = [
    "tc",
    "qdisc",
    "class",
    "add",
    "replace",
    "change",
    "show",
    "root",
    "ingress",
    "egress",
    "clsact",
    "offloaded",
];
/// The same, each with a value.
const PLACES_WITH_VALUE: [&str; 6] = ["dev", "parent", "handle", "classid", "refcnt", "leaf"];

impl<'a> Line<'a> {
    /// Splits a text.
    ///
    /// # Errors
    /// Returns an error if the text has no name.
    pub fn of(text: &'a str) -> Result<Self> {
        // The path of a file may hold spaces.
        let file = text.find(".py:").unwrap_or(0);
        let end = text[file..].find(char::is_whitespace).map_or(text.len(), |end| file + end);
        if file > 0 {
            let words = text[end..].split_whitespace().collect();
            return Ok(Line { is_tc: false, name: text[..end].trim(), words });
        }
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let is_tc = matches!(words.first(), Some(&("tc" | "qdisc" | "class")));
        if is_tc {
            let mut place = 0;
            while let Some(length) = words.get(place).and_then(|word| place_words(word)) {
                place += length;
            }
            words.drain(..place.min(words.len()));
        }
        if words.is_empty() {
            return Err(Error::not_allowed(text, "a name, and words such as `limit 1000p`"));
        }
        let name = words.remove(0);
        Ok(Line { is_tc, name, words })
    }
}

/// Returns how many words the place takes that begins with this one; `None` if it is no place.
fn place_words(word: &str) -> Option<usize> {
    let is_handle = word.contains(':') && word.chars().all(|c| c == ':' || c.is_ascii_hexdigit());
    match word {
        word if PLACES_WITH_VALUE.contains(&word) => Some(2),
        word if is_handle || PLACES.contains(&word) => Some(1),
        _ => None,
    }
}

/// One setting in words.
pub(crate) enum Item<'a> {
    /// A parameter by its own name.
    Own(String, &'a str, Option<&'static Word>),
    /// A word of the dialect; the same word may have several forms.
    Word(Vec<&'static Word>, &'a str),
}

impl Item<'_> {
    /// Returns the parameter that is set.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Item::Own(key, ..) => Some(key),
            Item::Word(words, _) => words[0].key(),
        }
    }
}

/// The reason why words are not understood.
pub(crate) enum Trouble {
    /// A word is not known: another discipline of the same name may know it.
    Unknown(Error),
    /// Something else.
    Wrong(Error),
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Error {
        let (Trouble::Unknown(error) | Trouble::Wrong(error)) = trouble;
        error
    }
}

/// Finds out what each word is. `what` is the name that they belong to.
pub(crate) fn understand<'a>(
    words: &[&'a str],
    what: &str,
    settings: &dyn Settings,
    dialect: Option<&'static Dialect>,
) -> core::result::Result<Vec<Item<'a>>, Trouble> {
    let keys = settings.keys();
    let is_key = |word: &str| keys.iter().any(|key| key == word);
    let in_dialect = |word: &str| -> Vec<&'static Word> {
        let words = dialect.into_iter().flat_map(|dialect| dialect.words());
        words.filter(|each| each.word == word).collect()
    };
    let mut items = Vec::new();
    let mut rest = words.iter().copied().peekable();
    while let Some(word) = rest.next() {
        let without_value = || {
            let error = Error::new(format!("`{word}` needs a value")).given(word);
            Trouble::Wrong(error.at(word))
        };
        if let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) {
            let known = in_dialect(key);
            let value = Some(value).filter(|value| !value.is_empty()).ok_or_else(without_value)?;
            let other = known.iter().copied().find(|word| word.has_value());
            items.push(match (is_key(key), other) {
                (true, other) => Item::Own(key.to_string(), value, other),
                (false, Some(_)) => Item::Word(known, value),
                (false, None) => return Err(unknown(key, what, &keys, dialect)),
            });
            continue;
        }
        let switch_value = rest.next_if(|next| *next == "true" || *next == "false");
        let known = in_dialect(word);
        if let Some(value) = switch_value
            && is_key(word)
        {
            items.push(Item::Own(word.to_string(), value, None));
        } else if let Some(first) = known.first() {
            let value = match first.has_value() {
                true => switch_value.or_else(|| rest.next()).ok_or_else(without_value)?,
                false => "",
            };
            items.push(Item::Word(known, value));
        } else if is_key(word) && settings.is_switch(word) {
            items.push(Item::Own(word.to_string(), "true", None));
        } else if is_key(word) {
            let value = rest.next().ok_or_else(without_value)?;
            items.push(Item::Own(word.to_string(), value, None));
        } else if let Some(key) = turned_off(word).filter(|key| settings.is_switch(key)) {
            items.push(Item::Own(key.to_string(), "false", None));
        } else if let Some(length) = place_words(word) {
            for _ in 1..length {
                rest.next();
            }
        } else {
            return Err(unknown(word, what, &keys, dialect));
        }
    }
    Ok(items)
}

/// Returns the switch that a word turns off: `ecn` of `noecn`.
fn turned_off(word: &str) -> Option<&str> {
    word.strip_prefix("no").map(|rest| rest.trim_start_matches(['-', '_']))
}

fn unknown(word: &str, what: &str, keys: &[String], dialect: Option<&Dialect>) -> Trouble {
    let words = dialect.into_iter().flat_map(|dialect| dialect.words()).map(|word| word.word);
    let known: Vec<&str> = words.chain(keys.iter().map(String::as_str)).collect();
    Trouble::Unknown(Error::unknown(&format!("word of {what}"), word, known))
}

/// The words that were given, for [`Dialect::finish`].
#[derive(Debug)]
pub struct Given<'a> {
    keys: Vec<&'a str>,
    words: Vec<&'static str>,
    derived: Vec<(&'static str, &'a str)>,
}

impl<'a> Given<'a> {
    /// Returns true if this parameter was given.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(&key)
    }
    /// Returns true if this word of the dialect was given.
    pub fn has_word(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
    /// Returns the value of a word whose parameter is derived.
    pub fn derived(&self, word: &str) -> Option<&'a str> {
        self.derived.iter().rev().find(|(each, _)| *each == word).map(|(_, value)| *value)
    }
}

/// Sets what the words say, in their order.
pub(crate) fn apply(
    items: &[Item<'_>],
    settings: &mut dyn Settings,
    dialect: Option<&'static Dialect>,
) -> Result<()> {
    let mut given = Given { keys: Vec::new(), words: Vec::new(), derived: Vec::new() };
    for item in items {
        match item {
            Item::Own(key, value, other) => put_own(key, value, *other, settings)?,
            Item::Word(words, value) => {
                put_word(words, value, settings).map_err(|error| about(error, words[0], value))?;
                given.words.push(words[0].word);
                if let Effect::Derived { .. } = words[0].effect {
                    given.derived.push((words[0].word, value));
                }
            }
        }
        given.keys.extend(item.key());
    }
    match dialect.and_then(|dialect| dialect.finish) {
        Some(finish) if !items.is_empty() => finish(settings, &given),
        _ => Ok(()),
    }
}

/// Sets a parameter from its own form, or else from that of the dialect: `limit=1000`.
fn put_own(key: &str, value: &str, word: Option<&Word>, settings: &mut dyn Settings) -> Result<()> {
    let own = settings.put(key, value);
    let (Err(_), Some(Effect::Value(_, form))) = (&own, word.map(|word| word.effect)) else {
        return own;
    };
    match form.read(value) {
        Ok(text) if settings.put(key, &text).is_ok() => Ok(()),
        _ => own,
    }
}

fn put_word(words: &[&'static Word], value: &str, settings: &mut dyn Settings) -> Result<()> {
    let mut problem = Error::default();
    for word in words {
        match word.effect {
            Effect::Value(key, form) => match form.read(value) {
                Ok(text) => return settings.put(key, &text),
                Err(allowed) => problem = Error::not_allowed(value, allowed),
            },
            Effect::Set(key, value) => return settings.put(key, value),
            Effect::Call { call, .. } => return call(settings),
            Effect::Derived { .. } | Effect::Nothing { .. } => return Ok(()),
            Effect::Same { form, value: same, why } => {
                let is_same =
                    form.read(value).is_ok_and(|text| form.write(&text) == form.write(same));
                let shown = form.write(same).unwrap_or_else(|| same.to_string());
                let refused = || Error::not_allowed(value, format!("{shown}: {why}"));
                return if is_same { Ok(()) } else { Err(refused()) };
            }
            Effect::Refused { why, .. } => {
                return Err(Error::new(format!("not modelled: {why}")).given(word.word));
            }
        }
    }
    Err(problem)
}

/// The error about a word: with that as key, and the value as it was written.
fn about(error: Error, word: &Word, value: &str) -> Error {
    let given = if value.is_empty() { word.word } else { value };
    Error { key: word.word.to_string(), ..error.given(given) }
}
