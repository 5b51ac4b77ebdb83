//! The loop that drives a data path in real time.
//!
//! # Model
//! Packets that the kernel has are read, and arrive when they are read. What
//! is due is written. In between the loop waits for whichever comes first,
//! the next packet or the next deadline; how exactly it waits for a deadline is
//! a matter of [`Precision`]. A deadline that is met late delays what was due
//! by that much, and nothing after it: the data path goes by its own schedule.
//!
//! How late every packet was written is recorded, and how late the kernel woke
//! the loop when it had asked for a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use aqmlab_core::{Span, Time, choices};
use aqmlab_sim::network::probe::Sojourn;

use crate::nat::Gate;
use crate::path::{DataPath, Departure, Exits, Tally};
use crate::sys::device::Tun;
use crate::sys::time as system;
use crate::topology::Router;

choices! {
    /// How the emulator waits for the time of a departure.
    pub enum Precision {
        /// It sleeps, 100 us at least, and comes as late as the kernel wakes it.
        LowCpu = "low-cpu",
        /// It sleeps until shortly before, and looks at the clock from then on.
        Balanced = "balanced",
        /// It looks at the clock and at the devices all the time.
        Exact = "exact",
    }
}

/// So long before a deadline the balanced loop no longer sleeps, at least: a
/// kernel that is not busy wakes a process within this time. Deadlines that
/// follow each other faster than that are slept for to the end: looking at the
/// clock all the time would take a whole processor and gain a few microseconds.
const SPIN: Span = Span::from_micros(20);
/// A processor that has slept for long wakes slowly: of a longer sleep this
/// part (1.6 %) is spent looking at the clock, up to the most.
const SPIN_SHARE: u64 = 64;
const MOST_SPIN: Span = Span::from_micros(120);

/// How long before a deadline that is `ahead` the balanced loop wakes.
fn spin_before(ahead: Span) -> Span {
    (SPIN + Span::from_nanos(ahead.as_nanos() / SPIN_SHARE)).min(MOST_SPIN)
}

/// The loop that saves processor time sleeps at least so long, and writes
/// together what was due meanwhile.
const GATHERED: Span = Span::from_micros(100);
/// The loop that never sleeps rests for so long once in a while, when nothing is
/// due and unless something comes: of a real-time process that never gives its
/// processor up the kernel takes it for 50 ms in each second.
const REST: Span = Span::from_micros(100);
const REST_EVERY: Span = Span::from_millis(1);
/// The port of the far end.
pub const FAR: u16 = 1;
/// Packets that are read from one port before the others are looked at.
const BATCH: usize = 16;
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
    /// How late packets were written.
    pub lateness: Sojourn,
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
    /// The name of a device.
    pub fn name_of(&self, port: u16) -> &str {
        &self.ports[usize::from(port)].name
    }
}

impl Exits for Writer {
    fn send(&mut self, departure: &Departure<'_>) {
        if let Some(gate) = self.gate.as_mut().filter(|_| departure.exit == FAR)
            && !gate.admits(departure)
        {
            self.unroutable += u64::from(departure.packets);
            return;
        }
        let port = &self.ports[usize::from(departure.exit)];
        let late = self.clock.now().saturating_since(departure.due);
        self.lateness.note_many(late, u64::from(departure.packets));
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
    /// How late the kernel woke the loop.
    pub wakeups: Sojourn,
    /// Chooses the routes of packets; without one, that of a port has its number.
    pub router: Option<Router>,
    clock: Clock,
    precision: Precision,
    /// What is waited for: the devices, then what the steward watches.
    polled: Vec<system::Polled>,
}

impl Live {
    /// Drives `path` between these devices, the first of which is port 0.
    pub fn new(path: DataPath, ports: Vec<Tun>, precision: Precision, clock: Clock) -> Self {
        let (lateness, refused) = (Sojourn::new(), Tally::default());
        let writer =
            Writer { ports, clock, lateness, refused, gate: None, unroutable: 0, overrun: 0 };
        let (wakeups, router, polled) = (Sojourn::new(), None, Vec::new());
        Live { path, writer, wakeups, router, clock, precision, polled }
    }

    /// Runs until the steward has enough.
    ///
    /// # Errors
    /// If the kernel refuses to wait; a device that is gone is no error.
    pub fn run(&mut self, steward: &mut impl Steward) -> io::Result<Time> {
        let ports = self.writer.ports.iter().map(AsFd::as_fd);
        self.polled = ports.chain(steward.watched()).map(system::readable).collect();
        let mut last_look = self.clock.now();
        let (mut awaited, mut last_rest) = (Time::ZERO, last_look);
        loop {
            let has_read = self.read_all();
            let now = self.clock.now();
            self.path.advance(now, &mut self.writer);
            if now.saturating_since(last_look) >= LOOK || now >= steward.deadline() {
                last_look = now;
                if !steward.attend(now, &mut self.path) {
                    return Ok(now);
                }
            }
            if has_read {
                continue;
            }
            let due = self.path.next_time().unwrap_or(Time::MAX);
            if self.precision == Precision::Exact {
                let is_time = now.saturating_since(last_rest) >= REST_EVERY;
                if is_time && due > now + REST * 3 {
                    self.sleep((now + REST).min(steward.deadline()), Span::ZERO)?;
                    last_rest = self.clock.now();
                }
                continue;
            }
            let is_near = due <= now + SPIN;
            if due <= now || (is_near && due == awaited) {
                continue;
            }
            let due = match self.precision {
                Precision::LowCpu => due.max(now + GATHERED),
                _ => due,
            };
            let spin = match self.precision {
                Precision::Balanced if !is_near => spin_before(due.saturating_since(now)),
                _ => Span::ZERO,
            };
            awaited = if spin > Span::ZERO { due } else { Time::ZERO };
            if self.sleep(due.min(steward.deadline()), spin)? {
                last_look = self.clock.now();
                if !steward.attend(last_look, &mut self.path) {
                    return Ok(last_look);
                }
            }
        }
    }

    /// Reads what there is, some from each port; whether there may be more.
    fn read_all(&mut self) -> bool {
        let mut has_read = false;
        for port in 0..self.writer.ports.len() {
            for _ in 0..BATCH {
                let read = self.writer.ports[port].read(self.path.scratch());
                let Ok(Some((offload, length))) = read else { break };
                let now = self.clock.now();
                self.path.advance(now, &mut self.writer);
                let route = match &self.router {
                    Some(router) => router.route(port, &self.path.scratch()[..length]),
                    None => port as u16,
                };
                self.path.receive(route, offload, length, now);
                has_read = true;
            }
        }
        has_read
    }

    /// Sleeps until shortly before `until`, or until there is something to
    /// read; whether that is for the steward.
    fn sleep(&mut self, until: Time, spin: Span) -> io::Result<bool> {
        let now = self.clock.now();
        let Some(length) = until.as_nanos().checked_sub((now + spin).as_nanos()) else {
            return Ok(false);
        };
        let length = (until != Time::MAX).then(|| Duration::from_nanos(length));
        self.polled.iter_mut().for_each(|each| each.revents = 0);
        system::wait_for(&mut self.polled, length)?;
        let is_early = self.polled.iter().any(|each| each.revents != 0);
        if let (false, Some(length)) = (is_early, length) {
            let asked = now + Span::from_nanos(length.as_nanos() as u64);
            self.wakeups.note(self.clock.now().saturating_since(asked));
        }
        Ok(self.polled[self.writer.ports.len()..].iter().any(|each| each.revents != 0))
    }
}
