//! TOML text to values.

use aqmlab_core::{Error, Result, Table, Value};

/// Reads a TOML document.
///
/// # Errors
/// If it is not TOML: the error says where.
pub fn parse_document(text: &str) -> Result<Table> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        Error::new(format!("{place}not TOML: {}", error.message().replace('\n', " ")))
    })?;
    table
        .into_iter()
        .map(|(key, value)| Ok((key.clone(), convert(value).map_err(|e| e.at(key))?)))
        .collect()
}

/// Reads what stands after `--set key=`: a TOML value, or else plain text.
pub fn parse_value(text: &str) -> Value {
    format!("value = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        .and_then(|value| convert(value).ok())
        .unwrap_or_else(|| Value::Text(text.to_string()))
}

fn convert(value: toml::Value) -> Result<Value> {
    Ok(match value {
        toml::Value::String(text) => Value::Text(text),
        toml::Value::Integer(number) => Value::Integer(number),
        toml::Value::Float(number) => Value::Float(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(date) => {
            return Err(Error::not_allowed(date, "a number, text, list or table, not a date"));
        }
        toml::Value::Array(items) => {
            Value::List(items.into_iter().map(convert).collect::<Result<_>>()?)
        }
        toml::Value::Table(table) => Value::Table(
            table
                .into_iter()
                .map(|(key, value)| Ok((key, convert(value)?)))
                .collect::<Result<_>>()?,
        ),
    })
}
