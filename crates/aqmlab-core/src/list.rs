//! Lists as parameters. The text form is `[a, b]`; the brackets may be absent.

use alloc::{format, string::String, vec::Vec};

use crate::error::{Error, Result};
use crate::params::{ParamType, TABLE};
use crate::value::Value;

impl<T: ParamType> ParamType for Vec<T> {
    const KIND: &'static str = "list";
    fn allowed() -> String {
        format!("a list in brackets, each {}", T::allowed())
    }
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::List(items) => items.iter().map(T::read).collect(),
            Value::Text(text) => {
                let text = text.trim();
                let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                let items = inner.unwrap_or(text).trim();
                if items.is_empty() {
                    return Some(Vec::new());
                }
                items.split(',').map(|item| T::read(&Value::from(item.trim()))).collect()
            }
            _ => None,
        }
    }
    fn parse(value: &Value) -> Result<Self> {
        match value {
            // Report the error of the table that is wrong.
            Value::List(items) if T::KIND == TABLE => items
                .iter()
                .enumerate()
                .map(|(number, item)| T::parse(item).map_err(|error| error.at(number)))
                .collect(),
            other => Self::read(other).ok_or_else(|| Error::not_allowed(other, Self::allowed())),
        }
    }
    fn to_value(&self) -> Value {
        match T::KIND {
            TABLE => Value::List(self.iter().map(T::to_value).collect()),
            _ => Value::Text(self.to_text()),
        }
    }
    fn to_text(&self) -> String {
        format!("[{}]", self.iter().map(T::to_text).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn lists_are_read_from_lists_and_texts_and_read_back() {
        let times = vec![Span::from_secs(1), Span::from_millis(2)];
        let items = vec![Value::from("1s"), Value::from("2ms")];
        assert_eq!(Vec::read(&Value::List(items)), Some(times.clone()));
        for text in ["[1s, 2ms]", "1s,2ms", " [ 1s , 2ms ] "] {
            assert_eq!(Vec::read(&text.into()), Some(times.clone()), "{text}");
        }
        assert_eq!(Vec::read(&times.to_text().as_str().into()), Some(times));
        assert_eq!(Vec::<Span>::read(&"[]".into()), Some(Vec::new()));
        for text in ["[1s, 2]", "[1s, 2ms", "1s,", "[[1s]]"] {
            assert_eq!(Vec::<Span>::read(&text.into()), None, "{text}");
        }
        assert_eq!(Vec::<Span>::read(&Value::Integer(1)), None);
    }
}
