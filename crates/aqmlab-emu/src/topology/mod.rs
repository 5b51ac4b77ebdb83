//! Several hosts that share links, each in its own network namespace, invisible in the machine's
//! namespace.
//!
//! # Model
//! Every host has one device and a block of addresses, like the near end of a shell, so that shells
//! can be started in it. Packets to another host traverse the links of the route between the two
//! hosts. Packets to an address without a route are dropped and counted. The caller decides what
//! runs in the hosts: commands, or the workloads of a scenario (`traffic`).

mod commands;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use aqmlab_core::{Error, Result, Span, Time};
use aqmlab_sim::Scenario;

pub use self::commands::{Commands, run as run_commands};
use crate::addresses::Block;
use crate::background_tasks::{HANDLED, InitProcess, ProcessTasks};
use crate::changes;
use crate::live::emulate;
use crate::netns::broker::Broker;
use crate::netns::devices::{NAME, configure_near, make_near};
use crate::netns::init::{NEAR, READY, serve};
use crate::netns::{
    allow_pings, give_up, mapped_user, new_network, next_report, no_namespaces, only_one_thread,
    settle,
};
use crate::observe::Recordings;
use crate::params::EmulatorParams;
use crate::path::{DataPath, Route};
use crate::report::{Outcome, to_result};
use crate::routing::{Router, Topology};
use crate::sys::device::Tun;
use crate::sys::process::{Pid, Signals, enter, fork_into};
use crate::sys::{failed, files, send, socket_pair};

/// Hosts, for the process that starts programs in them.
pub struct Hosts {
    /// Network namespaces of the hosts.
    pub namespaces: Vec<File>,
    /// Addresses of the hosts.
    pub blocks: Vec<Block>,
    /// Brokers of devices for nested shells, if commands may not create devices.
    pub(crate) brokers: Vec<Broker>,
}

impl Hosts {
    /// Returns the packets dropped by the hosts' devices because they were not read in time.
    fn dropped(&self) -> u64 {
        let of = |namespace: &File| match enter(namespace.as_fd()) {
            Ok(()) => files::dropped(NAME),
            Err(_) => 0,
        };
        self.namespaces.iter().map(of).sum()
    }
}

/// Program that runs in the hosts.
pub trait Job {
    /// Prepares the job; called once in the init process of the new namespaces, before the start.
    fn prepare(&self, _hosts: &Hosts) -> Result<()> {
        Ok(())
    }
    /// Starts the job; time zero is at `zero` of the monotonic clock. Returns the process whose end
    /// ends the run, if it could be started.
    fn start(&self, hosts: &Hosts, zero: u64, signals: &Signals) -> Option<Pid>;
}

/// Times of a run: its end, and the start of its distributions.
#[derive(Clone, Copy, Debug)]
pub struct RunTimes {
    /// Time at which the links stop; the job may end later.
    pub end: Time,
    /// Time at which distributions begin.
    pub warmup: Time,
}

/// Time allowed for a job to end after the end of the links.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Runs a job in hosts connected by the links of `scenario`.
///
/// The process must have a single thread, because it forks.
///
/// # Errors
/// Returns an error if such hosts are not possible; the message names the cause.
///
/// # Panics
/// Panics if a packet was lost without being counted: a bug.
pub fn run(
    scenario: &Scenario,
    topology: &Topology,
    job: &dyn Job,
    times: RunTimes,
    recordings: &Recordings,
    params: &EmulatorParams,
) -> Result<Outcome> {
    changes::check(scenario)?;
    only_one_thread()?;
    let signals = Signals::block(&HANDLED).map_err(|error| failed("signals", &error))?;
    let blocks = blocks(topology.hosts)?;
    let init = open(&blocks, job, params, &signals)?;
    let ports = receive_ports(&init.socket)?;
    let routes: Vec<Route> = topology
        .ways
        .iter()
        .map(|way| Route { links: way.links.clone(), exit: way.to as u16 })
        .collect();
    // Background threads start before this process has a priority to inherit.
    let tap = recordings.open(scenario, &routes)?;
    let mut path = DataPath::new(scenario, routes, params.mtu, 0);
    path.set_tap(tap);
    // Links with a fixed end stop then.
    let drain = if times.end == Time::MAX { params.drain } else { Span::ZERO };
    let mut tasks = ProcessTasks::new(init, &path, Default::default(), drain, params)?;
    tasks.end = times.end;
    tasks.set_warmup(times.warmup);
    let router = Router::new(topology);
    // The job may still write results.
    let mut emulated = emulate(path, ports, (None, Some(router)), tasks, PATIENCE, params)?;
    emulated.end = emulated.end.min(times.end);
    Ok(to_result(emulated, &scenario.flows, params))
}

