//! Shared state of the traffic threads, and the thread that controls the run.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use aqmlab_core::{Result, Stream, Time};
use aqmlab_sim::Scenario;
use aqmlab_sim::scenario::FlowGroup;
use aqmlab_sim::workload::quantities::Quantity;
use aqmlab_tcp::params::EcnMode;

use super::encoded::Encoded;
use super::flow_stats::{FlowStats, KERNEL};
use super::host;
use crate::sys::process::enter;
use crate::sys::time::{monotonic, set_exact_timers};
use crate::sys::{failed, files};
use crate::topology::Hosts;

/// Port of every server.
pub const PORT: u16 = 5001;
/// Time allowed for groups to report results at the end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Stack size of a traffic thread.
const STACK: usize = 256 << 10;

/// One of the two hosts of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Start of `path`.
    Sender = 0,
    /// End of `path`.
    Receiver = 1,
}

/// State shared by all threads.
pub struct Stage {
    zero: u64,
    /// End of the run.
    pub end: Time,
    /// End of the warm-up.
    pub warmup: Time,
    scenario: Scenario,
    replication: u64,
    /// Kernel's congestion controls, by group.
    pub controls: Vec<CString>,
    namespaces: Vec<File>,
    addresses: Vec<Ipv4Addr>,
    stats: Mutex<FlowStats>,
    /// Signalled when a member of a group finishes.
    done: Condvar,
    /// Set when the threads should end.
    is_closing: AtomicBool,
}

impl Stage {
    /// Creates the shared state, and configures the hosts.
    pub fn new(
        scenario: &Scenario,
        replication: u64,
        controls: &[CString],
        hosts: &Hosts,
        zero: u64,
    ) -> Result<Arc<Self>> {
        let clone = |file: &File| file.try_clone().map_err(|error| failed("a namespace", &error));
        let namespaces = hosts.namespaces.iter().map(clone).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Stage {
            zero,
            end: Time::ZERO + scenario.duration,
            warmup: Time::ZERO + scenario.record.warmup,
            scenario: scenario.clone(),
            replication,
            controls: controls.to_vec(),
            namespaces,
            addresses: hosts.blocks.iter().map(|block| block.near().0).collect(),
            stats: Mutex::new(FlowStats::new(scenario.flows.len())),
            done: Condvar::new(),
            is_closing: AtomicBool::new(false),
        }))
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.zero))
    }
    /// Returns whether the run is at its end.
    pub fn is_over(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed) || self.now() >= self.end
    }
    /// Signals a change of the statistics that the end of the run depends on.
    pub fn tell(&self) {
        self.done.notify_all();
    }
    /// Returns a group of flows.
    pub fn group(&self, group: usize) -> &FlowGroup {
        &self.scenario.flows[group]
    }
    /// Returns the statistics so far.
    pub fn stats(&self) -> MutexGuard<'_, FlowStats> {
        self.stats.lock().expect("no thread panics with the stats open")
    }
    /// Returns the address of a host of a group.
    pub fn address(&self, group: usize, end: End) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[2 * group + end as usize], PORT)
    }
    /// Moves this thread into that host: it opens its next sockets there.
    pub fn enter(&self, group: usize, end: End) -> io::Result<()> {
        enter(self.namespaces[2 * group + end as usize].as_fd())
    }
    /// Returns the simulator's random stream of this name.
    pub fn stream(&self, path: &str) -> Stream {
        Stream::for_component(self.scenario.seed, self.replication, path)
    }
    /// Records that a member of a group has finished.
    pub fn member_done(&self, group: usize) {
        self.stats().members_done[group] += 1;
        self.done.notify_all();
    }

    /// Starts a thread. If it fails, the run continues and the statistics record the failure.
    pub fn spawn(
        self: &Arc<Self>,
        act: impl FnOnce(&Arc<Stage>) -> io::Result<()> + Send + 'static,
    ) {
        let stage = Arc::clone(self);
        let run = move || {
            set_exact_timers();
            if let Err(error) = act(&stage)
                && stage.now() < stage.end
            {
                stage.stats().failures.push(error.to_string());
            }
        };
        if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(run) {
            self.stats().failures.push(error.to_string());
        }
    }
}

/// Configures the kernel in each host: buffers that limit no flow, no metrics cached between
/// connections, and whether ECN is used.
fn tune(stage: &Stage, group: usize) -> io::Result<()> {
    for end in [End::Sender, End::Receiver] {
        stage.enter(group, end)?;
        let is_ecn = stage.group(group).transport.ecn != EcnMode::Off;
        let settings = [
            ("tcp_no_metrics_save", "1"),
            ("tcp_ecn", if is_ecn { "1" } else { "0" }),
            ("tcp_rmem", "4096 6291456 67108864"),
            ("tcp_wmem", "4096 262144 67108864"),
        ];
        for (name, value) in settings {
            // Some are read-only in a container; the defaults suffice then.
            let _ = files::set(&format!("/proc/sys/net/ipv4/{name}"), value);
        }
    }
    Ok(())
}

/// Runs all traffic until the end. Returns the encoded statistics.
pub fn play(stage: &Arc<Stage>, scenario: &Scenario) -> Result<Vec<u8>> {
    for group in 0..scenario.flows.len() {
        tune(stage, group)
            .and_then(|()| {
                host::play(stage, group, scenario.flows[group].starts(|path| stage.stream(path)))
            })
            .map_err(|error| failed(&format!("flows.{}", scenario.flows[group].name), &error))?;
    }
    let awaited: Vec<usize> = match scenario.until {
        Some(group) => vec![group as usize],
        None => (0..scenario.flows.len()).collect(),
    };
    let is_endless = awaited.iter().any(|group| !scenario.flows[*group].ends());
    let mut warmup = Some(stage.warmup).filter(|end| *end > Time::ZERO);
    let mut stats = stage.stats();
    loop {
        let now = stage.now();
        if let Some(end) = warmup.filter(|end| now >= *end) {
            warmup = None;
            stats.end_warmup(end);
        }
        let all_done = awaited
            .iter()
            .all(|group| stats.members_done[*group] >= scenario.flows[*group].params.count);
        if now >= stage.end || (all_done && !is_endless) {
            stage.is_closing.store(true, Ordering::Relaxed);
            let wait = |stats| {
                stage
                    .done
                    .wait_timeout_while(stats, PATIENCE, |seen: &mut FlowStats| seen.awaited > 0)
            };
            stats = wait(stats).expect("no thread panics").0;
            stats.close();
            for (group, seen) in stats.groups.iter_mut().enumerate() {
                let is_there = stage.enter(group, End::Sender).is_ok();
                seen.values.extend(KERNEL.map(|(counter, name)| {
                    let count = if is_there { files::tcp_count(counter) } else { 0 };
                    (Quantity::of(name), count as f64)
                }));
            }
            let mut bytes = Vec::new();
            stats.encode(&mut bytes);
            // Keep the lock: the other threads wait until the process ends.
            std::mem::forget(stats);
            return Ok(bytes);
        }
        let left = warmup.unwrap_or(stage.end).saturating_since(now);
        let left = Duration::from_nanos(left.as_nanos());
        stats = stage.done.wait_timeout(stats, left).expect("no thread panics").0;
    }
}
