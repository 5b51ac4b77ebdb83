//! From parameters to words.

use super::*;

/// Parameters in the words of a dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The name and the words that the other program takes: `fq_codel limit 1000 noecn`.
    pub words: String,
    /// Parameters that it has no word for, with their values.
    pub left_out: Vec<(String, String)>,
    /// Parameters that it cannot change and that have its value, but not the default here.
    pub fixed: Vec<(String, String)>,
    /// Word for the rate of the link, if the other program needs it.
    pub rate: Option<&'static str>,
}

impl Said {
    /// Returns words that read back as the same parameters: the rest as `key=value`.
    pub fn text(&self) -> String {
        let rest = self.left_out.iter().chain(&self.fixed);
        let rest = rest.map(|(key, value)| format!(" {key}={value}"));
        self.words.clone() + &rest.collect::<String>()
    }
}

/// Prints parameters in the words of a dialect: what differs from `usual`, the defaults with
/// what the name implies, and what has no default there.
pub fn say(settings: &dyn Settings, usual: &dyn Settings, dialect: &'static Dialect) -> Said {
    let has_rate = |key| settings.get(key).is_some_and(|rate| rate != "none");
    let rate = dialect.rate.filter(|(_, key)| !has_rate(key)).map(|(word, _)| word);
    let mut said = Said { words: dialect.kind.to_string(), rate, ..Said::default() };
    for key in settings.keys() {
        let value = settings.get(&key).unwrap_or_default();
        let is_usual = usual.get(&key).is_some_and(|usual| usual == value);
        if is_usual && !dialect.always.contains(&key.as_str()) {
            continue;
        }
        let is_fixed = dialect.fixed.contains(&(key.as_str(), value.as_str()));
        match word(dialect, &key, &value, settings) {
            _ if is_fixed => said.fixed.push((key, value)),
            Some(word) => {
                said.words.push(' ');
                said.words.push_str(&word);
            }
            None => said.left_out.push((key, value)),
        }
    }
    said
}

/// Returns the word that gives a parameter this value, with its value.
fn word(dialect: &Dialect, key: &str, value: &str, settings: &dyn Settings) -> Option<String> {
    dialect.words().find_map(|word| match word.effect {
        Effect::Value(of, form) if of == key => {
            form.write(value).map(|value| format!("{} {value}", word.word))
        }
        Effect::Set(of, set) if (of, set) == (key, value) => Some(word.word.to_string()),
        Effect::Call { sets: Some(sets), .. } if sets == (key, value) => {
            Some(word.word.to_string())
        }
        Effect::Derived { key: of, write } if of == key => {
            write(settings).map(|value| format!("{} {value}", word.word))
        }
        _ => None,
    })
}
