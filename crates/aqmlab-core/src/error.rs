//! The one error type: what a user can cause, said so that it can be mended.

use alloc::{borrow::Cow, format, string::String, string::ToString, vec::Vec};

use core::fmt;

/// Shorthand for a result with the project's [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

/// An error in the input: its place, the given value, the allowed values and, where there is a good
/// guess, the probable intention.
///
/// Bugs are not errors: they panic.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Error {
    /// The file, or what stands for it (`--set`, `<text>`).
    pub file: Option<String>,
    /// The dotted path of the key: `links.bottleneck.queue.target`.
    pub key: String,
    /// The text given, as it was written.
    pub given: Option<String>,
    /// The problem, or the allowed values.
    pub problem: String,
    /// The next step: the nearest valid name, the missing unit.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a place yet.
    pub fn new(problem: impl Into<String>) -> Self {
        Error { problem: problem.into(), ..Error::default() }
    }
    /// A value that is not what its key takes.
    pub fn not_allowed(given: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Error::new(format!("expected {allowed}")).given(given)
    }
    /// A name that is not one of `known`; the nearest becomes the hint.
    pub fn unknown<'a>(what: &str, given: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        // One copy of the rest, not one for each kind of iterator.
        Self::unknown_of(what, given, &known.into_iter().collect::<Vec<&str>>())
    }
    fn unknown_of(what: &str, given: &str, known: &[&str]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for name in known {
            if names.len() > SHOWN_NAMES {
                break;
            }
            if !names.contains(name) {
                names.push(name);
            }
        }
        if names.len() > SHOWN_NAMES {
            names[SHOWN_NAMES] = "...";
        }
        let near = crate::suggest::nearest(given, known.iter().copied());
        let mut error =
            Error::new(format!("unknown {what}; known: {}", names.join(", "))).given(given);
        error.hint = near.map(|name| format!("did you mean `{name}`?"));
        error
    }
    /// Adds the given value.
    pub fn given(mut self, given: impl fmt::Display) -> Self {
        self.given = Some(given.to_string());
        self
    }
    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Prepends `key` to the path of the error.
    pub fn at(mut self, key: impl fmt::Display) -> Self {
        self.key = match self.key.is_empty() {
            true => key.to_string(),
            false => format!("{key}.{}", self.key),
        };
        self
    }
    /// Names the file, unless one is named already.
    pub fn in_file(mut self, file: &str) -> Self {
        self.file.get_or_insert_with(|| file.to_string());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", on_one_line(&self.key))?;
        }
        if let Some(given) = &self.given {
            write!(f, "`{}`: ", on_one_line(given))?;
        }
        f.write_str(&self.problem)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Returns whether a character ends a line or controls the terminal: control characters, and the
/// line and paragraph separators of Unicode.
pub fn breaks_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Maximum number of known names in a message.
const SHOWN_NAMES: usize = 100;
/// Maximum number of characters of a given value in a message.
const SHOWN: usize = 300;

/// Escapes line ends and control characters as TOML does, so that a message is one line, and
/// shortens long values.
fn on_one_line(text: &str) -> Cow<'_, str> {
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        let length = text.chars().count();
        return format!("{}... ({length} characters)", on_one_line(&text[..end])).into();
    }
    if !text.contains(breaks_line) {
        return text.into();
    }
    let escaped = text.chars().map(|c| match breaks_line(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    escaped.collect::<String>().into()
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_where_what_and_what_is_allowed() {
        let error = Error::not_allowed("5", "a time such as 5ms")
            .at("target")
            .at("links.bottleneck.queue")
            .in_file("a.toml");
        assert_eq!(
            error.to_string(),
            "a.toml: links.bottleneck.queue.target: `5`: expected a time such as 5ms"
        );
    }

    #[test]
    fn a_message_is_one_line() {
        let error = Error::not_allowed("a\nb", "a number").at("links.x\ty");
        assert_eq!(error.to_string(), "links.x\\ty: `a\\nb`: expected a number");
    }
}
