//! A command behind an emulated path: namespaces, devices, processes.
//!
//! # Model
//! The process that calls [`run`] is the emulator. It creates one child with its own process, mount
//! and (for users other than root) user namespaces. The child moves into a network namespace and
//! starts the command there; see `inside`. The near end of the path is a TUN device in that
//! namespace, with the default route through it. The far end is a TUN device in the emulator's
//! namespace or, if the user may not create a device there, in another new namespace, the gateway.
//! Both devices are open in the emulator only and end with it; no persistent object is created.
//!
//! The host's routes, forwarding and firewall do not change. The only addition to its namespace is
//! the far end's device with its addresses.

mod inside;

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use aqmlab_core::{Bytes, Error, Result, Span, Time};
use aqmlab_sim::Scenario;

use self::inside::Inside;
use crate::background_tasks::{HANDLED, InitProcess, ProcessTasks};
use crate::live::emulate;
use crate::nat::GatewayFilter;
use crate::netns::devices::{
    self, NoDevice, configure_bare, configure_far, gateway_block, make_bare, make_far,
};
use crate::netns::diversion::Target;
use crate::netns::init::{FAR, READY, serve, start};
use crate::netns::{
    broker, give_up, mapped_user, next_report, no_namespaces, only_one_thread, settle,
};
use crate::observe::Recordings;
use crate::params::EmulatorParams;
use crate::path::{DataPath, Route};
use crate::report::{Outcome, to_result};
use crate::sys::device::Tun;
use crate::sys::process::{Foreground, Signals, exit, fork_into, is_foreground};
use crate::sys::{failed, files, send, socket_pair};

/// Command to run, and its path.
pub struct Options {
    /// Command with its arguments.
    pub command: Vec<OsString>,
    /// True if the command can reach other networks.
    pub nat: bool,
    /// Existing namespace or interface that the path is put in front of.
    pub attached: Option<Attached>,
    /// Command for the far end; may be empty.
    pub far: Vec<OsString>,
    /// Links from the far end to the command, by index.
    pub down: Vec<u32>,
    /// Links from the command to the far end, by index.
    pub up: Vec<u32>,
    /// Environment variables for the commands.
    pub environment: Vec<(OsString, OsString)>,
    /// Recordings made while packets pass.
    pub recordings: Recordings,
    /// Time at which the links and the command end, with exit status 0; `None`: never.
    pub until: Option<Span>,
}

/// Object that a path can be put in front of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attached {
    /// Network namespace of this process; the command runs there.
    Process(u32),
    /// Interface in the emulator's network namespace; the command runs there.
    Interface(String),
}

/// Runs a command behind the links of `scenario`.
///
/// The process must have a single thread, because it forks.
///
/// # Errors
/// Returns an error if such a shell is not possible; the message names the cause.
///
/// # Panics
/// Panics if a packet was lost without being counted: a bug.
pub fn run(scenario: &Scenario, options: &Options, params: &EmulatorParams) -> Result<Outcome> {
    crate::changes::check(scenario)?;
    only_one_thread()?;
    let signals = Signals::block(&HANDLED).map_err(|error| failed("signals", &error))?;
    let _terminal = Foreground::here();
    let shell = match &options.attached {
        Some(Attached::Interface(name)) => Shell::at_interface(name, options, &signals),
        _ => Shell::open(options, params, &signals),
    };
    let shell = shell?;
    let routes = vec![
        Route { links: options.up.clone(), exit: 1 },
        Route { links: options.down.clone(), exit: 0 },
    ];
    // Background threads start before this process has a priority to inherit.
    let tap = options.recordings.open(scenario, &routes)?;
    let mut path = DataPath::new(scenario, routes, shell.mtu, shell.depth);
    path.set_tap(tap);
    shell.run(path, options, scenario, params)
}

/// Processes and devices of a running shell.
struct Shell<'a> {
    init: InitProcess<'a>,
    /// Near and far device.
    ports: [Tun; 2],
    /// Filter for departures to the outside.
    gateway: Option<GatewayFilter>,
    /// Interface whose packets are diverted, if any.
    target: Option<Target>,
    /// Maximum packet size.
    mtu: Bytes,
    /// Number of enclosing shells; random draws differ between levels.
    depth: u64,
}

