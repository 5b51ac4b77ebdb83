//! A command behind an emulated path: namespaces, devices, processes.
//!
//! # Model
//! The process that calls [`run`] is the emulator. It makes one child, in
//! process, mount and (for users who are not root) user namespaces of its own,
//! which moves into a network namespace and starts the command there; see
//! `inside`. The near end of the path is a TUN device in that namespace, with
//! everything routed through it; the far end is one in the namespace that the
//! emulator was started in or, where this user may not have a device there, in
//! another new namespace, the gateway. Both devices are open in the emulator
//! only and go away with it; nothing here has a name that stays.
//!
//! The host's routes, forwarding and firewall are left alone: the one thing
//! that appears in its namespace is the far end's device with its addresses.

pub(crate) mod broker;
pub(crate) mod inside;
pub(crate) mod network;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aqmlab_core::{Bytes, Error, Result, Span, Time, params};
use aqmlab_sim::network::probe::SojournSummary;
use aqmlab_sim::scenario::{Change, FlowGroup};
use aqmlab_sim::{RunResult, Scenario};

use self::inside::{DROPPED, ERROR, FAR, FarEnd, Inside, NEAR, SIGNAL, START};
pub(crate) use self::network::failed;
use self::network::{NoDevice, configure_far, gateway_block, make_far};
use crate::addresses::Block;
use crate::live::{Clock, FAR as FAR_PORT, Live, Precision, Steward, Writer};
use crate::nat::Gate;
use crate::observe::control::Control;
use crate::observe::view::View;
use crate::observe::{Recordings, TICK};
use crate::path::{DataPath, Route};
use crate::report::to_result;
use crate::sys::device::Tun;
use crate::sys::process::{
    Child, Signals, foreground, fork_into, identity, may_make_namespaces, set_foreground,
};
use crate::sys::time::{pin, processor, set_exact_timers, set_real_time, unset_real_time, wait};
use crate::sys::{files, receive, send, socket_pair};

params! {
    /// How the emulator works.
    pub struct EmulatorParams {
        /// How it waits for the time of a departure: `low-cpu`, `balanced` or `exact`.
        precision: Precision = Precision::Balanced, source "this program";
        /// The largest packet.
        mtu: Bytes = Bytes::new(1500), in Bytes::new(68) => Bytes::new(65_535),
            source "Ethernet; RFC 791 for the range";
        /// A run is said to be late if one packet in a hundred was held up for longer than this.
        lateness: Span = Span::from_micros(500), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// The processor that it stays on; `none` for any.
        cpu: Option<u64> = None, source "sched_setaffinity(2)";
        /// How long packets in flight may take to arrive when the command has ended; 0s discards
        /// them.
        drain: Span = Span::from_secs(2), in Span::ZERO => Span::from_secs(3600),
            source "this program";
        /// What it is called, for `aqmlab set` and `aqmlab top`; `none`: by its process ID.
        name: Option<String> = None, source "this program";
        /// Whether commands keep the capabilities that they have in a user namespace of the
        /// emulator; without them they cannot change the network there.
        keep_capabilities: bool = false, source "capabilities(7)";
        /// Its real-time priority, where permitted; 0 for none.
        priority: u64 = 40, in 0 => 99, source "sched(7), SCHED_FIFO";
    }
}

/// What is to be run, and where.
pub struct Options {
    /// The command with its arguments.
    pub command: Vec<OsString>,
    /// Whether the command reaches what is outside.
    pub nat: bool,
    /// A process in front of whose network namespace the path is put; the command runs there.
    pub attached: Option<u32>,
    /// A command for the far end, or nothing.
    pub far: Vec<OsString>,
    /// Links from the far end to the command, by index.
    pub down: Vec<u32>,
    /// Links from the command to the far end.
    pub up: Vec<u32>,
    /// Variables for the commands.
    pub environment: Vec<(OsString, OsString)>,
    /// What is recorded while packets pass.
    pub recordings: Recordings,
    /// When the links end, and with them the command, whose exit status is then 0;
    /// `None` for never.
    pub until: Option<Span>,
}

