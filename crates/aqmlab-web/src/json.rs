//! JSON writer.

use aqmlab_sim::scenario::to_json;

/// Returns a text as a JSON string.
pub fn text(text: &str) -> String {
    to_json(&text.into())
}

/// Returns a number; NaN and infinity become `null`.
pub fn number(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { "null".into() }
}

/// Returns an object of JSON values.
pub fn object<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, String)>) -> String {
    let entry = |(key, value): (K, String)| format!("{}:{value}", text(key.as_ref()));
    format!("{{{}}}", entries.into_iter().map(entry).collect::<Vec<_>>().join(","))
}

/// Returns a list of JSON values.
pub fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_json() {
        assert_eq!(text("a \"b\"\n\\"), r#""a \"b\"\u000a\\""#);
        assert_eq!(number(f64::NAN), "null");
        assert_eq!(number(0.5), "0.5");
        let object = object([("a", number(1.0)), ("b", list([text("x"), text("y")]))]);
        assert_eq!(object, r#"{"a":1,"b":["x","y"]}"#);
    }
}