/// Returns the address blocks of the hosts.
fn blocks(hosts: usize) -> Result<Vec<Block>> {
    let most = Block::ALL.numbers().len();
    if hosts > most {
        let problem = format!("{hosts} hosts: not enough addresses");
        return Err(Error::new(problem).hint(format!("at most {most}")));
    }
    Ok((0..hosts as u32).filter_map(|number| Block::ALL.inner(number)).collect())
}

/// Creates the process that creates the hosts.
fn open<'a>(
    blocks: &[Block],
    job: &dyn Job,
    params: &EmulatorParams,
    signals: &'a Signals,
) -> Result<InitProcess<'a>> {
    let mapped = mapped_user(Tun::permitted());
    let user = if mapped.is_some() { libc::CLONE_NEWUSER } else { 0 };
    let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS | user;
    let [socket, theirs] = socket_pair().map_err(|error| failed("a socket", &error))?;
    let Some(pid) = fork_into(namespaces).map_err(|error| no_namespaces(&error))? else {
        drop(socket);
        match make_hosts(blocks, mapped, params, &theirs).and_then(|hosts| {
            job.prepare(&hosts)?;
            Ok(hosts)
        }) {
            Ok(hosts) => {
                let _ = send(theirs.as_fd(), &[READY], None);
                let start = |said: &[u8]| {
                    let zero = u64::from_le_bytes(said.try_into().ok()?);
                    job.start(&hosts, zero, signals)
                };
                serve(&theirs, None, &hosts.brokers, start, || hosts.dropped())
            }
            Err(error) => give_up(&theirs, &error),
        }
    };
    drop(theirs);
    InitProcess::new(pid, socket, signals)
}

fn make_hosts(
    blocks: &[Block],
    mapped: Option<(u32, u32)>,
    params: &EmulatorParams,
    socket: &OwnedFd,
) -> Result<Hosts> {
    let (mtu, keeps) = (params.mtu.get() as u32, params.keep_capabilities);
    settle(mapped, keeps)?;
    let (mut namespaces, mut brokers) = (Vec::new(), Vec::new());
    for block in blocks {
        new_network()?;
        let tun = make_near()?;
        configure_near(&tun, block, mtu, false)?;
        if mapped.is_some() && !keeps {
            allow_pings();
            brokers.push(Broker::here()?);
        }
        let sent = send(socket.as_fd(), &[NEAR], Some(tun.as_fd()));
        sent.map_err(|error| failed("the emulator", &error))?;
        // Keeps the namespace alive while open.
        let namespace = files::network();
        namespaces.push(namespace.map_err(|error| failed("the network namespace", &error))?);
    }
    Ok(Hosts { namespaces, blocks: blocks.to_vec(), brokers })
}

/// Receives the devices from the child, in the order of the hosts.
fn receive_ports(socket: &OwnedFd) -> Result<Vec<Tun>> {
    let mut ports = Vec::new();
    loop {
        match next_report(socket, "hosts")? {
            (_, Some(fd)) => ports.push(Tun::from_fd(fd, "aqmlab")),
            (_, None) => return Ok(ports),
        }
    }
}
