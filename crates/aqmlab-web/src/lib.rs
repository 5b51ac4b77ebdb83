//! The engine for a page: the live lab.
//!
//! A page writes a command into memory and gets an answer there, so it needs no generated
//! code: [`input`] gives room for a command, [`call`] answers it and returns the length of
//! the answer, [`output`] says where that is. A command is text, lines of which the first is
//! its name; [`lab`] describes them. An answer is JSON, or numbers of 64 bits.

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

/// Room for a command of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    MEMORY.with_borrow_mut(|memory| {
        memory.input = vec![0; bytes];
        memory.input.as_mut_ptr()
    })
}

/// Answers the command; gives the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    MEMORY.with_borrow_mut(|memory| {
        let command = String::from_utf8_lossy(&memory.input).into_owned();
        memory.output = memory.lab.answer(&command);
        memory.output.len()
    })
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    MEMORY.with_borrow(|memory| memory.output.as_ptr())
}
