//! The loop that drives a data path in real time.
//!
//! # Model
//! Packets that the kernel has are read, and arrive when they are read, or before if that is
//! known (`intake`). What is due is written. In between the loop waits for whichever comes first,
//! the next packet or the next deadline; how exactly it waits for a deadline is
//! a matter of [`Precision`] (`pace`). A deadline that is met late delays what was due
//! by that much, and nothing after it: the data path goes by its own schedule.
//!
//! How late a packet is has two parts, which are recorded: how long it waited to be
//! read (`intake`), and how long after its time it was written. Recorded is also how
//! late the kernel woke the loop when it had asked for a time.

pub mod intake;
pub mod pace;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::probe::TimeHistogram;

use self::intake::{Course, Intake};
pub use self::pace::Precision;
use self::pace::{Pace, Wait};
use crate::nat::{Gate, Verdict};
use crate::path::{DataPath, Departure, Exits, Tally};
use crate::routing::Router;
use crate::sys::device::Tun;
use crate::sys::time as system;

/// The port of the far end.
pub const FAR: u16 = 1;
/// Packets that are read from one port before the others are looked at.
const BATCH: usize = 64;
/// How often signals are looked for while the loop does not sleep.
const LOOK: Span = Span::from_millis(5);

/// The time since a moment that is zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: u64,
}

impl Clock {
    /// It is zero now.
    pub fn start() -> Self {
        Clock { zero: system::monotonic() }
    }
    /// The moment that is zero, by the monotonic clock in nanoseconds.
    pub fn zero(&self) -> u64 {
        self.zero
    }
    /// The time now.
    pub fn now(&self) -> Time {
        Time::from_nanos(system::monotonic() - self.zero)
    }
}

/// Writes what leaves, and records how late.
pub struct Writer {
    ports: Vec<Tun>,
    clock: Clock,
    /// How late packets left: how long they waited to be read, and how long after their
    /// time they were written.
    pub lateness: TimeHistogram,
    /// The longest of each second.
    pub course: Course,
    /// By port: whether it may have something to read. What is written is often
    /// answered at once.
    ready: Vec<bool>,
    /// Whether something was written since this was last set back.
    has_written: bool,
    /// Packets that a device did not take.
    pub refused: Tally,
    /// What leaves for the gateway passes here first.
    pub gate: Option<Gate>,
    /// Packets that the gate did not let pass.
    pub unroutable: u64,
    /// Packets, large ones counted once, that came faster than they were read.
    pub overrun: u64,
}

impl Writer {
    /// What the gate refused.
    pub fn remarks(&self) -> Vec<String> {
        self.gate.as_ref().map(Gate::remarks).unwrap_or_default()
    }
    /// The name of a device.
    pub fn name_of(&self, port: u16) -> &str {
        &self.ports[usize::from(port)].name
    }
}

impl Exits for Writer {
    fn send(&mut self, departure: &Departure<'_>) {
        if let Some(gate) = self.gate.as_mut().filter(|_| departure.exit == FAR) {
            match gate.admits(departure) {
                Verdict::Passes => {}
                Verdict::Held => return,
                Verdict::NoRoute => return self.unroutable += u64::from(departure.packets),
            }
        }
        let port = &self.ports[usize::from(departure.exit)];
        let now = self.clock.now();
        let late = now.saturating_since(departure.due) + departure.waited;
        self.lateness.note_many(late, u64::from(departure.packets));
        self.course.note(now, late);
        self.has_written = true;
        self.ready[usize::from(departure.exit)] = true;
        if port.write(departure.offload, departure.parts).is_err() {
            self.refused.packets += u64::from(departure.packets);
            self.refused.bytes += departure.parts.iter().map(|part| part.len() as u64).sum::<u64>();
        }
    }
}