/// What has come of it.
pub struct Outcome {
    /// The exit status of the command, as shells give it.
    pub status: i32,
    /// What the links did.
    pub result: RunResult,
    /// How late packets left.
    pub lateness: SojournSummary,
    /// How long of that they waited to be read.
    pub input: SojournSummary,
    /// How late the kernel woke the emulator.
    pub wakeups: SojournSummary,
    /// What changed in the links, and what was to change later.
    pub changes: Vec<Change>,
    /// One sentence each, for the user.
    pub remarks: Vec<String>,
}

/// Adds what commands are told of the path to their environment. Inside
/// another shell the far end stays that of the outermost path.
fn variables(options: &Options, block: &Block, is_inside: bool) -> Vec<(OsString, OsString)> {
    let ours = |key: &OsString, prefix| key.as_encoded_bytes().starts_with(prefix);
    let has_far = is_inside && options.environment.iter().any(|(key, _)| key == FAR_VARIABLE);
    let is_kept = |key: &OsString| {
        let is_far = ours(key, FAR_VARIABLE.as_bytes()) || key == "MAHIMAHI_BASE";
        !ours(key, b"AQMLAB_NEAR") && (has_far || !is_far)
    };
    let mut all: Vec<_> =
        options.environment.iter().filter(|(key, _)| is_kept(key)).cloned().collect();
    let mut set = |key: &str, value: String| all.push((key.into(), value.into()));
    if !has_far {
        set(FAR_VARIABLE, block.far().0.to_string());
        set("AQMLAB_FAR6", block.far().1.to_string());
        set("MAHIMAHI_BASE", block.far().0.to_string());
    }
    set("AQMLAB_NEAR", block.near().0.to_string());
    set("AQMLAB_NEAR6", block.near().1.to_string());
    all
}

/// The variable with the far end's address.
const FAR_VARIABLE: &str = "AQMLAB_FAR";

/// Runs a command behind the links of `scenario`.
///
/// The process must have one thread only: it makes a copy of itself.
///
/// # Errors
/// If there can be no such shell here; the error says what is missing.
///
/// # Panics
/// If a packet was lost without being counted: a bug.
pub fn run(scenario: &Scenario, options: &Options, params: &EmulatorParams) -> Result<Outcome> {
    crate::changes::check(scenario)?;
    only_one_thread()?;
    let signals = Signals::block(&HANDLED).map_err(|error| failed("signals", &error))?;
    let terminal = foreground();
    let outcome = Shell::open(options, params, &signals).and_then(|shell| {
        let routes = vec![
            Route { links: options.up.clone(), exit: 1 },
            Route { links: options.down.clone(), exit: 0 },
        ];
        // Their threads begin before there is a priority to inherit.
        let tap = options.recordings.open(scenario, &routes)?;
        let mut path = DataPath::replicated(scenario, routes, params.mtu, shell.depth);
        if let Some(tap) = tap {
            path.set_tap(tap);
        }
        let view = View::open([options.down.clone(), options.up.clone()]);
        let routes = [options.down.clone(), options.up.clone()];
        let control = Control::open(params.name.as_deref(), routes)?;
        shell.run(path, view, control, &scenario.flows, params)
    });
    if let Some(group) = terminal.filter(|group| foreground() != Some(*group)) {
        set_foreground(group);
    }
    outcome
}

/// Signals that the emulator passes on, and SIGURG, which says that something is asked of it.
pub(crate) const HANDLED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGURG,
];
/// How long a command may take to end when it was told to.
const PATIENCE: Span = Span::from_secs(2);

/// The processes and devices.
struct Shell<'a> {
    child: Child,
    ended: OwnedFd,
    socket: OwnedFd,
    signals: &'a Signals,
    /// Near and far.
    ports: [Tun; 2],
    /// What leaves for the outside passes here.
    gate: Option<Gate>,
    /// In how many others this shell is: what is random in them differs.
    depth: u64,
    /// When the links end.
    until: Time,
}

