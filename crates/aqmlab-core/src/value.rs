//! Tree of values, the common form of TOML files, Python arguments and `--set key=value`.

use alloc::{format, string::String, string::ToString, vec::Vec};

use core::fmt;

use crate::error::{Error, Result};

/// One value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Text: names, and numbers with a unit.
    Text(String),
    /// A whole number without a unit.
    Integer(i64),
    /// A number without a unit.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Table),
}

/// Maximum nesting of tables and lists: deeper than any scenario, and safe for the stack.
pub const DEEPEST: usize = 64;

/// Keys and values in the order in which they were written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table(Vec<(String, Value)>);

impl Table {
    /// A table without keys.
    pub fn new() -> Self {
        Table::default()
    }
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
    /// Sets `key`, in its old place if it was there.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }
    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }
    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(key, _)| key.as_str())
    }
    /// True if the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value at a dotted key, creating the tables in between.
    ///
    /// # Errors
    /// Returns an error if a value in between is not a table, if a part of the key is empty, or if
    /// the key has more than [`DEEPEST`] parts.
    pub fn set_key(&mut self, key: &str, value: Value) -> Result<()> {
        if key.split('.').nth(DEEPEST).is_some() {
            return Err(Error::not_allowed(key, format!("a key of at most {DEEPEST} parts")));
        }
        self.set_inner(key, value)
    }

    fn set_inner(&mut self, key: &str, value: Value) -> Result<()> {
        let (head, rest) = match key.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (key, None),
        };
        if head.is_empty() {
            return Err(Error::not_allowed(key, "a key such as links.bottleneck.rate"));
        }
        let Some(rest) = rest else {
            self.insert(head, value);
            return Ok(());
        };
        if self.get(head).is_none() {
            self.insert(head, Value::Table(Table::new()));
        }
        let (_, inner) = self.0.iter_mut().find(|(name, _)| name == head).expect("just inserted");
        match inner {
            Value::Table(table) => table.set_inner(rest, value).map_err(|error| error.at(head)),
            other => {
                Err(Error::not_allowed(&*other, format!("a table, to set `{rest}` in")).at(head))
            }
        }
    }

    /// Refuses keys that are not in `known`, naming the nearest.
    ///
    /// # Errors
    /// For the first key that is not known.
    pub fn only<'a>(&self, known: impl IntoIterator<Item = &'a str> + Clone) -> Result<()> {
        for key in self.keys() {
            if !known.clone().into_iter().any(|name| name == key) {
                let mut error = Error::unknown("key", key, known);
                error.given = None;
                return Err(error.at(key));
            }
        }
        Ok(())
    }
}

impl FromIterator<(String, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        let pairs: Vec<(String, Value)> = pairs.into_iter().collect();
        let mut keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if keys.windows(2).all(|pair| pair[0] != pair[1]) {
            return Table(pairs);
        }
        let mut table = Table::new();
        pairs.into_iter().for_each(|(key, value)| table.insert(key, value));
        table
    }
}

impl IntoIterator for Table {
    type Item = (String, Value);
    type IntoIter = alloc::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Value {
    /// Name of the value's type.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
    /// Returns the table.
    ///
    /// # Errors
    /// Returns an error if the value is not a table.
    pub fn as_table(&self) -> Result<&Table> {
        match self {
            Value::Table(table) => Ok(table),
            other => Err(Error::not_allowed(other, "a table")),
        }
    }
    /// Returns the text.
    ///
    /// # Errors
    /// Returns an error if the value is not text.
    pub fn as_text(&self) -> Result<&str> {
        match self {
            Value::Text(text) => Ok(text),
            other => Err(Error::not_allowed(other, "text in quotes")),
        }
    }
}

impl fmt::Display for Value {
    /// Formats the value as in a TOML file; text has no quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number}"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Table(table) => {
                f.write_str("{")?;
                for (i, (key, value)) in table.iter().enumerate() {
                    write!(f, "{}{key} = {value}", if i > 0 { ", " } else { " " })?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl Value {
    /// A number, a switch or text, by what the text looks like.
    pub fn typed(text: &str) -> Value {
        match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match (text.parse(), text.parse::<f64>()) {
                (Ok(number), _) => Value::Integer(number),
                (_, Ok(number)) if number.is_finite() => Value::Float(number),
                _ => text.into(),
            },
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_string())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotted_path_makes_the_tables_on_its_way() {
        let mut table = Table::new();
        table.set_key("links.bottleneck.rate", "2mbit".into()).unwrap();
        table.set_key("links.bottleneck.delay", "70ms".into()).unwrap();
        assert_eq!(
            Value::Table(table.clone()).to_string(),
            "{ links = { bottleneck = { rate = 2mbit, delay = 70ms } } }"
        );
        let error = table.set_key("links.bottleneck.rate.x", "1".into()).unwrap_err();
        assert_eq!(error.key, "links.bottleneck.rate");
    }

    #[test]
    fn a_key_of_many_parts_is_refused_and_not_shown_whole() {
        let path = "a.".repeat(100_000) + "a";
        let error = Table::new().set_key(&path, "1".into()).unwrap_err().to_string();
        assert!(error.contains("at most 64 parts") && error.len() < 1000, "{error}");
        assert!(error.contains("... (200001 characters)"), "{error}");
    }

    #[test]
    fn of_two_pairs_with_one_key_the_later_counts_in_the_place_of_the_first() {
        let pairs = [("a", "1"), ("b", "2"), ("a", "3")];
        let table: Table =
            pairs.iter().map(|(key, text)| (key.to_string(), (*text).into())).collect();
        assert_eq!(Value::Table(table).to_string(), "{ a = 3, b = 2 }");
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let mut table = Table::new();
        table.insert("dealy", "1ms".into());
        let error = table.only(["rate", "delay"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "dealy: unknown key; known: rate, delay (did you mean `delay`?)"
        );
    }
}
