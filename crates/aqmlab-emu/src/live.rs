//! Event loop that drives a data path in real time.
//!
//! # Model
//! The loop reads packets from the kernel; a packet arrives when it is read, or earlier if its
//! arrival time is known (`intake`). It writes packets that are due. In between it waits for the
//! next packet or the next deadline, whichever is first. [`Precision`] selects how exactly it waits
//! for a deadline (`pace`). A missed deadline delays only the packets that were due: the data path
//! keeps its own schedule.
//!
//! The lateness of a packet has two parts, both recorded: the time it waited to be read (`intake`),
//! and the time from its deadline until it was written. The loop also records how late the kernel
//! woke it.

pub mod intake;
pub mod pace;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use aqmlab_core::{Result, Span, Time};
use aqmlab_sim::network::probe::TimeHistogram;

use self::intake::{Intake, LatenessSeries, WATCH};
use self::pace::{Pace, Wait};
use crate::background_tasks::{ProcessTasks, prioritise};
use crate::nat::{GatewayFilter, Verdict};
use crate::params::EmulatorParams;
use crate::path::{DataPath, Departure, Exits, Tally};
use crate::routing::Router;
use crate::sys::device::Tun;
use crate::sys::failed;
use crate::sys::time as system;

/// Port of the far end.
const FAR: u16 = 1;
/// Packets read from one port before the other ports are polled.
const BATCH: usize = 64;
/// Interval of checks for signals while the loop does not sleep.
const LOOK: Span = Span::from_millis(5);

/// Clock whose zero is the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: u64,
}

impl Clock {
    /// Starts the clock at zero now.
    pub fn start() -> Self {
        Clock { zero: system::monotonic() }
    }
    /// Returns the zero of this clock on the monotonic clock, in nanoseconds.
    pub fn zero(&self) -> u64 {
        self.zero
    }
    /// Returns the current time.
    pub fn now(&self) -> Time {
        Time::from_nanos(system::monotonic() - self.zero)
    }
}

/// Writes departing packets, and records their lateness.
pub struct Writer {
    ports: Vec<Tun>,
    clock: Clock,
    /// Lateness of departures: the time waiting to be read plus the time from deadline to write.
    pub lateness: TimeHistogram,
    /// Largest lateness in each second.
    pub lateness_series: LatenessSeries,
    /// By port: whether the device may be readable. Written packets are often answered at once.
    ready: Vec<bool>,
    /// True if a packet was written since the flag was last cleared.
    has_written: bool,
    /// Packets refused by a device.
    pub refused: Tally,
    /// Gateway filter for departures to other networks.
    pub gateway: Option<GatewayFilter>,
    /// Packets without a route through the gateway.
    pub unroutable: u64,
    /// Packets that arrived faster than they were read; a large packet counts once.
    pub overrun: u64,
}

impl Writer {
    /// Returns the failures of the gateway, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        self.gateway.as_ref().map(GatewayFilter::remarks).unwrap_or_default()
    }
}

impl Exits for Writer {
    fn send(&mut self, departure: &Departure<'_>) {
        if let Some(gateway) = self.gateway.as_mut().filter(|_| departure.exit == FAR) {
            match gateway.admits(departure) {
                Verdict::Passes => {}
                Verdict::Held => return,
                Verdict::NoRoute => return self.unroutable += u64::from(departure.packets),
            }
        }
        let port = &self.ports[usize::from(departure.exit)];
        let now = self.clock.now();
        let late = now.saturating_since(departure.due) + departure.waited;
        self.lateness.note_many(late, u64::from(departure.packets));
        self.lateness_series.note(now, late);
        self.has_written = true;
        self.ready[usize::from(departure.exit)] = true;
        if port.write(departure.offload, departure.parts).is_err() {
            self.refused.packets += u64::from(departure.packets);
            self.refused.bytes += departure.parts.iter().map(|part| part.len() as u64).sum::<u64>();
        }
    }
}

/// Emulation that has ended.
pub(crate) struct Emulated {
    pub live: Live,
    /// Time of the end.
    pub end: Time,
    /// Exit status of the command.
    pub status: i32,
    /// Processor time of the emulator.
    pub busy: Span,
    /// Remarks for the user, one sentence each.
    pub remarks: Vec<String>,
}

