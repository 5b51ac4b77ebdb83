//! Init process of new namespaces: starts programs, forwards signals, reaps children, and ends all
//! other processes when it ends.
//!
//! It is process 1 of a process namespace, so the kernel kills all others when it ends for any
//! reason. It ends when the command ends and when the emulator ends: the kernel then kills it, and
//! it also detects that their socket is closed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::broker::Broker;
use crate::sys::process::{
    Pid, Signals, confine, default_signal, enter, exit, fork_into, kill, reap,
};
use crate::sys::time::{Polled, readable, wait_for};
use crate::sys::{receive, send};

/// Exit statuses of a command that could not be started, by the shell's conventions.
const NOT_FOUND: i32 = 127;
pub(crate) const NOT_STARTED: i32 = 126;

/// Message to the emulator: far device.
pub const FAR: u8 = b'F';
/// Message to the emulator: near device.
pub const NEAR: u8 = b'N';
/// Message to the emulator: number of packets dropped by the near device.
pub const DROPPED: u8 = b'D';
/// Message to the emulator: an error and its text.
pub const ERROR: u8 = b'E';
/// Message to the emulator: setup is complete.
pub const READY: u8 = b'R';
/// Message from the emulator: start.
pub const START: u8 = b'S';
/// Message from the emulator: forward this signal.
pub const SIGNAL: u8 = b'K';

/// Runs the init process. It starts the command with `start` when the emulator requests it (with
/// some bytes), and forwards signals. It ends with the command, or when the emulator or `keeper`
/// ends, and then reports the count of `dropped` to the emulator.
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
        while let Ok(Some((pid, status))) = reap() {
            if Some(pid) == command {
                let count = dropped().to_ne_bytes();
                let _ = send(socket.as_fd(), &[&[DROPPED], &count[..]].concat(), None);
                exit(status);
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
            // The emulator has ended.
            Ok([]) | Err(_) => exit(1),
        }
    }
}

/// Starts a program, optionally in another network namespace.
pub(crate) fn start(
    words: &[OsString],
    environment: &[(OsString, OsString)],
    namespace: Option<&File>,
    signals: &Signals,
    is_confined: bool,
) -> Option<Pid> {
    match fork_into(0) {
        Ok(None) => {}
        started => return started.ok().flatten(),
    }
    if let Some(namespace) = namespace
        && enter(namespace.as_fd()).is_err()
    {
        exit(NOT_STARTED);
    }
    execute(words, environment, signals, is_confined)
}

/// Replaces this process by the program; on failure exits with the shell's status.
pub(crate) fn execute(
    words: &[OsString],
    environment: &[(OsString, OsString)],
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
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).env_clear();
    program.envs(environment.iter().map(|(key, value)| (key, value)));
    let error = program.exec();
    let is_absent = error.kind() == std::io::ErrorKind::NotFound;
    let problem = if is_absent { "there is no such program".into() } else { error.to_string() };
    let _ = writeln!(std::io::stderr(), "error: {}: {problem}", words[0].display());
    exit(if is_absent { NOT_FOUND } else { NOT_STARTED })
}