/// What else happens while packets pass.
pub trait Steward {
    /// Descriptors to wait for besides the devices.
    fn watched(&self) -> [BorrowedFd<'_>; 2];
    /// One of them can be read, or a while has passed. Whether to go on.
    fn attend(&mut self, now: Time, path: &mut DataPath) -> bool;
    /// When to attend at the latest; [`Time::MAX`] for never.
    fn deadline(&self) -> Time;
}

/// The loop.
pub struct Live {
    /// The path.
    pub path: DataPath,
    /// Its ends.
    pub writer: Writer,
    /// How long packets waited to be read.
    pub intake: Intake,
    /// How late the kernel woke the loop.
    pub wakeups: TimeHistogram,
    /// Chooses the routes of packets; without one, that of a port has its number.
    pub router: Option<Router>,
    clock: Clock,
    /// Chooses when to sleep.
    pub pace: Pace,
    /// What is waited for: the devices, then what the steward watches.
    polled: Vec<system::Polled>,
}

impl Live {
    /// Drives `path` between these devices, the first of which is port 0. To be called by
    /// the thread that [runs](Self::run) it, when it has its priority.
    pub fn new(path: DataPath, ports: Vec<Tun>, precision: Precision, clock: Clock) -> Self {
        let (intake, ready) = (Intake::new(ports.len()), vec![true; ports.len()]);
        let writer = Writer {
            ports,
            clock,
            lateness: TimeHistogram::new(),
            course: Course::default(),
            ready,
            has_written: false,
            refused: Tally::default(),
            gate: None,
            unroutable: 0,
            overrun: 0,
        };
        let pace = Pace::new(precision, system::is_real_time(), system::wake_up_cost);
        let (wakeups, router, polled) = (TimeHistogram::new(), None, Vec::new());
        Live { path, writer, intake, wakeups, router, clock, pace, polled }
    }

    /// Runs until the steward has enough.
    ///
    /// # Errors
    /// If the kernel refuses to wait; a device that is gone is no error.
    pub fn run(&mut self, steward: &mut impl Steward) -> io::Result<Time> {
        self.polled = self.writer.ports.iter().map(|port| system::readable(port.as_fd())).collect();
        self.watch(steward);
        let mut last_look = self.clock.now();
        loop {
            self.read_all();
            let now = self.clock.now();
            self.path.advance(now, &mut self.writer);
            if now.saturating_since(last_look) >= LOOK || now >= steward.deadline() {
                last_look = now;
                if !steward.attend(now, &mut self.path) {
                    return Ok(now);
                }
                self.watch(steward);
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
            if self.sleep(until.min(steward.deadline()), for_packets)? {
                last_look = self.clock.now();
                if !steward.attend(last_look, &mut self.path) {
                    return Ok(last_look);
                }
                self.watch(steward);
            }
        }
    }

    /// Waits for what the steward watches now.
    fn watch(&mut self, steward: &impl Steward) {
        self.polled.truncate(self.writer.ports.len());
        self.polled.extend(steward.watched().map(system::readable));
    }

    /// Reads what there is, some from each port.
    fn read_all(&mut self) {
        for port in 0..self.writer.ports.len() {
            if !self.writer.ready[port] {
                continue;
            }
            let mut now = self.clock.now();
            for _ in 0..BATCH {
                let read = self.writer.ports[port].read(self.path.scratch());
                let Ok(Some((offload, length))) = read else {
                    // What comes after the look has come after `now`.
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
                self.path.receive_late(route, offload, length, came, waited);
            }
        }
    }

    /// Sleeps until `until`, or until there is something to read if it is `for_packets` too;
    /// whether there is something for the steward.
    fn sleep(&mut self, until: Time, for_packets: bool) -> io::Result<bool> {
        let before = if for_packets { self.intake.sleeps() } else { Span::ZERO };
        let now = self.clock.now();
        let Some(length) = until.as_nanos().checked_sub(now.as_nanos()) else {
            return Ok(false);
        };
        let length = (until != Time::MAX).then(|| Duration::from_nanos(length));
        self.polled.iter_mut().for_each(|each| each.revents = 0);
        let ports = self.writer.ports.len();
        let watched = if for_packets { 0 } else { ports };
        system::wait_for(&mut self.polled[watched..], length)?;
        let woken = self.clock.now();
        self.pace.left(woken.saturating_since(now));
        let is_early = self.polled.iter().any(|each| each.revents != 0);
        if let (false, Some(length)) = (is_early, length) {
            let asked = Span::from_nanos(length.as_nanos() as u64);
            let late = woken.saturating_since(now + asked);
            self.wakeups.note(late);
            self.pace.woke(asked, late);
        }
        if for_packets {
            let readable = self.polled[..ports].iter().map(|each| each.revents != 0);
            // Nobody knows what ended it if there is something for the steward too.
            let is_for_steward = self.polled[ports..].iter().any(|each| each.revents != 0);
            let until = if is_for_steward { Time::ZERO } else { until };
            self.intake.woke(woken, before, until, readable.clone());
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