/// Starts the command, and emulates `path` between these devices (the first is port 0) until it ends.
/// The init process has `patience` to end after that.
///
/// # Errors
/// Returns an error if the command cannot be started, or the kernel refuses to wait.
pub(crate) fn emulate(
    path: DataPath,
    ports: Vec<Tun>,
    (gateway, router): (Option<GatewayFilter>, Option<Router>),
    mut tasks: ProcessTasks<'_>,
    patience: Duration,
    params: &EmulatorParams,
) -> Result<Emulated> {
    let mut remarks = prioritise(params);
    // Measures what a wake-up costs, with this priority and before the command starts.
    let pace = Pace::new(params.precision, system::is_real_time(), system::wake_up_cost);
    let before = system::processor();
    let clock = Clock::start();
    tasks.init.start(&clock.zero().to_le_bytes())?;
    let mut live = Live::new(path, ports, pace, clock);
    (live.writer.gateway, live.router) = (gateway, router);
    let end = live.run(&mut tasks).map_err(|error| failed("waiting", &error))?;
    let (status, overrun) = tasks.init.end(patience)?;
    let status = if tasks.links_ended { 0 } else { status };
    live.writer.overrun = overrun;
    let busy = Span::from_nanos(system::processor() - before);
    system::unset_real_time();
    remarks.extend(live.writer.remarks());
    Ok(Emulated { live, end, status, busy, remarks })
}

/// Event loop of the emulator.
pub struct Live {
    /// Data path.
    pub path: DataPath,
    /// Output to the devices.
    pub writer: Writer,
    /// Input statistics: waiting times of packets before they are read.
    pub intake: Intake,
    /// Lateness of wake-ups by the kernel.
    pub wakeups: TimeHistogram,
    /// Route selection; without a router, the route of a port has the port's number.
    pub router: Option<Router>,
    clock: Clock,
    /// Decides when to sleep.
    pub pace: Pace,
    /// Polled descriptors: the devices, then those of the background tasks.
    polled: Vec<system::Polled>,
    /// Time at which the loop last ran.
    seen: Time,
}

impl Live {
    /// Creates a loop that drives `path` between these devices; the first is port 0. Call it in the
    /// thread that [runs](Self::run) the loop, after setting its priority.
    fn new(path: DataPath, ports: Vec<Tun>, pace: Pace, clock: Clock) -> Self {
        let (intake, ready) = (Intake::new(ports.len()), vec![true; ports.len()]);
        let writer = Writer {
            ports,
            clock,
            lateness: TimeHistogram::new(),
            lateness_series: LatenessSeries::default(),
            ready,
            has_written: false,
            refused: Tally::default(),
            gateway: None,
            unroutable: 0,
            overrun: 0,
        };
        let (wakeups, router, polled) = (TimeHistogram::new(), None, Vec::new());
        Live { path, writer, intake, wakeups, router, clock, pace, polled, seen: clock.now() }
    }

    /// Runs until the background tasks request the end. Returns the time of the end.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses to wait. A device that was removed is no error.
    fn run(&mut self, tasks: &mut ProcessTasks<'_>) -> io::Result<Time> {
        self.polled = self.writer.ports.iter().map(|port| system::readable(port.as_fd())).collect();
        self.watch(tasks);
        let mut last_look = self.clock.now();
        self.seen = last_look;
        loop {
            self.read_all();
            let now = self.clock.now();
            self.resumes(now, Span::ZERO);
            self.path.advance(now, &mut self.writer);
            if now.saturating_since(last_look) >= LOOK || now >= tasks.deadline() {
                last_look = now;
                self.intake.sleeps();
                if !tasks.attend(now, &mut self.path) {
                    return Ok(now);
                }
                self.watch(tasks);
            }
            let due = self.path.next_time();
            if std::mem::take(&mut self.writer.has_written) {
                self.pace.wrote(now);
            }
            if let Some((rest, for_packets)) = self.pace.rest(now, due) {
                self.sleep(now + rest, for_packets)?;
                continue;
            }
            if self.writer.ready.contains(&true) {
                continue;
            }
            let (until, for_packets) = match self.pace.wait(now, due.unwrap_or(Time::MAX)) {
                Wait::Until(until) => (until, true),
                Wait::Deaf(until) => (until, false),
                Wait::No => {
                    self.writer.ready.fill(true);
                    continue;
                }
            };
            if self.sleep(until.min(tasks.deadline()), for_packets)? {
                last_look = self.clock.now();
                if !tasks.attend(last_look, &mut self.path) {
                    return Ok(last_look);
                }
                self.watch(tasks);
            }
        }
    }

