//! Errors of the kernel as readable messages.

use std::io;

use aqmlab_core::Error;

/// Returns an error for a failed operation of the kernel.
pub fn failed(what: &str, error: &io::Error) -> Error {
    Error::new(format!("{what}: {error}"))
}
