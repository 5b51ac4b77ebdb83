//! Errors of the kernel, in words.

use std::io;

use aqmlab_core::Error;

/// An error of the kernel about something.
pub fn failed(what: &str, error: &io::Error) -> Error {
    Error::new(format!("{what}: {error}"))
}