    /// Records that the loop runs at `now`; it slept for `slept`. Returns for how long the process
    /// was stopped.
    fn resumes(&mut self, now: Time, slept: Span) -> Span {
        let absence = now.saturating_since(self.seen + slept);
        self.seen = now;
        self.intake.resumes(now, absence)
    }

    /// Polls the current descriptors of the background tasks.
    fn watch(&mut self, tasks: &ProcessTasks<'_>) {
        self.polled.truncate(self.writer.ports.len());
        self.polled.extend(tasks.watched().map(system::readable));
    }

    /// Reads waiting packets, a limited batch from each port.
    fn read_all(&mut self) {
        for port in 0..self.writer.ports.len() {
            if !self.writer.ready[port] {
                continue;
            }
            let mut now = self.clock.now();
            for _ in 0..BATCH {
                let read = self.writer.ports[port].read(self.path.scratch());
                let Ok(Some((offload, length))) = read else {
                    // Packets not seen in this poll arrived after `now`.
                    self.intake.empty(port, now);
                    self.writer.ready[port] = false;
                    break;
                };
                now = self.clock.now();
                let (came, waited) = self.intake.read(port, now);
                self.path.advance(came, &mut self.writer);
                let route = match &self.router {
                    Some(router) => router.route(port, &self.path.scratch()[..length]),
                    None => port as u16,
                };
                self.path.receive(route, offload, length, came, waited);
            }
        }
    }

    /// Sleeps until `until`, or until a packet is readable if `for_packets`. Returns whether the
    /// background tasks have a readable descriptor.
    fn sleep(&mut self, until: Time, for_packets: bool) -> io::Result<bool> {
        let now = self.clock.now();
        self.resumes(now, Span::ZERO);
        let before = if for_packets { self.intake.sleeps() } else { Span::ZERO };
        let until = until.min(now + WATCH);
        let Some(length) = until.as_nanos().checked_sub(now.as_nanos()) else {
            return Ok(false);
        };
        self.polled.iter_mut().for_each(|each| each.revents = 0);
        let ports = self.writer.ports.len();
        let watched = if for_packets { 0 } else { ports };
        system::wait_for(&mut self.polled[watched..], Some(Duration::from_nanos(length)))?;
        let woken = self.clock.now();
        let asked = Span::from_nanos(length);
        let stopped = self.resumes(woken, asked);
        self.pace.left(woken.saturating_since(now));
        let is_early = self.polled.iter().any(|each| each.revents != 0);
        if !is_early {
            let late = woken.saturating_since(now + asked);
            self.wakeups.note(late);
            self.pace.woke(asked, late);
        }
        if for_packets {
            let readable = self.polled[..ports].iter().map(|each| each.revents != 0);
            // If a background descriptor is readable too, the cause of the wake-up is unknown.
            let is_for_steward = self.polled[ports..].iter().any(|each| each.revents != 0);
            let until = if is_for_steward { Time::ZERO } else { until };
            self.intake.woke(woken, before, until, stopped, readable.clone());
            let mut has_packets = false;
            for (ready, is_readable) in self.writer.ready.iter_mut().zip(readable) {
                *ready |= is_readable;
                has_packets |= is_readable;
            }
            if has_packets {
                self.pace.interrupted(woken);
            }
        } else {
            self.writer.ready.fill(true);
        }
        Ok(self.polled[ports..].iter().any(|each| each.revents != 0))
    }
}
