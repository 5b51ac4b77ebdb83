//! What the first process in new namespaces does: starts programs, passes signals on, takes in
//! whatever ends, and takes everything with it when it ends itself.
//!
//! It is number 1 of a process namespace, so the kernel kills all others in it
//! when it ends, however that happens. It ends when the command does, and when
//! the emulator does: the kernel kills it then, and besides it sees that their
//! socket is closed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use super::broker::Broker;
use crate::sys::process::{
    Ended, Pid, Program, Signals, confine, default_signal, enter, exit, fork_into, kill, reap,
};
use crate::sys::time::{Polled, readable, wait_for};
use crate::sys::{receive, send};

/// Exit statuses of a command that could not be started, as shells give them.
const NOT_FOUND: i32 = 127;
pub(crate) const NOT_STARTED: i32 = 126;

/// Messages to the emulator begin with one of these.
pub const FAR: u8 = b'F';
/// The near device.
pub const NEAR: u8 = b'N';
/// So many packets were dropped by the near device.
pub const DROPPED: u8 = b'D';
/// Something went wrong, in words.
pub const ERROR: u8 = b'E';
/// Everything is prepared.
pub const READY: u8 = b'R';
/// Message from the emulator: start.
pub const START: u8 = b'S';
/// Message from the emulator: pass on this signal.
pub const SIGNAL: u8 = b'K';

/// Does what the first process of a process namespace does: starts the command
/// by `start` when the emulator says so (with some bytes), passes signals on,
/// and ends as the command does, or when the emulator or `keeper` is gone. What
/// `dropped` counts by then is told to the emulator.
pub(crate) fn serve(
    socket: &OwnedFd,
    keeper: Option<Pid>,
    brokers: &[Broker],
    mut start: impl FnMut(&[u8]) -> Option<Pid>,
    dropped: impl Fn() -> u64,
) -> ! {
    let Ok(children) = Signals::block(&[libc::SIGCHLD]) else { exit(1) };
    let mut command: Option<Pid> = None;
    loop {
        let watched = [socket.as_fd(), children.as_fd()].into_iter();
        let watched = watched.chain(brokers.iter().map(AsFd::as_fd));
        let mut polled: Vec<Polled> = watched.map(readable).collect();
        if wait_for(&mut polled, None).is_err() {
            exit(1);
        }
        let has_message = polled[0].revents != 0;
        let asked = brokers.iter().zip(&polled[2..]).filter(|(_, each)| each.revents != 0);
        asked.for_each(|(broker, _)| broker.serve());
        while children.next().is_some() {}
        while let Ok(Some((pid, ended))) = reap(-1) {
            if Some(pid) == command {
                let count = dropped().to_ne_bytes();
                let _ = send(socket.as_fd(), &[&[DROPPED], &count[..]].concat(), None);
                end(ended);
            }
            if Some(pid) == keeper {
                exit(1);
            }
        }
        if !has_message {
            continue;
        }
        match receive(socket.as_fd()).map(|(text, _)| text).as_deref() {
            Ok([START, said @ ..]) => {
                command = start(said);
                if command.is_none() {
                    exit(NOT_STARTED);
                }
            }
            Ok([SIGNAL, number]) => {
                command.into_iter().for_each(|pid| kill(pid, i32::from(*number)));
            }
            Ok([_, ..]) => {}
            // The emulator is gone.
            Ok([]) | Err(_) => exit(1),
        }
    }
}

/// Starts a program, in another network namespace if one is given.
pub(crate) fn start(
    words: &[OsString],
    environment: &[(OsString, OsString)],
    namespace: Option<&File>,
    signals: &Signals,
    is_confined: bool,
) -> Option<Pid> {
    let program = Program::new(words, environment).ok()?;
    match fork_into(0) {
        Ok(None) => {}
        started => return started.ok().flatten(),
    }
    if let Some(namespace) = namespace
        && enter(namespace.as_fd()).is_err()
    {
        exit(NOT_STARTED);
    }
    execute(&program, words, signals, is_confined)
}

/// Becomes the program; ends as a shell would where that cannot be.
pub(crate) fn execute(
    program: &Program,
    words: &[OsString],
    signals: &Signals,
    is_confined: bool,
) -> ! {
    if is_confined && let Err(error) = confine() {
        let _ = writeln!(std::io::stderr(), "error: capabilities: {error}");
        exit(NOT_STARTED);
    }
    for signal in [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGINT] {
        default_signal(signal);
    }
    signals.restore();
    let error = program.execute();
    let is_absent = error.kind() == std::io::ErrorKind::NotFound;
    let problem = if is_absent { "there is no such program".into() } else { error.to_string() };
    let _ = writeln!(std::io::stderr(), "error: {}: {problem}", words[0].display());
    exit(if is_absent { NOT_FOUND } else { NOT_STARTED })
}

/// Ends as the command did.
fn end(ended: Ended) -> ! {
    exit(ended.status())
}