impl<'a> Shell<'a> {
    /// Creates processes and devices; the command does not run yet.
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
        let is_inside = devices::is_inside()?;
        let leads = is_foreground() && is_interactive(&options.command);
        let attached = match options.attached {
            Some(Attached::Process(pid)) => Some(namespace_of(pid)?),
            _ => None,
        };
        let attached = attached.as_ref();
        let servers = files::name_servers();
        let is_own = |server: &IpAddr| server.is_loopback();
        let name_server = servers.first().copied().filter(|_| servers.iter().all(is_own));
        let pair = || socket_pair().map_err(|error| failed("a socket", &error));
        let [socket, theirs] = pair()?;
        let (gateway, their_gateway) = match options.nat.then(pair).transpose()? {
            Some([gateway, theirs]) => (Some(gateway), Some(theirs)),
            None => (None, None),
        };
        let user = if mapped.is_some() { libc::CLONE_NEWUSER } else { 0 };
        let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS | user;
        let Some(pid) = fork_into(namespaces).map_err(|error| no_namespaces(&error))? else {
            // The child must not keep the emulator's descriptors.
            let far_is_here = far.is_some();
            drop((far, socket, gateway));
            let own_names = name_server.is_some();
            Inside {
                options,
                params,
                attached,
                block,
                far_is_here,
                mapped,
                socket: theirs,
                gateway: their_gateway,
                own_names,
                is_inside,
                leads,
                signals,
            }
            .run()
        };
        drop(their_gateway);
        drop(theirs);
        let init = InitProcess::new(pid, socket, signals)?;
        let ports = receive_devices(&init.socket, far.map(|(tun, _)| tun))?;
        let gateway = gateway
            .map(|gateway| GatewayFilter::open(gateway, &ports[1], block, name_server))
            .transpose()?;
        let depth = block.depth();
        Ok(Shell { init, ports, gateway, target: None, mtu: params.mtu, depth })
    }

    /// Creates a path in front of an interface of this network namespace, and the process of the
    /// command. Both ends are devices in this namespace, to which the packets of the interface are
    /// diverted (`netns::diversion`) later, until the command ends.
    fn at_interface(name: &str, options: &'a Options, signals: &'a Signals) -> Result<Self> {
        let target = Target::named(name)?;
        let ports = [make_bare("near")?, make_bare("far")?];
        for port in &ports {
            configure_bare(port, target.mtu)?;
        }
        let [socket, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
        let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
        let Some(pid) = fork_into(namespaces).map_err(|error| no_namespaces(&error))? else {
            let near = ports[0].name.clone();
            drop((target, ports, socket));
            settle(None, false).unwrap_or_else(|error| give_up(&theirs, &error));
            if send(theirs.as_fd(), &[READY], None).is_err() {
                exit(1);
            }
            let command =
                |_: &[u8]| start(&options.command, &options.environment, None, signals, false);
            serve(&theirs, None, &[], command, || files::dropped(&near))
        };
        drop(theirs);
        let init = InitProcess::new(pid, socket, signals)?;
        next_report(&init.socket, "command")?;
        let mtu = Bytes::new(u64::from(target.mtu));
        Ok(Shell { init, ports, gateway: None, target: Some(target), mtu, depth: 0 })
    }

    /// Starts the command, and emulates until it ends.
    fn run(
        self,
        path: DataPath,
        options: &Options,
        scenario: &Scenario,
        params: &EmulatorParams,
    ) -> Result<Outcome> {
        let Shell { init, ports, gateway, target, .. } = self;
        let links = [options.down.clone(), options.up.clone()];
        let mut tasks = ProcessTasks::new(init, &path, links, params.drain, params)?;
        tasks.until = options.until.map_or(Time::MAX, |span| Time::ZERO + span);
        tasks.set_warmup(Time::ZERO + scenario.record.warmup);
        let can_be_silent = gateway.is_none() && target.is_none();
        // New namespaces have no firewall rules and no servers, and lead nowhere.
        let is_alone = ports[1].name == devices::GATEWAY_PORT;
        let is_empty = is_alone && options.far.is_empty();
        tasks.diversion = target.map(|it| it.divert(&ports[0], &ports[1])).transpose()?;
        let far = ports[1].name.clone();
        let ports = ports.into();
        let mut emulated = emulate(path, ports, (gateway, None), tasks, Duration::ZERO, params)?;
        let live = &mut emulated.live;
        live.writer.overrun += files::dropped(&far);
        let remark = unanswered(&live.path, is_alone, is_empty).filter(|_| can_be_silent);
        emulated.remarks.extend(remark);
        Ok(to_result(emulated, &scenario.flows, params))
    }
}

