//! Workloads of a scenario with real sockets: the kernel's TCP and UDP between hosts in new
//! namespaces, over the scenario's links.
//!
//! # Model
//! Every group of flows has two hosts, for its senders and its receivers, connected by the group's
//! `path` and `return_path`. One process runs all applications, which are the simulator's own
//! (`host`), with a thread for each group; both ends therefore use one clock. Starts, gaps and
//! sizes are drawn from the simulator's random streams, and equal those of a simulation.
//!
//! The kernel's congestion control of the same name replaces that of the group. Window scaling,
//! SACK, RACK etc. are the kernel's, with buffers large enough not to limit a flow.
//!
//! # Differences from the simulator's applications
//! 1. All flows of a group have the same two hosts, regardless of `source` and `destination`.
//! 2. Counts of fast recoveries, probes and undone recoveries are available for groups only. Drops
//!    and losses of a flow, and the packets of its connections that arrived, are not known: these
//!    columns are null, and `loss_share` is absent.
//! 3. Connections are closed with the usual packets.
//! 4. The application host has further differences; see `host`.

mod encoded;
mod flow_stats;
mod host;
mod play;

use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::FileExt;

use aqmlab_core::{Error, Result, Time};
use aqmlab_sim::scenario::{FlowGroup, Level};
use aqmlab_sim::{Observed, RunResult, Scenario};
use aqmlab_tcp::TcpParams;

use self::encoded::Encoded;
use self::flow_stats::FlowStats;
use self::play::Stage;
use crate::observe::Recordings;
use crate::params::EmulatorParams;
use crate::report::Outcome;
use crate::routing::{Topology, Way};
use crate::sys::process::{Pid, Signals, exit, fork_into};
use crate::sys::{failed, files};
use crate::topology::{self, Hosts, Job, RunTimes};

/// Runs the workloads of `scenario` over its links in real time, for its duration, and records the
/// traffic. The outcome has the tables of a simulation.
///
/// # Errors
/// Returns an error if a workload or congestion control is not available, or hosts cannot be
/// created.
pub fn run(
    scenario: &Scenario,
    replication: u64,
    recordings: &Recordings,
    params: &EmulatorParams,
) -> Result<Outcome> {
    let controls = controls(scenario)?;
    let report = files::memory_file("aqmlab").map_err(|error| failed("memory", &error))?;
    let job = Play { scenario, replication, controls, priority: params.priority, report: &report };
    let times = RunTimes {
        end: Time::ZERO + scenario.duration,
        warmup: Time::ZERO + scenario.record.warmup,
    };
    let hosts = hosts_of(&scenario.flows);
    let mut outcome = topology::run(scenario, &hosts, &job, times, recordings, params)?;
    let size = report.metadata().map_or(0, |about| about.len() as usize);
    let mut bytes = vec![0; size];
    report.read_exact_at(&mut bytes, 0).map_err(|error| failed("the report", &error))?;
    if outcome.status != 0 || bytes.is_empty() {
        let why = String::from_utf8_lossy(&bytes);
        return Err(Error::new(format!("the traffic ended with status {}: {why}", outcome.status)));
    }
    let stats = FlowStats::decode(&mut &bytes[..]);
    outcome.result.replication = replication;
    if let Some(first) = stats.failures.first() {
        let more = stats.failures.len() - 1;
        outcome.remarks.push(format!("a connection failed: {first} ({more} more like it)"));
    }
    enter(&mut outcome.result, stats);
    Ok(outcome)
}

/// Returns the kernel's congestion control of each group.
///
/// # Errors
/// Returns an error if a workload, a congestion control or a record is not available.
pub fn controls(scenario: &Scenario) -> Result<Vec<CString>> {
    if scenario.record.level == Level::Packets {
        // Flow hashes depend on addresses and ports, which differ from those of the scenario.
        return Err(Error::new("packets of real senders are not recorded one by one")
            .at("record.level")
            .given("packets")
            .hint("summary or series; --pcap captures packets"));
    }
    crate::changes::check(scenario)?;
    let of = |group: &FlowGroup| {
        without_access(group)
            .and_then(|()| without_endpoint(group))
            .and_then(|()| control(&group.transport))
            .map_err(|error| error.at(format!("flows.{}", group.name)))
    };
    scenario.flows.iter().map(of).collect()
}

/// Enters flows and groups into the result, next to the emulator's own measurements.
fn enter(result: &mut RunResult, stats: FlowStats) {
    result.observed = Observed::Ends;
    result.flows = stats.flow_results(result.end);
    for (group, played) in result.groups.iter_mut().zip(stats.group_results()) {
        let own = std::mem::replace(group, played);
        group.times.splice(0..0, own.times);
        group.values.splice(0..0, own.values);
    }
}

/// Returns two hosts for each group, and the routes between them.
fn hosts_of(groups: &[FlowGroup]) -> Topology {
    let ways = groups.iter().enumerate().flat_map(|(number, group)| {
        let (from, to) = (2 * number, 2 * number + 1);
        [
            Way { from, to, links: group.path.clone() },
            Way { from: to, to: from, links: group.return_path.clone() },
        ]
    });
    Topology { hosts: 2 * groups.len(), ways: ways.collect() }
}

/// Rejects access delays: delays are available on links only.
fn without_access(group: &FlowGroup) -> Result<()> {
    if group.params.access_delay.ceiling() > 0.0 {
        let error = Error::new("delays of single flows are not available with real packets");
        return Err(error.at("access_delay").hint("a link of its own for each group"));
    }
    Ok(())
}

/// Rejects endpoints other than TCP and UDP, and route changes.
fn without_endpoint(group: &FlowGroup) -> Result<()> {
    if !group.endpoint.is_tcp() {
        let given = group.endpoint.name();
        let error = Error::not_allowed(given, "`tcp` with real packets, the kernel's own");
        return Err(error.at("endpoint"));
    }
    if !group.reroutes.is_empty() {
        return Err(Error::new("routes do not change with real packets").at("reroutes"));
    }
    Ok(())
}

/// Returns the kernel's congestion control that replaces the simulated one.
fn control(transport: &TcpParams) -> Result<CString> {
    let name = transport.congestion_control.name();
    let known = files::congestion_controls();
    let known = known.map_err(|error| failed("the kernel's congestion controls", &error))?;
    if !known.iter().any(|each| each == name) {
        return Err(Error::new("this kernel has no such congestion control")
            .at("transport.congestion_control")
            .given(name)
            .hint(format!("it has {}", known.join(", "))));
    }
    Ok(CString::new(name).expect("names have no zeros"))
}

/// Process that runs all applications.
struct Play<'a> {
    scenario: &'a Scenario,
    replication: u64,
    controls: Vec<CString>,
    priority: u64,
    report: &'a File,
}

impl Job for Play<'_> {
    fn start(&self, hosts: &Hosts, zero: u64, _signals: &Signals) -> Option<Pid> {
        match fork_into(0) {
            Ok(None) => {}
            started => return started.ok().flatten(),
        }
        let Play { scenario, replication, controls, priority, report } = self;
        if *priority > 1 {
            // Lower than the emulator. Without it, answers wait for other programs.
            let _ = crate::sys::time::set_real_time_for_all(*priority as i32 - 1);
        }
        let stage = Stage::new(scenario, *replication, controls, hosts, zero);
        let played = stage.and_then(|stage| play::play(&stage, scenario));
        let (bytes, status) = match played {
            Ok(bytes) => (bytes, 0),
            Err(error) => (error.to_string().into_bytes(), 1),
        };
        let written = report.write_all_at(&bytes, 0);
        exit(if written.is_ok() { status } else { 1 })
    }
}
