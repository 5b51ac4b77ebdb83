//! How long packets wait before they are read.
//!
//! # Model
//! A TUN device hands packets out without their times, so the emulator cannot
//! know when a packet came. It knows the earliest moment at which it can have:
//! after the device was last found empty. While the loop sleeps, the device
//! is watched by the kernel, which makes the loop runnable when the first packet
//! comes; how long it was runnable and did not run is in `schedstat`. A packet
//! that ends the sleep came when that wait began, at the earliest. The time
//! from the earliest moment to the reading is an upper bound, and is what is
//! reported.
//!
//! A packet that alone can have ended a sleep made the loop runnable when it came. It
//! *arrives* at that moment, whenever it is read: a path that holds it for longer than it
//! waited does not add the wait to its delay. All other packets arrive when they are read.
//!
//! # Differences
//! 1. A process that is stopped (SIGSTOP, a frozen control group) does not wait
//!    to run: packets that come meanwhile wait longer than is said.

use aqmlab_core::{Span, Time};
use aqmlab_sim::network::probe::TimeHistogram;

use crate::sys::time::RunDelay;

/// The time of the longest lateness is kept for each of these.
pub const INTERVAL: Span = Span::from_secs(1);

/// The longest lateness of each interval.
#[derive(Debug, Default)]
pub struct Course {
    /// By number of the interval; what no packet was in is zero.
    most: Vec<Span>,
}

impl Course {
    /// A packet was late by this.
    #[inline]
    pub fn note(&mut self, now: Time, late: Span) {
        let number = (now.as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.most.len() <= number {
            self.most.resize(number + 1, Span::ZERO);
        }
        self.most[number] = self.most[number].max(late);
    }

    /// The ends of the intervals up to `end`, and the longest lateness in each.
    pub fn until(&self, end: Time) -> impl Iterator<Item = (Time, Span)> {
        let at = move |number: usize| (Time::ZERO + INTERVAL * (number as u64 + 1)).min(end);
        self.most.iter().enumerate().map(move |(number, most)| (at(number), *most))
    }
}

/// Times the reading.
pub struct Intake {
    /// By port: packets that are in the device came after this.
    since: Vec<Time>,
    /// The port whose next packet has ended a sleep: it came at `since`.
    ended_by: Option<usize>,
    run_delay: Option<RunDelay>,
    /// How long packets waited to be read, at most.
    pub lateness: TimeHistogram,
    /// The longest of each second.
    pub course: Course,
}

impl Intake {
    /// For so many ports. To be called by the thread that reads.
    pub fn new(ports: usize) -> Self {
        let (lateness, course) = (TimeHistogram::new(), Course::default());
        let (since, run_delay) = (vec![Time::ZERO; ports], RunDelay::open());
        Intake { since, ended_by: None, run_delay, lateness, course }
    }

    /// Whether the kernel tells how long a sleeper waited to run.
    pub fn sees_sleep(&self) -> bool {
        self.run_delay.is_some()
    }

    /// The loop was at work at `now` and goes to sleep: how long it has waited
    /// to run so far.
    pub fn sleeps(&mut self) -> Span {
        self.run_delay.as_mut().map_or(Span::ZERO, RunDelay::read)
    }

    /// It has slept, and is awake at `now`; `before` is what [`sleeps`](Self::sleeps)
    /// said. `readable` are the ports that have something; nothing else has ended the sleep
    /// before `until`.
    pub fn woke(
        &mut self,
        now: Time,
        before: Span,
        until: Time,
        readable: impl Iterator<Item = bool>,
    ) {
        let (mut ready, mut ports) = (None, 0);
        self.ended_by = None;
        for (port, (since, is_readable)) in self.since.iter_mut().zip(readable).enumerate() {
            let earliest = match is_readable {
                false => now,
                true => *ready.get_or_insert_with(|| {
                    let waited = self.run_delay.as_mut().map_or(Span::ZERO, RunDelay::read);
                    Time::ZERO + now.saturating_since(Time::ZERO + waited.saturating_sub(before))
                }),
            };
            *since = earliest.max(*since);
            if is_readable {
                ports += 1;
                // What the loop was woken for at `until` or later may be the time.
                self.ended_by = (ports == 1 && *since < until).then_some(port);
            }
        }
    }

    /// The device of a port is empty at `now`.
    #[inline]
    pub fn empty(&mut self, port: usize, now: Time) {
        self.since[port] = now;
    }

    /// Something was read from a port: when it arrives, and how long it has waited before
    /// that, at most.
    #[inline]
    pub fn read(&mut self, port: usize, now: Time) -> (Time, Span) {
        let since = self.since[port];
        let late = now.saturating_since(since);
        self.lateness.note_many(late, 1);
        self.course.note(now, late);
        if self.ended_by == Some(port) {
            self.ended_by = None;
            return (since, Span::ZERO);
        }
        (now, late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    #[test]
    fn a_packet_came_after_its_device_was_empty() {
        let mut intake = Intake::new(2);
        intake.empty(0, at(100));
        intake.empty(1, at(400));
        assert_eq!(intake.read(0, at(450)), (at(450), Span::from_micros(350)));
        assert_eq!(intake.read(1, at(450)), (at(450), Span::from_micros(50)));
        assert_eq!(intake.lateness.max(), Span::from_micros(350));
    }

    /// Of two ports, without the kernel's word: a sleeper ran at once.
    fn woken(until: Time, readable: [bool; 2]) -> Intake {
        let mut intake = Intake::new(2);
        intake.run_delay = None;
        intake.woke(at(5000), Span::ZERO, until, readable.into_iter());
        intake
    }

    #[test]
    fn what_ends_a_sleep_came_when_the_sleeper_became_runnable() {
        let micros = Span::from_micros;
        let mut intake = woken(Time::MAX, [true, false]);
        assert_eq!(intake.read(0, at(5003)), (at(5000), Span::ZERO));
        assert_eq!(intake.lateness.max(), micros(3));
        // What follows may have come later.
        assert_eq!(intake.read(0, at(5004)), (at(5004), micros(4)));
        // A port that had nothing at the time may have something a moment later.
        assert_eq!(intake.read(1, at(5010)), (at(5010), micros(10)));
    }

    #[test]
    fn where_something_else_may_have_ended_the_sleep_packets_arrive_when_they_are_read() {
        for (until, readable) in [(at(5000), [true, false]), (Time::MAX, [true, true])] {
            let mut intake = woken(until, readable);
            let read = intake.read(0, at(5003));
            assert_eq!(read, (at(5003), Span::from_micros(3)));
        }
    }

    #[test]
    fn the_longest_of_each_second_is_kept() {
        let mut course = Course::default();
        course.note(at(500_000), Span::from_micros(7));
        course.note(at(600_000), Span::from_micros(3));
        course.note(at(2_100_000), Span::from_micros(5));
        let found: Vec<(Time, Span)> = course.until(at(2_500_000)).collect();
        let micros = Span::from_micros;
        let ends =
            [(at(1_000_000), micros(7)), (at(2_000_000), micros(0)), (at(2_500_000), micros(5))];
        assert_eq!(found, ends);
    }
}
