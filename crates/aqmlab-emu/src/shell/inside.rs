//! The first process in the namespaces of a shell: makes the devices there,
//! starts the command, takes in whatever ends, and takes everything with it
//! when it ends itself.
//!
//! It is number 1 of a process namespace, so the kernel kills all others in it
//! when it ends, however that happens. It ends when the command does, and when
//! the emulator does: the kernel kills it then, and besides it sees that their
//! socket is closed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use aqmlab_core::Result;

use super::broker::Broker;
use super::network::{
    NAME, configure_attached, configure_far, configure_near, failed, make_gateway, make_near,
    own_all_addresses, start_loopback,
};
use super::{Options, variables};
use crate::addresses::Block;
use crate::nat::keep_gate;
use crate::sys::files::{self, RESOLV_CONF};
use crate::sys::process::{
    self, Ended, Pid, Program, Signals, confine, default_signal, die_with_parent, exit, fork_into,
    identity, keep_capabilities, kill, own_mounts, reap, unshare,
};
use crate::sys::time::{Polled, readable, set_real_time, wait_for};
use crate::sys::{receive, send, socket_pair};

/// Exit statuses of a command that could not be started, as shells give them.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;

/// Messages to the emulator begin with one of these.
pub const FAR: u8 = b'F';
/// The near device.
pub const NEAR: u8 = b'N';
/// So many packets were dropped by the near device.
pub const DROPPED: u8 = b'D';
/// Something went wrong, in words.
pub const ERROR: u8 = b'E';
/// Message from the emulator: start.
pub const START: u8 = b'S';
/// Message from the emulator: pass on this signal.
pub const SIGNAL: u8 = b'K';

/// Where the far end is.
#[derive(Clone, Copy)]
pub enum FarEnd {
    /// In the namespace that the shell was started in, and has this block.
    Here(Block),
    /// In a namespace of its own.
    Gateway(Block),
}

/// What the first process needs to know.
pub struct Inside<'a> {
    pub options: &'a Options,
    /// The network namespace that the path is put in front of; a new one without it.
    pub attached: Option<&'a File>,
    pub mtu: u32,
    pub priority: i32,
    /// Whether the command keeps the capabilities that it has in a user namespace.
    pub keeps: bool,
    pub far: FarEnd,
    /// The user and the group outside, if there is a user namespace.
    pub mapped: Option<(u32, u32)>,
    pub socket: OwnedFd,
    /// To the emulator's gate, if traffic goes outside.
    pub gate: Option<OwnedFd>,
    /// Whether names are asked for at the far end.
    pub own_names: bool,
    /// Whether the shell was started inside another.
    pub is_inside: bool,
    pub signals: &'a Signals,
}

/// What is there before the command.
struct Prepared {
    block: Block,
    /// While it is open the namespace stays.
    _far_namespace: File,
    /// Starts the program of the far end when it is told to.
    far: Option<OwnedFd>,
    /// The process that opens ports in the gateway.
    keeper: Option<Pid>,
    /// Makes devices for shells inside.
    broker: Option<Broker>,
}