/// Returns whether this is a shell for a user. Its job control needs a process group that exists in
/// its process namespace; dash reports an error without one. The shell itself handles Ctrl-Z. Other
/// commands stay in the group of the emulator, so that Ctrl-Z stops both.
pub(crate) fn is_interactive(command: &[OsString]) -> bool {
    matches!(command, [program] if program.as_encoded_bytes().ends_with(b"sh"))
}

/// Returns a warning if packets that expect an answer reached the far end, but nothing returned, if
/// packets went to other networks from a far end that is alone, or to servers at one without any.
fn unanswered(path: &DataPath, is_alone: bool, is_empty: bool) -> Option<String> {
    let (came, back) = (path.came[0], path.came[1]);
    let is_silent = came.awaiting > 0 && back.packets == 0 && path.left.packets > 0;
    let is_nat = is_alone || is_silent && came.elsewhere == came.awaiting;
    if came.elsewhere > 0 && is_nat {
        let text = "packets to other addresses than $AQMLAB_FAR were not answered: other networks need --nat";
        return Some(text.into());
    }
    if is_empty && came.to_servers > 0 {
        let text = "no server is at $AQMLAB_FAR: it is a namespace of its own; --far COMMAND starts a server \
                    there, and with --nat $AQMLAB_FAR stands for this machine";
        return Some(text.into());
    }
    (is_silent && !is_alone).then(|| {
        "no packet returned from the far end: if a server listens there, a firewall may drop packets \
         from 100.64.0.0/10 or on the device aqmlab0 (see `nft list ruleset`, `iptables -S` and \
         net.ipv4.conf.all.rp_filter); other addresses than $AQMLAB_FAR need --nat"
            .into()
    })
}

/// Receives the near and far device from the child.
fn receive_devices(socket: &OwnedFd, mut far: Option<Tun>) -> Result<[Tun; 2]> {
    let mut near = None;
    while near.is_none() || far.is_none() {
        match next_report(socket, "shell")? {
            (FAR, fd) => far = fd.map(|fd| Tun::from_fd(fd, devices::GATEWAY_PORT)),
            (_, fd) => near = fd.map(|fd| Tun::from_fd(fd, devices::NAME)),
        }
    }
    Ok([near, far].map(|tun| tun.expect("both have come")))
}

/// Returns the network namespace of a process; it must differ from this process' namespace.
fn namespace_of(pid: u32) -> Result<File> {
    let named = |error: Error| error.at("attached").given(pid);
    let here = files::network().map_err(|error| failed("the network namespace", &error))?;
    let there = files::network_of(pid).map_err(|error| {
        named(match error.kind() {
            ErrorKind::NotFound => Error::new("no process with this ID is running"),
            _ => failed("its namespace", &error),
        })
    })?;
    match files::is_same(&here, &there) {
        Ok(false) => Ok(there),
        Ok(true) => {
            let problem = "this process is in the same network namespace as aqmlab";
            let hint =
                "a path can be put in front of a separate network namespace, such as a container's";
            Err(named(Error::new(problem).hint(hint)))
        }
        Err(error) => Err(named(failed("its namespace", &error))),
    }
}

/// Returns whether a shell's far end is in this namespace: whether the user may create a device
/// here, or an enclosing shell creates it.
pub fn has_far_end_here() -> bool {
    Tun::permitted() || broker::is_there()
}
