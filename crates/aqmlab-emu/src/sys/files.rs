//! The few files of the kernel that have no system call.
// What computes must read no files; this crate is what touches the world.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, File};
use std::io;

/// Sets what stands in a file of `/proc`.
pub fn set(path: &str, text: &str) -> io::Result<()> {
    fs::write(path, text)
}

/// The network namespace of this process: it stays as long as this is open.
pub fn network() -> io::Result<File> {
    File::open("/proc/self/ns/net")
}

/// How many threads this process has.
pub fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}