impl Inside<'_> {
    /// Never returns.
    pub fn run(self) -> ! {
        match self.prepare() {
            Ok(prepared) => self.serve(&prepared),
            Err(error) => {
                let text = [&[ERROR], error.to_string().as_bytes()].concat();
                let _ = send(self.socket.as_fd(), &text, None);
                exit(1)
            }
        }
    }

    /// Makes namespaces and devices, and sends the devices to the emulator.
    fn prepare(&self) -> Result<Prepared> {
        if let Some((user, group)) = self.mapped {
            map_user(user, group)?;
        }
        own_mounts().map_err(|error| failed("a mount namespace", &error))?;
        if self.mapped.is_some() && self.keeps {
            keep_capabilities().map_err(|error| failed("capabilities", &error))?;
        }
        die_with_parent().map_err(|error| failed("prctl", &error))?;
        let mtu = self.mtu;
        let block = match self.far {
            FarEnd::Here(block) => block,
            FarEnd::Gateway(block) => {
                new_network()?;
                let tun = make_gateway()?;
                configure_far(&tun, &block, mtu)?;
                self.tell(FAR, &tun)?;
                block
            }
        };
        let keeper = self.gate.as_ref().map(|gate| self.start_keeper(gate, &block)).transpose()?;
        let far_namespace =
            files::network().map_err(|error| failed("the network namespace", &error))?;
        let far = (!self.options.far.is_empty()).then(|| self.hold_far(&block)).transpose()?;
        let tun = match self.attached {
            None => {
                new_network()?;
                let tun = make_near()?;
                configure_near(&tun, &block, mtu)?;
                tun
            }
            Some(namespace) => {
                let entered = process::enter(namespace.as_fd());
                entered.map_err(|error| failed("the network namespace", &error))?;
                let tun = make_near()?;
                configure_attached(&tun, &block, mtu)?;
                tun
            }
        };
        let broker = self.is_confined().then(|| {
            allow_pings();
            Broker::here()
        });
        let broker = broker.transpose()?;
        self.tell(NEAR, &tun)?;
        Ok(Prepared { block, _far_namespace: far_namespace, far, keeper, broker })
    }

    /// Whether programs here may not change the network.
    fn is_confined(&self) -> bool {
        self.mapped.is_some() && !self.keeps
    }

    /// Makes a process that starts the program of the far end when it is told
    /// to: later there may be no way back into the namespace that it is in.
    fn hold_far(&self, block: &Block) -> Result<OwnedFd> {
        let [ours, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
        if fork_into(0).map_err(|error| failed("a process", &error))?.is_some() {
            return Ok(ours);
        }
        drop(ours);
        let words = &self.options.far;
        let environment = variables(self.options, block, self.is_inside);
        match (receive(theirs.as_fd()), Program::new(words, &environment)) {
            (Ok((told, _)), Ok(program)) if !told.is_empty() => {
                execute(&program, words, self.signals, self.is_confined())
            }
            _ => exit(NOT_STARTED),
        }
    }

    /// Makes the gateway the outside, and starts the process that opens ports
    /// there.
    fn start_keeper(&self, gate: &OwnedFd, block: &Block) -> Result<Pid> {
        own_all_addresses()?;
        if self.own_names {
            let text = format!("nameserver {}\n", block.far().0);
            files::cover(RESOLV_CONF, &text).map_err(|error| failed(RESOLV_CONF, &error))?;
        }
        match fork_into(0).map_err(|error| failed("a process", &error))? {
            Some(pid) => Ok(pid),
            None => {
                // The emulator waits for it.
                let _ = set_real_time(self.priority);
                keep_gate(gate);
                exit(0)
            }
        }
    }

    fn tell(&self, what: u8, tun: &crate::sys::device::Tun) -> Result<()> {
        send(self.socket.as_fd(), &[what], Some(tun.as_fd()))
            .map_err(|error| failed("the emulator", &error))
    }

    /// Starts the command when it is told to, and waits for it.
    fn serve(&self, prepared: &Prepared) -> ! {
        let Prepared { block, far, keeper, broker, .. } = prepared;
        let environment = variables(self.options, block, self.is_inside);
        let start = |_: &[u8]| {
            if let Some(far) = far {
                let _ = send(far.as_fd(), &[START], None);
            }
            start(&self.options.command, &environment, None, self.signals, self.is_confined())
        };
        serve(&self.socket, *keeper, broker.as_slice(), start, || files::dropped(NAME))
    }
}

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
        && process::enter(namespace.as_fd()).is_err()
    {
        exit(NOT_STARTED);
    }
    execute(&program, words, signals, is_confined)
}

/// Becomes the program; ends as a shell would where that cannot be.
fn execute(program: &Program, words: &[OsString], signals: &Signals, is_confined: bool) -> ! {
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

/// Lets this user, who has no capabilities, send pings in this network namespace.
pub(crate) fn allow_pings() {
    let (_, group) = identity();
    // Where it is read-only pings need a capability, as before.
    let _ = files::set("/proc/sys/net/ipv4/ping_group_range", &format!("{group} {group}"));
}

/// A network namespace of its own, with a loopback device.
pub(crate) fn new_network() -> Result<()> {
    unshare(libc::CLONE_NEWNET).map_err(|error| failed("a network namespace", &error))?;
    start_loopback()
}

/// Makes the user of this process the same user in the new namespace.
pub(crate) fn map_user(user: u32, group: u32) -> Result<()> {
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        files::set(&path, &text).map_err(|error| {
            let is_refused = error.raw_os_error() == Some(libc::EPERM);
            match (failed(&path, &error), is_refused && user == 0) {
                // user_namespaces(7): since Linux 5.12.
                (error, true) => error.hint(
                    "root without CAP_SETFCAP may not be root in a namespace: run it as \
                     another user; in a container: `--cap-add SETFCAP`",
                ),
                (error, false) => error,
            }
        })
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    debug_assert_eq!(identity(), (user, group));
    Ok(())
}