impl<'a> Shell<'a> {
    /// Makes all of it; the command does not run yet.
    fn open(options: &'a Options, params: &EmulatorParams, signals: &'a Signals) -> Result<Self> {
        let mtu = params.mtu.get() as u32;
        let far = match make_far() {
            Ok((tun, block)) => {
                configure_far(&tun, &block, mtu)?;
                Some((tun, block))
            }
            Err(NoDevice::NotPermitted) => broker::ask(mtu)?,
            Err(NoDevice::Other(error)) => return Err(error),
        };
        let mapped = mapped_user(far.is_some());
        let far = far.filter(|_| !options.nat);
        let block = far.as_ref().map_or_else(gateway_block, |(_, block)| Ok(*block))?;
        let is_inside = network::is_inside()?;
        let attached = options.attached.map(namespace_of).transpose()?;
        let attached = attached.as_ref();
        let servers = files::name_servers();
        let is_own = |server: &IpAddr| server.is_loopback();
        let name_server = servers.first().copied().filter(|_| servers.iter().all(is_own));
        let pair = || socket_pair().map_err(|error| failed("a socket", &error));
        let [socket, theirs] = pair()?;
        let (gate, their_gate) = match options.nat.then(pair).transpose()? {
            Some([gate, theirs]) => (Some(gate), Some(theirs)),
            None => (None, None),
        };
        let user = if mapped.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS | user;
        let Some(pid) = fork_into(namespaces).map_err(|error| no_namespaces(&error))? else {
            // The child: it must not keep what belongs to the emulator.
            let end = if far.is_some() { FarEnd::Here(block) } else { FarEnd::Gateway(block) };
            drop((far, socket, gate));
            let own_names = name_server.is_some();
            Inside {
                options,
                attached,
                mtu,
                priority: params.priority as i32,
                keeps: params.keep_capabilities,
                far: end,
                mapped,
                socket: theirs,
                gate: their_gate,
                own_names,
                is_inside,
                signals,
            }
            .run()
        };
        drop(their_gate);
        drop(theirs);
        let child = Child::new(pid);
        let ended = child.watch().map_err(|error| failed("pidfd_open", &error))?;
        let ports = receive_devices(&socket, far.map(|(tun, _)| tun))?;
        let gate = gate.map(|gate| Gate::open(gate, &ports[1], block, name_server)).transpose()?;
        let until = options.until.map_or(Time::MAX, |span| Time::ZERO + span);
        let depth = block.depth();
        Ok(Shell { child, ended, socket, signals, ports, gate, depth, until })
    }

    /// Starts the command and emulates until it has ended.
    fn run(
        self,
        path: DataPath,
        view: View,
        control: Control,
        flows: &[FlowGroup],
        params: &EmulatorParams,
    ) -> Result<Outcome> {
        let Shell { child, ended, socket, signals, ports, gate, until, .. } = self;
        let mut remarks = prioritise(params);
        // In a namespace of its own nobody has rules.
        let is_here = ports[1].name != network::GATEWAY_PORT;
        let before = processor();
        send(socket.as_fd(), &[START], None).map_err(|error| failed("the shell", &error))?;
        let tick = if path.has_tap() { Time::ZERO } else { Time::MAX };
        let (deadline, drain) = (Time::MAX, Drain::new(params.drain));
        let mut steward = Attendant {
            child,
            ended,
            socket,
            signals,
            deadline,
            until,
            drain,
            tick,
            view,
            control,
        };
        let mut live = Live::new(path, ports.into(), params.precision, Clock::start());
        live.writer.gate = gate;
        let end = live.run(&mut steward).map_err(|error| failed("waiting", &error))?;
        let ended = steward.child.end();
        let status = ended.map_err(|error| failed("the shell", &error))?.status();
        let links_ended = until != Time::MAX && steward.until == Time::MAX;
        let status = if links_ended { 0 } else { status };
        live.writer.overrun = dropped_by_devices(&steward.socket, &live.writer);
        let busy = Span::from_nanos(processor() - before);
        unset_real_time();
        remarks.extend(live.writer.remarks());
        remarks.extend(unanswered(&live.path).filter(|_| is_here));
        Ok(to_result(live, end, status, busy, flows, params, remarks))
    }
}

/// Looks after signals and the child.
pub(crate) struct Attendant<'a> {
    pub child: Child,
    pub ended: OwnedFd,
    pub socket: OwnedFd,
    pub signals: &'a Signals,
    /// When patience is at an end.
    pub deadline: Time,
    /// When the links end.
    pub until: Time,
    /// What is done for packets in flight when the child has ended.
    pub drain: Drain,
    /// When observers are told of the time next.
    pub tick: Time,
    pub view: View,
    pub control: Control,
}

