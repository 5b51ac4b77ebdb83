//! Values as TOML text.

use std::fmt::Write;

use aqmlab_core::{Table, Value};

/// A scenario, a table for each link and group of flows.
pub fn document(table: &Table) -> String {
    let mut text = String::new();
    let is_named = |key: &str| matches!(key, "links" | "flows");
    for (key, value) in table.iter().filter(|(key, _)| !is_named(key)) {
        writeln!(text, "{key} = {}", inline(value)).expect("to memory");
    }
    for (kind, value) in table.iter().filter(|(key, _)| is_named(key)) {
        let Value::Table(named) = value else { continue };
        for (name, value) in named.iter() {
            let Value::Table(keys) = value else { continue };
            writeln!(text, "\n[{kind}.{name}]").expect("to memory");
            for (key, value) in keys.iter() {
                writeln!(text, "{key} = {}", inline(value)).expect("to memory");
            }
        }
    }
    text
}

fn inline(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Float(number) => format!("{number:?}"),
        Value::List(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| format!("{key} = {}", inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
