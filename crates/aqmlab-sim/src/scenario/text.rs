//! Conversion between values and text: TOML and JSON.

use aqmlab_core::{Error, Result, Table, Value};

/// Parses a TOML document.
///
/// # Errors
/// Returns an error with the position if it is not TOML.
pub fn parse_document(text: &str) -> Result<Table> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let given = error.span().and_then(|span| text.get(span)).unwrap_or_default().trim();
        if is_too_large(given) {
            let hint =
                format!("whole numbers in TOML end at {}; --seed takes larger ones", i64::MAX);
            return Error::new(format!("{place}not TOML: {given} is too large")).hint(hint);
        }
        Error::new(format!("{place}not TOML: {}", error.message().replace('\n', " ")))
    })?;
    table
        .into_iter()
        .map(|(key, value)| Ok((key.clone(), convert(value).map_err(|e| e.at(key))?)))
        .collect()
}

/// Whether the text is a whole number that 64 bits with a sign do not hold.
fn is_too_large(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']).replace('_', "");
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && !digits.starts_with('0') && digits.parse::<i64>().is_err()
}

/// Parses the text after `--set key=`: a TOML value, or else plain text.
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

/// Returns a scenario's table as a TOML document, with a section for each table in it.
pub fn to_toml(table: &Table) -> String {
    let mut out = String::new();
    for (key, value) in table.iter().filter(|(_, value)| !is_section(value)) {
        line(&mut out, key, value);
    }
    for (key, value) in table.iter() {
        let key = quoted_key(key);
        match value {
            Value::Table(entries) if entries.iter().all(|(_, each)| is_section(each)) => {
                for (name, entry) in entries.iter() {
                    section(&mut out, &format!("[{key}.{}]", quoted_key(name)), entry);
                }
            }
            Value::Table(_) => section(&mut out, &format!("[{key}]"), value),
            Value::List(items) if is_section(value) => {
                items.iter().for_each(|item| section(&mut out, &format!("[[{key}]]"), item));
            }
            _ => {}
        }
    }
    out
}

/// Returns whether a value has its own section header.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::List(items) => items.iter().any(|item| matches!(item, Value::Table(_))),
        _ => false,
    }
}

fn section(out: &mut String, header: &str, value: &Value) {
    out.push_str(&format!("\n{header}\n"));
    if let Value::Table(table) = value {
        table.iter().for_each(|(key, value)| line(out, key, value));
    }
}

fn line(out: &mut String, key: &str, value: &Value) {
    out.push_str(&format!("{} = ", quoted_key(key)));
    write(out, value, Notation::Toml);
    out.push('\n');
}

/// Returns a value as JSON.
pub fn to_json(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, Notation::Json);
    text
}

/// Notation of a value on one line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Json,
    Toml,
}

fn write(out: &mut String, value: &Value, notation: Notation) {
    let is_json = notation == Notation::Json;
    let comma = if is_json { "," } else { ", " };
    match value {
        Value::Text(text) => write_text(out, text, notation),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { comma } else { "" });
                write(out, item, notation);
            }
            out.push(']');
        }
        Value::Table(table) => {
            out.push_str(if is_json { "{" } else { "{ " });
            for (place, (key, value)) in table.iter().enumerate() {
                out.push_str(if place > 0 { comma } else { "" });
                if is_json {
                    write_text(out, key, notation);
                    out.push(':');
                } else {
                    out.push_str(&format!("{} = ", quoted_key(key)));
                }
                write(out, value, notation);
            }
            out.push_str(if is_json { "}" } else { " }" });
        }
        Value::Float(number) if !is_json && number.fract() == 0.0 => {
            out.push_str(&format!("{number:.1}"));
        }
        other => out.push_str(&other.to_string()),
    }
}

fn write_text(out: &mut String, text: &str, notation: Notation) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' || c == '\u{7f}' && notation == Notation::Toml => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Writes a key, quoted if necessary.
fn quoted_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(is_bare) {
        return key.to_string();
    }
    let mut out = String::new();
    write_text(&mut out, key, Notation::Toml);
    out
}