/// The time after the end of the command in which packets in flight arrive.
pub(crate) struct Drain {
    most: Span,
    course: Option<Draining>,
}

#[derive(Clone, Copy)]
struct Draining {
    /// When it ends in any case.
    end: Time,
    /// When it ends if nothing is in flight until then: answers take a moment.
    quiet: Time,
    /// When to look next.
    look: Time,
}

impl Drain {
    /// How long a path must be empty to be taken for drained.
    const QUIET: Span = Span::from_millis(5);
    /// How often it is looked at.
    const LOOK: Span = Span::from_millis(1);

    /// For so long at most; not at all for zero.
    pub(crate) fn new(most: Span) -> Self {
        Drain { most, course: None }
    }

    /// The command has ended. Whether to wait for packets.
    fn goes_on(&mut self, now: Time, is_empty: bool) -> bool {
        let begun = Draining { end: now + self.most, quiet: now + Self::QUIET, look: now };
        let course = self.course.get_or_insert(begun);
        if !is_empty {
            course.quiet = now + Self::QUIET;
        }
        course.look = now + Self::LOOK;
        now < course.end && now < course.quiet
    }
}

impl Steward for Attendant<'_> {
    fn watched(&self) -> [BorrowedFd<'_>; 2] {
        // What has ended can be read for ever.
        let ended =
            if self.drain.course.is_some() { self.signals.as_fd() } else { self.ended.as_fd() };
        [self.signals.as_fd(), ended]
    }

    fn attend(&mut self, now: Time, path: &mut DataPath) -> bool {
        if now >= self.tick {
            path.tick(now);
            self.tick = now + TICK;
        }
        self.view.attend(now, path.network());
        if now >= self.until {
            self.until = Time::MAX;
            let _ = send(self.socket.as_fd(), &[SIGNAL, libc::SIGHUP as u8], None);
            self.deadline = self.deadline.min(now + PATIENCE);
        }
        while let Some(signal) = self.signals.next() {
            if signal.number == libc::SIGURG {
                self.control.attend(now, path);
                continue;
            }
            if self.drain.course.is_some() {
                return false;
            }
            let ends = [libc::SIGTERM, libc::SIGHUP].contains(&signal.number);
            // What a terminal sends goes to the command without our help.
            if signal.is_sent || ends {
                let _ = send(self.socket.as_fd(), &[SIGNAL, signal.number as u8], None);
            }
            if ends {
                self.deadline = self.deadline.min(now + PATIENCE);
            }
        }
        if now >= self.deadline {
            self.child.signal(libc::SIGKILL);
            self.deadline = Time::MAX;
        }
        let has_ended = wait([self.ended.as_fd()], Some(std::time::Duration::ZERO));
        let has_ended = has_ended.is_ok_and(|[has_ended]| has_ended);
        !has_ended || self.drain.goes_on(now, path.under_way() == 0)
    }

    fn deadline(&self) -> Time {
        let look = self.drain.course.map_or(Time::MAX, |course| course.look);
        self.deadline.min(self.until).min(self.tick).min(self.view.deadline()).min(look)
    }
}

/// Says so if packets that await an answer have reached the far end, and nothing came back.
fn unanswered(path: &DataPath) -> Option<String> {
    let ([_, awaiting], [back, _]) = (path.came[0], path.came[1]);
    (awaiting > 0 && back == 0 && path.left.packets > 0).then(|| {
        "nothing came back from the far end: if a server listens there, a firewall may drop packets \
         from 100.64.0.0/10 or on the device aqmlab0 (see `nft list ruleset`, `iptables -S` and \
         net.ipv4.conf.all.rp_filter); other addresses than $AQMLAB_FAR need --nat"
            .into()
    })
}

/// Packets that the kernel dropped because they were not read in time: as the
/// child told of its device, and of the one here, if it is here.
fn dropped_by_devices(socket: &OwnedFd, writer: &Writer) -> u64 {
    told_drops(socket) + files::dropped(writer.name_of(FAR_PORT))
}

