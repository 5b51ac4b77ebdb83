//! Engine of a web page: the live lab.
//!
//! A page writes a command into memory and reads the answer there, so it needs no generated code:
//! [`input`] returns a buffer for a command, [`call`] answers it and returns the length of the
//! answer, [`output`] returns the answer's address. A command is text, and its first line is its
//! name; [`lab`] describes the commands. An answer is JSON, or 64-bit numbers.

mod catalogue;
pub mod check;
mod digest;
mod json;
pub mod lab;

use std::cell::RefCell;

use lab::Lab;

#[derive(Default)]
struct Memory {
    input: Vec<u8>,
    output: Vec<u8>,
    lab: Lab,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Returns a buffer for a command of this size.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    MEMORY.with_borrow_mut(|memory| {
        memory.input = vec![0; bytes];
        memory.input.as_mut_ptr()
    })
}

/// Answers the command. Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    MEMORY.with_borrow_mut(|memory| {
        let command = String::from_utf8_lossy(&memory.input).into_owned();
        memory.output = memory.lab.answer(&command);
        memory.output.len()
    })
}

/// Returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    MEMORY.with_borrow(|memory| memory.output.as_ptr())
}