/// What the child, which has ended, told of the drops of its devices.
pub(crate) fn told_drops(socket: &OwnedFd) -> u64 {
    let is_readable = wait([socket.as_fd()], Some(std::time::Duration::ZERO));
    let told = match is_readable {
        Ok([true]) => receive(socket.as_fd()).map(|(text, _)| text).unwrap_or_default(),
        _ => Vec::new(),
    };
    match told.split_first() {
        Some((&DROPPED, count)) => count.try_into().map_or(0, u64::from_ne_bytes),
        _ => 0,
    }
}

/// The devices, near and far, as the child sends them.
fn receive_devices(socket: &OwnedFd, mut far: Option<Tun>) -> Result<[Tun; 2]> {
    let mut near = None;
    while near.is_none() || far.is_none() {
        let (text, fd) = receive(socket.as_fd()).map_err(|error| failed("the shell", &error))?;
        match (text.first(), fd) {
            (Some(&FAR), Some(fd)) => far = Some(Tun::from_fd(fd, network::GATEWAY_PORT)),
            (Some(&NEAR), Some(fd)) => near = Some(Tun::from_fd(fd, network::NAME)),
            (Some(&ERROR), _) => {
                return Err(Error::new(String::from_utf8_lossy(&text[1..]).into_owned()));
            }
            _ => return Err(Error::new("the process of the shell ended before it began")),
        }
    }
    Ok([near, far].map(|tun| tun.expect("both have come")))
}

/// A copy of a process has one thread: what others hold would stay held.
pub(crate) fn only_one_thread() -> Result<()> {
    let threads = files::threads();
    if threads > 1 {
        let problem = format!("a shell cannot be started by a process with {threads} threads");
        return Err(Error::new(problem).hint("start it by `aqmlab shell`"));
    }
    Ok(())
}

/// The network namespace of a process, which is not that of this one.
fn namespace_of(pid: u32) -> Result<File> {
    let named = |error: Error| error.at("--pid").given(pid);
    let here = files::network().map_err(|error| failed("the network namespace", &error))?;
    let there = files::network_of(pid).map_err(|error| named(failed("its namespace", &error)))?;
    match files::is_same(&here, &there) {
        Ok(false) => Ok(there),
        Ok(true) => {
            let problem = "this process is in the same network namespace as aqmlab";
            let hint = "a path can be put in front of a namespace of its own, as containers have";
            Err(named(Error::new(problem).hint(hint)))
        }
        Err(error) => Err(named(failed("its namespace", &error))),
    }
}

/// Whether the far end of a shell is here, where the shell is started: whether
/// this user may have a device here, or is given one.
pub fn has_far_end_here() -> bool {
    Tun::permitted() || broker::is_there()
}

/// The user who needs a user namespace to be permitted the others: one who may
/// have no device here, and root who may make no namespaces, as in a container.
pub(crate) fn mapped_user(has_device: bool) -> Option<(u32, u32)> {
    (!has_device || !may_make_namespaces()).then(identity)
}

/// What the kernel forbids, and what to do about it.
pub(crate) fn no_namespaces(error: &io::Error) -> Error {
    let problem = format!("the kernel refuses namespaces: {error}");
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run it as root, or let users make user namespaces: sysctls \
             kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; \
             in a container: `--security-opt seccomp=unconfined --device /dev/net/tun`, or \
             `--cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun`"
        }
        Some(libc::ENOSPC | libc::EUSERS) => "sysctl user.max_user_namespaces is too small",
        _ => return Error::new(problem),
    };
    Error::new(problem).hint(hint)
}

/// Takes what priority there is; says what was refused.
pub(crate) fn prioritise(params: &EmulatorParams) -> Vec<String> {
    set_exact_timers();
    let mut remarks = Vec::new();
    if let Some(cpu) = params.cpu
        && let Err(error) = pin(usize::try_from(cpu).unwrap_or(usize::MAX))
    {
        remarks.push(format!("not bound to processor {cpu}: {error}"));
    }
    if params.priority > 0
        && let Err(error) = set_real_time(params.priority as i32)
    {
        remarks.push(format!(
            "without real-time priority ({error}): other programs may delay packets"
        ));
    }
    remarks
}
